/* Images from the device to the caller.
 *
 * Into the backend's own blocks of host memory (host_memory.cu): an image is set aside on the device, out of the scratch that the next
 * operation needs, and goes over the bus by a stream of its own; nobody waits. Setting aside costs twice the image's bytes of device memory
 * traffic, some microseconds. Into any other memory: through two pinned buffers, while one is on the bus, the other is handed out. */
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

static int64_t image_pixels(const ps_cuda_system *system) {
    return ps_cuda_fine_rows(&system->desc) * ps_cuda_fine_columns(&system->desc);
}

size_t ps_cuda_aside_bytes(const ps_cuda_system *system) {
    return ((size_t)image_pixels(system) * sizeof(float) + 255) / 256 * 256;
}

static float *aside(const ps_cuda_system *system, int slot) {
    return (float *)(system->workspace.aside + (size_t)slot * ps_cuda_aside_bytes(system));
}

/* After what was set aside there before is gone. */
static ps_code set_aside(ps_cuda_system *system, const float *d_image, int slot, ps_error *error) {
    ps_cuda_backend *backend = system->backend;
    size_t rows = (size_t)ps_cuda_fine_rows(&system->desc), width = (size_t)ps_cuda_fine_columns(&system->desc) * sizeof(float);
    size_t pitch = (size_t)ps_cuda_fine_half(&system->desc) * 2 * sizeof(float);
    PS_TRY(PS_CUDA(error, cudaStreamWaitEvent(backend->compute, backend->downloaded[slot], 0)));
    PS_TRY(PS_CUDA(error,
                   cudaMemcpy2DAsync(aside(system, slot), width, d_image, pitch, width, rows, cudaMemcpyDeviceToDevice, backend->compute)));
    return PS_CUDA(error, cudaEventRecord(backend->set_aside[slot], backend->compute));
}

/* On the way to `to`, pinned, by the stream for it. */
static ps_code send(ps_cuda_system *system, int slot, void *to, ps_error *error) {
    ps_cuda_backend *backend = system->backend;
    size_t bytes = (size_t)image_pixels(system) * sizeof(float);
    PS_TRY(PS_CUDA(error, cudaStreamWaitEvent(backend->download, backend->set_aside[slot], 0)));
    PS_TRY(PS_CUDA(error, cudaMemcpyAsync(to, aside(system, slot), bytes, cudaMemcpyDeviceToHost, backend->download)));
    return PS_CUDA(error, cudaEventRecord(backend->downloaded[slot], backend->download));
}

ps_code ps_cuda_download_begin(ps_cuda_system *system, const float *d_image, int slot, ps_error *error) {
    ps_cuda_backend *backend = system->backend;
    if (backend->keeps_images) return PS_OK;
    PS_TRY(set_aside(system, d_image, slot, error));
    if (backend->n_blocks > 0) return PS_OK; /* where to is said at the end */
    PS_TRY(ensure_buffers(backend, (size_t)image_pixels(system) * sizeof(float), error));
    return send(system, slot, backend->h_download[slot], error);
}

ps_code ps_cuda_download_end(ps_cuda_system *system, int slot, float *image_f32, double *image_f64, ps_error *error) {
    ps_cuda_backend *backend = system->backend;
    size_t n = (size_t)image_pixels(system);
    int64_t block = image_f64 ? -1 : ps_cuda_host_block(backend, image_f32);
    if (backend->keeps_images) return PS_OK;
    if (block >= 0) {
        PS_TRY(send(system, slot, image_f32, error));
        return PS_CUDA(error, cudaEventRecord(backend->arrived[block], backend->download));
    }
    if (backend->n_blocks > 0) {
        PS_TRY(ensure_buffers(backend, n * sizeof(float), error));
        PS_TRY(send(system, slot, backend->h_download[slot], error));
    }
    PS_TRY(PS_CUDA(error, cudaEventSynchronize(backend->downloaded[slot])));
    const float *image = (const float *)backend->h_download[slot];
    if (image_f32) ps_cuda_copy_host(image_f32, image, n * sizeof(float), backend->n_threads);
    for (size_t i = 0; image_f64 && i < n; i++) image_f64[i] = image[i];
    return PS_OK;
}
