/* The image whose Fourier coefficients are b of the phase method, physics section 5: b, which a reduction left on the device, takes the
 * place of a solution, and images.cu does the rest.
 *
 * solved_kernel: one alias a thread; bytes: b once read, once written. Bound by memory, a few microseconds beside the transform. */
#include "kernels/cuda/operations.h"

enum { THREADS = 256 };

/* b of solved frequencies; 0 at the aliases of the scan's zero frequency, which is never solved. */
static __global__ void __launch_bounds__(THREADS)
    solved_kernel(const double2 *right, const int32_t *alias_frequency, int64_t n, double2 *x) {
    int64_t alias = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (alias < n) x[alias] = alias_frequency[alias] > 0 ? right[alias] : make_double2(0.0, 0.0);
}

typedef struct {
    double2 *x;
    float *image;
    unsigned char *work;
} buffers;

static buffers take_buffers(const ps_cuda_system *system, ps_cuda_arena *arena) {
    buffers b;
    b.x = ps_cuda_take<double2>(arena, system->desc.n_aliases);
    b.image = ps_cuda_take<float>(arena, ps_cuda_image_floats(system));
    b.work = ps_cuda_take<unsigned char>(arena, (int64_t)ps_cuda_image_work(system));
    return b;
}

size_t ps_cuda_right_side_image_scratch(const ps_cuda_system *system) {
    ps_cuda_arena arena = {NULL, 0};
    take_buffers(system, &arena);
    return arena.used;
}

static ps_code make_image(ps_cuda_frame *frame, float *image_f32, double *image_f64, ps_error *error) {
    ps_cuda_system *system = frame->system;
    int64_t tiles, n = system->desc.n_aliases;
    PS_TRY(ps_cuda_workspace_ensure(system, 1, &tiles, error));
    ps_cuda_arena scratch = ps_cuda_scratch(system);
    buffers b = take_buffers(system, &scratch);
    PS_TRY(ps_cuda_flag_clear(system, error));
    if (n > 0)
        PS_CUDA_LAUNCH(error, solved_kernel, (unsigned)ps_cuda_blocks(n, THREADS), THREADS, 0, system->backend->compute,
                       (const double2 *)frame->d_right_phase, (const int32_t *)system->d_alias_frequency, n, b.x);
    PS_TRY(ps_cuda_image(system, b.x, PS_CUDA_IMAGE_REAL, b.image, b.work, error));
    PS_TRY(ps_cuda_download_begin(system, b.image, 0, error));
    PS_TRY(ps_cuda_download_end(system, 0, image_f32, image_f64, error));
    return ps_cuda_flag_check(system, "a right side is not finite", error);
}

ps_code ps_cuda_right_side_image(ps_frame *handle, float *image_f32, double *image_f64, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_backend *backend = frame->system->backend;
    PS_TRY(ps_cuda_enter(backend, error));
    pthread_mutex_lock(&backend->compute_lock);
    ps_code code = make_image(frame, image_f32, image_f64, error);
    pthread_mutex_unlock(&backend->compute_lock);
    return code;
}
