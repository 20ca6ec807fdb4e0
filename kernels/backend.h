/* The one interface between thinking (src/) and number crunching (kernels/): functions for callers, and a typed table of operations that
 * each backend fills. The functions check every argument, once for all backends, fill in defaults, and call the table.
 *
 * Rank-local: no MPI and no files on this side. A backend holds one device (a GPU, or the CPU's cores); a system is what is
 * prepared once per optics; a frame is one recording's counts and what was reduced from them. Data flows
 *
 *     system_create -> (weights) -> system_prepare                        once per optics
 *     frame_create -> frame_upload ... -> frame_mean_counts -> frame_reduce        per frame; a batch shares one evaluation of the transfer
 *     solve, ssb                                                          per frame and strength
 *
 * Results never depend on how frames are batched or in which chunks counts arrive. All arrays named here are host memory unless
 * said otherwise; what a backend keeps on its device is its own. Formulas: docs/physics.md, sections named below. */
#ifndef PS_KERNELS_BACKEND_H
#define PS_KERNELS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/types.h"
#include "kernels/unpack.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PS_N_ABERRATIONS = 14, PS_MAX_ALIASES = 64 };

/* Physics section 2: the probe and the sample, in Angstrom and radian. Aberrations in the order of ps_aberration_orders. */
typedef struct {
    double wavelength_A;
    double semiangle_rad;
    double pitch_rad[2];                /* angular size of a detector pixel along row, column */
    double C_A[PS_N_ABERRATIONS];       /* C_nm */
    double angle_rad[PS_N_ABERRATIONS]; /* phi_nm, 0 where m = 0 */
    double thickness_A;
    double tilt_rad[2];  /* sample tilt, in the scan's axes */
    bool mirrored_probe; /* P(q-k) instead of P(k-q): reproduces published packages, for comparison only */
} ps_probe;

/* (n, m) of each aberration: (1,0) (1,2) (2,1) (2,3) (3,0) (3,2) (3,4) (4,1) (4,3) (4,5) (5,0) (5,2) (5,4) (5,6). */
extern const int ps_aberration_orders[PS_N_ABERRATIONS][2];

/* Physics section 4: one scan frequency and its aliases. Entry 0 of a system's list is the scan's zero frequency, which is
 * never solved (only SSB uses its aliases); every other entry is solved. An entry stands for its conjugate partner too when
 * `multiplicity` is 2; it is 1 for self-conjugate frequencies and for lines whose fine-grid Nyquist alias makes both partners
 * necessary (then both are in the list, and an image is the inverse transform's real part). */
typedef struct {
    int32_t row, column;  /* FFT order; column may exceed scan_columns/2: then g is the conjugate of the stored partner */
    int32_t n_aliases;    /* 0 ... PS_MAX_ALIASES */
    int32_t multiplicity; /* 1 or 2 */
    int64_t first_alias;  /* index into the alias arrays */
} ps_frequency;

/* How g is held, section 8: as complex64, or as two int16 with a float scale for each pixel and spectrum row. The float64 path forms g
 * where it is needed and holds none: for it they are the same. */
typedef enum { PS_G_EXACT, PS_G_COMPACT } ps_g_storage;

/* Everything a backend must know to prepare one optics. Built by ps_plan_build; read-only; a backend copies what it keeps. */
typedef struct {
    ps_probe probe;
    int64_t scan_rows, scan_columns;
    int64_t detector_rows, detector_columns;
    int64_t upsampling; /* U: images are [scan_rows*U, scan_columns*U] */
    double scan_step_A[2];
    int64_t n_active;               /* pixels whose aperture is not zero and that are not bad */
    const int32_t *active;          /* [n_active] detector_row * detector_columns + detector_column, ascending */
    const double *k_row, *k_column; /* [n_active] 1/Angstrom, in the scan's axes */
    int64_t n_frequencies;
    const ps_frequency *frequencies; /* [n_frequencies] */
    int64_t n_aliases;
    const int32_t *fine_row, *fine_column; /* [n_aliases] index into the fine grid, FFT order */
    const double *q_row, *q_column;        /* [n_aliases] 1/Angstrom */
    const double *prior_phase;             /* [n_aliases] prior(q) of the phase method, >= 1 */
    const double *prior_complex;           /* [n_aliases] prior(q) of the complex method, >= 1 */
    ps_g_storage g_storage;
    bool keeps_g; /* g is wanted again after a reduction (SSB's estimator `phase`, another reduction, spectra), and each frame's whole g is
                   * to stay with it: to be set where the memory plan, asked with it, says holds_g. No result depends on it */
} ps_system_desc;

