/* Angles of many complex numbers, for the phase estimator of docs/physics.md section 6. */
#include <math.h>

#include "kernels/cpu/fast/isa/variant.h"

/* atan(r)/r as a polynomial in r^2, 0 <= r <= 1, to 2e-8. */
static inline __attribute__((always_inline)) float arctangent(float r) {
    static const float c[] = {0.999999998f,   -0.333332877f, 0.199983745f,   -0.142630506f, 0.109477931f,
                              -0.0839399995f, 0.0578357663f, -0.0310855944f, 0.0108770168f, -0.00178731988f};
    float t = r * r, sum = c[9];
    for (int i = 8; i >= 0; i--) sum = sum * t + c[i];
    return sum * r;
}

void PS_FAST_NAME(ps_fast_add_phases)(int64_t n, const float *real, const float *imaginary, double *sums, double *squares) {
    for (int64_t i = 0; i < n; i++) {
        float x = fabsf(real[i]), y = fabsf(imaginary[i]);
        float high = x > y ? x : y, low = x > y ? y : x;
        float angle = arctangent(low / (high > 0.0f ? high : 1.0f));
        angle = y > x ? (float)M_PI_2 - angle : angle;
        angle = real[i] < 0.0f ? (float)M_PI - angle : angle;
        double phase = imaginary[i] < 0.0f ? -angle : angle;
        sums[i] += phase;
        squares[i] += phase * phase;
    }
}
