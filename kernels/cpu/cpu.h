/* What the reference and the fast CPU path share: threads, the copy of a problem's description, a frame with its counts and sums, and the
 * operations on them. Arguments are as kernels/backend.c has checked them.
 *
 * Pixels are kept in *slots*: the reference keeps the caller's order, the fast path an order in which neighbours on the detector
 * are neighbours in memory. The caller never sees slots. */
#ifndef PS_KERNELS_CPU_CPU_H
#define PS_KERNELS_CPU_CPU_H

#include <complex.h>

#include "kernels/backend_list.h"
#include "kernels/histogram.h"
#include "kernels/trials.h"

typedef struct {
    ps_backend base;
    int n_threads;
    size_t budget_bytes; /* 0: unlimited */
} ps_cpu_backend;

typedef struct {
    ps_system base;
    const ps_cpu_backend *backend;
    ps_system_desc desc; /* pointers are the system's own; active and k in slot order */
    ps_methods methods;
    int32_t *slot_pixel; /* [n_active] which of the caller's active pixels a slot holds */
    double *weights;     /* [n_active] of slots */
    double scale_amplitude, scale_phase;
} ps_cpu_system;

typedef struct {
    ps_frame base;
    ps_cpu_system *system;
    ps_dtype dtype;
    void *counts;      /* [n_positions, n_active] dtype, slots, as they came (invalid-count values too) */
    double *mean;      /* [n_active] of slots; valid with has_means */
    int64_t *n_marked; /* [n_active] of slots; valid with has_means */
    bool has_means;
    double dose;                                   /* of the last reduction */
    double complex *right_amplitude, *right_phase; /* [n_aliases] b; amplitude with the complex method only; NULL with SSB alone */
    double complex *ssb;                           /* [n_aliases] mean over k of the corrected spectrum; fast: times -i (fast/ssb.c) */
    double *data_norm;                             /* [n_frequencies] g^H W g */
    struct ps_fast_g *g;                           /* fast: all of it, at this dose, where it is kept (fast/keep.h); else NULL */
} ps_cpu_frame;

/* Threads a backend may use at most: what memory plans count with. */
int ps_cpu_max_threads(void);
ps_code ps_cpu_backend_open(const ps_backend_options *options, ps_backend **backend, ps_error *error);
void ps_cpu_backend_close(ps_backend *backend);
bool ps_cpu_backend_owns(const ps_backend *backend, const void *pointer);
void ps_cpu_device_info(const ps_backend *backend, const char *precision, const char *instruction_set, ps_device_info *info);

/* Fills *system, which the caller allocated zeroed as the first member of its own; order: [n_active] the caller's pixel of each
 * slot, or NULL for the caller's order. On error ps_cpu_system_release cleans up. */
ps_code ps_cpu_system_init(ps_cpu_system *system, ps_backend *backend, const ps_system_desc *desc, ps_methods methods, const int32_t *order,
                           ps_error *error);
void ps_cpu_system_release(ps_cpu_system *system);
ps_code ps_cpu_system_set_weights(ps_system *system, const double *weights, ps_error *error);
/* N's entry on the diagonal of alias number a of a frequency: of its amplitude (the phase's without the complex method) or its phase. */
typedef double (*ps_cpu_diagonal)(const ps_cpu_system *system, int64_t frequency, int64_t a, bool of_phase);
/* Sets the scales to the mean of N's diagonal over all aliases of the full plane but zero (section 5). PS_E_NUMERIC when a method's scale
 * is not positive: no pixel tells anything about any frequency. */
ps_code ps_cpu_system_form_scales(ps_cpu_system *system, ps_cpu_diagonal diagonal, ps_error *error);
ps_code ps_cpu_system_scales(ps_system *system, ps_methods method, double *amplitude, double *phase, ps_error *error);
/* Bytes of ps_cpu_system_init's copy. */
size_t ps_cpu_system_bytes(const ps_system_desc *desc);
/* Bytes of a frame with the sums of the methods. */
size_t ps_cpu_frame_bytes(const ps_system_desc *desc, ps_methods methods, ps_dtype dtype);

static inline int64_t ps_cpu_positions(const ps_system_desc *desc) {
    return desc->scan_rows * desc->scan_columns;
}
static inline int64_t ps_cpu_half_columns(const ps_system_desc *desc) {
    return desc->scan_columns / 2 + 1;
}
static inline int64_t ps_cpu_fine_rows(const ps_system_desc *desc) {
    return desc->scan_rows * desc->upsampling;
}
static inline int64_t ps_cpu_fine_columns(const ps_system_desc *desc) {
    return desc->scan_columns * desc->upsampling;
}

/* Index of a scan frequency in a stored half-plane [scan_rows, scan_columns/2 + 1]; *conjugate: the stored value is the partner's. */
int64_t ps_cpu_half_index(const ps_system_desc *desc, const ps_frequency *frequency, bool *conjugate);

/* Index of the alias at the fine grid's zero frequency; -1: none. */
int64_t ps_cpu_zero_alias(const ps_system_desc *desc);

/* The most aliases any frequency has; over the solved frequencies only when `solved`. */
int64_t ps_cpu_max_aliases(const ps_system_desc *desc, bool solved);

/* --- frames: frame.c, and what they count: counts.c --- */