/* Bits; a ps_methods is their sum. mf is the matched filter: b of the phase method, for which no N is prepared. */
enum { PS_METHOD_PHASE = 1, PS_METHOD_COMPLEX = 2, PS_METHOD_SSB = 4, PS_METHOD_MF = 8 };
enum {
    PS_METHODS_PREPARED = PS_METHOD_PHASE | PS_METHOD_COMPLEX,  /* need N */
    PS_METHODS_RIGHT_SIDE = PS_METHODS_PREPARED | PS_METHOD_MF, /* a reduction leaves b of the phase unknowns */
    PS_METHODS_ALL = PS_METHODS_RIGHT_SIDE | PS_METHOD_SSB
};
typedef unsigned ps_methods;
typedef enum { PS_SSB_WAVE, PS_SSB_PHASE } ps_ssb_estimator;
typedef struct {
    double amplitude, phase;
} ps_strength; /* amplitude is ignored by the phase method; both > 0 */

typedef struct ps_backend ps_backend;
typedef struct ps_system ps_system;
typedef struct ps_frame ps_frame;

typedef struct {
    int device;                 /* ordinal among the visible devices; ignored by cpu */
    int n_threads;              /* CPU threads; 0: all of OpenMP's */
    int n_pieces;               /* rooms for packed patterns (ps_frame_unpack_room), at most; 0: as many as the backend likes */
    size_t memory_budget_bytes; /* of the device's memory; 0: what is free, less a reserve */
    int n_sharing; /* ranks that use the device, this one included; without a budget each takes its part of what is free; 0: 1 */
} ps_backend_options;

/* What solve leaves. Any pointer may be NULL: then that part is not computed where that saves work. */
typedef struct {
    float *phase_f32, *log_amplitude_f32; /* [n_strengths, scan_rows*U, scan_columns*U] rad, 1; log_amplitude: complex method */
    float *const *phases_f32, *const *log_amplitudes_f32; /* [n_strengths] instead of those: an image's own array for each strength */
    double *phase_f64, *log_amplitude_f64;                /* the same in double (as accurate as the backend's precision) */
    double *residual;                                     /* [n_strengths] sum over the full plane but zero of section 5's residual */
    double *effective_dof;                                /* [n_strengths] the same sum of tr((N + D)^-1 N) */
} ps_solution;

/* Where strength i's image of n values goes; NULL: it is not wanted. */
static inline float *ps_solution_phase_f32(const ps_solution *solution, int64_t i, int64_t n) {
    return solution->phases_f32 ? solution->phases_f32[i] : solution->phase_f32 ? solution->phase_f32 + i * n : NULL;
}
static inline float *ps_solution_log_amplitude_f32(const ps_solution *solution, int64_t i, int64_t n) {
    return solution->log_amplitudes_f32 ? solution->log_amplitudes_f32[i]
                                        : (solution->log_amplitude_f32 ? solution->log_amplitude_f32 + i * n : NULL);
}
static inline bool ps_solution_wants_phase(const ps_solution *solution) {
    return solution->phases_f32 || solution->phase_f32 || solution->phase_f64;
}
static inline bool ps_solution_wants_log_amplitude(const ps_solution *solution) {
    return solution->log_amplitudes_f32 || solution->log_amplitude_f32 || solution->log_amplitude_f64;
}

/* Bytes a system with its frames will take on the device, and how the pixels of g are chunked inside the budget. */
typedef struct {
    size_t system_bytes;    /* kept per prepared optics */
    size_t frame_bytes;     /* kept per frame of a batch: counts, right sides */
    size_t workspace_bytes; /* one chunk of g, FFT workspace, images: at peak, once per rank */
    int64_t pixels_per_chunk;
    int64_t frames_per_batch; /* at most `max_frames` asked for */
    size_t peak_bytes;        /* with that batch; never above the budget */
    size_t g_bytes;           /* of one frame's whole g as it is held */
    bool holds_g;             /* g of each frame of the batch is held whole, and there for what comes after the reduction */
} ps_memory_plan;

