/* Sums over many values, always added in the same order. */
#ifndef PS_KERNELS_CUDA_SUM_CUH
#define PS_KERNELS_CUDA_SUM_CUH

#include "kernels/cuda/operations.h"

/* Thread mapping: a block sums every gridDim-th run of 256 values; the tree inside a block and the host's last sum are fixed. Reads each
 * value once; a few microseconds for the sizes it is used on. */
template <typename Value> __global__ void ps_sum_kernel(Value value, int64_t n, double *partial) {
    __shared__ double sums[256];
    double sum = 0.0;
    for (int64_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += (int64_t)gridDim.x * 256) sum += value(i);
    sums[threadIdx.x] = sum;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];
}

/* value(i), a device function object, summed over [0, n). Waits for the compute stream. */
template <typename Value> ps_code ps_cuda_sum(ps_cuda_system *system, Value value, int64_t n, double *sum, ps_error *error) {
    double partial[PS_CUDA_PARTIALS];
    cudaStream_t stream = system->backend->compute;
    PS_CUDA_LAUNCH(error, ps_sum_kernel, PS_CUDA_PARTIALS, 256, 0, stream, value, n, system->d_partial);
    PS_TRY(PS_CUDA(error, cudaMemcpyAsync(partial, system->d_partial, sizeof partial, cudaMemcpyDeviceToHost, stream)));
    PS_TRY(PS_CUDA(error, cudaStreamSynchronize(stream)));
    *sum = 0.0;
    for (int i = 0; i < PS_CUDA_PARTIALS; i++) *sum += partial[i];
    return PS_OK;
}

struct ps_array_value {
    const double *values;
    __device__ double operator()(int64_t i) const { return values[i]; }
};

#endif
