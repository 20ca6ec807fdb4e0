/* Reads one recording after another in a thread of its own, in chunks of positions, so that reading overlaps computing.
 *
 * At most one recording is being read; its chunks wait in a ring of bounded size. Used by one thread. */
#ifndef PS_INPUT_LOADER_H
#define PS_INPUT_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "input/odd_patterns.h"
#include "input/reader.h"

typedef struct ps_loader ps_loader;

/* What every recording of a series must be; a recording that differs is PS_E_INPUT. */
typedef struct {
    ps_reader_options options;
    int64_t n_positions, detector_rows, detector_columns;
    ps_dtype dtype;
} ps_loader_shape;

/* PS_E_INPUT, with both, when a recording is another. */
ps_code ps_loader_check_shape(const ps_loader_shape *shape, const ps_reader *reader, ps_error *error);

typedef struct {
    int64_t first_position, n_positions;
    const void *counts; /* [n_positions, detector_rows, detector_columns] of the shape's dtype; valid until ps_loader_release */
} ps_loader_chunk;

/* Bytes that the ring of ps_loader_create takes. */
size_t ps_loader_bytes(const ps_loader_shape *shape, size_t ring_bytes);

/* ring_bytes: what may wait unread by the caller; at least two patterns are kept. */
ps_code ps_loader_create(const ps_loader_shape *shape, size_t ring_bytes, ps_loader **loader, ps_error *error);
void ps_loader_destroy(ps_loader *loader);

/* Starts reading source in the background; cancels what is still being read. */
ps_code ps_loader_begin(ps_loader *loader, const char *source, ps_error *error);
/* The same, with patterns filled: odd: [n_positions] ps_pattern_kind; those that are not good are delivered as the nearest good one before
 * them, else after them. Copied. Not all may be odd. */
ps_code ps_loader_begin_filled(ps_loader *loader, const char *source, const uint8_t *odd, ps_error *error);
/* Pixels that tallies do not look at: bad: [detector_rows, detector_columns], not 0: bad; NULL: none. Copied; for the recordings that begin
 * from now on. The loader must be idle. */
ps_code ps_loader_ignore(ps_loader *loader, const uint8_t *bad, ps_error *error);
/* Waits for the next chunk; *end is true, and the chunk empty, after the last. An error of the reading thread is returned here, once. */
ps_code ps_loader_next(ps_loader *loader, ps_loader_chunk *chunk, bool *end, ps_error *error);
void ps_loader_release(ps_loader *loader); /* gives the chunk's buffer back to the ring */
void ps_loader_cancel(ps_loader *loader);  /* stops and forgets the recording in hand, if any */

/* What reading the recording in hand met; complete after its end or its error, and after ps_loader_cancel up to where that stopped it. */
typedef struct {
    ps_invalid_counts invalid;
    int64_t n_missing; /* patterns filled */
    int64_t n_pixels;  /* that tallies look at */
} ps_loader_findings;
ps_loader_findings ps_loader_found(ps_loader *loader);
/* [n_positions] of the recording in hand, as it was delivered; complete after its last chunk, valid until the next begins. */
const ps_pattern_tally *ps_loader_tally(const ps_loader *loader);
double ps_loader_seconds(ps_loader *loader); /* spent reading and decompressing the recording in hand */

#endif
