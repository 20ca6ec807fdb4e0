/* The SSB image of estimator `wave`, physics section 6: the phase of the inverse transform of the corrected spectrum's mean over pixels.
 *
 * The spectrum is conjugate-odd but for its zero frequency and lines with a fine-grid Nyquist frequency, so the wave's imaginary and real
 * parts are two real transforms; a third pass takes the angle. Bytes: two half-planes, two images. Bound by memory, about 0.1 ms. The
 * spectrum itself is summed by reduce.cu; the estimator `phase` is in ssb_phase.cu. */
#include "kernels/cuda/operations.h"

enum { THREADS = 256 };

/* imaginary: in place, the angle. */
static __global__ void __launch_bounds__(THREADS) angle_kernel(float *imaginary, const float *real, int64_t n) {
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n) imaginary[i] = atan2f(imaginary[i], real[i]);
}

typedef struct {
    float *imaginary, *real;
    unsigned char *work;
} buffers;

static buffers take_buffers(const ps_cuda_system *system, ps_cuda_arena *arena) {
    buffers b;
    b.imaginary = ps_cuda_take<float>(arena, ps_cuda_image_floats(system));
    b.real = ps_cuda_take<float>(arena, ps_cuda_image_floats(system));
    b.work = ps_cuda_take<unsigned char>(arena, (int64_t)ps_cuda_image_work(system));
    return b;
}

size_t ps_cuda_ssb_wave_scratch(const ps_cuda_system *system) {
    ps_cuda_arena arena = {NULL, 0};
    take_buffers(system, &arena);
    return arena.used;
}

static ps_code wave(ps_cuda_frame *frame, float *phase_f32, double *phase_f64, ps_error *error) {
    ps_cuda_system *system = frame->system;
    int64_t tiles, n = ps_cuda_image_floats(system);
    PS_TRY(ps_cuda_workspace_ensure(system, 1, &tiles, error));
    ps_cuda_arena scratch = ps_cuda_scratch(system);
    buffers b = take_buffers(system, &scratch);
    PS_TRY(ps_cuda_flag_clear(system, error));
    PS_TRY(ps_cuda_image(system, frame->d_ssb, PS_CUDA_WAVE_IMAGINARY, b.imaginary, b.work, error));
    PS_TRY(ps_cuda_image(system, frame->d_ssb, PS_CUDA_WAVE_REAL, b.real, b.work, error));
    PS_CUDA_LAUNCH(error, angle_kernel, (unsigned)ps_cuda_blocks(n, THREADS), THREADS, 0, system->backend->compute, b.imaginary, b.real, n);
    PS_TRY(ps_cuda_download_begin(system, b.imaginary, 0, error));
    PS_TRY(ps_cuda_download_end(system, 0, phase_f32, phase_f64, error));
    return ps_cuda_flag_check(system, "the corrected spectrum is not finite", error);
}

ps_code ps_cuda_ssb(ps_frame *handle, ps_ssb_estimator estimator, float *phase_f32, double *phase_f64, double *loss, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_backend *backend = frame->system->backend;
    PS_TRY(ps_cuda_enter(backend, error));
    pthread_mutex_lock(&backend->compute_lock);
    ps_code code =
        estimator == PS_SSB_WAVE ? wave(frame, phase_f32, phase_f64, error) : ps_cuda_ssb_phase(frame, phase_f32, phase_f64, loss, error);
    pthread_mutex_unlock(&backend->compute_lock);
    return code;
}
