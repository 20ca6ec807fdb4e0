#include "plan/mean_pattern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/stop.h"
#include "cluster/watchdog.h"

/* Types with a invalid-count value use it; in floating types what is not finite is no count. */
#define DEFINE_ADD(dtype, type, name)                                                                                   \
    static void add_##dtype(const type *pattern, int64_t n_positions, int64_t n_pixels, double *sum, int64_t *marked) { \
        double invalid_value = ps_dtype_invalid_value(dtype);                                                           \
        for (int64_t p = 0; p < n_positions; p++, pattern += n_pixels)                                                  \
            for (int64_t k = 0; k < n_pixels; k++) {                                                                    \
                double value = (double)pattern[k];                                                                      \
                bool is_marked = !isfinite(value) || (invalid_value > 0 && value == invalid_value);                     \
                sum[k] += is_marked ? 0 : value;                                                                        \
                marked[k] += is_marked;                                                                                 \
            }                                                                                                           \
    }
PS_DTYPES(DEFINE_ADD)
#undef DEFINE_ADD

void ps_pattern_add(ps_dtype dtype, const void *counts, int64_t n_positions, int64_t n_pixels, double *sum, int64_t *marked) {
    switch (dtype) {
#define X(d, type, name) \
    case d: add_##d(counts, n_positions, n_pixels, sum, marked); break;
        PS_DTYPES(X)
#undef X
    default: break;
    }
}

void ps_pattern_mean(int64_t n_positions, int64_t n_pixels, const int64_t *marked, double *sum) {
    for (int64_t k = 0; k < n_pixels; k++) {
        int64_t n = n_positions - marked[k];
        sum[k] = n > 0 ? sum[k] / (double)n : 0;
    }
}

ps_code ps_mean_pattern(ps_loader *loader, const ps_loader_shape *shape, const char *source, double *mean, int64_t *n_marked,
                        ps_error *error) {
    ps_code code = PS_OK;
    int64_t n_pixels = shape->detector_rows * shape->detector_columns;
    int64_t *marked = calloc((size_t)n_pixels, sizeof *marked);
    bool end = false;
    PS_GO_ALLOC(error, marked);
    memset(mean, 0, (size_t)n_pixels * sizeof *mean);
    PS_GO(ps_loader_begin(loader, source, error));
    for (;;) {
        ps_loader_chunk chunk;
        ps_watchdog_beat("mean pattern", -1);
        if (ps_stop_wanted())
            PS_GO(PS_FAIL(error, PS_E_INTERRUPTED, "stopped (%s) while mean patterns were measured; run again to go on", ps_stop_reason()));
        PS_GO(ps_loader_next(loader, &chunk, &end, error));
        if (end) break;
        ps_pattern_add(shape->dtype, chunk.counts, chunk.n_positions, n_pixels, mean, marked);
        ps_loader_release(loader);
    }
    ps_pattern_mean(shape->n_positions, n_pixels, marked, mean);
    if (n_marked) memcpy(n_marked, marked, (size_t)n_pixels * sizeof *marked);
done:
    free(marked);
    return code;
}
