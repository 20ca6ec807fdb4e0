/* Fourier transforms through cuFFT: real to complex over the scan, complex to real onto the fine grid, always in place, each with a
 * work area of a size known before any device is touched.
 *
 * A batch is sized so that its planes stay in the level-2 cache of a large card between the kernel that fills them, the transform and the
 * kernel that takes them. The size depends on the system alone, never on the memory left, so it never shows in a result. */
#include <string.h>

#include "kernels/cuda/operations.h"

static const int64_t forward_bytes_wanted = (int64_t)17 << 20; /* two of them are under way at a time */
static const int64_t phase_bytes_wanted = (int64_t)34 << 20;

/* The largest power of two of planes that stay below the wanted size; at least 1. */
static int64_t batch_of(int64_t plane_bytes, int64_t bytes_wanted, int64_t most) {
    int64_t batch = 1;
    while (batch < most && 2 * batch * plane_bytes <= bytes_wanted) batch *= 2;
    return batch;
}

void ps_cuda_fft_sizes(ps_cuda_system *system) {
    const ps_system_desc *desc = &system->desc;
    system->own_fft = ps_cuda_scan_fft_plan(system);
    system->fft_batch = batch_of(system->n_spectrum * (int64_t)sizeof(float2), forward_bytes_wanted, 1024);
    system->phase_batch =
        batch_of(ps_cuda_fine_rows(desc) * ps_cuda_fine_half(desc) * (int64_t)sizeof(float2), phase_bytes_wanted, PS_CUDA_LANES);
}

ps_cuda_transform ps_cuda_forward_transform(const ps_cuda_system *system) {
    ps_cuda_transform transform = {system->desc.scan_rows, system->desc.scan_columns, system->fft_batch, false};
    return transform;
}

ps_cuda_transform ps_cuda_image_transform(const ps_cuda_system *system, int64_t batch) {
    ps_cuda_transform transform = {ps_cuda_fine_rows(&system->desc), ps_cuda_fine_columns(&system->desc), batch, true};
    return transform;
}

size_t ps_cuda_transform_bytes(const ps_cuda_transform *t) {
    return (size_t)t->batch * (size_t)t->rows * (size_t)(t->columns / 2 + 1) * sizeof(float2);
}

static bool is_smooth(int64_t n) {
    const int primes[] = {2, 3, 5, 7};
    for (int i = 0; i < 4; i++)
        while (n % primes[i] == 0) n /= primes[i];
    return n == 1;
}

/* cuFFT takes about two planes for products of small primes; a large prime goes through longer transforms (Bluestein's). */
size_t ps_cuda_transform_work(const ps_cuda_transform *t) {
    size_t planes = is_smooth(t->rows) && is_smooth(t->columns) ? 3 : 12;
    return planes * ps_cuda_transform_bytes(t) + ((size_t)4 << 20);
}

static ps_code make_plan(const ps_cuda_transform *t, cufftHandle *plan, ps_error *error) {
    int rank = t->rows > 1 ? 2 : 1;
    long long half = t->columns / 2 + 1, sizes[2] = {t->rows, t->columns}, real[2] = {t->rows, 2 * half}, complex[2] = {t->rows, half};
    long long *n = sizes + 2 - rank, *in_real = real + 2 - rank, *in_complex = complex + 2 - rank;
    size_t bytes = 0, kept = ps_cuda_transform_work(t);
    PS_TRY(PS_CUFFT(error, cufftCreate(plan)));
    PS_TRY(PS_CUFFT(error, cufftSetAutoAllocation(*plan, 0)));
    if (t->inverse)
        PS_TRY(PS_CUFFT(error, cufftMakePlanMany64(*plan, rank, n, in_complex, 1, t->rows * half, in_real, 1, t->rows * 2 * half, CUFFT_C2R,
                                                   t->batch, &bytes)));
    else
        PS_TRY(PS_CUFFT(error, cufftMakePlanMany64(*plan, rank, n, in_real, 1, t->rows * 2 * half, in_complex, 1, t->rows * half, CUFFT_R2C,
                                                   t->batch, &bytes)));
    if (bytes > kept)
        return PS_FAIL(error, PS_E_MEMORY, "cuFFT asks for %zu bytes of work area for %lld transforms of %lld x %lld, %zu are planned",
                       bytes, (long long)t->batch, (long long)t->rows, (long long)t->columns, kept);
    return PS_OK;
}

static void destroy_plan(cufftHandle *plan) {
    if (*plan) cufftDestroy(*plan);
    *plan = 0;
}

ps_code ps_cuda_transform_run(const ps_cuda_transform *t, cufftHandle *plan, void *planes, void *work, cudaStream_t stream,
                              ps_error *error) {
    if (!*plan) {
        ps_code code = make_plan(t, plan, error);
        if (code != PS_OK) {
            destroy_plan(plan);
            return code;
        }
    }
    PS_TRY(PS_CUFFT(error, cufftSetStream(*plan, stream)));
    PS_TRY(PS_CUFFT(error, cufftSetWorkArea(*plan, work)));
    if (t->inverse) return PS_CUFFT(error, cufftExecC2R(*plan, (cufftComplex *)planes, (cufftReal *)planes));
    return PS_CUFFT(error, cufftExecR2C(*plan, (cufftReal *)planes, (cufftComplex *)planes));
}

void ps_cuda_fft_release(ps_cuda_system *system) {
    for (int i = 0; i < 2; i++) destroy_plan(&system->forward[i]);
    destroy_plan(&system->inverse);
    destroy_plan(&system->inverse_phase);
    destroy_plan(&system->inverse_row);
    destroy_plan(&system->inverse_column);
}

size_t ps_cuda_forward_scratch(const ps_cuda_system *system) {
    ps_cuda_transform transform = ps_cuda_forward_transform(system);
    ps_cuda_arena arena = {NULL, 0};
    for (int i = 0; i < 2 && !system->own_fft; i++) {
        ps_cuda_take<unsigned char>(&arena, (int64_t)ps_cuda_transform_bytes(&transform));
        ps_cuda_take<unsigned char>(&arena, (int64_t)ps_cuda_transform_work(&transform));
    }
    bool packs = system->own_fft && system->desc.g_storage == PS_G_COMPACT;
    for (int i = 0; i < 2 && packs; i++) ps_cuda_take<unsigned char>(&arena, (int64_t)ps_cuda_scan_fft_scratch(system));
    return arena.used;
}
