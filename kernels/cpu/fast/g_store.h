/* Where g of some pixels of a frame is held, in one of its two forms (docs/physics.md section 8), and how it is read. */
#ifndef PS_KERNELS_CPU_FAST_G_STORE_H
#define PS_KERNELS_CPU_FAST_G_STORE_H

#include "kernels/cpu/fast/fast.h"
#include "kernels/g_packing.h"

/* Block after block of pixels, each [half-plane, 2, width of the block]: what goes through one block's pixels stays among its values. */
struct ps_fast_g {
    int64_t n_slots, half_columns, scan_rows;
    float *values;   /* exact; else NULL */
    int16_t *packed; /* compact: the same places */
    float *scales;   /* compact: blocks as well, each [scan_rows + 1, width]: ps_g_scale_row */
};

/* Memory for n_slots (whole tiles), nothing written; NULL when there is none. Freed by ps_cpu_free. */
ps_fast_g *ps_fast_g_create(const ps_system_desc *desc, int64_t n_slots);
size_t ps_fast_g_bytes(const ps_system_desc *desc, int64_t n_slots);

/* Where slot number `at` of the store, which is in a block of `width`, has its real part of a frequency; the imaginary one is `width`
 * further. */
static inline int64_t ps_fast_g_place(const ps_fast_g *g, int64_t spectrum, int64_t at, int64_t width) {
    return at / PS_FAST_BLOCK * (2 * PS_FAST_BLOCK * g->scan_rows * g->half_columns) + spectrum * 2 * width + at % PS_FAST_BLOCK;
}

/* The same of its scale; row: ps_g_scale_row. */
static inline int64_t ps_fast_g_scale_place(const ps_fast_g *g, int64_t row, int64_t at, int64_t width) {
    return at / PS_FAST_BLOCK * (PS_FAST_BLOCK * (g->scan_rows + 1)) + row * width + at % PS_FAST_BLOCK;
}

/* g of one frequency at the n slots from `at` on, all in one block of `width`, real and imaginary parts; sign: of the imaginary ones. */
static inline void ps_fast_g_load(const ps_fast_g *g, int64_t spectrum, int64_t at, int64_t width, int64_t n, float sign, float *real,
                                  float *imaginary) {
    int64_t place = ps_fast_g_place(g, spectrum, at, width);
    if (g->values) {
        const float *from = g->values + place;
        for (int64_t p = 0; p < n; p++) {
            real[p] = from[p];
            imaginary[p] = sign * from[width + p];
        }
        return;
    }
    const int16_t *from = g->packed + place;
    const float *scales = g->scales + ps_fast_g_scale_place(g, ps_g_scale_row(spectrum, g->half_columns, g->scan_rows), at, width);
    for (int64_t p = 0; p < n; p++) {
        real[p] = ps_g_unpack(from[p], scales[p]);
        imaginary[p] = sign * ps_g_unpack(from[width + p], scales[p]);
    }
}

/* Half-planes of the n <= TILE pixels of a tile into their places, times scale; zero: [n] what stands at the zero frequency. spectra: [n,
 * apart]. at: the tile's first slot in the store. */
void ps_fast_g_put(const ps_fast_g *g, int64_t at, int64_t width, int64_t n, const float complex *spectra, int64_t apart, float scale,
                   const float *zero);

#endif
