/* What the files of the CUDA backend share: the backend, a prepared system, a frame, and how memory and errors are handled.
 *
 * Pixels live in *slots*. The active part of the detector is cut into bands of four rows and a band, from its first active column
 * on, into tiles of eight columns; lane 4 c + r of a warp holds row r, column c of a tile. So the lanes of a warp hold neighbours, the
 * overlap of two apertures covers a run of tiles in each band, and a lane stays in one detector row along a band. Slots that hold no
 * active pixel (the disc's rim, bad pixels) carry aperture and weight 0. g is kept as [tile, spectrum, 32] (ps_cuda_g): one frequency
 * at one tile is two lines of 128 contiguous bytes. `spectrum` counts through the stored half-plane [scan_rows, scan_columns/2 + 1].
 *
 * Every kernel is compiled without contraction of a*b + c (-fmad=false); a fused operation is written fma(). So one source
 * expression rounds the same in every instantiation, and results do not depend on how many frames share a launch. */
#ifndef PS_KERNELS_CUDA_CUDA_H
#define PS_KERNELS_CUDA_CUDA_H

#include <cuda_runtime.h>
#include <cufft.h>
#include <pthread.h>

extern "C" {
#include "kernels/backend_list.h"
}

enum {
    PS_CUDA_LANES = 32,
    PS_CUDA_BAND_ROWS = 4,
    PS_CUDA_TILE_COLUMNS = 8,
    PS_CUDA_SEGMENT_TILES = 32, /* float sums over pixels are merged into double after whole bands of at least so many tiles */
    PS_CUDA_CHI_TERMS = 28,     /* p^i s^j with i + j <= 6 */
    PS_CUDA_UPLOAD_BUFFERS = 2
};

/* --- errors and launches --- */

/* PS_OK, PS_E_MEMORY or PS_E_DEVICE with the runtime's reason and the failed call. */
ps_code ps_cuda_check(cudaError_t status, const char *call, const char *file, int line, ps_error *error);
ps_code ps_cuda_check_fft(cufftResult status, const char *call, const char *file, int line, ps_error *error);
#define PS_CUDA(error, call) ps_cuda_check((call), #call, __FILE__, __LINE__, (error))
#define PS_CUFFT(error, call) ps_cuda_check_fft((call), #call, __FILE__, __LINE__, (error))