ps_code ps_cpu_frame_create(ps_system *system, ps_dtype dtype, ps_frame **frame, ps_error *error);
void ps_cpu_frame_destroy(ps_frame *frame);
ps_code ps_cpu_frame_upload(ps_frame *frame, int64_t first_position, int64_t n_positions, const void *counts, ps_error *error);
ps_code ps_cpu_frame_mean_counts(ps_frame *frame, double *mean, int64_t *n_marked, ps_error *error);
/* Mean counts and invalid counts of all slots, once every position is uploaded. */
ps_code ps_cpu_frame_ensure_means(ps_cpu_frame *frame, ps_error *error);
/* A reduction begins: the means of every frame, its dose, and all sums 0. */
ps_code ps_cpu_frames_begin(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error);
ps_code ps_cpu_frame_data_norm(ps_frame *frame, double *data_norm, ps_error *error);
ps_code ps_cpu_frame_get_right_side(ps_frame *frame, ps_methods method, int64_t frequency, double *right_side, double *data_norm,
                                    ps_error *error);

/* PS_E_MEMORY when the plan made for a batch of n_frames holds fewer. */
ps_code ps_cpu_batch_require(const ps_memory_plan *plan, int64_t n_frames, ps_error *error);

/* scans: [n_slots, stride] of which n_positions are written: counts less the slot's mean (subtract_mean) or as they are, invalid-count
 * values and what is not finite as 0. One thread. */
void ps_cpu_scans_f64(const ps_cpu_frame *frame, int64_t first_slot, int64_t n_slots, bool subtract_mean, int64_t stride, double *scans);
void ps_cpu_scans_f32(const ps_cpu_frame *frame, int64_t first_slot, int64_t n_slots, bool subtract_mean, int64_t stride, float *scans);
/* Mean over the active pixels of their scan means. */
double ps_cpu_mean_of_means(const ps_cpu_frame *frame);

/* An image as float, double or both; either may be NULL. */
void ps_cpu_write_image(int64_t n, const double *image, float *f32, double *f64);

/* --- the two tables: what each path has of its own is declared and entered here --- */

#define PS_CPU_PATH(path)                                                                                                      \
    ps_code ps_##path##_open(const ps_backend_options *options, ps_backend **backend, ps_error *error);                        \
    void ps_##path##_device_info(const ps_backend *backend, ps_device_info *info);                                             \
    ps_code ps_##path##_memory_plan(const ps_system_desc *desc, ps_methods methods, ps_dtype dtype, size_t budget_bytes,       \
                                    int64_t max_frames, ps_memory_plan *plan, ps_error *error);                                \
    ps_code ps_##path##_system_create(ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_system **system, \
                                      ps_error *error);                                                                        \
    void ps_##path##_system_destroy(ps_system *system);                                                                        \
    ps_code ps_##path##_system_set_weights(ps_system *system, const double *weights, ps_error *error);                         \
    ps_code ps_##path##_system_prepare(ps_system *system, ps_error *error);                                                    \
    ps_code ps_##path##_reduce(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error);                \
    ps_code ps_##path##_solve(ps_frame *frame, ps_methods method, int64_t n_strengths, const ps_strength *strengths,           \
                              const ps_solution *solution, ps_error *error);                                                   \
    ps_code ps_##path##_ssb(ps_frame *frame, ps_ssb_estimator estimator, float *phase_f32, double *phase_f64, double *loss,    \
                            ps_error *error);                                                                                  \
    ps_code ps_##path##_right_side_image(ps_frame *frame, float *image_f32, double *image_f64, ps_error *error);               \
    ps_code ps_##path##_get_transfer(ps_system *system, int64_t frequency, double *transfer, ps_error *error);                 \
    ps_code ps_##path##_get_normal(ps_system *system, ps_methods method, int64_t frequency, double *normal, ps_error *error);  \
    ps_code ps_##path##_get_eigenvalues(ps_system *system, int64_t frequency, double *eigenvalues, ps_error *error);           \
    ps_code ps_##path##_get_spectrum(ps_frame *frame, int64_t frequency, double dose, double *spectrum, ps_error *error);      \
    ps_code ps_##path##_get_spectra(ps_frame *frame, int64_t n, const int64_t *frequencies, double dose, double *spectra,      \
                                    ps_error *error);                                                                          \
    extern const ps_trial_ops ps_trials_##path

#define PS_CPU_OPS(path, text)                                                                                                            \
    {                                                                                                                                     \
        .name = text, .open = ps_##path##_open, .close = ps_cpu_backend_close, .device_info = ps_##path##_device_info,                    \
        .memory_plan = ps_##path##_memory_plan, .system_create = ps_##path##_system_create, .system_destroy = ps_##path##_system_destroy, \
        .system_set_weights = ps_##path##_system_set_weights, .system_prepare = ps_##path##_system_prepare,                               \
        .system_scales = ps_cpu_system_scales, .frame_create = ps_cpu_frame_create, .frame_destroy = ps_cpu_frame_destroy,                \
        .frame_upload = ps_cpu_frame_upload, .frame_mean_counts = ps_cpu_frame_mean_counts, .frame_reduce = ps_##path##_reduce,           \
        .frame_data_norm = ps_cpu_frame_data_norm, .solve = ps_##path##_solve, .ssb = ps_##path##_ssb,                                    \
        .right_side_image = ps_##path##_right_side_image, .get_transfer = ps_##path##_get_transfer, .get_normal = ps_##path##_get_normal, \
        .get_eigenvalues = ps_##path##_get_eigenvalues, .get_right_side = ps_cpu_frame_get_right_side,                                    \
        .get_spectrum = ps_##path##_get_spectrum, .get_spectra = ps_##path##_get_spectra, .trials = &ps_trials_##path,                    \
        .owns = ps_cpu_backend_owns, .histogram = &ps_histogram_cpu_##path,                                                               \
    }

#endif
