/* Discrete Fourier transforms of a few values in registers: y(k) = sum over n of x(n) exp(-2 pi i n k / N), in place, natural order.
 *
 * 2 to 5 are written out; 8 and more are products of them by Cooley and Tukey, unrolled, their roots of unity immediates rounded from
 * double. Operations on floats (a fused one counts once): 4: 16, 5: 40, 8: 56, 16: 160, 32: 440. The transform with exp(+...) is the same
 * with real and imaginary parts exchanged before and after. */
#ifndef PS_KERNELS_CUDA_DFT_CUH
#define PS_KERNELS_CUDA_DFT_CUH

#include <cuda_runtime.h>

/* sin and cos of x in [0, pi/4], by their series to 1e-17. */
__host__ __device__ constexpr double ps_sin_series(double x) {
    double sum = 0.0;
    for (int n = 19; n > 0; n -= 2) sum = x * (n == 1 ? 1.0 + sum : 0.0) + (n == 1 ? 0.0 : -x * x / (n * (n - 1)) * (1.0 + sum));
    return sum;
}
__host__ __device__ constexpr double ps_cos_series(double x) {
    double sum = 0.0;
    for (int n = 18; n > 0; n -= 2) sum = -x * x / (n * (n - 1)) * (1.0 + sum);
    return 1.0 + sum;
}

/* exp(-2 pi i k / N), k in [0, N). */
template <int N> struct ps_roots {
    float re[N], im[N];
    __host__ __device__ constexpr ps_roots() : re(), im() {
        for (int k = 0; k < N; k++) {
            int eighths = 8 * k / N, rest = 8 * k - eighths * N; /* k / N = (eighths + rest / N) / 8 */
            bool falls = eighths % 2;
            double x = 0.78539816339744830962 * (falls ? N - rest : rest) / N, c = ps_cos_series(x), s = ps_sin_series(x);
            bool swapped = (eighths + 1) / 2 % 2; /* nearer to the imaginary axis */
            double real = swapped ? s : c, imaginary = swapped ? c : s;
            re[k] = (float)(eighths >= 2 && eighths < 6 ? -real : real);
            im[k] = (float)(eighths >= 4 ? imaginary : -imaginary);
        }
    }
};

__device__ inline float2 ps_times(float2 x, float2 w) {
    return make_float2(fmaf(x.x, w.x, -(x.y * w.y)), fmaf(x.x, w.y, x.y * w.x));
}

/* x exp(-2 pi i k / N); k is a constant after unrolling. */
template <int N> __device__ inline float2 ps_times_root(float2 x, int k) {
    constexpr ps_roots<N> roots;
    if (k == 0) return x;
    if (4 * k == N) return make_float2(x.y, -x.x);
    if (2 * k == N) return make_float2(-x.x, -x.y);
    if (4 * k == 3 * N) return make_float2(-x.y, x.x);
    return ps_times(x, make_float2(roots.re[k], roots.im[k]));
}

__device__ inline float2 ps_plus(float2 a, float2 b) {
    return make_float2(a.x + b.x, a.y + b.y);
}
__device__ inline float2 ps_minus(float2 a, float2 b) {
    return make_float2(a.x - b.x, a.y - b.y);
}
/* a + s b, and a - i s b */
__device__ inline float2 ps_plus_scaled(float2 a, float s, float2 b) {
    return make_float2(fmaf(s, b.x, a.x), fmaf(s, b.y, a.y));
}
__device__ inline float2 ps_minus_turned(float2 a, float s, float2 b) {
    return make_float2(fmaf(s, b.y, a.x), fmaf(-s, b.x, a.y));
}

__device__ inline void ps_dft_2(float2 *x) {
    float2 a = x[0], b = x[1];
    x[0] = ps_plus(a, b);
    x[1] = ps_minus(a, b);
}

__device__ inline void ps_dft_3(float2 *x) {
    constexpr float sine = 0.86602540378443864676f;
    float2 sum = ps_plus(x[1], x[2]), difference = ps_minus(x[1], x[2]), middle = ps_plus_scaled(x[0], -0.5f, sum);
    x[0] = ps_plus(x[0], sum);
    x[1] = ps_minus_turned(middle, sine, difference);
    x[2] = ps_minus_turned(middle, -sine, difference);
}

__device__ inline void ps_dft_4(float2 *x) {
    float2 a = ps_plus(x[0], x[2]), b = ps_minus(x[0], x[2]), c = ps_plus(x[1], x[3]), d = ps_minus(x[1], x[3]);
    x[0] = ps_plus(a, c);
    x[1] = make_float2(b.x + d.y, b.y - d.x);
    x[2] = ps_minus(a, c);
    x[3] = make_float2(b.x - d.y, b.y + d.x);
}

__device__ inline void ps_dft_5(float2 *x) {
    constexpr float c1 = 0.30901699437494742410f, c2 = -0.80901699437494742410f, s1 = 0.95105651629515357212f, s2 = 0.58778525229247312917f;
    float2 a = ps_plus(x[1], x[4]), b = ps_plus(x[2], x[3]), d = ps_minus(x[1], x[4]), e = ps_minus(x[2], x[3]), first = x[0];
    float2 p = ps_plus_scaled(ps_plus_scaled(first, c1, a), c2, b), q = ps_plus_scaled(ps_plus_scaled(first, c2, a), c1, b);
    x[0] = ps_plus(first, ps_plus(a, b));
    x[1] = ps_minus_turned(ps_minus_turned(p, s1, d), s2, e);
    x[4] = ps_minus_turned(ps_minus_turned(p, -s1, d), -s2, e);
    x[2] = ps_minus_turned(ps_minus_turned(q, s2, d), -s1, e);
    x[3] = ps_minus_turned(ps_minus_turned(q, -s2, d), s1, e);
}

/* The factor a transform of N begins with: N itself for those written out. */
__host__ __device__ constexpr int ps_dft_factor(int n) {
    return n <= 5 ? n : n == 8 ? 2 : n % 4 == 0 ? 4 : n % 5 == 0 ? 5 : n % 3 == 0 ? 3 : 2;
}

template <int N> __device__ inline void ps_dft(float2 *x) {
    constexpr int A = ps_dft_factor(N), B = N / A;
    if constexpr (N == 2) {
        ps_dft_2(x);
    } else if constexpr (N == 3) {
        ps_dft_3(x);
    } else if constexpr (N == 4) {
        ps_dft_4(x);
    } else if constexpr (N == 5) {
        ps_dft_5(x);
    } else if constexpr (N > 1) {
        float2 y[N], part[A > B ? A : B];
#pragma unroll
        for (int b = 0; b < B; b++) {
#pragma unroll
            for (int a = 0; a < A; a++) part[a] = x[b + B * a];
            ps_dft<A>(part);
#pragma unroll
            for (int k = 0; k < A; k++) y[k * B + b] = ps_times_root<N>(part[k], b * k);
        }
#pragma unroll
        for (int k = 0; k < A; k++) {
#pragma unroll
            for (int b = 0; b < B; b++) part[b] = y[k * B + b];
            ps_dft<B>(part);
#pragma unroll
            for (int b = 0; b < B; b++) x[k + A * b] = part[b];
        }
    }
}

#endif
