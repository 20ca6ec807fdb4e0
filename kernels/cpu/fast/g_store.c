#include "kernels/cpu/fast/g_store.h"

#include "core/assert.h"
#include "kernels/cpu/memory.h"

enum { ALIGNMENT = 64 };

static size_t aligned(size_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t value_bytes(const ps_system_desc *desc, int64_t n_slots) {
    size_t values = (size_t)(desc->scan_rows * ps_cpu_half_columns(desc)) * 2 * (size_t)n_slots;
    return aligned(values * (desc->g_storage == PS_G_COMPACT ? sizeof(int16_t) : sizeof(float)));
}

static size_t scale_bytes(const ps_system_desc *desc, int64_t n_slots) {
    return desc->g_storage == PS_G_COMPACT ? (size_t)((desc->scan_rows + 1) * n_slots) * sizeof(float) : 0;
}

size_t ps_fast_g_bytes(const ps_system_desc *desc, int64_t n_slots) {
    return aligned(sizeof(ps_fast_g)) + value_bytes(desc, n_slots) + scale_bytes(desc, n_slots);
}

ps_fast_g *ps_fast_g_create(const ps_system_desc *desc, int64_t n_slots) {
    PS_ASSERT(n_slots > 0 && n_slots % PS_FAST_TILE == 0);
    char *block = ps_cpu_allocate(ps_fast_g_bytes(desc, n_slots), 1);
    if (!block) return NULL;
    void *values = block + aligned(sizeof(ps_fast_g)), *scales = block + aligned(sizeof(ps_fast_g)) + value_bytes(desc, n_slots);
    ps_fast_g *g = (ps_fast_g *)block;
    *g = (ps_fast_g){.n_slots = n_slots, .half_columns = ps_cpu_half_columns(desc), .scan_rows = desc->scan_rows};
    if (desc->g_storage == PS_G_COMPACT) {
        g->packed = values;
        g->scales = scales;
    } else
        g->values = values;
    return g;
}

static void put_exact(const ps_fast_g *g, int64_t at, int64_t width, int64_t n, const float complex *spectra, int64_t apart, float scale,
                      const float *zero) {
    float *to = g->values + ps_fast_g_place(g, 0, at, width);
    for (int64_t i = 0; i < g->scan_rows * g->half_columns; i++)
        for (int64_t p = 0; p < PS_FAST_TILE; p++) {
            float complex value = p < n ? spectra[p * apart + i] : 0.0f;
            to[i * 2 * width + p] = scale * crealf(value);
            to[(i * 2 + 1) * width + p] = scale * cimagf(value);
        }
    for (int64_t p = 0; p < n; p++) {
        to[p] = zero[p];
        to[width + p] = 0.0f;
    }
}

/* The scales of the n pixels' values [begin, end), to scales, and their inverses. */
static void find_scales(int64_t n, const float complex *spectra, int64_t apart, int64_t begin, int64_t end, float scale, float *scales,
                        float inverse[PS_FAST_TILE]) {
    for (int64_t p = 0; p < PS_FAST_TILE; p++) {
        uint32_t largest = 0;
        const float *parts = (const float *)(spectra + p * apart);
        for (int64_t i = 2 * begin; p < n && i < 2 * end; i++) {
            uint32_t size = ps_g_size_bits(parts[i]);
            largest = size > largest ? size : largest;
        }
        scales[p] = ps_g_scale(largest, scale);
        inverse[p] = ps_g_inverse(scales[p]);
    }
}

static void put_compact(const ps_fast_g *g, int64_t at, int64_t width, int64_t n, const float complex *spectra, int64_t apart, float scale,
                        const float *zero) {
    int16_t *to = g->packed + ps_fast_g_place(g, 0, at, width);
    float *scales = g->scales + ps_fast_g_scale_place(g, 0, at, width), inverse[PS_FAST_TILE];
    for (int64_t row = 0; row < g->scan_rows; row++) {
        int64_t first = row * g->half_columns, end = first + g->half_columns;
        find_scales(n, spectra, apart, row == 0 ? 1 : first, end, scale, scales + row * width, inverse);
        for (int64_t i = first; i < end; i++)
            for (int64_t p = 0; p < PS_FAST_TILE; p++) {
                float complex value = p < n ? spectra[p * apart + i] : 0.0f;
                to[i * 2 * width + p] = ps_g_pack(scale * crealf(value), inverse[p]);
                to[(i * 2 + 1) * width + p] = ps_g_pack(scale * cimagf(value), inverse[p]);
            }
    }
    for (int64_t p = 0; p < PS_FAST_TILE; p++) {
        scales[g->scan_rows * width + p] = p < n ? ps_g_zero_scale(zero[p]) : 0.0f;
        to[p] = PS_G_MOST;
        to[width + p] = 0;
    }
}

void ps_fast_g_put(const ps_fast_g *g, int64_t at, int64_t width, int64_t n, const float complex *spectra, int64_t apart, float scale,
                   const float *zero) {
    (g->values ? put_exact : put_compact)(g, at, width, n, spectra, apart, scale, zero);
}
