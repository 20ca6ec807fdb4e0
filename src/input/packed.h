/* The packed patterns of a recording, handed on as they lie in its files: for backends that unpack on their device (kernels/backend.h).
 *
 * Recordings of which every pattern is one chunk of its own, bitshuffle-LZ4, LZ4 or not compressed: Dectris masters, as a rule; and those
 * whose patterns lie in a file as they are delivered: .npy in C order, contiguous HDF5, EMPAD, MIB (whose headers are looked at where they
 * are read); of either byte order. A recording is read as counts instead where anything else stands between what lies there and the
 * counts: elements of 8 bytes, skipped or repeated or reversed detector frames, filled ones, signed or floating counts of which some are to
 * be left out, and a bit depth less than the type's. */
#ifndef PS_INPUT_PACKED_H
#define PS_INPUT_PACKED_H

#include "input/reader.h"
#include "kernels/backend.h"

enum { PS_PACKED_WHY = 160 };

typedef struct ps_packed_recording ps_packed_recording;

/* *recording: NULL where counts must be read, and why says the reason; owned by the caller, closed before the reader. Opens the first data
 * file; where the patterns lie is found later: by ps_packed_put, while those of earlier files are read already, or by ps_packed_find. */
ps_code ps_packed_open(ps_reader *reader, ps_packed_recording **recording, char why[PS_PACKED_WHY], ps_error *error);
void ps_packed_close(ps_packed_recording *recording);
ps_packing ps_packed_packing(const ps_packed_recording *recording);
uint32_t ps_packed_limit(const ps_packed_recording *recording); /* as in ps_unpack_rules */
/* Finds where all patterns lie, which what follows needs. *usable false: counts must be read, and why says the reason. */
ps_code ps_packed_find(ps_packed_recording *recording, bool *usable, char why[PS_PACKED_WHY], ps_error *error);
bool ps_packed_is_big_endian(const ps_packed_recording *recording);
int64_t ps_packed_bytes(const ps_packed_recording *recording); /* of all chunks */
/* Whether a pattern's chunk is compressed, to less than an eighth of its counts. */
bool ps_packed_is_short(const ps_packed_recording *recording, int64_t position, size_t pattern_bytes);

/* How many patterns from `first` on, of those whose places are known, fit into a room; 0: the first one alone does not. */
int64_t ps_packed_fit(const ps_packed_recording *recording, int64_t first, size_t room_bytes);
/* Reads n of them, which fit: patterns: [n] their places in room; *used: bytes. Any thread. */
ps_code ps_packed_read(const ps_packed_recording *recording, int64_t first, int64_t n, uint8_t *room, ps_packed_pattern *patterns,
                       size_t *used, ps_error *error);

/* Asked before each room is filled, by one thread at a time; false: PS_E_INTERRUPTED. */
typedef struct {
    bool (*goes_on)(void *context);
    void *context;
} ps_packed_watch;

/* Of one position: it fits into no room, and counts as refused; it is stored as counts, which are all the same where they are looked at. */
enum { PS_PACKED_TOO_LARGE = 1, PS_PACKED_EVEN = 2 };

/* Puts all patterns into a frame whose unpacking has begun, found and read by n_threads threads (0: all of OpenMP's; 15 at most) into the
 * rooms of its backend, or into memory of their own. notes: [positions] sum of the above. looks: as in ps_unpack_rules, of which the second
 * tally says where counts are looked at; NULL: PS_PACKED_EVEN is never noted. watch: NULL: nobody asks. PS_E_INPUT also where counts must
 * be read, which only a later data file told: ps_packed_is_left; the error's text is the reason. */
ps_code ps_packed_put(ps_packed_recording *recording, ps_frame *frame, int n_threads, const ps_packed_watch *watch, const uint8_t *looks,
                      uint8_t *notes, ps_error *error);

bool ps_packed_is_left(const ps_packed_recording *recording);

#endif
