/* Per-pixel histograms: one histogram of counts for every detector pixel, over as many patterns as are uploaded. The functions at the
 * end are for callers: they check arguments once, for all backends, and call the backend's table, which ps_backend_ops.histogram names.
 *
 * Rank-local: no MPI and no files on this side. Data flows
 *
 *     ps_histogram_map_build -> create -> (stage, fill the buffer, commit) ... -> finish -> read, moments, totals
 *
 * What is counted where is said once, by the map, and every backend keeps to it exactly: value v (after centring) is in bin i when
 * edges[i] <= v < edges[i+1], the last bin closed on the right, with the edges numpy.histogram computes for the same arguments.
 * All sums are integers, so results depend neither on the backend nor on batches, threads or the order of patterns.
 *
 * Names with "frame" (n_frames, frame_bytes) count patterns [n_pixels] here. docs/histogram.md. */
#ifndef PS_KERNELS_HISTOGRAM_H
#define PS_KERNELS_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Slots of a pixel: its bins, then what fell outside them. */
enum { PS_SLOT_UNDERFLOW = 0, PS_SLOT_OVERFLOW = 1, PS_SLOT_NONFINITE = 2, PS_EXTRA_SLOTS = 3 };
/* Limits: bins of one pixel, pixels of one histogram (larger detectors are done in bands), patterns of one batch (16-bit counters). */
enum { PS_HISTOGRAM_MAX_BINS = 1 << 28, PS_HISTOGRAM_MAX_PIXELS = 1 << 24, PS_HISTOGRAM_MAX_BATCH = 65535 };

/* Devices count small integers in cells that one multiply finds: with e = v + cell_bias clamped to 0 ... cell_last, and one less from
 * cell_closed on (the closed right end), the cell is (e * multiplier + addend) >> 31, proved for every e when the map was built. */
typedef enum {
    PS_CELLS_NONE,  /* no such formula: slots are looked up, or values are not small integers */
    PS_CELLS_SLOTS, /* cells: underflow, the bins, overflow */
    PS_CELLS_VALUES /* cells: underflow, one for each value inside the range, overflow */
} ps_histogram_cells;

/* How values become slots; built once on the host and read by every backend. */
typedef struct {
    ps_dtype dtype;
    bool centred;
    int64_t n_bins;
    double *edges; /* [n_bins + 1], strictly ascending; of float32 input rounded to float32, as NumPy does */
    /* 8- and 16-bit integers: slots of all values first_value ... first_value + n_values - 1 that can occur; other types: empty. */
    int64_t first_value, n_values;
    uint32_t *slots; /* [n_values] */
    ps_histogram_cells cells;
    int64_t n_cells;
    int32_t cell_bias;
    uint32_t cell_last, cell_closed, multiplier, addend;
    /* 32-bit integers and floats: (v - edges[0]) * scale is within guess_error bins of the true position, evaluated in float32 for
     * float32 input, in float64 otherwise. */
    double scale, guess_error;
    /* Moments of floating types are of values rounded to multiples of 2^unit_exponent = 1/units, 2^-25 of the range's larger end or
     * finer, and clipped to +-2^38 of them; of integers the unit is 1. */
    int unit_exponent;
    double units;
} ps_histogram_map;

/* range: lowest and highest edge, finite, ascending. PS_E_ARGUMENT when bins are too many or too narrow to tell apart in dtype. */
ps_code ps_histogram_map_build(ps_dtype dtype, bool centred, int64_t n_bins, const double range[2], ps_histogram_map *map, ps_error *error);
void ps_histogram_map_free(ps_histogram_map *map);
/* The definition, by bisection of the edges; value: after centring, exact. NaN and infinities give the non-finite slot. */
int64_t ps_histogram_slot(const ps_histogram_map *map, double value);
/* The integer that moments sum up, for a finite value after centring. */
int64_t ps_histogram_quantum(const ps_histogram_map *map, double value);