typedef struct {
    char name[128];      /* "NVIDIA H200", or the CPU's name */
    char precision[64];  /* how N is accumulated: "float64", "float32 products, float64 sums", ... */
    char versions[256];  /* driver, runtime, libraries, instruction set */
    size_t memory_bytes; /* of the device, in all */
    size_t budget_bytes; /* of the device's memory, what this backend may take; 0: it computes in the host's */
    int n_threads;
} ps_device_info;

/* --- for backends: the table of operations --- */

/* Unpacking on the device: the functions ps_frame_unpack_* further down. All are required. */
typedef struct ps_unpack_ops {
    bool (*takes)(ps_packing packing, ps_dtype dtype, int64_t n_pixels);
    ps_code (*begin)(ps_frame *frame, const ps_unpack_rules *rules, ps_error *error);
    ps_code (*room)(ps_frame *frame, uint8_t **room, size_t *bytes, ps_error *error); /* any thread */
    ps_code (*put)(ps_frame *frame, const ps_packed *packed, ps_error *error);
    ps_code (*end)(ps_frame *frame, uint8_t *refused, ps_unpack_tally *tally, ps_error *error); /* pointers may be NULL */
} ps_unpack_ops;

/* Host memory that images reach without anyone waiting for them: the functions ps_backend_host_* further down. All are required. */
typedef struct ps_host_ops {
    ps_code (*allocate)(ps_backend *backend, int64_t n, int64_t n_floats, float **blocks, ps_error *error);
    void (*free)(ps_backend *backend, int64_t n, float **blocks);
    ps_code (*wait)(ps_backend *backend, const float *block, ps_error *error); /* any thread */
} ps_host_ops;

/* The functions of the same names further down say what each operation does. What they check a backend need not check again: pointers,
 * sizes, methods, element types, strengths, doses and weights, and that operations come in their order. Operations without an entry (NULL)
 * have the default that their comment states. */
typedef struct ps_backend_ops {
    /* --- required --- */
    const char *name;                                                                          /* "cpu-reference", "cpu-fast", "cuda" */
    ps_code (*open)(const ps_backend_options *options, ps_backend **backend, ps_error *error); /* n_sharing is 1 or more */
    void (*close)(ps_backend *backend);
    void (*device_info)(const ps_backend *backend, ps_device_info *info);
    ps_code (*memory_plan)(const ps_system_desc *desc, ps_methods methods, ps_dtype dtype, size_t budget_bytes, int64_t max_frames,
                           ps_memory_plan *plan, ps_error *error);
    ps_code (*system_create)(ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_system **system, ps_error *error);
    void (*system_destroy)(ps_system *system);
    ps_code (*system_set_weights)(ps_system *system, const double *weights, ps_error *error);
    ps_code (*system_prepare)(ps_system *system, ps_error *error);
    ps_code (*frame_create)(ps_system *system, ps_dtype dtype, ps_frame **frame, ps_error *error);
    void (*frame_destroy)(ps_frame *frame);
    ps_code (*frame_upload)(ps_frame *frame, int64_t first_position, int64_t n_positions, const void *counts, ps_error *error);
    ps_code (*frame_mean_counts)(ps_frame *frame, double *mean, int64_t *n_marked, ps_error *error);
    ps_code (*frame_reduce)(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error); /* n_frames > 0 */
    ps_code (*solve)(ps_frame *frame, ps_methods method, int64_t n_strengths, const ps_strength *strengths, const ps_solution *solution,
                     ps_error *error); /* n_strengths > 0 */
    ps_code (*ssb)(ps_frame *frame, ps_ssb_estimator estimator, float *phase_f32, double *phase_f64, double *loss, ps_error *error);
    ps_code (*right_side_image)(ps_frame *frame, float *image_f32, double *image_f64, ps_error *error);

    /* --- optional: each has a default --- */
    /* Default: summed from get_right_side's data norm of each frequency. */
    ps_code (*frame_data_norm)(ps_frame *frame, double *data_norm, ps_error *error);
    /* Default: the mean of get_normal's diagonals. Neither pointer is NULL. */
    ps_code (*system_scales)(ps_system *system, ps_methods method, double *amplitude, double *phase, ps_error *error);

    /* --- required: inspection, for tests and fitting; complex values are (real, imaginary) pairs of doubles --- */
    ps_code (*get_transfer)(ps_system *system, int64_t frequency, double *transfer, ps_error *error);
    ps_code (*get_normal)(ps_system *system, ps_methods method, int64_t frequency, double *normal, ps_error *error);
    ps_code (*get_eigenvalues)(ps_system *system, int64_t frequency, double *eigenvalues, ps_error *error);
    ps_code (*get_right_side)(ps_frame *frame, ps_methods method, int64_t frequency, double *right_side, double *data_norm,
                              ps_error *error);
    ps_code (*get_spectrum)(ps_frame *frame, int64_t frequency, double dose, double *spectrum, ps_error *error);

    /* --- optional: each has a default --- */
    /* The methods that the backend computes. Default (0): all. */
    ps_methods methods;
    /* Devices that are visible; PS_E_BACKEND with the driver's reason when there are none. Default: the backend needs no device. */
    ps_code (*device_count)(int *count, ps_error *error);
    /* The device's place on the PCI bus, "0000:3B:00.0"; "" when it is not known. */
    void (*device_bus)(int device, char *text, int bytes);
    /* true when the pointer points into memory that only the device may touch: callers pass host memory. Default: none does. */
    bool (*owns)(const ps_backend *backend, const void *pointer);
    /* The same backend's per-pixel histograms (kernels/histogram.h). Default: it has none. */
    const struct ps_histogram_ops *histogram;
    /* What `ptyseries bench` measures beyond these operations (kernels/backend_bench.h). Default: nothing more. */
    const struct ps_backend_bench_ops *bench;
    /* Default: packed patterns are unpacked on the host, pattern by pattern, and go through frame_upload. */
    const ps_unpack_ops *unpack;
    /* Default: ordinary memory, in which images are when the operation that makes them returns. */
    const ps_host_ops *host;
    /* The same backend's trial optics (kernels/trials.h). Default: the plain float64 way, on the host. */
    const struct ps_trial_ops *trials;
    /* ps_frame_get_spectra's, n > 0. Default: get_spectrum of each. */
    ps_code (*get_spectra)(ps_frame *frame, int64_t n, const int64_t *frequencies, double dose, double *spectra, ps_error *error);
    /* Default: get_right_side's of each frequency. */
    ps_code (*get_data_norms)(ps_frame *frame, double *data_norms, ps_error *error);
} ps_backend_ops;

