/* Measures what scripts/cluster_model.py needs to know of a machine: one change of a shared counter, alone and from all ranks at once; one
 * log line into a file that all ranks append to; one write of a MiB to a shared file and one of 8 bytes through MPI-IO, which is what HDF5
 * calls. Run under mpirun; rank 0 prints one JSON object. usage: cluster_costs FOLDER */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/counters.h"
#include "core/log.h"

enum { N_CHANGES = 4000, N_LINES = 4000, N_WRITES = 24, N_SMALL = 2000, WRITE_BYTES = 1 << 20, LINE_BYTES = 120 };

typedef struct {
    const ps_cluster *cluster;
    ps_counters *counters;
    int log_file, data_file;
    MPI_File shared;
    char *block; /* [WRITE_BYTES] */
} bench;

static bool change_counters(bench *b) {
    const ps_counter_change add = {.operation = PS_COUNTER_ADD, .at = 0, .value = 1};
    int64_t before;
    for (int i = 0; i < N_CHANGES; i++)
        if (ps_counters_change(b->counters, &add, &before, NULL) != PS_OK) return false;
    return true;
}

static bool write_lines(bench *b) {
    for (int i = 0; i < N_LINES; i++)
        if (write(b->log_file, b->block, LINE_BYTES) != LINE_BYTES) return false;
    return true;
}

static bool write_blocks(bench *b, bool to_disk) {
    off_t base = (off_t)b->cluster->rank * N_WRITES * WRITE_BYTES;
    for (int i = 0; i < N_WRITES; i++) {
        if (pwrite(b->data_file, b->block, WRITE_BYTES, base + (off_t)i * WRITE_BYTES) != WRITE_BYTES) return false;
        if (to_disk && fdatasync(b->data_file) != 0) return false;
    }
    return true;
}

static bool write_small(bench *b) {
    MPI_Offset base = (MPI_Offset)b->cluster->rank * N_SMALL * 8;
    for (int i = 0; i < N_SMALL; i++)
        if (MPI_File_write_at(b->shared, base + i * 8, b->block, 8, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    return true;
}

static bool write_only(bench *b) {
    return write_blocks(b, false);
}
static bool write_and_sync(bench *b) {
    return write_blocks(b, true);
}

/* Seconds of one of n operations: of the last rank alone (the others wait), or of all at once by the slowest; -1: it failed. */
static double measure(bench *b, bool (*run)(bench *b), int n, bool all) {
    int good = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin_s = ps_seconds(), took_s;
    if (all || b->cluster->rank == b->cluster->n_ranks - 1) good = run(b);
    took_s = good ? ps_seconds() - begin_s : -1e9;
    if (!all && b->cluster->rank != b->cluster->n_ranks - 1) took_s = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &took_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return good ? took_s / n : -1;
}

static int open_in(const char *folder, const char *name, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, O_CREAT | O_RDWR | O_CLOEXEC | flags, 0600);
}

static void print(bench *b) {
    const struct {
        const char *name;
        bool (*run)(bench *b);
        int n;
    } what[] = {{"change", change_counters, N_CHANGES},
                {"line", write_lines, N_LINES},
                {"write", write_only, N_WRITES},
                {"small", write_small, N_SMALL},
                {"sync", write_and_sync, N_WRITES}};
    if (b->cluster->rank == 0) printf("{\"ranks\": %d, \"write_bytes\": %d", b->cluster->n_ranks, WRITE_BYTES);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
        double alone_s = measure(b, what[i].run, what[i].n, false), all_s = measure(b, what[i].run, what[i].n, true);
        if (b->cluster->rank == 0) printf(", \"%s_alone_s\": %.3g, \"%s_all_s\": %.3g", what[i].name, alone_s, what[i].name, all_s);
    }
    if (b->cluster->rank == 0) printf("}\n");
}

int main(int argc, char **argv) {
    ps_cluster cluster;
    ps_error error = {0};
    if (argc != 2 || ps_cluster_begin(&cluster, &error) != PS_OK) return 2;
    bench b = {.cluster = &cluster,
               .log_file = open_in(argv[1], "log", O_APPEND),
               .data_file = open_in(argv[1], "data", 0),
               .block = calloc(1, WRITE_BYTES)};
    bool ready = b.log_file >= 0 && b.data_file >= 0 && b.block && ps_counters_create(&cluster, 4, &b.counters, &error) == PS_OK;
    char path[4096];
    snprintf(path, sizeof path, "%s/shared", argv[1]);
    ready = ready && MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &b.shared) == MPI_SUCCESS;
    if (!ready) MPI_Abort(MPI_COMM_WORLD, 1);
    print(&b);
    ps_counters_destroy(b.counters);
    MPI_File_close(&b.shared);
    close(b.log_file);
    close(b.data_file);
    free(b.block);
    ps_cluster_end(&cluster, 0);
    return 0;
}
