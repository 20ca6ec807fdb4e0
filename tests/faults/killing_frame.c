/* The program, with a backend that does not survive some frames: one whose very first count is PS_KILLING_COUNT ends, when it is reduced,
 * in the way that PS_KILL_HOW says: "kill" the process, lose the "device", or "stop" as at the end of a job's time; or, as soon as it is
 * "read", by killing the process. PS_REDUCE_MS slows the others down, so that they are still at work then. This definition of
 * ps_backend_choose takes the place of the program's. Counts must be uint16. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "plan/backend_choice.h"

enum { MOST = 64 };
static ps_frame *killing[MOST];
static int n_killing;

static ps_code put(ps_frame *frame, int64_t first, int64_t n, const void *counts, ps_error *error) {
    const char *wanted = getenv("PS_KILLING_COUNT");
    const char *how = getenv("PS_KILL_HOW");
    bool kills = first == 0 && wanted && *(const uint16_t *)counts == atoi(wanted);
    if (kills && strcmp(how, "read") == 0) kill(getpid(), SIGKILL);
    if (kills && n_killing < MOST) killing[n_killing++] = frame;
    return ps_backend_cpu_fast.frame_upload(frame, first, n, counts, error);
}

static ps_code reduce(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    const char *how = getenv("PS_KILL_HOW");
    const char *slow = getenv("PS_REDUCE_MS");
    bool kills = false;
    for (int64_t i = 0; i < n_frames; i++)
        for (int k = 0; k < n_killing; k++) kills |= frames[i] == killing[k];
    if (kills && strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
    if (kills && strcmp(how, "device") == 0) return PS_FAIL(error, PS_E_DEVICE, "the device fell off the bus");
    if (kills && strcmp(how, "stop") == 0) raise(SIGTERM);
    if (slow) usleep((useconds_t)atoi(slow) * 1000);
    return ps_backend_cpu_fast.frame_reduce(frames, n_frames, dose, error);
}

/* A frame's place in memory may be another's later. */
static void destroy(ps_frame *frame) {
    for (int k = 0; k < n_killing; k++)
        if (killing[k] == frame) killing[k] = NULL;
    ps_backend_cpu_fast.frame_destroy(frame);
}

ps_code ps_backend_choose(const ps_job *job, int node_rank, int n_node_ranks, const ps_backend_ops **ops, ps_backend_options *options,
                          ps_error *error) {
    static ps_backend_ops deadly;
    (void)job, (void)node_rank, (void)n_node_ranks, (void)error;
    deadly = ps_backend_cpu_fast;
    deadly.frame_upload = put;
    deadly.frame_reduce = reduce;
    deadly.frame_destroy = destroy;
    *ops = &deadly;
    *options = (ps_backend_options){0};
    return PS_OK;
}

int main(int n_arguments, char **arguments) {
    return ps_command_run(n_arguments - 2, arguments + 2);
}
