/* What `ptyseries bench` needs of a backend with a device beyond its operations: ceilings of the card, counts made on the device, and the
 * times of stages that have no operation of their own. Times are seconds between device events. */
#ifndef PS_KERNELS_BACKEND_BENCH_H
#define PS_KERNELS_BACKEND_BENCH_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    double copy_bytes_per_s;                                        /* device to device, bytes read plus bytes written */
    double upload_bytes_per_s;                                      /* pinned host memory to the device */
    double float_fma_per_s, double_fma_per_s, double_mma_fma_per_s; /* the last: mma.m8n8k4 */
    double clock_hz;                                                /* of a multiprocessor, measured under load */
    int n_multiprocessors;
    int max_clock_khz, memory_clock_khz; /* as the driver states them; 0: it does not */
} ps_bench_ceilings;

/* All are required. */
typedef struct ps_backend_bench_ops {
    ps_code (*ceilings)(ps_backend *backend, ps_bench_ceilings *ceilings, ps_error *error);
    /* The count of one detector pixel (index in the whole detector) at one scan position: 20 fair coins, mean 10. Host and device agree. */
    uint16_t (*count)(uint64_t seed, int64_t position, int64_t n_pixels, int64_t pixel);
    /* Called through ps_bench_fill. gather_s: the time of taking the active pixels, may be NULL. */
    ps_code (*fill)(ps_frame *frame, uint64_t seed, double *gather_s, ps_error *error);
    /* Forms the means, and g of all pixels when the budget holds it (else chunk after chunk); spectra_s: without the means. */
    ps_code (*spectra)(ps_frame *frame, double *means_s, double *spectra_s, ps_error *error);
    /* Images stay on the device from now on: solve and ssb do everything but send them. */
    void (*keep_images)(ps_backend *backend, bool keep);
    /* How N is summed from now on: in double, or in float with a double merge. Systems must be prepared again. */
    void (*set_precision)(ps_backend *backend, bool in_double);
    /* Device memory the backend holds now, held at most so far, and may hold. */
    void (*memory)(ps_backend *backend, size_t *in_use, size_t *peak, size_t *budget);
    /* Unpacks patterns, which may share bytes, once they are on the device; between ps_frame_unpack_begin and _end. Leaves what was put. */
    ps_code (*unpack)(ps_frame *frame, const ps_packed *packed, double *seconds, ps_error *error);
} ps_backend_bench_ops;

/* Uploads all positions of a uint16 frame, made on the device, in place of what it held. */
ps_code ps_bench_fill(ps_frame *frame, uint64_t seed, double *gather_s, ps_error *error);

#ifdef __cplusplus
}
#endif
#endif
