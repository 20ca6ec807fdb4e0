/* Pinned host memory for images: one allocation, cut into blocks, each with the event of the image that is on its way to it. Contract:
 * ps_backend_host_* in kernels/backend.h. */
#include <stdlib.h>

#include "kernels/cuda/operations.h"

int64_t ps_cuda_host_block(const ps_cuda_backend *backend, const float *image) {
    const unsigned char *at = (const unsigned char *)image;
    if (!at || backend->n_blocks == 0 || at < backend->h_blocks) return -1;
    size_t offset = (size_t)(at - backend->h_blocks);
    if (offset % backend->block_bytes != 0 || offset / backend->block_bytes >= (size_t)backend->n_blocks) return -1;
    return (int64_t)(offset / backend->block_bytes);
}

static void release(ps_backend *handle, int64_t n, float **blocks) {
    ps_cuda_backend *backend = (ps_cuda_backend *)handle;
    (void)n;
    (void)blocks;
    if (ps_cuda_enter(backend, NULL) == PS_OK) cudaStreamSynchronize(backend->download);
    for (int64_t i = 0; i < backend->n_blocks; i++)
        if (backend->arrived[i]) cudaEventDestroy(backend->arrived[i]);
    if (backend->h_blocks) cudaFreeHost(backend->h_blocks);
    free(backend->arrived);
    backend->arrived = NULL;
    backend->h_blocks = NULL;
    backend->n_blocks = 0;
}

/* Waiting threads sleep. */
static ps_code make_events(ps_cuda_backend *backend, ps_error *error) {
    for (int64_t i = 0; i < backend->n_blocks; i++)
        PS_TRY(PS_CUDA(error, cudaEventCreateWithFlags(&backend->arrived[i], cudaEventDisableTiming | cudaEventBlockingSync)));
    return PS_OK;
}

static ps_code allocate(ps_backend *handle, int64_t n, int64_t n_floats, float **blocks, ps_error *error) {
    ps_cuda_backend *backend = (ps_cuda_backend *)handle;
    if (backend->n_blocks > 0) return PS_FAIL(error, PS_E_ARGUMENT, "cuda: there is host memory for images already, expected one set");
    size_t block_bytes = ((size_t)n_floats * sizeof(float) + 4095) / 4096 * 4096;
    PS_TRY(ps_cuda_enter(backend, error));
    cudaEvent_t *arrived = (cudaEvent_t *)calloc((size_t)n, sizeof *arrived);
    if (!arrived) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld events", (long long)n);
    ps_code code = PS_CUDA(error, cudaHostAlloc((void **)&backend->h_blocks, (size_t)n * block_bytes, cudaHostAllocPortable));
    if (code != PS_OK) {
        backend->h_blocks = NULL;
        cudaGetLastError(); /* an allocation that failed must not fail the next launch */
        free(arrived);
        ps_error_prefix(error, "pinned host memory for %lld images (%.3f GiB)", (long long)n, (double)n * (double)block_bytes / (1 << 30));
        return code;
    }
    backend->arrived = arrived;
    backend->block_bytes = block_bytes;
    backend->n_blocks = n;
    for (int64_t i = 0; i < n; i++) blocks[i] = (float *)(backend->h_blocks + (size_t)i * block_bytes);
    return make_events(backend, error);
}

static ps_code wait(ps_backend *handle, const float *block, ps_error *error) {
    const ps_cuda_backend *backend = (const ps_cuda_backend *)handle;
    int64_t i = ps_cuda_host_block(backend, block);
    if (i < 0) return PS_OK;
    PS_TRY(ps_cuda_enter(backend, error));
    return PS_CUDA(error, cudaEventSynchronize(backend->arrived[i]));
}

const ps_host_ops ps_cuda_host = {allocate, release, wait};