/* Each backend's structs begin with these. The functions below fill them, after create; a backend reads them at most. */
struct ps_backend {
    const ps_backend_ops *ops;
};
struct ps_system {
    const ps_backend_ops *ops;
    ps_backend *backend;
    ps_methods methods;
    int64_t n_active, n_positions, n_frequencies;
    int64_t n_pixels; /* of the detector */
    int64_t n_image_pixels;
    ps_frequency *frequencies; /* [n_frequencies] a copy, where a default needs it; else NULL */
    bool is_prepared;
};
struct ps_frame {
    const ps_backend_ops *ops;
    ps_system *system;
    ps_dtype dtype;
    uint8_t *is_put; /* [n_positions] */
    int64_t n_put;
    bool is_reduced;
    struct ps_unpack_state *unpacking; /* between ps_frame_unpack_begin and _end; else NULL */
};

/* --- for callers: an argument that is not as stated is PS_E_ARGUMENT, and nothing has happened --- */

/* PS_E_INTERNAL when the table lacks a required operation. options: NULL: as if all were 0. */
ps_code ps_backend_open(const ps_backend_ops *ops, const ps_backend_options *options, ps_backend **backend, ps_error *error);
void ps_backend_close(ps_backend *backend); /* NULL is allowed here and in every destroy */
void ps_backend_info(const ps_backend *backend, ps_device_info *info);
/* Host memory for images, made once: n blocks of n_floats, pinned where the backend has a device. A backend has one such set at a time. An
 * operation whose float image is to go to the beginning of a block may return while the image is still on its way; then other work of the
 * device goes on beside it. It is there, and its fault if there was one is told, when ps_backend_host_wait returns; whoever is done with a
 * block may hand it to the next operation without having waited. Not part of the memory budget. */
ps_code ps_backend_host_allocate(ps_backend *backend, int64_t n, int64_t n_floats, float **blocks, ps_error *error);
void ps_backend_host_free(ps_backend *backend, int64_t n, float **blocks); /* waits for what is on its way; blocks become NULL */
/* Any thread. Nothing to wait for is PS_OK. */
ps_code ps_backend_host_wait(ps_backend *backend, const float *block, ps_error *error);

/* Plans memory without touching a device; PS_E_MEMORY when not even one frame with the smallest chunk fits `budget_bytes`
 * (0: unlimited). The system later built from the same arguments keeps to it. max_frames: >= 1. */
