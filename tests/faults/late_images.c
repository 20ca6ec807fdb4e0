/* The program, with a backend whose images arrive late, as from a device: until ps_backend_host_wait has returned, a block holds no
 * numbers.
 *
 *   PS_IMAGES=N          room for N images on their way to the output
 *   PS_LATE_RANKS=MASK   the ranks that the next three strike (0: none)
 *   PS_LOST_IMAGE=N      the N-th image never arrives: the device is lost
 *   PS_BAD_IMAGE=N       the N-th image holds an infinity
 *   PS_STOP_FRAME=N      SIGTERM comes while the N-th frame is reduced
 *   PS_AS_DEVICE=1       it is planned for as a device is: several frames may wait to be written
 *   PS_FEW_THREADS=1     MPI allows calls by one thread only
 *
 * These definitions of ps_backend_choose and ps_images_at_once take the place of the program's. */
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "plan/backend_choice.h"
#include "plan/images_at_once.h"

enum { MOST_BLOCKS = 64 };
static struct {
    float *block, *arriving; /* arriving: what will be there; NULL: nothing is on its way */
    bool is_lost;
} blocks[MOST_BLOCKS];
static int64_t n_blocks, n_floats;
static int n_sent, n_reduced;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static bool strikes(const char *what, int now) {
    int rank = 0;
    const char *at = getenv(what), *ranks = getenv("PS_LATE_RANKS");
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return at && ranks && (atoi(ranks) >> rank & 1) && atoi(at) == now;
}

static ps_code allocate(ps_backend *backend, int64_t n, int64_t floats, float **wanted, ps_error *error) {
    (void)backend;
    if (n > MOST_BLOCKS) return PS_FAIL(error, PS_E_MEMORY, "%lld blocks, expected up to %d", (long long)n, MOST_BLOCKS);
    n_blocks = n;
    n_floats = floats;
    for (int64_t i = 0; i < n; i++) wanted[i] = blocks[i].block = malloc((size_t)floats * sizeof(float));
    return PS_OK;
}

static void release(ps_backend *backend, int64_t n, float **wanted) {
    (void)backend;
    (void)wanted;
    for (int64_t i = 0; i < n && i < MOST_BLOCKS; i++) {
        free(blocks[i].block);
        free(blocks[i].arriving);
        memset(&blocks[i], 0, sizeof blocks[i]);
    }
}

static ps_code arrive(ps_backend *backend, const float *block, ps_error *error) {
    ps_code code = PS_OK;
    (void)backend;
    pthread_mutex_lock(&mutex);
    for (int64_t i = 0; i < n_blocks; i++) {
        if (blocks[i].block != block || !blocks[i].arriving) continue;
        if (blocks[i].is_lost) code = PS_FAIL(error, PS_E_DEVICE, "the device fell off the bus with an image");
        memcpy(blocks[i].block, blocks[i].arriving, (size_t)n_floats * sizeof(float));
        free(blocks[i].arriving);
        blocks[i].arriving = NULL;
    }
    pthread_mutex_unlock(&mutex);
    return code;
}

/* What an operation has put there is on its way from now on. */
static void send(float *image) {
    pthread_mutex_lock(&mutex);
    for (int64_t i = 0; image && i < n_blocks; i++) {
        if (blocks[i].block != image) continue;
        n_sent++;
        if (strikes("PS_BAD_IMAGE", n_sent)) image[n_floats / 2] = INFINITY;
        blocks[i].is_lost = strikes("PS_LOST_IMAGE", n_sent);
        free(blocks[i].arriving);
        blocks[i].arriving = malloc((size_t)n_floats * sizeof(float));
        memcpy(blocks[i].arriving, image, (size_t)n_floats * sizeof(float));
        for (int64_t k = 0; k < n_floats; k++) image[k] = NAN;
    }
    pthread_mutex_unlock(&mutex);
}

/* Other ranks than those that are struck take their time, so that these get that far. */
static ps_code reduce(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    const struct timespec while_others_work = {.tv_nsec = 300000000};
    const char *ranks = getenv("PS_LATE_RANKS");
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (ranks && !(atoi(ranks) >> rank & 1)) nanosleep(&while_others_work, NULL);
    for (int64_t i = 0; i < n_frames; i++)
        if (strikes("PS_STOP_FRAME", ++n_reduced)) raise(SIGTERM);
    return ps_backend_cpu_fast.frame_reduce(frames, n_frames, dose, error);
}

static ps_code solve(ps_frame *frame, ps_methods method, int64_t n_strengths, const ps_strength *strengths, const ps_solution *solution,
                     ps_error *error) {
    PS_TRY(ps_backend_cpu_fast.solve(frame, method, n_strengths, strengths, solution, error));
    for (int64_t i = 0; i < n_strengths; i++) {
        send(ps_solution_phase_f32(solution, i, n_floats));
        send(ps_solution_log_amplitude_f32(solution, i, n_floats));
    }
    return PS_OK;
}

static ps_code ssb(ps_frame *frame, ps_ssb_estimator estimator, float *f32, double *f64, double *loss, ps_error *error) {
    PS_TRY(ps_backend_cpu_fast.ssb(frame, estimator, f32, f64, loss, error));
    send(f32);
    return PS_OK;
}

static ps_code right_side_image(ps_frame *frame, float *f32, double *f64, ps_error *error) {
    PS_TRY(ps_backend_cpu_fast.right_side_image(frame, f32, f64, error));
    send(f32);
    return PS_OK;
}

ps_code ps_backend_choose(const ps_job *job, int node_rank, int n_node_ranks, const ps_backend_ops **ops, ps_backend_options *options,
                          ps_error *error) {
    static const ps_host_ops host = {allocate, release, arrive};
    static ps_backend_ops late;
    (void)job, (void)node_rank, (void)n_node_ranks, (void)error;
    late = ps_backend_cpu_fast;
    late.frame_reduce = reduce;
    late.solve = solve;
    late.ssb = ssb;
    late.right_side_image = right_side_image;
    late.host = &host;
    if (getenv("PS_AS_DEVICE")) late.name = "cuda";
    *ops = &late;
    *options = (ps_backend_options){0};
    return PS_OK;
}

int64_t ps_images_at_once(int64_t per_frame, int64_t n_frames, size_t image_bytes, const ps_memory_share *share) {
    (void)per_frame, (void)n_frames, (void)image_bytes, (void)share;
    return atoi(getenv("PS_IMAGES"));
}

int MPI_Init_thread(int *n, char ***arguments, int wanted, int *provided) {
    bool few = getenv("PS_FEW_THREADS") != NULL;
    int status = PMPI_Init_thread(n, arguments, few ? MPI_THREAD_FUNNELED : wanted, provided);
    if (few) *provided = MPI_THREAD_FUNNELED;
    return status;
}

int main(int n_arguments, char **arguments) {
    return ps_command_run(n_arguments - 2, arguments + 2);
}
