/* The compact form of g, docs/physics.md section 8: how a value becomes two int16 and the scale of its pixel and spectrum row, and back.
 * The one source of the CPU's and the device's way.
 *
 * A row's scale is its largest part / 32767, so a part is wrong by half a scale at most (and the rounding of floats, 2e-7 of itself). Rows
 * whose largest part is below PS_G_LEAST are 0: their scales would have no inverse. The zero frequency is no part of its row: it is the
 * mean, many times what is beside it, and has a scale of its own. A value that is not finite makes its row's scale and values not finite.
 */
#ifndef PS_KERNELS_G_PACKING_H
#define PS_KERNELS_G_PACKING_H

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#define PS_G_INLINE static __host__ __device__ __forceinline__
#else
#define PS_G_INLINE static inline
#endif

#define PS_G_MOST 32767
#define PS_G_LEAST 4e-33f

/* The size of a float as an integer of the same order, in which what is not finite is largest: so maxima keep it. */
PS_G_INLINE uint32_t ps_g_size_bits(float part) {
    union {
        float value;
        uint32_t bits;
    } x = {part};
    return x.bits & 0x7fffffffu;
}

/* largest: of ps_g_size_bits over a row. factor: > 0, what the parts are multiplied with before they are packed. */
PS_G_INLINE float ps_g_scale(uint32_t largest, float factor) {
    union {
        uint32_t bits;
        float value;
    } x = {largest};
    float most = x.value * factor;
    return most < PS_G_LEAST ? 0.0f : most * (1.0f / PS_G_MOST);
}

/* What a part is multiplied with; 0 for a row of zeros, and for one that is not finite, whose scale alone says it. */
PS_G_INLINE float ps_g_inverse(float scale) {
    return scale > 0.0f && scale <= 3e38f ? 1.0f / scale : 0.0f;
}

PS_G_INLINE int16_t ps_g_pack(float part, float inverse) {
    float x = rintf(part * inverse);
    return (int16_t)(x >= PS_G_MOST ? PS_G_MOST : x <= -PS_G_MOST ? -PS_G_MOST : x == x ? x : 0.0f);
}

PS_G_INLINE float ps_g_unpack(int16_t packed, float scale) {
    return scale * (float)packed;
}

/* The zero frequency: PS_G_MOST and 0, at this scale. */
PS_G_INLINE float ps_g_zero_scale(float mean) {
    return mean * (1.0f / PS_G_MOST);
}

/* Which scale a value of the stored half-plane has, of scan_rows + 1: its row's, or the zero frequency's. half: stored columns. */
PS_G_INLINE int64_t ps_g_scale_row(int64_t spectrum, int64_t half, int64_t scan_rows) {
    return spectrum == 0 ? scan_rows : spectrum / half;
}

#endif
