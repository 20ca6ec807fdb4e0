/* What the CUDA histogram kernels share: the map on the device, reading values, and finding slots. Internal to kernels/cuda. */
#ifndef PS_KERNELS_CUDA_HISTOGRAM_KERNELS_CUH
#define PS_KERNELS_CUDA_HISTOGRAM_KERNELS_CUH

#include <cuda_runtime.h>

#include "kernels/histogram.h"

/* Pixels of a group: one per shared memory bank. Rows of patterns, centres and accumulators are padded to whole groups. */
enum { PS_GROUP = 32 };

/* The map as kernels see it; pointers are device memory. Counters on the device are cells, as in ps_histogram_cells: underflow, bins
 * (or values), overflow; of wide types non-finite values have one more behind them. */
struct ps_device_map {
    int32_t bias; /* small integers with a formula */
    uint32_t last, closed, multiplier, addend;
    const uint32_t *table; /* small integers without: the cell of each value from first_value on; NULL: there is a formula */
    int32_t first_value;
    int64_t n_bins;         /* wide types */
    const double *edges;    /* [n_bins + 1] */
    const float *edges_f32; /* the same, of float32 input */
    double scale, guess_error, units;
};

/* Patterns on the device and what is counted from them. */
struct ps_device_batch {
    const void *frames; /* [n_frames, n_padded] of dtype */
    int64_t n_frames, n_padded;
    const void *centre;          /* [n_padded] of dtype, NULL: none */
    uint32_t *counts;            /* [n_padded, cell_pitch], or bin-major [cell_pitch, n_padded] */
    uint32_t *packed;            /* [n_padded / PS_GROUP, cell_pitch / 2, PS_GROUP] pairs of 16-bit counts of the shared kernel */
    int64_t n_cells, cell_pitch; /* cell_pitch: whole sectors of 8 */
};

/* Device sums behind ps_histogram_moments; minimum and maximum as keys that order as the values do. */
struct ps_device_moments {
    unsigned long long *n_saturated, *sum_low, *sum_high, *square[3]; /* [n_padded] each */
    long long *minimum, *maximum;
    long long *frame_sums; /* [n_frames] of the batch, zeroed by the launcher */
    double saturation;
};

/* Adds a batch of at most 65535 patterns to packed. */
ps_code ps_histogram_launch_shared(ps_dtype dtype, const ps_device_batch *batch, const ps_device_map *map, cudaStream_t stream,
                                   ps_error *error);
/* Adds what launch_shared left in packed to counts, and clears it; due before packed holds more than 65535 patterns. */
ps_code ps_histogram_launch_widen(const ps_device_batch *batch, cudaStream_t stream, ps_error *error);
ps_code ps_histogram_launch_global(ps_dtype dtype, bool bin_major, const ps_device_batch *batch, const ps_device_map *map,
                                   cudaStream_t stream, ps_error *error);
ps_code ps_histogram_launch_moments(ps_dtype dtype, const ps_device_batch *batch, const ps_device_map *map,
                                    const ps_device_moments *moments, cudaStream_t stream, ps_error *error);
/* Counts of pixels first_pixel ... to rows [n_pixels, n_cells]. */
ps_code ps_histogram_launch_readout(bool bin_major, const ps_device_batch *batch, int64_t first_pixel, int64_t n_pixels, uint32_t *rows,
                                    cudaStream_t stream, ps_error *error);

#define PS_HISTOGRAM_CUDA(error, call)                                                                                                    \
    do {                                                                                                                                  \
        cudaError_t ps_cuda_status_ = (call);                                                                                             \
        if (ps_cuda_status_ != cudaSuccess)                                                                                               \
            return PS_FAIL((error), ps_cuda_status_ == cudaErrorMemoryAllocation ? PS_E_MEMORY : PS_E_DEVICE, "histogram: %s: %s", #call, \
                           cudaGetErrorString(ps_cuda_status_));                                                                          \
    } while (0)

/* Calls FUNCTION<T>(arguments) for the C type T of a dtype. */
#define PS_HISTOGRAM_DISPATCH(dtype, FUNCTION, ...)      \
    switch (dtype) {                                     \
    case PS_U8: FUNCTION<uint8_t>(__VA_ARGS__); break;   \
    case PS_U16: FUNCTION<uint16_t>(__VA_ARGS__); break; \
    case PS_U32: FUNCTION<uint32_t>(__VA_ARGS__); break; \
    case PS_I8: FUNCTION<int8_t>(__VA_ARGS__); break;    \
    case PS_I16: FUNCTION<int16_t>(__VA_ARGS__); break;  \
    case PS_I32: FUNCTION<int32_t>(__VA_ARGS__); break;  \
    case PS_F32: FUNCTION<float>(__VA_ARGS__); break;    \
    case PS_F64: FUNCTION<double>(__VA_ARGS__); break;   \
    default: break;                                      \
    }

