/* histogram_reduce: blocks of any size bring the ranks' histograms together alike, and MPI's counts stay far below 2^31. Run by mpirun. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/histogram/reduce.h"

enum { N_PIXELS = 37, N_BINS = 19, N_FRAMES = 23 };

#define REQUIRE(condition)                                                          \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                           \
        }                                                                           \
    } while (0)

static uint8_t value_of(int rank, int frame, int pixel) {
    return (uint8_t)((frame * 7 + pixel * (rank + 1) * 3 + rank) % 25);
}

/* Counts of pixels that the sink has got; each must come once, over all ranks. */
typedef struct {
    uint64_t counts[N_PIXELS][N_BINS];
    int64_t n_calls;
} received;

static ps_code take(void *context, int64_t first, int64_t n, const uint64_t *counts, ps_error *error) {
    (void)error;
    received *r = context;
    for (int64_t p = 0; p < n; p++)
        for (int64_t i = 0; i < N_BINS; i++) r->counts[first + p][i] += counts[p * N_BINS + i];
    r->n_calls++;
    return PS_OK;
}

static void count_frames(const ps_cluster *cluster, const ps_histogram_map *map, ps_histogram **histogram) {
    ps_error error = {0};
    uint8_t frames[N_FRAMES][N_PIXELS];
    ps_histogram_desc desc = {.n_pixels = N_PIXELS, .saturation = 22, .n_segments = 1, .n_threads = 1};
    for (int f = 0; f < N_FRAMES; f++)
        for (int p = 0; p < N_PIXELS; p++) frames[f][p] = value_of(cluster->rank, f, p);
    REQUIRE(ps_histogram_create(&ps_histogram_cpu_fast, &desc, map, histogram, &error) == PS_OK);
    REQUIRE(ps_histogram_put(*histogram, N_PIXELS, PS_U8, N_FRAMES, frames, 0, &error) == PS_OK);
}

/* Maps and counts by plain loops over all ranks' values. */
static void check(const ps_cluster *cluster, const received *all, const ps_histogram_maps *maps) {
    for (int p = 0; p < N_PIXELS; p++) {
        uint64_t counts[N_BINS] = {0}, overflow = 0, saturated = 0, n = (uint64_t)cluster->n_ranks * N_FRAMES;
        double sum = 0, squares = 0;
        for (int r = 0; r < cluster->n_ranks; r++)
            for (int f = 0; f < N_FRAMES; f++) {
                int value = value_of(r, f, p);
                if (value <= N_BINS)
                    counts[value == N_BINS ? N_BINS - 1 : value]++;
                else
                    overflow++;
                saturated += value >= 22;
                sum += value;
                squares += value * value;
            }
        double mean = sum / (double)n, variance = squares / (double)n - mean * mean;
        REQUIRE(memcmp(counts, all->counts[p], sizeof counts) == 0);
        REQUIRE(maps->n_values[p] == n && maps->overflow[p] == overflow && maps->underflow[p] == 0 && maps->n_saturated[p] == saturated);
        REQUIRE(maps->mean[p] - mean <= 1e-12 && mean - maps->mean[p] <= 1e-12);
        REQUIRE(maps->variance[p] - variance <= 1e-9 && variance - maps->variance[p] <= 1e-9);
    }
}

static void reduce_in_blocks(const ps_cluster *cluster, const ps_histogram_map *map, ps_histogram *histogram, size_t block_bytes) {
    ps_error error = {0};
    ps_histogram_maps maps;
    received mine = {0}, all = {0};
    int64_t n_calls = 0;
    ps_reduction reduction = {
        .cluster = cluster, .map = map, .n_pixels = N_PIXELS, .block_bytes = block_bytes, .sink = take, .context = &mine};
    REQUIRE(ps_histogram_maps_allocate(N_PIXELS, N_BINS, &maps, &error) == PS_OK);
    REQUIRE(ps_histogram_reduce(&reduction, histogram, &maps, &error) == PS_OK);
    MPI_Allreduce(mine.counts, all.counts, N_PIXELS * N_BINS, MPI_UINT64_T, MPI_SUM, cluster->communicator);
    MPI_Allreduce(&mine.n_calls, &n_calls, 1, MPI_INT64_T, MPI_SUM, cluster->communicator);
    check(cluster, &all, &maps);
    if (block_bytes == 1) REQUIRE(n_calls == N_PIXELS); /* one pixel a rank and block */
    ps_histogram_maps_free(&maps);
}

int main(void) {
    ps_error error = {0};
    ps_cluster cluster;
    ps_histogram_map map;
    ps_histogram *histogram;
    REQUIRE(ps_cluster_begin(&cluster, &error) == PS_OK);
    REQUIRE(ps_histogram_map_build(PS_U8, false, N_BINS, (double[2]){0, N_BINS}, &map, &error) == PS_OK);
    count_frames(&cluster, &map, &histogram);
    static const size_t blocks[] = {1, N_BINS * 8 * 3, N_BINS * 8 * 16, 1 << 20};
    for (int i = 0; i < 4; i++) reduce_in_blocks(&cluster, &map, histogram, blocks[i]);
    ps_histogram_destroy(histogram);
    ps_histogram_map_free(&map);
    if (cluster.rank == 0) printf("histograms of %d ranks come together alike in blocks of any size\n", cluster.n_ranks);
    ps_cluster_end(&cluster, PS_OK);
    return 0;
}
