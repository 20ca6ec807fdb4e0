#include "kernels/cuda/operations.h"

ps_code ps_cuda_check(cudaError_t status, const char *call, const char *file, int line, ps_error *error) {
    if (status == cudaSuccess) return PS_OK;
    ps_code code = status == cudaErrorMemoryAllocation ? PS_E_MEMORY : PS_E_DEVICE;
    return ps_error_set(error, code, file, line, "CUDA: %s (%s) in %s", cudaGetErrorString(status), cudaGetErrorName(status), call);
}

static const char *fft_text(cufftResult status) {
    switch (status) {
    case CUFFT_ALLOC_FAILED: return "no memory for the plan";
    case CUFFT_INVALID_SIZE: return "size not supported";
    case CUFFT_EXEC_FAILED: return "the transform failed on the device";
    case CUFFT_SETUP_FAILED: return "the library failed to start";
    default: return "failed";
    }
}

ps_code ps_cuda_check_fft(cufftResult status, const char *call, const char *file, int line, ps_error *error) {
    if (status == CUFFT_SUCCESS) return PS_OK;
    ps_code code = status == CUFFT_ALLOC_FAILED ? PS_E_MEMORY : PS_E_DEVICE;
    return ps_error_set(error, code, file, line, "cuFFT: %s (%d) in %s", fft_text(status), (int)status, call);
}

ps_code ps_cuda_enter(const ps_cuda_backend *backend, ps_error *error) {
    return PS_CUDA(error, cudaSetDevice(backend->device));
}

/* Counts `bytes` as used when the budget allows it. */
static bool reserve(ps_cuda_backend *backend, size_t bytes) {
    pthread_mutex_lock(&backend->memory_lock);
    bool fits = bytes <= backend->budget_bytes && backend->in_use_bytes <= backend->budget_bytes - bytes;
    if (fits) backend->in_use_bytes += bytes;
    if (backend->in_use_bytes > backend->peak_bytes) backend->peak_bytes = backend->in_use_bytes;
    pthread_mutex_unlock(&backend->memory_lock);
    return fits;
}

static void unreserve(ps_cuda_backend *backend, size_t bytes) {
    pthread_mutex_lock(&backend->memory_lock);
    backend->in_use_bytes -= bytes;
    pthread_mutex_unlock(&backend->memory_lock);
}

ps_code ps_cuda_allocate(ps_cuda_backend *backend, size_t bytes, const char *what, void **pointer, ps_error *error) {
    *pointer = NULL;
    if (!reserve(backend, bytes))
        return PS_FAIL(error, PS_E_MEMORY, "cuda: %s needs %.3f GiB of device memory, of the budget of %.3f GiB %.3f GiB are in use", what,
                       (double)bytes / (1 << 30), (double)backend->budget_bytes / (1 << 30), (double)backend->in_use_bytes / (1 << 30));
    ps_code code = PS_CUDA(error, cudaMalloc(pointer, bytes));
    if (code == PS_OK) return PS_OK;
    unreserve(backend, bytes);
    cudaGetLastError(); /* an allocation that failed must not fail the next launch */
    ps_error_prefix(error, "%s (%.3f GiB)", what, (double)bytes / (1 << 30));
    return code;
}

void ps_cuda_free(ps_cuda_backend *backend, void *pointer, size_t bytes) {
    if (!pointer) return;
    cudaFree(pointer);
    unreserve(backend, bytes);
}

size_t ps_cuda_available(ps_cuda_backend *backend) {
    pthread_mutex_lock(&backend->memory_lock);
    size_t available = backend->budget_bytes > backend->in_use_bytes ? backend->budget_bytes - backend->in_use_bytes : 0;
    pthread_mutex_unlock(&backend->memory_lock);
    return available;
}

ps_code ps_cuda_stream_join(cudaStream_t waiting, cudaStream_t other, cudaEvent_t event, ps_error *error) {
    PS_TRY(PS_CUDA(error, cudaEventRecord(event, other)));
    return PS_CUDA(error, cudaStreamWaitEvent(waiting, event, 0));
}
