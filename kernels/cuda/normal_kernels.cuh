/* What the kernels that form N share: their arguments, and N from the Gram of side bands; and the products of columns that
 * normal_large.cu stages in shared memory. */
#ifndef PS_KERNELS_CUDA_NORMAL_KERNELS_CUH
#define PS_KERNELS_CUDA_NORMAL_KERNELS_CUH

#include "kernels/cuda/operations.h"
#include "kernels/cuda/transfer.cuh"

/* Columns are staged packed, four to a group of eight reals (re, im of each), a row of 32 pixels padded to 36 values: then the lanes of a
 * fragment, eight rows by four pixels, fall into different banks. */
enum { PS_NORMAL_GROUP = 4, PS_NORMAL_ROW = 36 };

typedef struct {
    ps_cuda_pixels pixels;
    ps_cuda_aliases aliases;
    const int32_t *list; /* [n] frequencies */
    int64_t n;
    int n_columns;                /* of the largest frequency in the list */
    int first_column, end_column; /* rows of the Gram that this pass forms */
    bool has_amplitude;
    double2 *normal;
} ps_normal_arguments;

/* Reals of the stage for n columns; a float takes two, see ps_normal_put. */
template <typename Real> __host__ __device__ inline int ps_normal_stage(int n_columns) {
    constexpr int parts = sizeof(Real) == sizeof(float) ? 2 : 1;
    return (n_columns + PS_NORMAL_GROUP - 1) / PS_NORMAL_GROUP * 8 * PS_NORMAL_ROW * parts;
}

/* Puts a lane's value of real row `row` into the stage. */
__device__ inline void ps_normal_put(double *stage, int row, int lane, double value) {
    stage[row * PS_NORMAL_ROW + lane] = value;
}
/* high: value rounded to tf32's 11 bits; low: the rest, of which the multiplier takes 11 bits more. Rows of a group: eight high, eight low.
 */
__device__ inline void ps_normal_put(float *stage, int row, int lane, float value) {
    float high = __uint_as_float((__float_as_uint(value) + 0x1000u) & ~0x1fffu);
    float *place = stage + (row / 8 * 16 + row % 8) * PS_NORMAL_ROW + lane;
    place[0] = high;
    place[8 * PS_NORMAL_ROW] = value - high;
}

/* Products of two groups summed over the 32 pixels: this lane's two neighbouring reals of the 8 x 8 block, row lane/4, columns 2 (lane%4)
 * and the next. n_reals: staged rows; what lies beyond counts as 0. */
__device__ inline double2 ps_normal_multiply(const double *stage, int group_a, int group_b, int n_reals, int lane) {
    int row_a = group_a * 8 + lane / 4, row_b = group_b * 8 + lane / 4;
    const double *a = stage + row_a * PS_NORMAL_ROW + lane % 4, *b = stage + row_b * PS_NORMAL_ROW + lane % 4;
    double even[2] = {0.0, 0.0}, odd[2] = {0.0, 0.0};
    if (group_a == group_b) {
#pragma unroll
        for (int step = 0; step < 32; step += 4) {
            double x = row_a < n_reals ? a[step] : 0.0;
            ps_mma_f64(step & 4 ? odd : even, x, x);
        }
    } else {
#pragma unroll
        for (int step = 0; step < 32; step += 4) {
            double x = row_a < n_reals ? a[step] : 0.0, y = row_b < n_reals ? b[step] : 0.0;
            ps_mma_f64(step & 4 ? odd : even, x, y);
        }
    }
    return make_double2(even[0] + odd[0], even[1] + odd[1]);
}

__device__ inline double2 ps_normal_multiply(const float *stage, int group_a, int group_b, int n_reals, int lane) {
    const float *a = stage + (group_a * 16 + lane / 4) * PS_NORMAL_ROW + lane % 4;
    const float *b = stage + (group_b * 16 + lane / 4) * PS_NORMAL_ROW + lane % 4;
    bool has_a = group_a * 8 + lane / 4 < n_reals, has_b = group_b * 8 + lane / 4 < n_reals;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int step = 0; step < 32; step += 8) {
        unsigned x[2], x_low[2], y[2], y_low[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            x[i] = has_a ? __float_as_uint(a[step + 4 * i]) : 0u;
            x_low[i] = has_a ? __float_as_uint(a[step + 4 * i + 8 * PS_NORMAL_ROW]) : 0u;
            y[i] = has_b ? __float_as_uint(b[step + 4 * i]) : 0u;
            y_low[i] = has_b ? __float_as_uint(b[step + 4 * i + 8 * PS_NORMAL_ROW]) : 0u;
        }
        const unsigned both[4] = {x[0], x_low[0], x[1], x_low[1]}, high[4] = {x[0], 0u, x[1], 0u};
        ps_mma_tf32(sum, both, y);
        ps_mma_tf32(sum, high, y_low);
    }
    return make_double2((double)sum[0] + (double)sum[2], (double)sum[1] + (double)sum[3]);
}

/* N's entries of one pair of aliases a <= b, to packed lower triangles: element (i, j), i >= j, at i (i+1)/2 + j. g_st: the Gram of side
 * band s of a and side band t of b. */
__device__ inline void ps_normal_store(double2 *normal, int n, bool is_complex, int a, int b, double2 g00, double2 g01, double2 g10,
                                       double2 g11) {
    double2 pp = make_double2(g00.x - g01.x - g10.x + g11.x, g00.y - g01.y - g10.y + g11.y);
    if (!is_complex) {
        normal[b * (b + 1) / 2 + a] = make_double2(pp.x, -pp.y);
        return;
    }
    double2 aa = make_double2(g00.x + g01.x + g10.x + g11.x, g00.y + g01.y + g10.y + g11.y);
    double2 ap = make_double2(-(g00.y - g01.y + g10.y - g11.y), g00.x - g01.x + g10.x - g11.x); /* i (...) */
    double2 pa = make_double2(g00.y + g01.y - g10.y - g11.y, -(g00.x + g01.x - g10.x - g11.x)); /* -i (...) */
    normal[b * (b + 1) / 2 + a] = make_double2(aa.x, -aa.y);
    int phase_a = n + a, phase_b = n + b;
    normal[phase_b * (phase_b + 1) / 2 + phase_a] = make_double2(pp.x, -pp.y);
    normal[phase_a * (phase_a + 1) / 2 + b] = pa;
    normal[phase_b * (phase_b + 1) / 2 + a] = make_double2(ap.x, -ap.y);
}

/* normal_large.cu: frequencies with more than PS_CUDA_SMALL aliases. */
ps_code ps_normal_launch_large(const ps_cuda_system *system, ps_normal_arguments *args, ps_error *error);

#endif
