/* The operations of the CUDA backend, one file each, named like their file. Contracts: kernels/backend.h. */
#ifndef PS_KERNELS_CUDA_OPERATIONS_H
#define PS_KERNELS_CUDA_OPERATIONS_H

#include "kernels/backend_bench.h"
#include "kernels/cuda/cuda.h"
#include "kernels/trials.h"

/* memory.cu */
ps_code ps_cuda_enter(const ps_cuda_backend *backend, ps_error *error); /* makes the backend's device the thread's */
/* Makes one stream wait for what another has been given so far. */
ps_code ps_cuda_stream_join(cudaStream_t waiting, cudaStream_t other, cudaEvent_t event, ps_error *error);
/* Copies n elements to the device, complete on return. */
template <typename T> ps_code ps_cuda_send(T *device, const T *host, int64_t n, ps_error *error) {
    PS_TRY(PS_CUDA(error, cudaMemcpy(device, host, (size_t)n * sizeof(T), cudaMemcpyHostToDevice)));
    return PS_CUDA(error, cudaStreamSynchronize(0)); /* a copy from pageable memory may return before its last part arrived */
}
template <typename T> ps_code ps_cuda_fetch(T *host, const T *device, int64_t n, ps_error *error) {
    return PS_CUDA(error, cudaMemcpy(host, device, (size_t)n * sizeof(T), cudaMemcpyDeviceToHost));
}

/* backend.cu, bench.cu */
void ps_cuda_set_precision(ps_backend *backend, bool in_double); /* of ps_backend_bench_ops */
extern const ps_backend_bench_ops ps_cuda_bench;

/* memory_plan.cu */
ps_code ps_cuda_memory_plan(const ps_system_desc *desc, ps_methods methods, ps_dtype dtype, size_t budget_bytes, int64_t max_frames,
                            ps_memory_plan *plan, ps_error *error);

/* system.cu */
ps_code ps_cuda_system_create(ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_system **system, ps_error *error);
void ps_cuda_system_destroy(ps_system *system);
ps_code ps_cuda_system_set_weights(ps_system *system, const double *weights, ps_error *error);
ps_code ps_cuda_system_prepare(ps_system *system, ps_error *error);
ps_code ps_cuda_system_scales(ps_system *system, ps_methods method, double *amplitude, double *phase, ps_error *error);
/* Fills the host side of a system that needs no device; what a plan counts with. *system zeroed before. */
ps_code ps_cuda_system_describe(const ps_system_desc *desc, ps_methods methods, ps_cuda_system *system, ps_error *error);
void ps_cuda_system_undescribe(ps_cuda_system *system);

/* system_arrays.cu */
/* Sets the arrays of a system, or only counts them (arena->base NULL). Needs desc, methods, layout, n_spectrum and the counts of
 * tasks, normal and basis elements. */
void ps_cuda_system_carve(ps_cuda_system *system, ps_cuda_arena *arena);
ps_code ps_cuda_system_fill(ps_cuda_system *system, const ps_system_desc *desc, ps_error *error); /* needs the arrays set */
/* Lists the solved aliases near q = 0 (reduce_kernels.cuh), or only counts them (NULL). */
int64_t ps_cuda_system_exact(const ps_cuda_system *system, const ps_system_desc *desc, int32_t *exact);
/* What depends on weights: [n_active], NULL: 1. */
ps_code ps_cuda_system_send_pixels(ps_cuda_system *system, const double *weights, ps_error *error);
/* The arrays as kernels take them. */
ps_cuda_pixels ps_cuda_system_pixels(const ps_cuda_system *system);
ps_cuda_aliases ps_cuda_system_aliases(const ps_cuda_system *system);

/* scratch.cu */
/* Bytes of scratch that the system's largest operation needs; kept as system->scratch_bytes. */
size_t ps_cuda_scratch_bytes(const ps_cuda_system *system);

/* workspace.cu */
/* Workspace for a batch: scratch, and room for the spectra of n_frames, as many tiles of each as the budget leaves (whole
 * segments); *tiles: how many of each frame. What is there already is kept when it is enough. */
