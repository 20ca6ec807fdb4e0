#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/operations.h"
#include "kernels/cuda/unpack.cuh"
#include "kernels/histogram.h"

/* What a backend without a stated budget leaves free: the library's own allocations and other programs' small ones. */
static const size_t reserve_bytes = (size_t)768 << 20;

static ps_code device_count(int *count, ps_error *error) {
    *count = 0;
    cudaError_t status = cudaGetDeviceCount(count);
    if (status == cudaSuccess && *count > 0) return PS_OK;
    cudaGetLastError();
    *count = 0;
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    return PS_FAIL(error, PS_E_BACKEND,
                   "cuda: no device: %s; driver supports CUDA %d.%d, this build needs %d.%d; CUDA_VISIBLE_DEVICES %s%s",
                   status == cudaSuccess ? "none is visible" : cudaGetErrorString(status), driver / 1000, driver % 1000 / 10,
                   runtime / 1000, runtime % 1000 / 10, visible ? "is " : "is not set", visible ? visible : "");
}

static void device_bus(int device, char *text, int bytes) {
    if (cudaDeviceGetPCIBusId(text, bytes, device) == cudaSuccess) return;
    cudaGetLastError();
    text[0] = '\0';
}

static ps_code describe_device(ps_cuda_backend *backend, ps_error *error) {
    cudaDeviceProp properties;
    int driver = 0, runtime = 0, fft = 0, ratio = 0, shared = 0;
    PS_TRY(PS_CUDA(error, cudaGetDeviceProperties(&properties, backend->device)));
    PS_TRY(PS_CUDA(error, cudaDeviceGetAttribute(&ratio, cudaDevAttrSingleToDoublePrecisionPerfRatio, backend->device)));
    PS_TRY(PS_CUDA(error, cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, backend->device)));
    PS_TRY(PS_CUDA(error, cudaDriverGetVersion(&driver)));
    PS_TRY(PS_CUDA(error, cudaRuntimeGetVersion(&runtime)));
    PS_TRY(PS_CUFFT(error, cufftGetVersion(&fft)));
    if (properties.major < 8)
        return PS_FAIL(error, PS_E_BACKEND, "cuda: device %d is %s with compute capability %d.%d, expected 8.0 or later", backend->device,
                       properties.name, properties.major, properties.minor);
    backend->shared_bytes_max = (size_t)shared;
    backend->info.memory_bytes = properties.totalGlobalMem;
    backend->info.n_threads = backend->n_threads;
    snprintf(backend->info.name, sizeof backend->info.name, "%.127s", properties.name);
    snprintf(backend->info.versions, sizeof backend->info.versions,
             "driver CUDA %d.%d, runtime %d.%d, cuFFT %d.%d.%d, compute capability %d.%d", driver / 1000, driver % 1000 / 10,
             runtime / 1000, runtime % 1000 / 10, fft / 1000, fft % 1000 / 100, fft % 100, properties.major, properties.minor);
    ps_cuda_set_precision(&backend->base, ratio <= 4);
    return PS_OK;
}

void ps_cuda_set_precision(ps_backend *handle, bool in_double) {
    ps_cuda_backend *backend = (ps_cuda_backend *)handle;
    backend->fast_double = in_double;
    snprintf(backend->info.precision, sizeof backend->info.precision, "%s",
             in_double ? "N float64; b float32, merged in float64" : "N and b float32, merged in float64");
}

static ps_code open_device(ps_cuda_backend *backend, const ps_backend_options *options, ps_error *error) {
    size_t free_bytes = 0, total_bytes = 0;
    PS_TRY(ps_cuda_enter(backend, error));
    PS_TRY(describe_device(backend, error));
    PS_TRY(PS_CUDA(error, cudaMemGetInfo(&free_bytes, &total_bytes)));
    if (options->memory_budget_bytes == 0 && free_bytes <= reserve_bytes)
        return PS_FAIL(error, PS_E_MEMORY, "cuda: device %d has %.3f GiB free, %.3f GiB are kept in reserve", backend->device,
                       (double)free_bytes / (1 << 30), (double)reserve_bytes / (1 << 30));
    int n_pieces = options->n_pieces > 0 && options->n_pieces < PS_CUDA_PIECES ? options->n_pieces : PS_CUDA_PIECES;
    backend->n_pieces = n_pieces > 3 ? n_pieces : 3;
    size_t n_sharing = (size_t)options->n_sharing;
    backend->budget_bytes = options->memory_budget_bytes ? options->memory_budget_bytes : (free_bytes - reserve_bytes) / n_sharing;
    backend->info.budget_bytes = backend->budget_bytes;
    PS_TRY(PS_CUDA(error, cudaStreamCreateWithFlags(&backend->compute, cudaStreamNonBlocking)));
    PS_TRY(PS_CUDA(error, cudaStreamCreateWithFlags(&backend->side, cudaStreamNonBlocking)));
    PS_TRY(PS_CUDA(error, cudaStreamCreateWithFlags(&backend->upload, cudaStreamNonBlocking)));
    PS_TRY(PS_CUDA(error, cudaStreamCreateWithFlags(&backend->download, cudaStreamNonBlocking)));
    PS_TRY(PS_CUDA(error, cudaEventCreateWithFlags(&backend->compute_done, cudaEventDisableTiming)));
    PS_TRY(PS_CUDA(error, cudaEventCreateWithFlags(&backend->side_done, cudaEventDisableTiming)));
    for (int i = 0; i < PS_CUDA_UPLOAD_BUFFERS; i++)
        PS_TRY(PS_CUDA(error, cudaEventCreateWithFlags(&backend->upload_free[i], cudaEventDisableTiming)));
    for (int i = 0; i < 2; i++) {
        PS_TRY(PS_CUDA(error, cudaEventCreateWithFlags(&backend->set_aside[i], cudaEventDisableTiming)));
        PS_TRY(PS_CUDA(error, cudaEventCreateWithFlags(&backend->downloaded[i], cudaEventDisableTiming)));
    }
    return PS_OK;
}