ps_code ps_backend_memory_plan(const ps_backend_ops *ops, const ps_system_desc *desc, ps_methods methods, ps_dtype dtype,
                               size_t budget_bytes, int64_t max_frames, ps_memory_plan *plan, ps_error *error);

/* Copies what it needs of desc. `methods` says what will be asked for: PS_METHOD_* bits. Weights start as 1. */
ps_code ps_system_create(ps_backend *backend, const ps_system_desc *desc, ps_methods methods, ps_system **system, ps_error *error);
void ps_system_destroy(ps_system *system); /* after its frames */
/* weights: [n_active], > 0 and finite. What was prepared before is dropped. */
ps_code ps_system_set_weights(ps_system *system, const double *weights, ps_error *error);
/* N of the asked methods, scales, the eigenbasis of the phase method (section 5). Both from one evaluation of the transfer. */
ps_code ps_system_prepare(ps_system *system, ps_error *error);
/* method: phase or complex, of a prepared system; scales of section 5, either may be NULL. Without a scale of its own, phase's amplitude
 * is its phase. */
ps_code ps_system_scales(ps_system *system, ps_methods method, double *amplitude, double *phase, ps_error *error);

/* One recording of `dtype` counts; values equal to ps_dtype_invalid_value(dtype) count as 0, and they and
 * values that are not finite are reported by ps_frame_mean_counts: a frame that holds some is not to be reduced with those pixels active.
 */
ps_code ps_frame_create(ps_system *system, ps_dtype dtype, ps_frame **frame, ps_error *error);
void ps_frame_destroy(ps_frame *frame);
/* counts: [n_positions, detector_rows, detector_columns] of the frame's dtype; positions count through the scan row by row. Each
 * position is uploaded exactly once, in any order of chunks. The buffer is free again on return. One thread at a time uploads into a frame.
 */
ps_code ps_frame_upload(ps_frame *frame, int64_t first_position, int64_t n_positions, const void *counts, ps_error *error);

/* Packed patterns instead of counts: begin, as many puts as wanted, end; each position is put once, packed or not. Between begin and end a
 * frame takes packed patterns only. Counts and what follows are the same to the last bit as from ps_frame_upload.
 *
 * ps_backend_unpacks: whether the backend unpacks on its device, which is why packed patterns would be handed to it; the functions work
 * without it too. */
bool ps_backend_unpacks(const ps_backend_ops *ops, ps_packing packing, ps_dtype dtype, int64_t n_pixels);
/* rules: copied; NULL: no limit, no tally. A limit is for unsigned types. Types of 8 bytes are refused. */
ps_code ps_frame_unpack_begin(ps_frame *frame, const ps_unpack_rules *rules, ps_error *error);
/* Memory of [bytes] from which packed patterns reach the device fastest; waits until some is free. Given back by the put whose bytes begin
 * there, or by end. *room is NULL where any memory does as well. Any thread, several at once; all but one of them may be held. */
ps_code ps_frame_unpack_room(ps_frame *frame, uint8_t **room, size_t *bytes, ps_error *error);
/* The bytes are free again on return unless they lie in a room, which no position at all gives back. One thread at a time. */
ps_code ps_frame_unpack_put(ps_frame *frame, const ps_packed *packed, ps_error *error);
/* Waits for all of it. refused: [n_positions] 1: that pattern is damaged, or packed in a way that only the host unpacks: it counts as not
 * put, and its packed bytes are to be unpacked by who can say what is wrong with them; *n_refused: how many. tally: [n_positions], of
 * patterns put packed and not refused; NULL: not wanted. After an error the frame is to be destroyed. */
ps_code ps_frame_unpack_end(ps_frame *frame, uint8_t *refused, int64_t *n_refused, ps_unpack_tally *tally, ps_error *error);

/* Once all positions are uploaded. mean: [n_active] scan-mean counts of each active pixel; n_marked: [n_active] positions that held the
 * invalid-count value. Either may be NULL. */
ps_code ps_frame_mean_counts(ps_frame *frame, double *mean, int64_t *n_marked, ps_error *error);
/* g = FFT over scan / (positions * dose) (section 3), then b and data norm of phase, complex and mf and the SSB sums, for different frames
 * of one system; dose: [n_frames], > 0. The system must be prepared when it was created with phase or complex. */
