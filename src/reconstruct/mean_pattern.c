#include "reconstruct/mean_pattern.h"

#include <stdlib.h>
#include <string.h>

#define DEFINE_ADD(dtype, type, name)                                                                                                      \
    static void add_##dtype(const void *counts, int64_t n_positions, int64_t n_pixels, double marker, double *sum, int64_t *marked) {      \
        const type *pattern = counts;                                                                                                      \
        for (int64_t p = 0; p < n_positions; p++, pattern += n_pixels)                                                                     \
            for (int64_t k = 0; k < n_pixels; k++) {                                                                                       \
                bool is_marked = marker > 0 && (double)pattern[k] == marker;                                                               \
                sum[k] += is_marked ? 0 : (double)pattern[k];                                                                              \
                marked[k] += is_marked;                                                                                                    \
            }                                                                                                                              \
    }
PS_DTYPES(DEFINE_ADD)
#undef DEFINE_ADD

static void add_patterns(ps_dtype dtype, const ps_loader_chunk *chunk, int64_t n_pixels, double *sum, int64_t *marked) {
    switch (dtype) {
#define X(d, type, name)                                                                                                                   \
    case d: add_##d(chunk->counts, chunk->n_positions, n_pixels, ps_dtype_marker(d), sum, marked); break;
        PS_DTYPES(X)
#undef X
    default: break;
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
        PS_GO(ps_loader_next(loader, &chunk, &end, error));
        if (end) break;
        add_patterns(shape->dtype, &chunk, n_pixels, mean, marked);
        ps_loader_release(loader);
    }
    for (int64_t k = 0; k < n_pixels; k++) {
        int64_t n = shape->n_positions - marked[k];
        mean[k] = n > 0 ? mean[k] / (double)n : 0;
    }
    if (n_marked) memcpy(n_marked, marked, (size_t)n_pixels * sizeof *marked);
done:
    free(marked);
    return code;
}
