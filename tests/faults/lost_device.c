/* The program, with a backend whose device is lost: PS_LOST_RANKS is a bit mask of ranks, PS_LOST_AFTER how many frames they finish first.
 * The other ranks take their time, so that those get that far before all frames are done. This definition of ps_backend_choose takes the
 * place of the program's. */
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

#include "cli/cli.h"
#include "reconstruct/backend_choice.h"

static int n_reduced;

static ps_code lose_device(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    const struct timespec while_others_lose = {.tv_nsec = 300000000};
    int rank = 0, losing = atoi(getenv("PS_LOST_RANKS"));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (losing >> rank & 1) {
        if (n_reduced++ >= atoi(getenv("PS_LOST_AFTER"))) return PS_FAIL(error, PS_E_DEVICE, "the device fell off the bus");
    } else if (losing) {
        nanosleep(&while_others_lose, NULL);
    }
    return ps_backend_cpu_fast.frame_reduce(frames, n_frames, dose, error);
}

ps_code ps_backend_choose(const ps_job *job, int node_rank, int n_node_ranks, const ps_backend_ops **ops, ps_backend_options *options,
                          ps_error *error) {
    static ps_backend_ops losing;
    (void)job;
    (void)node_rank;
    (void)n_node_ranks;
    (void)error;
    losing = ps_backend_cpu_fast;
    losing.frame_reduce = lose_device;
    *ops = &losing;
    *options = (ps_backend_options){0};
    return PS_OK;
}

int main(int n_arguments, char **arguments) {
    return ps_command_run(n_arguments - 2, arguments + 2);
}
