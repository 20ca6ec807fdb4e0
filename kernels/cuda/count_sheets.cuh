/* How counts lie on the device: [n_slots / 16, n_positions, 16] of the frame's element type. Sixteen pixels of a scan position lie together
 * (half a tile), so that kernels whose lanes are pixels read and write whole sectors, and what they read of a scan row is one piece. */
#ifndef PS_KERNELS_CUDA_COUNT_SHEETS_CUH
#define PS_KERNELS_CUDA_COUNT_SHEETS_CUH

#include <cuda_runtime.h>
#include <stdint.h>

enum { PS_CUDA_SHEET = 16 /* pixels whose counts lie together */ };

/* Place of the count of a slot at position 0; the next position lies PS_CUDA_SHEET further. */
__host__ __device__ constexpr int64_t ps_cuda_scan_start(int64_t slot, int64_t n_positions) {
    return slot / PS_CUDA_SHEET * n_positions * PS_CUDA_SHEET + slot % PS_CUDA_SHEET;
}

template <typename T> struct ps_cuda_invalid_value {
    T value;
    bool exists;
    /* The detector's invalid-count value for "no count" stands for none. */
    __device__ float clean(T count) const { return exists && count == value ? 0.0f : (float)count; }
};

template <typename T> ps_cuda_invalid_value<T> ps_cuda_invalid_value_of(uint32_t bits) {
    ps_cuda_invalid_value<T> invalid_value = {(T)bits, bits != 0};
    return invalid_value;
}

#endif
