#include "fit/spread.h"

#include <stdlib.h>
#include <string.h>

/* What rank 0 tells the others before each call; n < 0: no more calls. */
typedef struct {
    int64_t n, band;
} request;

enum { MOST_AT_ONCE = 1 << 14 };

static int64_t share_begin(int64_t n, int rank, int n_ranks) {
    return n * rank / n_ranks;
}

static ps_code tell(const ps_fit_spread *spread, request *r, ps_error *error) {
    if (spread->cluster->n_ranks == 1) return PS_OK;
    return PS_MPI(error, MPI_Bcast(r, (int)sizeof *r, MPI_BYTE, 0, spread->cluster->communicator));
}

static ps_code try_alone(ps_fit_spread *spread, int64_t band, int64_t n, const ps_trial *trials, double *explained, ps_error *error) {
    return ps_band_explain(spread->bands[band], spread->n_frequencies[band], n, trials, explained, error);
}

/* Values of every rank's part to rank 0. parts: this rank's; all: [n] on rank 0. */
static ps_code collect(const ps_fit_spread *spread, int64_t n, const double *parts, double *all, ps_error *error) {
    int n_ranks = spread->cluster->n_ranks, rank = spread->cluster->rank;
    int *counts = malloc(2 * (size_t)n_ranks * sizeof *counts);
    ps_code code = counts ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %d ranks", n_ranks);
    PS_TRY(ps_cluster_agree(spread->cluster, code, error));
    for (int i = 0; i < n_ranks; i++) {
        counts[n_ranks + i] = (int)share_begin(n, i, n_ranks);
        counts[i] = (int)share_begin(n, i + 1, n_ranks) - counts[n_ranks + i];
    }
    code = PS_MPI(
        error, MPI_Gatherv(parts, counts[rank], MPI_DOUBLE, all, counts, counts + n_ranks, MPI_DOUBLE, 0, spread->cluster->communicator));
    free(counts);
    return code;
}

/* Collective: rank 0 has trials and all, the others NULL. */
static ps_code try_together(ps_fit_spread *spread, int64_t band, int64_t n, const ps_trial *trials, double *all, ps_error *error) {
    const ps_cluster *cluster = spread->cluster;
    int64_t begin = share_begin(n, cluster->rank, cluster->n_ranks), end = share_begin(n, cluster->rank + 1, cluster->n_ranks);
    ps_code code = PS_OK;
    ps_trial *own = malloc((size_t)n * sizeof *own);
    double *parts = malloc((size_t)n * sizeof *parts);
    if (!own || !parts) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld trial optics", (long long)n);
    PS_GO(ps_cluster_agree(cluster, code, error));
    if (trials) memcpy(own, trials, (size_t)n * sizeof *own);
    PS_GO(PS_MPI(error, MPI_Bcast(own, (int)((size_t)n * sizeof *own), MPI_BYTE, 0, cluster->communicator)));
    code = try_alone(spread, band, end - begin, own + begin, parts, error);
    PS_GO(ps_cluster_agree(cluster, code, error));
    code = collect(spread, n, parts, all, error);
done:
    free(own);
    free(parts);
    return code;
}

ps_code ps_fit_spread_try(ps_fit_spread *spread, int band, int64_t n, const ps_trial *trials, double *fractions, ps_error *error) {
    for (int64_t at = 0; at < n; at += MOST_AT_ONCE) {
        request r = {.n = n - at < MOST_AT_ONCE ? n - at : MOST_AT_ONCE, .band = band};
        ps_code code = tell(spread, &r, error);
        if (code == PS_OK)
            code = spread->cluster->n_ranks == 1 ? try_alone(spread, band, r.n, trials + at, fractions + at, error)
                                                 : try_together(spread, band, r.n, trials + at, fractions + at, error);
        if (code != PS_OK) spread->served = code;
        PS_TRY(code);
    }
    for (int64_t i = 0; i < n; i++) fractions[i] /= spread->power[band];
    spread->n_evaluations += n;
    return PS_OK;
}

ps_code ps_fit_spread_serve(ps_fit_spread *spread, ps_error *error) {
    for (;;) {
        request r = {0};
        PS_TRY(tell(spread, &r, error));
        if (r.n < 0) return PS_OK;
        PS_TRY(try_together(spread, r.band, r.n, NULL, NULL, error));
    }
}

ps_code ps_fit_spread_release(ps_fit_spread *spread, ps_error *error) {
    request r = {.n = -1};
    return spread->served == PS_OK ? tell(spread, &r, error) : PS_OK;
}
