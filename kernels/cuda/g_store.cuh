/* How kernels read g in either form, and how it is packed. */
#ifndef PS_KERNELS_CUDA_G_STORE_CUH
#define PS_KERNELS_CUDA_G_STORE_CUH

#include "kernels/cuda/intrinsics.cuh"
#include "kernels/cuda/operations.h"
#include "kernels/g_packing.h"

/* g as lines of 128 bytes: of a tile at one frequency there are two, each with its own array. Exact: 16 pixels each; compact: the packed
 * values of 32 pixels, and their scales. Bytes from tile to tile: step. */
typedef struct {
    int64_t step[2];
    bool is_compact;
} ps_g_lines;
struct ps_g_frame_lines {
    const char *first[2]; /* of the first tile */
};
/* Where the lines of one frequency lie in a tile. */
struct ps_g_place {
    int64_t offset[2];
};

static inline ps_g_lines ps_g_lines_of(const ps_cuda_system *system) {
    bool compact = system->desc.g_storage == PS_G_COMPACT;
    int64_t values = system->n_spectrum * PS_CUDA_LANES, scales = (system->desc.scan_rows + 1) * PS_CUDA_LANES;
    ps_g_lines lines = {{values * (int64_t)(compact ? sizeof(short2) : sizeof(float2)),
                         compact ? scales * (int64_t)sizeof(float) : values * (int64_t)sizeof(float2)},
                        compact};
    return lines;
}

static inline ps_g_frame_lines ps_g_frame_lines_of(const ps_cuda_g &g) {
    ps_g_frame_lines lines = {{g.exact ? (const char *)g.exact : (const char *)g.packed,
                               g.exact ? (const char *)g.exact + PS_CUDA_LANES / 2 * sizeof(float2) : (const char *)g.scales}};
    return lines;
}

__device__ inline ps_g_place ps_g_place_of(const ps_g_lines &lines, const ps_cuda_frequency &f) {
    int64_t line = PS_CUDA_LANES * (int64_t)sizeof(float), values = f.spectrum * line;
    ps_g_place place = {{lines.is_compact ? values : 2 * values, lines.is_compact ? f.scale_row * line : 2 * values}};
    return place;
}

__device__ inline const char *ps_g_line(const ps_g_lines &lines, const ps_g_frame_lines &frame, const ps_g_place &place, int64_t tile,
                                        int line) {
    return line ? frame.first[1] + tile * lines.step[1] + place.offset[1] : frame.first[0] + tile * lines.step[0] + place.offset[0];
}

__device__ inline float2 ps_g_unpack2(short2 packed, float scale) {
    return make_float2(ps_g_unpack(packed.x, scale), ps_g_unpack(packed.y, scale));
}

/* A lane's value. */
__device__ inline float2 ps_g_value(const ps_g_lines &lines, const ps_g_frame_lines &frame, const ps_g_place &place, int64_t tile,
                                    int lane) {
    const char *first = ps_g_line(lines, frame, place, tile, 0);
    if (!lines.is_compact) return ((const float2 *)first)[lane];
    return ps_g_unpack2(((const short2 *)first)[lane], ((const float *)ps_g_line(lines, frame, place, tile, 1))[lane]);
}

/* Both lines of a tile, copied to shared memory side by side, become the lane's values in place. A whole warp. */
__device__ inline void ps_g_unpack_tile(float2 *tile, int lane) {
    float2 value = ps_g_unpack2(((const short2 *)tile)[lane], ((const float *)tile)[PS_CUDA_LANES + lane]);
    __syncwarp();
    tile[lane] = value;
}

/* --- one pixel's half-plane --- */

struct ps_g_pixel {
    const float2 *exact; /* values are 32 apart, as are scales */
    const short2 *packed;
    const float *scales;

    /* place: 32 times the spectrum's index; scale_row: ps_g_scale_row of it */
    __device__ inline float2 value(int64_t place, int scale_row) const {
        if (exact) return exact[place];
        return ps_g_unpack2(packed[place], scales[scale_row * PS_CUDA_LANES]);
    }
};

/* tile: counted from the first of g's. */
__device__ inline ps_g_pixel ps_g_pixel_at(const ps_cuda_g &g, int64_t n_spectrum, int scan_rows, int64_t tile, int lane) {
    int64_t values = tile * n_spectrum * PS_CUDA_LANES + lane, scales = tile * (scan_rows + 1) * PS_CUDA_LANES + lane;
    ps_g_pixel pixel = {g.exact ? g.exact + values : NULL, g.packed + (g.exact ? 0 : values), g.scales + (g.exact ? 0 : scales)};
    return pixel;
}

/* --- packing: g_store.cu --- */

__device__ inline short2 ps_g_pack2(float2 value, float inverse) {
    return make_short2(ps_g_pack(value.x, inverse), ps_g_pack(value.y, inverse));
}

/* Slots [first, first + n), whole sheets, out of exact g of the tiles from first / 32 on, into g of the tiles from first_tile on. */
ps_code ps_cuda_pack_slots(const ps_cuda_frame *frame, int64_t first, int64_t n, const float2 *exact, const ps_cuda_g *g,
                           int64_t first_tile, cudaStream_t stream, ps_error *error);
/* Scales of n pixels out of their half-planes, [pixel, n_spectrum], whose values are multiplied with factor before they are packed.
 * slots: device. */
ps_code ps_cuda_find_scales(const ps_cuda_frame *frame, const int32_t *slots, int64_t n, const float2 *planes, float factor,
                            const ps_cuda_g *g, int64_t first_tile, cudaStream_t stream, ps_error *error);

#endif
