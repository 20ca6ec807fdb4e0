#include "cluster/gather_usage.h"

#include <stdlib.h>

ps_code ps_usage_gather(const ps_cluster *cluster, const ps_rank_usage *mine, ps_usage *usage, ps_error *error) {
    ps_code code = PS_OK;
    ps_rank_usage *all = cluster->rank == 0 ? malloc((size_t)cluster->n_ranks * sizeof *all) : NULL;
    if (cluster->rank == 0 && !all) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate the usage of each rank");
    PS_GO(ps_cluster_agree(cluster, code, error));
    PS_GO(PS_MPI(error, MPI_Gather(mine, sizeof *mine, MPI_BYTE, all, sizeof *mine, MPI_BYTE, 0, cluster->communicator)));
    if (all) ps_usage_combine(all, cluster->n_ranks, usage);
done:
    free(all);
    return code;
}