ps_code ps_cuda_workspace_ensure(ps_cuda_system *system, int64_t n_frames, int64_t *tiles, ps_error *error);
void ps_cuda_workspace_release(ps_cuda_system *system);
/* The scratch of any operation but the forward transform's. */
ps_cuda_arena ps_cuda_scratch(const ps_cuda_system *system);
/* Tiles of each frame's spectra held at a time, for `available` bytes: all, or at least the largest segment; 0: that does not fit. */
int64_t ps_cuda_chunk_tiles(const ps_cuda_system *system, int64_t n_frames, size_t available);
/* The band after the last whole segment, from first_band on, that fits into `tiles`. */
int64_t ps_cuda_chunk_end(const ps_cuda_layout *layout, int64_t first_band, int64_t tiles);

/* transforms.cu */
typedef struct {
    int64_t rows, columns, batch; /* real values; rows 1: of a one-dimensional transform */
    bool inverse;
} ps_cuda_transform;
/* Bytes of the planes a transform works on in place: `batch` of [rows, columns/2 + 1] complex, real rows padded likewise. */
size_t ps_cuda_transform_bytes(const ps_cuda_transform *transform);
/* Bytes of the work area kept for a transform; a plan that asks for more is PS_E_MEMORY. */
size_t ps_cuda_transform_work(const ps_cuda_transform *transform);
/* Runs a transform in place; makes *plan at the first call. */
ps_code ps_cuda_transform_run(const ps_cuda_transform *transform, cufftHandle *plan, void *planes, void *work, cudaStream_t stream,
                              ps_error *error);
void ps_cuda_fft_sizes(ps_cuda_system *system); /* chooses own_fft, fft_batch and phase_batch */
void ps_cuda_fft_release(ps_cuda_system *system);
ps_cuda_transform ps_cuda_forward_transform(const ps_cuda_system *system);
ps_cuda_transform ps_cuda_image_transform(const ps_cuda_system *system, int64_t batch);
size_t ps_cuda_forward_scratch(const ps_cuda_system *system); /* at the beginning of the scratch: what the forward transform works in */

/* counts.cu */
size_t ps_cuda_upload_bytes(const ps_system_desc *desc, ps_dtype dtype);
/* Upload buffers of at least `bytes` each; under upload_lock. */
ps_code ps_cuda_upload_ensure(ps_cuda_backend *backend, size_t bytes, ps_error *error);
ps_code ps_cuda_frame_create(ps_system *system, ps_dtype dtype, ps_frame **frame, ps_error *error);
void ps_cuda_frame_destroy(ps_frame *frame);
ps_code ps_cuda_frame_upload(ps_frame *frame, int64_t first_position, int64_t n_positions, const void *counts, ps_error *error);
ps_code ps_cuda_frame_mean_counts(ps_frame *frame, double *mean, int64_t *n_marked, ps_error *error);
ps_code ps_cuda_frame_ensure_means(ps_cuda_frame *frame, ps_error *error);
void ps_cuda_frame_carve(ps_cuda_frame *frame, ps_cuda_arena *arena);
/* New counts are coming: what was formed from the old ones is not to be used. */
void ps_cuda_frame_renew(ps_cuda_frame *frame);
/* Takes the active pixels of raw counts on the device, [n_positions, detector] of the frame's dtype, into the frame. */
ps_code ps_cuda_frame_gather(ps_cuda_frame *frame, int64_t first_position, int64_t n_positions, const void *d_counts, cudaStream_t stream,
                             ps_error *error);

/* unpack.cu, unpack_lists.cu, unpack_ring.cu: unpack.cuh says what they share */
extern const ps_unpack_ops ps_cuda_unpack;
ps_code ps_cuda_bench_unpack(ps_frame *frame, const ps_packed *packed, double *seconds, ps_error *error); /* unpack_bench.cu */
void ps_cuda_unpack_carve_system(ps_cuda_system *system, ps_cuda_arena *arena);
void ps_cuda_unpack_carve_frame(ps_cuda_frame *frame, ps_cuda_arena *arena);
size_t ps_cuda_ring_bytes(const ps_system_desc *desc, ps_dtype dtype); /* on the device; 0: such patterns are not unpacked there */
void ps_cuda_ring_release(ps_cuda_backend *backend);

