/* Packed patterns: what callers say of them (kernels/backend.h has the operations), and unpacking them on the host by the source that runs
 * on a GPU (unpack_core.h). Slower than hdf5/bslz4.c, which a CPU's counts come through; this is for backends without an unpacking of
 * their own, and for tests. */
#ifndef PS_KERNELS_UNPACK_H
#define PS_KERNELS_UNPACK_H

#include "core/error.h"
#include "core/types.h"
#include "kernels/unpack_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The packed bytes of one pattern within those of a call. */
typedef struct {
    uint32_t offset, bytes;
} ps_packed_pattern;

/* Patterns of neighbouring positions, each in one stream of its own, of the frame's element type, in the byte order that the rules say. */
typedef struct {
    ps_packing packing;
    int64_t first_position, n_positions;
    const uint8_t *bytes;              /* [n_bytes] */
    size_t n_bytes;                    /* below 4 GiB */
    const ps_packed_pattern *patterns; /* [n_positions] */
} ps_packed;

/* How the elements lie, and how counts are looked at on the way. */
typedef struct {
    uint32_t limit;       /* counts at and above become the invalid-count value; 0: none. Unsigned types */
    const uint8_t *looks; /* [detector pixels] sum of 1: in the first tally, 2: in the second; NULL: nothing is tallied. Where there is
                             a tally all of a pattern is unpacked, else only blocks with active pixels, and damage elsewhere is not found */
    bool big_endian;
} ps_unpack_rules;

/* Of one pattern: over the pixels of the first and of the second tally of `looks`. As input/odd_patterns.h counts. */
typedef struct {
    uint32_t lit[2], marked[2];
    uint32_t n_limited; /* pixels of the whole pattern that reached the limit */
} ps_unpack_tally;

/* --- for backends and tests --- */

/* Whether patterns of the type are unpacked at all: 1, 2 and 4 bytes an element. */
bool ps_unpack_takes(ps_dtype dtype, int64_t n_pixels);
/* value_planes, no_count_planes and the limit for a type. */
ps_unpack_meaning ps_unpack_meaning_of(ps_dtype dtype, uint32_t limit);
/* Shape of the patterns whose first stream is given; false: its header says what no stream says. */
bool ps_unpack_shape_of(ps_packing packing, uint32_t element_bytes, bool big_endian, int64_t n_elements, const uint8_t *stream,
                        size_t n_stream, ps_unpack_shape *shape);
/* elements: [n_elements], native, limited ones as the invalid-count value; tally: NULL: none. false: the stream is damaged, found by the
 * same tests as ps_bslz4_decode and ps_lz4_decode make; elements are undefined then. PS_E_MEMORY is false too. */
bool ps_unpack_pattern(ps_packing packing, ps_dtype dtype, int64_t n_elements, const ps_unpack_rules *rules, const uint8_t *stream,
                       size_t n_stream, void *elements, ps_unpack_tally *tally);

#ifdef __cplusplus
}
#endif
#endif