/* Per input type: what a value is after centring, what moments sum up, and whether it is one of the small integers. */
template <class T> struct ps_input {
    using value = int32_t;
    static constexpr bool small = true, floating = false;
};
template <> struct ps_input<uint32_t> {
    using value = int64_t;
    static constexpr bool small = false, floating = false;
};
template <> struct ps_input<int32_t> {
    using value = int64_t;
    static constexpr bool small = false, floating = false;
};
template <> struct ps_input<float> {
    using value = float;
    static constexpr bool small = false, floating = true;
};
template <> struct ps_input<double> {
    using value = double;
    static constexpr bool small = false, floating = true;
};

template <class T> __device__ __forceinline__ typename ps_input<T>::value ps_centred(T raw, T centre) {
    using value = typename ps_input<T>::value;
    return (value)raw - (value)centre;
}

/* Element k (a constant after unrolling) of 16 or 8 bytes that were loaded as words. */
template <class T> __device__ __forceinline__ T ps_element(const uint32_t *words, int k) {
    if constexpr (sizeof(T) == 1)
        return (T)(words[k / 4] >> (8 * (k % 4)));
    else if constexpr (sizeof(T) == 2)
        return (T)(words[k / 2] >> (16 * (k % 2)));
    else if constexpr (sizeof(T) == 8)
        return __hiloint2double((int)words[2 * k + 1], (int)words[2 * k]);
    else if constexpr (ps_input<T>::floating)
        return __uint_as_float(words[k]);
    else
        return (T)words[k];
}

/* A cell as its place in shared memory: two 16-bit counters a word, even cells in the low half. */
struct ps_place {
    uint32_t word;
    bool high;
};

/* The formula of ps_histogram_cells in five instructions. */
struct ps_formula {
    int32_t bias, last;
    uint32_t closed, multiplier, addend;

    __device__ __forceinline__ explicit ps_formula(const ps_device_map &map)
        : bias(map.bias), last((int32_t)map.last), closed(map.closed), multiplier(map.multiplier), addend(map.addend) {}

    __device__ __forceinline__ ps_place place(int32_t value) const {
        uint32_t position = (uint32_t)__viaddmin_s32_relu(value, bias, last), low, high;
        asm("{ .reg .pred end; setp.ge.u32 end, %0, %1; @end sub.u32 %0, %0, 1; }" : "+r"(position) : "r"(closed));
        asm("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, 0;" /* one instruction, which mad.wide is not */
            : "=&r"(low), "=r"(high)
            : "r"(position), "r"(multiplier), "r"(addend));
        return {high, (int32_t)low < 0};
    }
};

/* A guess, taken where it is surely right, else led to its place by the edges. EDGE is float for float32 input. */
template <class EDGE> __device__ __forceinline__ uint32_t ps_cell_guessed(const ps_device_map &map, const EDGE *edges, EDGE value) {
    int64_t n = map.n_bins;
    EDGE low = __ldg(edges), high = __ldg(edges + n);
    if (!(value >= low)) return isfinite(value) ? 0 : (uint32_t)n + 2;
    if (!(value <= high)) return isfinite(value) ? (uint32_t)n + 1 : (uint32_t)n + 2;
    EDGE position = (value - low) * (EDGE)map.scale;
    int32_t bin = (int32_t)position;
    EDGE fraction = position - (EDGE)bin;
    if (fraction > (EDGE)map.guess_error && fraction < (EDGE)1 - (EDGE)map.guess_error) return (uint32_t)bin + 1;
    if (bin >= n) bin = (int32_t)n - 1;
    while (value < __ldg(edges + bin)) bin--;
    while (bin + 1 < n && value >= __ldg(edges + bin + 1)) bin++;
    return (uint32_t)bin + 1;
}

/* Finds places of T's values. FORMULA: of small integers, whose map has one. */
template <class T, bool FORMULA> struct ps_finder {
    const ps_device_map &map;

    __device__ __forceinline__ explicit ps_finder(const ps_device_map &m) : map(m) {}
    __device__ __forceinline__ ps_place place(typename ps_input<T>::value value) const {
        uint32_t cell;
        if constexpr (ps_input<T>::small)
            cell = __ldg(map.table + (value - map.first_value));
        else if constexpr (sizeof(typename ps_input<T>::value) == 4)
            cell = ps_cell_guessed<float>(map, map.edges_f32, value);
        else
            cell = ps_cell_guessed<double>(map, map.edges, (double)value);
        return {cell >> 1, (cell & 1) != 0};
    }
};
template <class T> struct ps_finder<T, true> : ps_formula { using ps_formula::ps_formula; };

#endif