typedef enum {
    PS_HISTOGRAM_SHARED,      /* counters of a few pixels in shared memory, patterns read once: the fast one */
    PS_HISTOGRAM_PIXEL_MAJOR, /* one global increment per value, accumulator [pixel, slot] */
    PS_HISTOGRAM_BIN_MAJOR    /* one global increment per value, accumulator [slot, pixel] */
} ps_histogram_kernel;
const char *ps_histogram_kernel_name(ps_histogram_kernel kernel); /* "shared", "pixel-major", "bin-major" */

typedef struct {
    int64_t n_pixels;
    const double *centre;       /* [n_pixels] subtracted from each value, integers within dtype's range for integer types; NULL: none.
                                   Floats are subtracted in the input's own precision. */
    double saturation;          /* finite values >= this, before centring, are counted as saturated; INFINITY: none */
    int64_t n_segments;         /* >= 1: recordings whose totals are kept apart */
    int64_t frames_per_batch;   /* 0: chosen by the backend; at most PS_HISTOGRAM_MAX_BATCH */
    ps_histogram_kernel kernel; /* cuda only: cpu backends count one pixel's patterns after another's */
    bool counts_only;           /* no moments, no totals: for timing */
    int64_t spill_frames;       /* patterns after which 32-bit counters are added to 64-bit ones; 0: 2^32 - 1. For tests */
    int device, n_threads;      /* as ps_backend_options */
    size_t memory_budget_bytes; /* of the device (cuda) or the process (cpu); 0: what is there */
} ps_histogram_desc;

/* Exact sums of each pixel's finite values, in limbs that add up over backends and ranks without carrying: the sum is
 * sum_low + 2^32 sum_high (signed), the sum of squares square[0] + 2^32 square[1] + 2^64 square[2], in units of the map's. */
typedef struct {
    uint64_t *n_saturated; /* [n_pixels] each */
    uint64_t *sum_low;
    int64_t *sum_high;
    uint64_t *square[3];
    double *minimum, *maximum; /* +INFINITY, -INFINITY where a pixel has no finite value */
} ps_histogram_moments;

/* Seconds so far; device events for cuda, wall time for cpu. */
typedef struct {
    int64_t n_frames, n_batches;
    double copy_s, fill_s, moments_s;        /* host to device, counting, moments and totals */
    double readout_kernel_s, readout_copy_s; /* of the last full read */
} ps_histogram_times;

typedef struct ps_histogram ps_histogram;

/* --- for backends: the table. What the functions below check a backend need not check again. --- */

typedef struct ps_histogram_ops {
    const char *name; /* as the backend's */
    size_t (*minimum_bytes)(const ps_histogram_desc *desc, const ps_histogram_map *map);
    ps_code (*create)(const ps_histogram_desc *desc, const ps_histogram_map *map, ps_histogram **histogram, ps_error *error);
    void (*destroy)(ps_histogram *histogram);
    ps_code (*stage)(ps_histogram *histogram, void **frames, int64_t *capacity, ps_error *error);
    ps_code (*commit)(ps_histogram *histogram, int64_t n_frames, int64_t segment, ps_error *error);
    ps_code (*finish)(ps_histogram *histogram, ps_error *error); /* optional. Default: nothing is under way */
    ps_code (*read)(ps_histogram *histogram, int64_t first_pixel, int64_t n_pixels, uint64_t *counts, uint64_t *outside, ps_error *error);
    ps_code (*moments)(ps_histogram *histogram, const ps_histogram_moments *moments, ps_error *error);
    ps_code (*totals)(ps_histogram *histogram, uint64_t *low, int64_t *high, ps_error *error);
    void (*times)(const ps_histogram *histogram, ps_histogram_times *times);           /* optional. Default: all 0 */
    void (*device)(const ps_histogram *histogram, char *name, size_t bytes);           /* optional. Default: the table's name */
    bool on_device;                                                                    /* counters are in a device's memory */
    size_t (*frame_bytes)(const ps_histogram_desc *desc, const ps_histogram_map *map); /* optional. Default: 0 */
} ps_histogram_ops;

