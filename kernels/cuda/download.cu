/* Images from the device to the caller, through two pinned buffers: while one is on the bus, the other is handed out. */
#include <string.h>
#include <thread>
#include <vector>

#include "kernels/cuda/operations.h"

void ps_cuda_copy_host(void *to, const void *from, size_t bytes, int n_threads) {
    const size_t share = (size_t)1 << 20, most = 8; /* a thread fills a fraction of the bus; beyond eight nothing is gained */
    size_t n = bytes / share < (size_t)n_threads ? bytes / share : (size_t)n_threads;
    if (n > most) n = most;
    if (n < 2) {
        memcpy(to, from, bytes);
        return;
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n; i++) {
        size_t begin = bytes / n * i, end = i + 1 == n ? bytes : bytes / n * (i + 1);
        threads.emplace_back([=] { memcpy((char *)to + begin, (const char *)from + begin, end - begin); });
    }
    for (std::thread &thread : threads) thread.join();
}

static ps_code ensure_buffers(ps_cuda_backend *backend, size_t bytes, ps_error *error) {
    if (backend->download_bytes >= bytes) return PS_OK;
    backend->download_bytes = 0;
    for (int i = 0; i < 2; i++) {
        if (backend->h_download[i]) cudaFreeHost(backend->h_download[i]);
        backend->h_download[i] = NULL;
        PS_TRY(PS_CUDA(error, cudaMallocHost((void **)&backend->h_download[i], bytes)));
    }
    backend->download_bytes = bytes;
    return PS_OK;
}

ps_code ps_cuda_download_begin(ps_cuda_system *system, const float *d_image, int slot, ps_error *error) {
    ps_cuda_backend *backend = system->backend;
    size_t rows = (size_t)ps_cuda_fine_rows(&system->desc), width = (size_t)ps_cuda_fine_columns(&system->desc) * sizeof(float);
    size_t pitch = (size_t)ps_cuda_fine_half(&system->desc) * 2 * sizeof(float);
    if (backend->keeps_images) return PS_OK;
    PS_TRY(ensure_buffers(backend, rows * width, error));
    PS_TRY(PS_CUDA(
        error, cudaMemcpy2DAsync(backend->h_download[slot], width, d_image, pitch, width, rows, cudaMemcpyDeviceToHost, backend->compute)));
    return PS_CUDA(error, cudaEventRecord(backend->downloaded[slot], backend->compute));
}

ps_code ps_cuda_download_end(ps_cuda_system *system, int slot, float *image_f32, double *image_f64, ps_error *error) {
    ps_cuda_backend *backend = system->backend;
    size_t n = (size_t)(ps_cuda_fine_rows(&system->desc) * ps_cuda_fine_columns(&system->desc));
    const float *image = (const float *)backend->h_download[slot];
    if (backend->keeps_images) return PS_OK;
    PS_TRY(PS_CUDA(error, cudaEventSynchronize(backend->downloaded[slot])));
    if (image_f32) ps_cuda_copy_host(image_f32, image, n * sizeof(float), backend->n_threads);
    for (size_t i = 0; image_f64 && i < n; i++) image_f64[i] = image[i];
    return PS_OK;
}