/* scan_fft.cu */
typedef enum { PS_FFT_ANY, PS_FFT_FIRST_EVEN, PS_FFT_SECOND_EVEN } ps_fft_parity;
/* How n values are transformed in one block (scan_fft.cuh), but for the roots; false: n is not a product of two lengths that registers hold
 * and of which one is even as asked. */
bool ps_cuda_fft_plan(int64_t n, ps_fft_parity parity, ps_fft_plan *plan);
/* exp(-2 pi i j k1 / n) -> d_roots: [second, first] */
ps_code ps_cuda_fft_send_roots(const ps_fft_plan *plan, float2 *d_roots, ps_error *error);
/* Whether the 16 slots from `slot` on hold no pixel. */
bool ps_cuda_sheet_is_empty(const ps_cuda_layout *layout, int64_t slot);
bool ps_cuda_scan_fft_plan(ps_cuda_system *system); /* sets the plans; false: a side of the scan is not for it */
void ps_cuda_scan_fft_carve(ps_cuda_system *system, ps_cuda_arena *arena);
ps_code ps_cuda_scan_fft_fill(ps_cuda_system *system, ps_error *error);
/* As ps_cuda_spectra, on the compute and side streams. */
ps_code ps_cuda_scan_fft(const ps_cuda_frame *frame, int64_t first_tile, int64_t n_tiles, const ps_cuda_g *g, ps_error *error);
/* Exact g of the pixels that go through it together, before they are packed; one of two such places. */
size_t ps_cuda_scan_fft_scratch(const ps_cuda_system *system);

/* g_store.cu */
size_t ps_cuda_tile_bytes(const ps_cuda_system *system);                           /* of g of one tile */
ps_cuda_g ps_cuda_g_in(const ps_cuda_system *system, void *memory, int64_t tiles); /* laid out in memory for so many tiles */
ps_cuda_g ps_cuda_g_from(const ps_cuda_system *system, ps_cuda_g g, int64_t tile); /* from a tile on */

/* spectra.cu */
/* g * dose of the tiles [first, first + n) -> g, on the compute stream. */
ps_code ps_cuda_spectra(ps_cuda_frame *frame, int64_t first_tile, int64_t n_tiles, ps_cuda_g g, ps_error *error);

/* normal.cu, eigenbasis.cu */
ps_code ps_cuda_normal(ps_cuda_system *system, ps_error *error);
ps_code ps_cuda_eigenbasis(ps_cuda_system *system, ps_error *error);
size_t ps_cuda_eigenbasis_scratch(const ps_cuda_system *system);

/* reduce.cu */
ps_code ps_cuda_frame_reduce(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error);

/* solve.cu, solve_phase.cu, solve_complex.cu */
ps_code ps_cuda_solve(ps_frame *frame, ps_methods method, int64_t n_strengths, const ps_strength *strengths, const ps_solution *solution,
                      ps_error *error);
/* What one strength leaves; NULL: not wanted. */
typedef struct {
    double2 *x_phase, *x_amplitude;   /* device, [n_aliases]; of the complex method both or none */
    double *residual, *effective_dof; /* host, the sums over the full plane */
} ps_cuda_answer;
size_t ps_cuda_solve_scratch(const ps_cuda_system *system);
ps_code ps_cuda_project(ps_cuda_frame *frame, ps_error *error); /* after reduce: V^H prior^-1/2 b */
ps_code ps_cuda_solve_phase(ps_cuda_frame *frame, ps_strength strength, const ps_cuda_answer *answer, ps_error *error);
/* scratch: room for ps_cuda_solve_complex_scratch bytes */
ps_code ps_cuda_solve_complex(ps_cuda_frame *frame, ps_strength strength, const ps_cuda_answer *answer, ps_cuda_arena scratch,
                              ps_error *error);
size_t ps_cuda_solve_complex_scratch(const ps_cuda_system *system);

