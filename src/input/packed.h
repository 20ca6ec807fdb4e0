/* The packed patterns of a recording, handed on as they lie in its files: for backends that unpack on their device (kernels/backend.h).
 *
 * Recordings of which every pattern is one chunk of its own, bitshuffle-LZ4, LZ4 or not compressed: Dectris masters, as a rule; and those
 * whose patterns lie in a file as they are delivered: .npy in C order, contiguous HDF5, EMPAD. A recording is read as counts instead where
 * anything stands between what lies there and the counts: MIB with its headers, elements of 8 bytes or of the other byte order, skipped or
 * repeated or reversed detector frames, filled ones, signed or floating counts of which some are to be left out, and a bit depth less than
 * the type's. */
#ifndef PS_INPUT_PACKED_H
#define PS_INPUT_PACKED_H

#include "input/reader.h"
#include "kernels/backend.h"

enum { PS_PACKED_WHY = 160 };

typedef struct ps_packed_recording ps_packed_recording;

/* *recording: NULL where counts must be read, and why says the reason; owned by the caller. It does not need the reader any more. Looks up
 * where each chunk lies, and reads none. */
ps_code ps_packed_open(ps_reader *reader, ps_packed_recording **recording, char why[PS_PACKED_WHY], ps_error *error);
void ps_packed_close(ps_packed_recording *recording);
ps_packing ps_packed_packing(const ps_packed_recording *recording);
uint32_t ps_packed_limit(const ps_packed_recording *recording); /* as in ps_unpack_rules */
int64_t ps_packed_bytes(const ps_packed_recording *recording);  /* of all chunks */
/* Whether a pattern's chunk takes no more than an eighth of its counts, or is not compressed at all. */
bool ps_packed_is_short(const ps_packed_recording *recording, int64_t position, size_t pattern_bytes);

/* How many patterns from `first` on fit into a room; 0: the first one alone does not. */
int64_t ps_packed_fit(const ps_packed_recording *recording, int64_t first, size_t room_bytes);
/* Reads n of them, which fit: patterns: [n] their places in room; *used: bytes. Any thread. */
ps_code ps_packed_read(const ps_packed_recording *recording, int64_t first, int64_t n, uint8_t *room, ps_packed_pattern *patterns,
                       size_t *used, ps_error *error);

/* Asked before each room is filled, by one thread at a time; false: PS_E_INTERRUPTED. */
typedef struct {
    bool (*goes_on)(void *context);
    void *context;
} ps_packed_watch;

/* Puts all patterns into a frame whose unpacking has begun, read by n_threads threads (0: all of OpenMP's; 15 at most) into the rooms of
 * its backend, or into memory of their own. A pattern that fits into no room counts as refused: too_large: [positions] is set to 1 where
 * that is so. watch: NULL: nobody asks. */
ps_code ps_packed_put(const ps_packed_recording *recording, ps_frame *frame, int n_threads, const ps_packed_watch *watch,
                      uint8_t *too_large, ps_error *error);

#endif
