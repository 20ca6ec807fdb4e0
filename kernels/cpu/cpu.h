/* What the reference and the fast CPU path share: threads, the copy of a problem's description, and the counts of a frame.
 *
 * Pixels are kept in *slots*: the reference keeps the caller's order, the fast path an order in which neighbours on the detector
 * are neighbours in memory. The caller never sees slots. */
#ifndef PS_KERNELS_CPU_CPU_H
#define PS_KERNELS_CPU_CPU_H

#include <complex.h>

#include "kernels/backend.h"

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
    bool prepared;
} ps_cpu_system;

typedef struct {
    ps_frame base;
    ps_cpu_system *system;
    ps_dtype dtype;
    void *counts;    /* [n_positions, n_active] dtype, slots, as they came (markers too) */
    uint8_t *is_put; /* [n_positions] */
    int64_t n_put;
    double *mean;      /* [n_active] of slots; valid with has_means */
    int64_t *n_marked; /* [n_active] of slots; valid with has_means */
    bool has_means;
    bool is_reduced;
    double dose;
} ps_cpu_frame;

/* Threads a backend may use at most: what memory plans count with. */
int ps_cpu_max_threads(void);
ps_code ps_cpu_backend_open(const ps_backend_ops *ops, const ps_backend_options *options, ps_backend **backend, ps_error *error);
void ps_cpu_backend_close(ps_backend *backend);
void ps_cpu_device_info(const ps_backend *backend, const char *precision, const char *instruction_set, ps_device_info *info);

/* Fills *system, which the caller allocated zeroed as the first member of its own; order: [n_active] the caller's pixel of each
 * slot, or NULL for the caller's order. On error ps_cpu_system_release cleans up. */
ps_code ps_cpu_system_init(ps_cpu_system *system, ps_backend *backend, const ps_system_desc *desc, ps_methods methods, const int32_t *order,
                           ps_error *error);
void ps_cpu_system_release(ps_cpu_system *system);
ps_code ps_cpu_system_set_weights(ps_system *system, const double *weights, ps_error *error);
/* PS_E_ARGUMENT unless the system was created with all of `methods` and, for phase and complex, is prepared. */
ps_code ps_cpu_system_require(const ps_cpu_system *system, ps_methods methods, ps_error *error);
/* PS_E_NUMERIC when a method's scale is not positive: no pixel tells anything about any frequency. */
ps_code ps_cpu_scales_require(const ps_cpu_system *system, double amplitude, double phase, ps_error *error);
ps_code ps_cpu_frequency_require(const ps_cpu_system *system, int64_t frequency, ps_error *error);
/* Bytes of ps_cpu_system_init's copy. */
size_t ps_cpu_system_bytes(const ps_system_desc *desc);
/* Bytes of ps_cpu_frame_init's arrays. */
size_t ps_cpu_frame_bytes(const ps_system_desc *desc, ps_dtype dtype);

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

ps_code ps_cpu_frame_init(ps_cpu_frame *frame, ps_cpu_system *system, ps_dtype dtype, ps_error *error);
void ps_cpu_frame_release(ps_cpu_frame *frame);
ps_code ps_cpu_frame_put(ps_frame *frame, int64_t first_position, int64_t n_positions, const void *counts, ps_error *error);
ps_code ps_cpu_frame_means(ps_frame *frame, double *mean, int64_t *n_marked, ps_error *error);
/* Means and markers of all slots, once every position is put. */
ps_code ps_cpu_frame_ensure_means(ps_cpu_frame *frame, ps_error *error);
ps_code ps_cpu_frame_require(const ps_cpu_frame *frame, ps_methods methods, ps_error *error);
/* Checks the arguments of frame_reduce and computes the means of every frame. */
ps_code ps_cpu_reduce_require(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error);

/* PS_E_MEMORY when the plan made for a batch of n_frames holds fewer. */
ps_code ps_cpu_batch_require(const ps_memory_plan *plan, int64_t n_frames, ps_error *error);

/* scans: [n_slots, stride] of which n_positions are written: counts less the slot's mean (subtract_mean) or as they are, markers and what
 * is not finite as 0. One thread. */
void ps_cpu_scans_f64(const ps_cpu_frame *frame, int64_t first_slot, int64_t n_slots, bool subtract_mean, int64_t stride, double *scans);
void ps_cpu_scans_f32(const ps_cpu_frame *frame, int64_t first_slot, int64_t n_slots, bool subtract_mean, int64_t stride, float *scans);
/* Mean over the active pixels of their scan means. */
double ps_cpu_mean_of_means(const ps_cpu_frame *frame);

/* Checks method, strengths and that the frame is reduced for it. */
ps_code ps_cpu_solve_require(const ps_cpu_frame *frame, ps_methods method, int64_t n_strengths, const ps_strength *strengths,
                             const ps_solution *solution, ps_error *error);

#endif