/* Launches and returns from the calling function when the launch failed. */
#ifndef PS_CUDA_LAUNCH
#define PS_CUDA_LAUNCH(error, kernel, grid, block, shared_bytes, stream, ...)                         \
    do {                                                                                              \
        kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__);                           \
        PS_TRY(ps_cuda_check(cudaGetLastError(), "launch of " #kernel, __FILE__, __LINE__, (error))); \
    } while (0)
#endif

/* --- memory: every byte on the device is counted against the budget --- */

typedef struct {
    unsigned char *base; /* NULL: only count */
    size_t used;
} ps_cuda_arena;

/* The next `count` elements of the arena, 256-byte aligned; NULL while counting. */
template <typename T> T *ps_cuda_take(ps_cuda_arena *arena, int64_t count) {
    size_t at = (arena->used + 255) / 256 * 256;
    arena->used = at + (size_t)count * sizeof(T);
    return arena->base ? (T *)(arena->base + at) : NULL;
}

typedef struct {
    ps_backend base;
    int device;
    int n_threads; /* host threads that fill upload buffers */
    size_t budget_bytes;
    size_t in_use_bytes, peak_bytes;    /* guarded by memory_lock */
    bool fast_double;                   /* double at half the float rate: N is formed in double */
    bool keeps_images;                  /* for timing: images are not sent to the host */
    size_t shared_bytes_max;            /* per block */
    cudaStream_t compute, side, upload; /* side: beside compute, inside one operation */
    cudaEvent_t compute_done, side_done;
    cudaEvent_t upload_free[PS_CUDA_UPLOAD_BUFFERS];
    unsigned char *h_upload[PS_CUDA_UPLOAD_BUFFERS], *d_upload[PS_CUDA_UPLOAD_BUFFERS]; /* allocated by the first upload */
    size_t upload_bytes;
    unsigned char *h_download[2]; /* pinned, for images; guarded by compute_lock */
    size_t download_bytes;
    cudaStream_t download;
    cudaEvent_t set_aside[2], downloaded[2]; /* the image of a slot is set aside; it has left the device */
    unsigned char *h_blocks;                 /* pinned, [n_blocks, block_bytes]: host_memory.cu */
    size_t block_bytes;
    int64_t n_blocks;
    cudaEvent_t *arrived; /* [n_blocks] */
    pthread_mutex_t memory_lock, compute_lock, upload_lock;
    int n_pieces;              /* of it */
    struct ps_cuda_ring *ring; /* unpack_ring.cu; NULL until packed patterns are put */
    ps_device_info info;
} ps_cuda_backend;

/* PS_E_MEMORY, with the numbers, when the budget would be passed. what: for the message. */
ps_code ps_cuda_allocate(ps_cuda_backend *backend, size_t bytes, const char *what, void **pointer, ps_error *error);
void ps_cuda_free(ps_cuda_backend *backend, void *pointer, size_t bytes);
/* Bytes of the budget that are not in use. */
size_t ps_cuda_available(ps_cuda_backend *backend);

/* --- the system --- */

/* What the transfer needs, passed to kernels by value. Lengths in detector pixels along the detector's rows (p) and columns (s)
 * from k = 0; phases in quarter turns; the thickness argument in half turns. docs/physics.md sections 2 and 3. */
typedef struct {
    double chi[PS_CUDA_CHI_TERMS]; /* chi's coefficient of p^i s^j at ps_cuda_chi_index(i, j) */
    double edge_u, edge_v;         /* (wavelength |e| / semiangle)^2 per pixel^2: rho^2 = edge_u p^2 + edge_v s^2, 1 at the semiangle */
    double direction_u[2], direction_v[2]; /* k of one pixel step along a row index (u), a column index (v), 1/Angstrom */
    double pitch_rad[2];
    double semiangle_rad;
    double width;            /* semiangle / pitch when the pitches are equal */
    double thick_u, thick_v; /* wavelength * thickness * |e|^2 */
    double tilt_u, tilt_v;   /* thickness * (e . tilt) */
    float edge_u_f32, edge_v_f32, inverse_edge_v, width_f32;
    float reach2, inner2; /* rho^2 beyond which the aperture is 0, up to which it is 1; inner2 < 0: nowhere */
    bool equal_pitch, is_thick, mirrored;
} ps_cuda_geometry;

/* Place of p^i s^j: blocks of equal j, i ascending. */
__host__ __device__ constexpr int ps_cuda_chi_index(int i, int j) {
    return j * 7 - j * (j - 1) / 2 + i;
}

typedef struct {
    double u, v;            /* first row, first column from k = 0, detector pixels */
    float middle_u, half_u; /* of its rows */
    int32_t first_tile, n_tiles;
    bool ends_segment;
} ps_cuda_band;

typedef struct {
    int64_t spectrum; /* place in the stored half-plane */
    int64_t first_alias;
    int64_t normal; /* first element of N's packed triangle: complex method, or phase alone */
    int64_t basis;  /* first element of the eigenvectors */
    int32_t n_aliases;
    int32_t scale_row;   /* of its pixels' scales, where g is compact */
    float conjugate;     /* -1: g is the conjugate of the stored partner; else 1 */
    double multiplicity; /* 1 or 2; 0 for the zero frequency, which no sum over the plane counts */
} ps_cuda_frequency;

/* Up to 8 aliases of one frequency: what one warp reduces. */
typedef struct {
    int32_t frequency, first, n_aliases;
    bool sums_data_norm;
} ps_cuda_task;

/* What a reduction needs of a pixel, in one load. */
struct __align__(16) ps_cuda_pixel {
    double chi;             /* quarter turns at k */
    float aperture, weight; /* 0 where the slot holds no pixel */
};

/* The same of a tile's pixels in float, each quantity side by side. */
typedef struct {
    float aperture[PS_CUDA_LANES], weight[PS_CUDA_LANES], weighted_aperture[PS_CUDA_LANES];
} ps_cuda_tile;

typedef struct {
    const ps_cuda_pixel *pixels; /* [n_slots] */
    const ps_cuda_tile *tiles;   /* [n_tiles] */
    const double *root;          /* [n_slots] aperture * sqrt(weight) */
    const ps_cuda_band *bands;   /* [n_bands] */
    int32_t n_tiles, n_bands;
} ps_cuda_pixels;

typedef struct {
    const ps_cuda_frequency *frequencies; /* [n_frequencies] */
    const double *u, *v;                  /* [n_aliases] q in detector pixels */
    const int32_t *alias_frequency;       /* [n_aliases] */
    int64_t n_frequencies, n_aliases;
} ps_cuda_aliases;

/* Frequencies with one alias count (up to 8), or all larger ones. */
typedef struct {
    int64_t first, n; /* into by_count */
    int n_aliases;    /* the largest */
} ps_cuda_class;
enum { PS_CUDA_SMALL = 8, PS_CUDA_CLASSES = PS_CUDA_SMALL + 1 };

/* Host side of the pixel layout. */
typedef struct {
    int64_t n_tiles, n_bands, n_slots;
    int64_t largest_segment;   /* tiles */
    int32_t *slot_pixel;       /* [n_slots] caller's active pixel, -1: none */
    int32_t *ordered_slot;     /* [n_active] slots that hold a pixel, ascending */
    int32_t *first_ordered;    /* [n_tiles + 1] into ordered_slot, of each tile */
    int32_t *slot_detector;    /* [n_slots] detector pixel; of a slot without one some active pixel's */
    ps_cuda_band *bands;       /* [n_bands] */
    double origin_u, origin_v; /* detector index of k = 0 */
} ps_cuda_layout;

/* A transform of first * second values inside one block: scan_fft.cuh. */
typedef struct {
    int32_t first, second;
    int32_t lanes, threads; /* pixels of a block, its threads */
    const float2 *roots;    /* [second, first] exp(-2 pi i j k / (first * second)), device */
} ps_fft_plan;

/* g * dose of some tiles on the device, in one of the two forms of docs/physics.md section 8. A slot without a pixel holds 0, or some
 * pixel's values. */
typedef struct {
    float2 *exact;  /* [tile, n_spectrum, 32]; NULL where g is compact */
    short2 *packed; /* [tile, n_spectrum, 32], compact */
    float *scales;  /* [tile, scan_rows + 1, 32]: of each spectrum row, and last of the zero frequency (kernels/g_packing.h) */
} ps_cuda_g;

typedef struct ps_cuda_frame ps_cuda_frame;

/* Workspace of one system: the store of g, and scratch whose use depends on the operation. */
typedef struct {
    void *memory;
    size_t bytes;
    ps_cuda_g g; /* of store_tiles */
    int64_t store_tiles;
    unsigned char *scratch;
    unsigned char *aside; /* two images on their way to the host: download.cu */
    uint64_t *owner;      /* host, [frames that fit whole]: serial number of the frame whose complete g is there */
    int64_t n_owners;
} ps_cuda_workspace;

typedef struct {
    ps_system base;
    ps_cuda_backend *backend;
    ps_system_desc desc; /* scalars; its pointers are NULL */
    ps_methods methods;
    ps_cuda_layout layout;
    ps_cuda_geometry geometry;
    ps_frequency *frequencies; /* host, [n_frequencies] */
    double *apertures;         /* host, [n_active] A(k) */
    int64_t n_spectrum, n_positions;
    int64_t zero_alias;                /* the alias that is the image's zero frequency, -1: none */
    bool own_fft;                      /* the scan is transformed by scan_fft.cu, not by cuFFT */
    ps_fft_plan fft_rows, fft_columns; /* with own_fft: along a column, along a row */
    int64_t fft_batch;                 /* pixels per forward transform of cuFFT */
    int64_t phase_batch;               /* pixels per inverse transform of the SSB phase estimator */
    ps_cuda_class classes[PS_CUDA_CLASSES];
    int64_t n_small_tasks, n_tasks; /* tasks up to 4 aliases come first, then those up to 8 */
    double scale_amplitude, scale_phase;
    size_t scratch_bytes; /* of its largest operation: ps_cuda_scratch_bytes */

    void *memory; /* one block; everything below lies in it */
    size_t memory_bytes;
    ps_cuda_pixel *d_pixels;
    double *d_root;
    ps_cuda_tile *d_tiles;
    int32_t *d_slot_pixel, *d_slot_detector, *d_ordered_slot;
    ps_cuda_band *d_bands;
    ps_cuda_frequency *d_frequencies;
    double *d_alias_u, *d_alias_v;
    double *d_prior_phase, *d_prior_complex;   /* [n_aliases] */
    int32_t *d_image_source, *d_image_partner; /* [fine_rows, fine_columns/2 + 1]: see images.cu */
    int32_t *d_by_count;                       /* [n_frequencies - 1] frequencies by class */
    int32_t *d_exact;                          /* [n_exact] solved aliases near q = 0 */
    int64_t n_exact;
    int32_t *d_alias_frequency;             /* [n_aliases] */
    ps_cuda_task *d_tasks;                  /* [n_tasks] */
    double2 *d_normal;                      /* packed lower triangles */
    double2 *d_basis;                       /* [n_aliases, n_aliases] per frequency, eigenvector j in column j */
    double *d_eigenvalues;                  /* [n_aliases] */
    double *d_partial;                      /* [PS_CUDA_PARTIALS] */
    float2 *d_roots_rows, *d_roots_columns; /* of fft_rows and fft_columns */
    int32_t *d_flag;
    int64_t n_normal, n_basis;

    /* where the counts of unpacked blocks go, guarded by upload_lock: unpack_lists.cu */
    ps_unpack_shape unpack_shape; /* that the lists are for; n_elements 0: none */
    int32_t n_unpack_blocks;
    uint2 *d_unpack_entries;   /* [n_slots] slot, place in its block; block by block, slots ascending */
    int32_t *d_unpack_first;   /* [blocks + 2] into them */
    int32_t *d_unpack_blocks;  /* [n_unpack_blocks] that hold active pixels */
    uint32_t *d_unpack_active; /* a bit for each detector pixel that is wanted */

    ps_cuda_workspace workspace;                                                 /* guarded by compute_lock */
    cufftHandle forward[2], inverse, inverse_phase, inverse_row, inverse_column; /* 0: not made yet */
    size_t fft_work_bytes;
} ps_cuda_system;

enum { PS_CUDA_PARTIALS = 256, PS_CUDA_MEAN_PARTS = 16 };

struct ps_cuda_frame {
    ps_frame base;
    ps_cuda_system *system;
    ps_dtype dtype;
    uint64_t serial;   /* renewed by every upload */
    double *mean;      /* host, [n_active]; with has_means */
    int64_t *n_marked; /* host, [n_active] */
    bool has_means;
    double dose;
    ps_unpack_meaning unpack_meaning; /* of the packed patterns that are being put */
    bool unpack_tallies, unpack_big_endian;

    void *memory;
    size_t memory_bytes;
    void *d_counts;                             /* [n_slots / 16, n_positions, 16] dtype, as they came: count_sheets.cuh */
    double *d_mean_parts;                       /* [PS_CUDA_MEAN_PARTS, n_slots] sums of parts of the scan */
    uint32_t *d_marked_parts;                   /* [PS_CUDA_MEAN_PARTS, n_slots] */
    double *d_mean;                             /* [n_slots] */
    unsigned long long *d_marked;               /* [n_slots] */
    double2 *d_right_phase, *d_right_amplitude; /* [n_aliases] b */
    double2 *d_projection;                      /* [n_aliases] V^H prior^-1/2 b */
    double2 *d_ssb;                             /* [n_aliases] mean over pixels of the corrected spectrum */
    double *d_data_norm;                        /* [n_frequencies] */
    uint8_t *d_refused;                         /* [n_positions] packed patterns that were not unpacked */
    uint32_t *d_tally;                          /* [n_positions, 5] as ps_unpack_tally */
    uint32_t *d_looks;                          /* [2, ps_cuda_unpack_words] a bit for each detector pixel */
};

static inline int64_t ps_cuda_positions(const ps_system_desc *desc) {
    return desc->scan_rows * desc->scan_columns;
}
static inline int64_t ps_cuda_spectrum(const ps_system_desc *desc) {
    return desc->scan_rows * (desc->scan_columns / 2 + 1);
}
static inline int64_t ps_cuda_fine_rows(const ps_system_desc *desc) {
    return desc->scan_rows * desc->upsampling;
}
static inline int64_t ps_cuda_fine_columns(const ps_system_desc *desc) {
    return desc->scan_columns * desc->upsampling;
}
static inline int64_t ps_cuda_fine_half(const ps_system_desc *desc) {
    return ps_cuda_fine_columns(desc) / 2 + 1;
}
/* Words of a bit for each detector pixel, of which two neighbours can be read from any pixel on. */
static inline int64_t ps_cuda_unpack_words(const ps_system_desc *desc) {
    return desc->detector_rows * desc->detector_columns / 32 + 2;
}
static inline int64_t ps_cuda_blocks(int64_t n, int64_t per_block) {
    return (n + per_block - 1) / per_block;
}

#endif
