/* Moments of every pixel and the sum of every pattern, in one pass over a batch.
 *
 * A thread takes V neighbouring pixels (16 bytes, 8 of uint8), a block 128 threads, grid.y shares out the patterns; sums stay in registers
 * until the end, then go to the accumulators with one atomic each. A warp adds up its 32 V values of a pattern and adds that to the
 * pattern's sum. All sums are integers, so no order of atomics changes them. Bytes moved: the batch once; that bounds it. */
#include <cfloat>

#include "kernels/cuda/histogram_kernels.cuh"

namespace {

constexpr int LOADS = 4, THREADS = 128, LEAST_FRAMES = 64, MOST_FRAMES = 8192 /* |sum of a thread| < 2^17 2^13 fits int32 */;
constexpr double CLIP = 274877906944.0; /* 2^38, as ps_histogram_quantum */

template <class T> struct shape { static constexpr int V = sizeof(T) == 1 ? 8 : 16 / sizeof(T), WORDS = V * sizeof(T) / 4; };

/* Sums of one pixel in a thread. add returns what the pattern's sum gains. Small integers: 32-bit sums and extremes. */
template <class T, bool SMALL = ps_input<T>::small> struct partial {
    int32_t sum = 0, minimum = INT32_MAX, maximum = INT32_MIN;
    uint64_t square = 0;
    uint32_t n_saturated = 0;

    __device__ __forceinline__ int32_t add(int32_t value, T raw, double, int32_t saturation_small, double) {
        uint32_t size = (uint32_t)abs(value);
        sum += value;
        square += (uint64_t)size * size;
        n_saturated += raw >= saturation_small;
        minimum = min(minimum, value);
        maximum = max(maximum, value);
        return value;
    }
    __device__ __forceinline__ uint64_t square_high() const { return 0; }
    __device__ __forceinline__ long long minimum_key() const { return minimum; }
    __device__ __forceinline__ long long maximum_key() const { return maximum; }
};

/* An integer that orders as the value does. */
__device__ __forceinline__ long long key(int64_t value) {
    return value;
}
__device__ __forceinline__ long long key(double value) {
    long long bits = __double_as_longlong(value);
    return bits < 0 ? bits ^ LLONG_MAX : bits;
}

/* Wide types: 64-bit sums of quanta, squares in 128 bits. */
template <class T> struct partial<T, false> {
    using value_type = typename ps_input<T>::value;
    using extreme = typename std::conditional<ps_input<T>::floating, double, int64_t>::type;
    int64_t sum = 0;
    uint64_t square = 0, square_above = 0;
    extreme minimum, maximum;
    uint32_t n_saturated = 0;

    __device__ __forceinline__ partial() {
        if constexpr (ps_input<T>::floating)
            minimum = INFINITY, maximum = -INFINITY;
        else
            minimum = LLONG_MAX, maximum = LLONG_MIN;
    }
    __device__ __forceinline__ int64_t add(value_type value, T raw, double units, int32_t, double saturation) {
        int64_t quantum;
        if constexpr (ps_input<T>::floating) {
            if (!isfinite(value)) return 0;
            quantum = __double2ll_rn(fmax(-CLIP, fmin(CLIP, (double)value * units)));
        } else {
            quantum = value;
        }
        uint64_t size = (uint64_t)llabs(quantum), low = size * size;
        square += low;
        square_above += __umul64hi(size, size) + (square < low);
        sum += quantum;
        n_saturated += (double)raw >= saturation;
        minimum = min(minimum, (extreme)value);
        maximum = max(maximum, (extreme)value);
        return quantum;
    }
    __device__ __forceinline__ uint64_t square_high() const { return square_above; }
    __device__ __forceinline__ long long minimum_key() const { return key(minimum); }
    __device__ __forceinline__ long long maximum_key() const { return key(maximum); }
};

/* The warp's sum, in lane 0. */
__device__ __forceinline__ long long warp_sum(int32_t value) {
    return __reduce_add_sync(~0u, value);
}
__device__ __forceinline__ long long warp_sum(int64_t value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
    return value;
}

template <class T> __device__ __forceinline__ void flush(const partial<T> &p, const ps_device_moments &m, int64_t pixel) {
    long long sum = p.sum;
    unsigned long long square = p.square, high = p.square_high();
    if (p.n_saturated) atomicAdd(m.n_saturated + pixel, (unsigned long long)p.n_saturated);
    atomicAdd(m.sum_low + pixel, (unsigned long long)sum & 0xffffffffu);
    if (sum >> 32) atomicAdd(m.sum_high + pixel, (unsigned long long)(sum >> 32));
    atomicAdd(m.square[0] + pixel, square & 0xffffffffu);
    if (square >> 32) atomicAdd(m.square[1] + pixel, square >> 32);
    if (high) atomicAdd(m.square[2] + pixel, high);
    atomicMin(m.minimum + pixel, p.minimum_key());
    atomicMax(m.maximum + pixel, p.maximum_key());
}

/* Vectors past the end read the last one's memory and count for nothing, so that whole warps stay together. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    sum_moments(const ps_device_batch batch, const ps_device_moments m, int64_t share, double units, int32_t saturation_small) {
    constexpr int V = shape<T>::V, WORDS = shape<T>::WORDS;
    using word = typename std::conditional<WORDS == 2, uint2, uint4>::type;
    int64_t vector = (int64_t)blockIdx.x * THREADS + threadIdx.x, n_vectors = batch.n_padded / V;
    bool real = vector < n_vectors;
    if (!real) vector = n_vectors - 1;
    partial<T> sums[V];
    T centre[V];
#pragma unroll
    for (int k = 0; k < V; k++) centre[k] = batch.centre ? ((const T *)batch.centre)[vector * V + k] : (T)0;
    int64_t begin = share * blockIdx.y, end = begin + share < batch.n_frames ? begin + share : batch.n_frames;
    for (int64_t first = begin; first < end; first += LOADS) {
        word data[LOADS];
#pragma unroll
        for (int u = 0; u < LOADS; u++)
            if (first + u < end) data[u] = __ldcs((const word *)((const T *)batch.frames + (first + u) * batch.n_padded) + vector);
#pragma unroll
        for (int u = 0; u < LOADS; u++) {
            if (first + u >= end) continue;
            uint32_t w[WORDS];
            memcpy(w, &data[u], sizeof w);
            decltype(sums[0].add((typename ps_input<T>::value)0, (T)0, 0.0, 0, 0.0)) total = 0;
#pragma unroll
            for (int k = 0; k < V; k++) {
                T raw = ps_element<T>(w, k);
                total += sums[k].add(ps_centred<T>(raw, centre[k]), raw, units, saturation_small, m.saturation);
            }
            long long sum = warp_sum(real ? total : 0);
            if (threadIdx.x % 32 == 0 && sum) atomicAdd((unsigned long long *)m.frame_sums + first + u, (unsigned long long)sum);
        }
    }
    if (!real) return;
#pragma unroll
    for (int k = 0; k < V; k++) flush<T>(sums[k], m, vector * V + k);
}

template <class T>
void start_dtype(const ps_device_batch &batch, const ps_device_map &map, const ps_device_moments &m, int64_t n_splits,
                 cudaStream_t stream) {
    int64_t n_vectors = batch.n_padded / shape<T>::V, share = (batch.n_frames + n_splits - 1) / n_splits;
    double limit = m.saturation > INT32_MAX ? INT32_MAX : m.saturation < INT32_MIN ? INT32_MIN : ceil(m.saturation);
    dim3 grid((unsigned)((n_vectors + THREADS - 1) / THREADS), (unsigned)n_splits);
    sum_moments<T><<<grid, THREADS, 0, stream>>>(batch, m, share, map.units, (int32_t)limit);
}

} // namespace

ps_code ps_histogram_launch_moments(ps_dtype dtype, const ps_device_batch *batch, const ps_device_map *map,
                                    const ps_device_moments *moments, cudaStream_t stream, ps_error *error) {
    enum { WANTED_WARPS = 132 * 32 };
    int64_t n_warps = batch->n_padded / 256 + 1, n_splits = (WANTED_WARPS + n_warps - 1) / n_warps;
    int64_t most = (batch->n_frames + LEAST_FRAMES - 1) / LEAST_FRAMES, least = (batch->n_frames + MOST_FRAMES - 1) / MOST_FRAMES;
    if (n_splits > most) n_splits = most;
    if (n_splits < least) n_splits = least;
    PS_HISTOGRAM_CUDA(error, cudaMemsetAsync(moments->frame_sums, 0, (size_t)batch->n_frames * sizeof *moments->frame_sums, stream));
    PS_HISTOGRAM_DISPATCH(dtype, start_dtype, *batch, *map, *moments, n_splits, stream);
    PS_HISTOGRAM_CUDA(error, cudaGetLastError());
    return PS_OK;
}