static void close_backend(ps_backend *handle) {
    ps_cuda_backend *backend = (ps_cuda_backend *)handle;
    if (!backend) return;
    cudaSetDevice(backend->device);
    ps_cuda_ring_release(backend);
    for (int i = 0; i < PS_CUDA_UPLOAD_BUFFERS; i++) {
        ps_cuda_free(backend, backend->d_upload[i], backend->upload_bytes);
        if (backend->h_upload[i]) cudaFreeHost(backend->h_upload[i]);
        if (backend->upload_free[i]) cudaEventDestroy(backend->upload_free[i]);
    }
    for (int i = 0; i < 2; i++) {
        if (backend->h_download[i]) cudaFreeHost(backend->h_download[i]);
        if (backend->set_aside[i]) cudaEventDestroy(backend->set_aside[i]);
        if (backend->downloaded[i]) cudaEventDestroy(backend->downloaded[i]);
    }
    if (backend->compute_done) cudaEventDestroy(backend->compute_done);
    if (backend->side_done) cudaEventDestroy(backend->side_done);
    if (backend->compute) cudaStreamDestroy(backend->compute);
    if (backend->side) cudaStreamDestroy(backend->side);
    if (backend->upload) cudaStreamDestroy(backend->upload);
    if (backend->download) cudaStreamDestroy(backend->download);
    pthread_mutex_destroy(&backend->memory_lock);
    pthread_mutex_destroy(&backend->compute_lock);
    pthread_mutex_destroy(&backend->upload_lock);
    free(backend);
}

static ps_code open_backend(const ps_backend_options *options, ps_backend **handle, ps_error *error) {
    ps_cuda_backend *backend = (ps_cuda_backend *)calloc(1, sizeof *backend);
    if (!backend) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the cuda backend");
    backend->device = options->device;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    backend->n_threads = options->n_threads > 0 ? options->n_threads : cores > 0 ? (int)cores : 1;
    pthread_mutex_init(&backend->memory_lock, NULL);
    pthread_mutex_init(&backend->compute_lock, NULL);
    pthread_mutex_init(&backend->upload_lock, NULL);
    ps_code code = open_device(backend, options, error);
    if (code != PS_OK) {
        close_backend(&backend->base);
        return code;
    }
    *handle = &backend->base;
    return PS_OK;
}

static void device_info(const ps_backend *backend, ps_device_info *info) {
    *info = ((const ps_cuda_backend *)backend)->info;
}

static bool owns(const ps_backend *handle, const void *pointer) {
    cudaPointerAttributes attributes;
    if (ps_cuda_enter((const ps_cuda_backend *)handle, NULL) != PS_OK) return false;
    bool is_device = cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess && attributes.type == cudaMemoryTypeDevice;
    cudaGetLastError();
    return is_device;
}

extern "C" const ps_backend_ops ps_backend_cuda = {"cuda",
                                                   open_backend,
                                                   close_backend,
                                                   device_info,
                                                   ps_cuda_memory_plan,
                                                   ps_cuda_system_create,
                                                   ps_cuda_system_destroy,
                                                   ps_cuda_system_set_weights,
                                                   ps_cuda_system_prepare,
                                                   ps_cuda_frame_create,
                                                   ps_cuda_frame_destroy,
                                                   ps_cuda_frame_upload,
                                                   ps_cuda_frame_mean_counts,
                                                   ps_cuda_frame_reduce,
                                                   ps_cuda_solve,
                                                   ps_cuda_ssb,
                                                   ps_cuda_right_side_image,
                                                   ps_cuda_frame_data_norm,
                                                   ps_cuda_system_scales,
                                                   ps_cuda_get_transfer,
                                                   ps_cuda_get_normal,
                                                   ps_cuda_get_eigenvalues,
                                                   ps_cuda_get_right_side,
                                                   ps_cuda_get_spectrum,
                                                   PS_METHODS_ALL,
                                                   device_count,
                                                   device_bus,
                                                   owns,
                                                   &ps_histogram_cuda,
                                                   &ps_cuda_bench,
                                                   &ps_cuda_unpack,
                                                   &ps_cuda_host,
                                                   &ps_trials_cuda,
                                                   ps_cuda_get_spectra,
                                                   ps_cuda_get_data_norms};
