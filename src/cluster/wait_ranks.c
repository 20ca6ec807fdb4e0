#include "cluster/wait_ranks.h"

#include <time.h>

#include "cluster/watchdog.h"

ps_code ps_wait_for_ranks(const ps_cluster *cluster, ps_code code, const char *stage, ps_error *error) {
    const struct timespec pause = {.tv_nsec = 5000000};
    MPI_Request request = MPI_REQUEST_NULL;
    int all_here = 0;
    ps_code waiting = PS_MPI(error, MPI_Ibarrier(cluster->communicator, &request));
    while (waiting == PS_OK) {
        waiting = PS_MPI(error, MPI_Test(&request, &all_here, MPI_STATUS_IGNORE));
        if (all_here) break;
        ps_watchdog_beat(stage, -1);
        nanosleep(&pause, NULL);
    }
    return ps_cluster_agree(cluster, code != PS_OK ? code : waiting, error);
}
