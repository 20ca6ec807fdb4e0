/* Product of two real matrices, for transforms of awkward lengths (dft.h): each element's sum runs over k in order, in one register. */
#include "kernels/cpu/fast/isa/variant.h"

typedef float vector __attribute__((vector_size(PS_FAST_VECTOR_BYTES), aligned(4), may_alias));

enum { FLOATS = PS_FAST_VECTOR_BYTES / 4, ROWS = 4, VECTORS = PS_FAST_VECTOR_BYTES == 64 ? 4 : 2 };

/* n_rows, n_vectors are constants where this is expanded. */
static inline __attribute__((always_inline)) void tile(int n_rows, int n_vectors, int64_t k, const float *a, int64_t a_stride,
                                                       const float *b, int64_t b_stride, float *c, int64_t c_stride) {
    vector sums[ROWS][VECTORS] = {{{0}}};
    for (int64_t l = 0; l < k; l++)
        for (int j = 0; j < n_vectors; j++) {
            vector column = *(const vector *)(b + l * b_stride + j * FLOATS);
            for (int i = 0; i < n_rows; i++) sums[i][j] += a[i * a_stride + l] * column;
        }
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_vectors; j++) *(vector *)(c + i * c_stride + j * FLOATS) = sums[i][j];
}

void PS_FAST_NAME(ps_fast_multiply)(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_stride, const float *b, int64_t b_stride,
                                    float *c, int64_t c_stride) {
    for (int64_t j = 0; j < n;) {
        bool is_wide = n - j >= VECTORS * FLOATS;
        for (int64_t i = 0; i < m;) {
            bool is_tall = m - i >= ROWS;
            const float *rows = a + i * a_stride;
            float *to = c + i * c_stride + j;
            if (is_tall && is_wide)
                tile(ROWS, VECTORS, k, rows, a_stride, b + j, b_stride, to, c_stride);
            else if (is_tall)
                tile(ROWS, 1, k, rows, a_stride, b + j, b_stride, to, c_stride);
            else if (is_wide)
                tile(1, VECTORS, k, rows, a_stride, b + j, b_stride, to, c_stride);
            else
                tile(1, 1, k, rows, a_stride, b + j, b_stride, to, c_stride);
            i += is_tall ? ROWS : 1;
        }
        j += is_wide ? VECTORS * FLOATS : FLOATS;
    }
}
