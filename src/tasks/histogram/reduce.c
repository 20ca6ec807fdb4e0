#include "tasks/histogram/reduce.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/histogram/statistics.h"

/* ---- sums over ranks in pieces whose counts fit MPI's int ------------------------------------------------------------------------- */

enum { MOST_ELEMENTS = 1 << 24 };

static ps_code sum_over_ranks(const ps_cluster *cluster, void *values, int64_t n, size_t element_bytes, MPI_Datatype type, MPI_Op operation,
                              ps_error *error) {
    for (int64_t done = 0; done < n; done += MOST_ELEMENTS) {
        int piece = (int)(n - done < MOST_ELEMENTS ? n - done : MOST_ELEMENTS);
        void *at = (char *)values + (size_t)done * element_bytes;
        PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, at, piece, type, operation, cluster->communicator)));
    }
    return PS_OK;
}

static ps_code sum_counts(const ps_cluster *cluster, uint64_t *values, int64_t n, ps_error *error) {
    return sum_over_ranks(cluster, values, n, sizeof *values, MPI_UINT64_T, MPI_SUM, error);
}

static ps_code sum_moments(const ps_reduction *r, ps_histogram_moments *moments, ps_error *error) {
    int64_t n = r->n_pixels;
    PS_TRY(sum_counts(r->cluster, moments->n_saturated, n, error));
    PS_TRY(sum_counts(r->cluster, moments->sum_low, n, error));
    PS_TRY(sum_over_ranks(r->cluster, moments->sum_high, n, sizeof *moments->sum_high, MPI_INT64_T, MPI_SUM, error));
    for (int limb = 0; limb < 3; limb++) PS_TRY(sum_counts(r->cluster, moments->square[limb], n, error));
    PS_TRY(sum_over_ranks(r->cluster, moments->minimum, n, sizeof *moments->minimum, MPI_DOUBLE, MPI_MIN, error));
    return sum_over_ranks(r->cluster, moments->maximum, n, sizeof *moments->maximum, MPI_DOUBLE, MPI_MAX, error);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------------------ */

/* Counts and what lies outside the bins of one block: [n_ranks, per_rank, n_bins] as sent, [per_rank, n_bins] as received. */
typedef struct {
    int64_t per_rank;
    uint64_t *sent, *received, *sent_outside, *received_outside;
} block;

static ps_code allocate_block(const ps_reduction *r, block *b, ps_error *error) {
    size_t n_ranks = (size_t)r->cluster->n_ranks, row = (size_t)r->map->n_bins * sizeof(uint64_t);
    int64_t most = (r->n_pixels + r->cluster->n_ranks - 1) / r->cluster->n_ranks;
    b->per_rank = (int64_t)(r->block_bytes / row / n_ranks);
    b->per_rank = b->per_rank < 1 ? 1 : b->per_rank < most ? b->per_rank : most;
    size_t pixels = (size_t)b->per_rank;
    b->sent = malloc(n_ranks * pixels * row);
    b->received = malloc(pixels * row);
    b->sent_outside = malloc(n_ranks * pixels * PS_EXTRA_SLOTS * sizeof *b->sent_outside);
    b->received_outside = malloc(pixels * PS_EXTRA_SLOTS * sizeof *b->received_outside);
    if (b->sent && b->received && b->sent_outside && b->received_outside) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate %zu bytes to bring histograms together", n_ranks * pixels * row);
}

static void free_block(block *b) {
    free(b->sent);
    free(b->received);
    free(b->sent_outside);
    free(b->received_outside);
}

/* This rank's counts of the block that begins at `first`; zeros behind the last pixel. */
static ps_code fill_block(const ps_reduction *r, ps_histogram *histogram, const block *b, int64_t first, ps_error *error) {
    int64_t wanted = b->per_rank * r->cluster->n_ranks, n = first + wanted < r->n_pixels ? wanted : r->n_pixels - first;
    memset(b->sent + n * r->map->n_bins, 0, (size_t)((wanted - n) * r->map->n_bins) * sizeof *b->sent);
    memset(b->sent_outside + n * PS_EXTRA_SLOTS, 0, (size_t)(wanted - n) * PS_EXTRA_SLOTS * sizeof *b->sent_outside);
    return ps_histogram_read(histogram, first, n, b->sent, b->sent_outside, error);
}

static void finish_pixel(const ps_reduction *r, const ps_histogram_moments *moments, int64_t p, const uint64_t *counts,
                         const uint64_t *outside, ps_histogram_maps *maps) {
    int64_t at = r->first_pixel + p;
    uint64_t under = outside[PS_SLOT_UNDERFLOW], over = outside[PS_SLOT_OVERFLOW], n = under + over;
    for (int64_t i = 0; i < r->map->n_bins; i++) {
        n += counts[i];
        maps->total[i] += counts[i];
    }
    maps->n_values[at] = n;
    maps->underflow[at] = under;
    maps->overflow[at] = over;
    maps->nonfinite[at] = outside[PS_SLOT_NONFINITE];
    if (n == 0) return;
    ps_statistics_moments(r->map, moments, p, n, &maps->mean[at], &maps->variance[at]);
    maps->median[at] = ps_statistics_median(r->map, counts, under, over, moments->minimum[p], moments->maximum[p]);
    maps->mode[at] = ps_statistics_mode(r->map, counts, under, over, moments->minimum[p], moments->maximum[p]);
    maps->minimum[at] = moments->minimum[p];
    maps->maximum[at] = moments->maximum[p];
    maps->n_saturated[at] = moments->n_saturated[p];
}

/* This rank's part of a block: statistics, then the sink. */
static ps_code finish_part(const ps_reduction *r, const ps_histogram_moments *moments, const block *b, int64_t first,
                           ps_histogram_maps *maps, ps_error *error) {
    int64_t begin = first + r->cluster->rank * b->per_rank, n = begin + b->per_rank < r->n_pixels ? b->per_rank : r->n_pixels - begin;
    if (n <= 0) return PS_OK;
    for (int64_t i = 0; i < n; i++)
        finish_pixel(r, moments, begin + i, b->received + i * r->map->n_bins, b->received_outside + i * PS_EXTRA_SLOTS, maps);
    return r->sink ? r->sink(r->context, r->first_pixel + begin, n, b->received, error) : PS_OK;
}

static ps_code reduce_block(const ps_reduction *r, ps_histogram *histogram, const ps_histogram_moments *moments, const block *b,
                            int64_t first, ps_histogram_maps *maps, ps_error *error) {
    MPI_Comm communicator = r->cluster->communicator;
    PS_TRY(ps_cluster_agree(r->cluster, fill_block(r, histogram, b, first, error), error));
    /* per_rank * n_bins is below 2^31: a block is 64 MiB, or one pixel of at most 2^28 bins */
    PS_TRY(PS_MPI(
        error, MPI_Reduce_scatter_block(b->sent, b->received, (int)(b->per_rank * r->map->n_bins), MPI_UINT64_T, MPI_SUM, communicator)));
    PS_TRY(PS_MPI(error, MPI_Reduce_scatter_block(b->sent_outside, b->received_outside, (int)(b->per_rank * PS_EXTRA_SLOTS), MPI_UINT64_T,
                                                  MPI_SUM, communicator)));
    return ps_cluster_agree(r->cluster, finish_part(r, moments, b, first, maps, error), error);
}

/* Each pixel's numbers are on one rank and are zero on the others. */
static ps_code share_maps(const ps_reduction *r, ps_histogram_maps *maps, ps_error *error) {
    uint64_t *counts[] = {maps->n_values, maps->underflow, maps->overflow, maps->nonfinite, maps->n_saturated};
    double *numbers[] = {maps->mean, maps->variance, maps->median, maps->mode, maps->minimum, maps->maximum};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        PS_TRY(sum_counts(r->cluster, counts[i] + r->first_pixel, r->n_pixels, error));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        PS_TRY(sum_over_ranks(r->cluster, numbers[i] + r->first_pixel, r->n_pixels, sizeof **numbers, MPI_DOUBLE, MPI_SUM, error));
    return PS_OK;
}

ps_code ps_histogram_reduce(const ps_reduction *r, ps_histogram *histogram, ps_histogram_maps *maps, ps_error *error) {
    ps_histogram_moments moments = {0};
    block b = {0};
    ps_code code = ps_histogram_moments_allocate(r->n_pixels, &moments, error);
    if (code == PS_OK) code = ps_histogram_read_moments(histogram, &moments, error);
    if (code == PS_OK) code = allocate_block(r, &b, error);
    PS_GO(ps_cluster_agree(r->cluster, code, error));
    PS_GO(sum_moments(r, &moments, error));
    for (int64_t first = 0; first < r->n_pixels; first += b.per_rank * r->cluster->n_ranks)
        PS_GO(reduce_block(r, histogram, &moments, &b, first, maps, error));
    code = share_maps(r, maps, error);
done:
    free_block(&b);
    ps_histogram_moments_free(&moments);
    return code;
}