/* images.cu */
typedef enum {
    PS_CUDA_IMAGE_REAL,     /* real part of the inverse transform of x; x(-q) = conj(x(q)) */
    PS_CUDA_WAVE_IMAGINARY, /* imaginary and real part of the inverse transform of SSB's value; value(-q) = -conj(value(q)) */
    PS_CUDA_WAVE_REAL
} ps_cuda_image_kind;
/* Floats of an image on the device: [fine_rows, 2 (fine_columns/2 + 1)], the last one or two of a row unused. */
int64_t ps_cuda_image_floats(const ps_cuda_system *system);
size_t ps_cuda_image_work(const ps_cuda_system *system);
/* x: [n_aliases] -> image, unnormalised; work: ps_cuda_image_work bytes. Sets the system's flag where x is not finite. */
ps_code ps_cuda_image(ps_cuda_system *system, const double2 *x, ps_cuda_image_kind kind, float *image, unsigned char *work,
                      ps_error *error);
/* Fills the maps from fine frequencies to aliases; host arrays [fine_rows, fine_columns/2 + 1]. */
ps_code ps_cuda_image_maps(const ps_system_desc *desc, int32_t *source, int32_t *partner, ps_error *error);
/* Clears the flag; fails with PS_E_NUMERIC, naming `what`, when it was set since. */
ps_code ps_cuda_flag_clear(ps_cuda_system *system, ps_error *error);
ps_code ps_cuda_flag_check(ps_cuda_system *system, const char *what, ps_error *error);

/* download.cu */
/* Bytes of the device that one of two images on their way takes. */
size_t ps_cuda_aside_bytes(const ps_cuda_system *system);
/* Starts an image's way, as `slot` (0 or 1); the image may be overwritten by later work on the compute stream. */
ps_code ps_cuda_download_begin(ps_cuda_system *system, const float *d_image, int slot, ps_error *error);
/* Hands it out as float, double or both: [fine_rows, fine_columns]. Waits for it, except where it goes to a block of host_memory.cu alone.
 */
ps_code ps_cuda_download_end(ps_cuda_system *system, int slot, float *image_f32, double *image_f64, ps_error *error);
/* memcpy, by several threads when it is large. */
void ps_cuda_copy_host(void *to, const void *from, size_t bytes, int n_threads);

/* host_memory.cu */
extern const ps_host_ops ps_cuda_host;
/* Which block begins there; -1: none. */
int64_t ps_cuda_host_block(const ps_cuda_backend *backend, const float *image);

/* ssb.cu, ssb_phase.cu */
ps_code ps_cuda_ssb(ps_frame *frame, ps_ssb_estimator estimator, float *phase_f32, double *phase_f64, double *loss, ps_error *error);
size_t ps_cuda_ssb_wave_scratch(const ps_cuda_system *system);
ps_code ps_cuda_ssb_phase(ps_cuda_frame *frame, float *phase_f32, double *phase_f64, double *loss, ps_error *error);
size_t ps_cuda_ssb_phase_scratch(const ps_cuda_system *system);

/* right_side_image.cu */
ps_code ps_cuda_right_side_image(ps_frame *frame, float *image_f32, double *image_f64, ps_error *error);
size_t ps_cuda_right_side_image_scratch(const ps_cuda_system *system);

/* inspect.cu */
ps_code ps_cuda_frame_data_norm(ps_frame *frame, double *data_norm, ps_error *error);
ps_code ps_cuda_get_transfer(ps_system *system, int64_t frequency, double *transfer, ps_error *error);
ps_code ps_cuda_get_normal(ps_system *system, ps_methods method, int64_t frequency, double *normal, ps_error *error);
ps_code ps_cuda_get_eigenvalues(ps_system *system, int64_t frequency, double *eigenvalues, ps_error *error);
ps_code ps_cuda_get_right_side(ps_frame *frame, ps_methods method, int64_t frequency, double *right_side, double *data_norm,
                               ps_error *error);
ps_code ps_cuda_get_spectrum(ps_frame *frame, int64_t frequency, double dose, double *spectrum, ps_error *error);
ps_code ps_cuda_get_spectra(ps_frame *frame, int64_t n, const int64_t *frequencies, double dose, double *spectra, ps_error *error);
ps_code ps_cuda_get_data_norms(ps_frame *frame, double *data_norms, ps_error *error);

/* trials.cu */
extern "C" const ps_trial_ops ps_trials_cuda;

#endif