ps_code ps_frame_reduce(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error);
/* method: PS_METHOD_PHASE or PS_METHOD_COMPLEX; strengths: [n_strengths]. The frame must be reduced. Section 5. */
ps_code ps_system_solve(ps_frame *frame, ps_methods method, int64_t n_strengths, const ps_strength *strengths, const ps_solution *solution,
                        ps_error *error);
/* phase: [scan_rows*U, scan_columns*U] rad, either or both pointers; loss: only PS_SSB_PHASE, may be NULL. Section 6. */
ps_code ps_frame_ssb(ps_frame *frame, ps_ssb_estimator estimator, float *phase_f32, double *phase_f64, double *loss, ps_error *error);
/* Of a system created with PS_METHOD_MF: the image whose Fourier coefficients are b of the phase method, 0 at the scan's zero frequency and
 * its aliases. image: [scan_rows*U, scan_columns*U], either or both pointers. */
ps_code ps_frame_right_side_image(ps_frame *frame, float *image_f32, double *image_f64, ps_error *error);
/* scan_rows*U * scan_columns*U. */
int64_t ps_frame_image_pixels(const ps_frame *frame);
/* data_norm: sum over the full plane but zero of g^H W g. */
ps_code ps_frame_data_norm(ps_frame *frame, double *data_norm, ps_error *error);

/* transfer: [n_aliases of the frequency, n_active, 2 (amplitude, phase)] complex */
ps_code ps_system_get_transfer(ps_system *system, int64_t frequency, double *transfer, ps_error *error);
/* normal: [dim, dim] complex, Hermitian, row-major; dim = n_aliases (phase) or 2 n_aliases (complex: amplitudes first) */
ps_code ps_system_get_normal(ps_system *system, ps_methods method, int64_t frequency, double *normal, ps_error *error);
/* eigenvalues: [n_aliases] of prior^-1/2 N prior^-1/2, ascending */
ps_code ps_system_get_eigenvalues(ps_system *system, int64_t frequency, double *eigenvalues, ps_error *error);
/* method: phase, complex or mf (the phase method's, of a system that need not be prepared); right_side: [dim] complex; data_norm: g^H W g
 * of the frequency, may be NULL */
ps_code ps_frame_get_right_side(ps_frame *frame, ps_methods method, int64_t frequency, double *right_side, double *data_norm,
                                ps_error *error);
/* data_norms: [n_frequencies] g^H W g of each, in one go; 0 at the zero frequency */
ps_code ps_frame_get_data_norms(ps_frame *frame, double *data_norms, ps_error *error);
/* spectrum: [n_active] complex, g(q, k) of the frequency; all positions must be uploaded */
ps_code ps_frame_get_spectrum(ps_frame *frame, int64_t frequency, double dose, double *spectrum, ps_error *error);

/* --- which backend --- */

/* What a job's "compute" says, and where this rank is. */
typedef struct {
    const char *name;      /* "auto" (or NULL), or the name of a line of backend_list.h, with a device's number if one is meant: "cuda:1" */
    const char *precision; /* "fast" or "reference"; NULL: "fast" */
    int node_rank, n_node_ranks;              /* ranks share the host's devices in turn; n_node_ranks 0: 1 */
    const char *where_name, *where_precision; /* in front of messages about them: "/compute/backend" */
    bool needs_histograms;                    /* it must have ps_backend_ops.histogram */
} ps_backend_request;

/* true for "auto", names of the list, and those with a device's number where there are devices; built or not. */
bool ps_backend_name_is_known(const char *name);
/* The same in words: "auto, cpu, cuda, cuda:N (a device)". */
void ps_backend_names(char *text, size_t bytes);
/* Whether a backend of that name computes the precision, built or not. */
bool ps_backend_computes(const char *name, const char *precision);
/* The last usable line of the list for "auto", else the one of that name and precision. Sets ops, and of options the device and how many
 * ranks share it. PS_E_JOB: no such backend computes the precision; PS_E_BACKEND: not built here, no such device, or it lacks what is
 * needed. */
ps_code ps_backend_select(const ps_backend_request *request, const ps_backend_ops **ops, ps_backend_options *options, ps_error *error);
/* Its table whether or not a device is there, which planning needs not; NULL: not built, or it lacks what is needed. */
const ps_backend_ops *ps_backend_built(const ps_backend_request *request);
/* Lines "  NAME: what there is of it here", for people; malloc'd, NULL without memory. */
char *ps_backend_list_text(void);

#ifdef __cplusplus
}
#endif
#endif