/* Each backend's struct begins with this. The functions below fill it, after create. */
struct ps_histogram {
    const ps_histogram_ops *ops;
    int64_t n_pixels, n_segments;
    ps_dtype dtype;
    int64_t staged; /* patterns of the buffer that stage gave last; 0: none is out */
};

extern const ps_histogram_ops ps_histogram_cpu_reference; /* plain: every value through ps_histogram_slot */
extern const ps_histogram_ops ps_histogram_cpu_fast;
extern const ps_histogram_ops ps_histogram_cuda; /* defined only where it is built: reach it by its backend's table */

/* --- for callers: an argument that is not as stated is PS_E_ARGUMENT, and nothing has happened --- */

/* Bytes on the device (cuda) or in the process (cpu) for desc with batches of at least one pattern; touches no device. */
size_t ps_histogram_minimum_bytes(const ps_histogram_ops *ops, const ps_histogram_desc *desc, const ps_histogram_map *map);
/* Bytes of the process that patterns take where the budget leaves room; of cuda, whose patterns are on the device, 0. */
size_t ps_histogram_frame_bytes(const ps_histogram_ops *ops, const ps_histogram_desc *desc, const ps_histogram_map *map);
/* map: borrowed until destroy. PS_E_MEMORY when the budget is too small, with both numbers. */
ps_code ps_histogram_create(const ps_histogram_ops *ops, const ps_histogram_desc *desc, const ps_histogram_map *map,
                            ps_histogram **histogram, ps_error *error);
void ps_histogram_destroy(ps_histogram *histogram); /* NULL is allowed */
/* A host buffer [*capacity, n_pixels] of the map's dtype to fill, pinned on cuda. Waits until one is free. */
ps_code ps_histogram_stage(ps_histogram *histogram, void **frames, int64_t *capacity, ps_error *error);
/* Counts the first n_frames of the buffer that stage gave last, for `segment`. cuda returns before that is done. */
ps_code ps_histogram_commit(ps_histogram *histogram, int64_t n_frames, int64_t segment, ps_error *error);
/* Stages, copies and commits patterns [n_frames, n_pixels] that lie anywhere. n_pixels, dtype: the histogram's. */
ps_code ps_histogram_put(ps_histogram *histogram, int64_t n_pixels, ps_dtype dtype, int64_t n_frames, const void *frames, int64_t segment,
                         ps_error *error);
/* Waits for everything committed; what follows may be asked for then, and more patterns may be committed after it. */
ps_code ps_histogram_finish(ps_histogram *histogram, ps_error *error);
/* counts: [n_pixels, n_bins], outside: [n_pixels, PS_EXTRA_SLOTS] of pixels first_pixel ...; either may be NULL. */
ps_code ps_histogram_read(ps_histogram *histogram, int64_t first_pixel, int64_t n_pixels, uint64_t *counts, uint64_t *outside,
                          ps_error *error);
ps_code ps_histogram_read_moments(ps_histogram *histogram, const ps_histogram_moments *moments, ps_error *error);
/* low, high: [n_segments] sum of all finite values of a segment, low + 2^32 high, in the map's units. */
ps_code ps_histogram_read_totals(ps_histogram *histogram, uint64_t *low, int64_t *high, ps_error *error);
void ps_histogram_read_times(const ps_histogram *histogram, ps_histogram_times *times);
/* "NVIDIA H200", or the threads in use: what ran, for records. */
void ps_histogram_device(const ps_histogram *histogram, char *name, size_t bytes);

ps_code ps_histogram_moments_allocate(int64_t n_pixels, ps_histogram_moments *moments, ps_error *error);
void ps_histogram_moments_free(ps_histogram_moments *moments);

#ifdef __cplusplus
}
#endif
#endif
