#include "cluster/cluster.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/lock.h"

ps_code ps_mpi_check(int status, const char *call, const char *file, int line, ps_error *error) {
    if (status == MPI_SUCCESS) return PS_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(status, text, &length);
    return ps_error_set(error, PS_E_MPI, file, line, "%.*s: %s", (int)strcspn(call, "("), call, text);
}

static ps_code find_node(ps_cluster *cluster, ps_error *error) {
    MPI_Comm node = MPI_COMM_NULL;
    int length = 0;
    PS_TRY(PS_MPI(error, MPI_Comm_split_type(cluster->communicator, MPI_COMM_TYPE_SHARED, cluster->rank, MPI_INFO_NULL, &node)));
    MPI_Comm_rank(node, &cluster->node_rank);
    MPI_Comm_size(node, &cluster->n_node_ranks);
    MPI_Comm_free(&node);
    int is_first = cluster->node_rank == 0;
    PS_TRY(PS_MPI(error, MPI_Allreduce(&is_first, &cluster->n_nodes, 1, MPI_INT, MPI_SUM, cluster->communicator)));
    return PS_MPI(error, MPI_Get_processor_name(cluster->host, &length));
}

ps_code ps_cluster_begin(ps_cluster *cluster, ps_error *error) {
    int provided = MPI_THREAD_SINGLE;
    *cluster = (ps_cluster){.communicator = MPI_COMM_NULL, .n_ranks = 1};
    PS_TRY(PS_MPI(error, MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided)));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    cluster->communicator = MPI_COMM_WORLD;
    cluster->threads = provided == MPI_THREAD_MULTIPLE;
    MPI_Comm_rank(cluster->communicator, &cluster->rank);
    MPI_Comm_size(cluster->communicator, &cluster->n_ranks);
    return find_node(cluster, error);
}

void ps_cluster_end(ps_cluster *cluster, int status) {
    if (cluster->communicator == MPI_COMM_NULL) return;
    if (ps_hdf5_is_broken()) MPI_Abort(cluster->communicator, status);
    cluster->communicator = MPI_COMM_NULL;
    MPI_Finalize();
}

ps_code ps_cluster_agree(const ps_cluster *cluster, ps_code code, ps_error *error) {
    if (cluster->n_ranks == 1) return code;
    int mine = code == PS_OK ? INT_MAX : cluster->rank, first = INT_MAX;
    if (MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, cluster->communicator) != MPI_SUCCESS)
        return PS_FAIL(error, PS_E_MPI, "MPI_Allreduce failed while ranks agreed on an error");
    if (first == INT_MAX) return PS_OK;
    struct {
        int code;
        char text[PS_ERROR_TEXT];
    } message = {0};
    if (cluster->rank == first) {
        message.code = (int)code;
        snprintf(message.text, sizeof message.text, "%s", error && error->code != PS_OK ? error->text : ps_code_name(code));
    }
    if (MPI_Bcast(&message, (int)sizeof message, MPI_BYTE, first, cluster->communicator) != MPI_SUCCESS)
        return PS_FAIL(error, PS_E_MPI, "MPI_Bcast failed while ranks agreed on an error");
    ps_error agreed = {0};
    PS_FAIL(&agreed, (ps_code)message.code, "rank %d: %.*s", first, PS_ERROR_TEXT - 32, message.text);
    if (error) *error = agreed;
    return agreed.code;
}

enum { LINE_BYTES = 512 };

static char *join_lines(const char *all, int n_lines) {
    char *joined = malloc((size_t)n_lines * LINE_BYTES + 1);
    size_t used = 0;
    for (int i = 0; joined && i < n_lines; i++) {
        size_t length = strnlen(all + (size_t)i * LINE_BYTES, LINE_BYTES - 1);
        memcpy(joined + used, all + (size_t)i * LINE_BYTES, length);
        used += length;
        if (i + 1 < n_lines) joined[used++] = '\n';
    }
    if (joined) joined[used] = '\0';
    return joined;
}

ps_code ps_cluster_gather_lines(const ps_cluster *cluster, const char *line, char **lines, ps_error *error) {
    char mine[LINE_BYTES] = "", *all = NULL;
    ps_code code = PS_OK;
    *lines = NULL;
    snprintf(mine, sizeof mine, "%s", line);
    if (cluster->rank == 0) {
        all = malloc((size_t)cluster->n_ranks * LINE_BYTES);
        if (!all) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for one line per rank");
    }
    PS_GO(ps_cluster_agree(cluster, code, error));
    PS_GO(PS_MPI(error, MPI_Gather(mine, LINE_BYTES, MPI_BYTE, all, LINE_BYTES, MPI_BYTE, 0, cluster->communicator)));
    if (cluster->rank == 0) {
        *lines = join_lines(all, cluster->n_ranks);
        if (!*lines) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for one line per rank");
    }
    code = ps_cluster_agree(cluster, code, error);
done:
    free(all);
    return code;
}
