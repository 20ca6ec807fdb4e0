#include "hdf5/lz4_block.h"

#include <string.h>

enum { WIDE = 32, MIN_MATCH = 4, LONG_LENGTH = 15 };

/* A block is a list of sequences: a token (literal length, match length, 4 bits each; 15: more bytes follow), literals, a 16-bit offset
 * back into what was unpacked, and a match of at least 4 bytes. The last sequence ends behind its literals. */
typedef struct {
    const uint8_t *from, *from_end;
    uint8_t *to_begin, *to, *to_end;
    size_t slack; /* bytes behind to_end that may be overwritten */
} unpacker;

typedef struct {
    uint8_t bytes[WIDE];
} wide;

/* Loads all 32 bytes before it stores them. */
static inline void copy_wide(uint8_t *to, const uint8_t *from) {
    wide w;
    memcpy(&w, from, sizeof w);
    memcpy(to, &w, sizeof w);
}

/* Adds the bytes that lengthen a length; false: they do not end. */
static inline bool read_length(unpacker *u, size_t *length) {
    uint8_t byte;
    if (*length != LONG_LENGTH) return true;
    do {
        if (u->from == u->from_end) return false;
        byte = *u->from++;
        *length += byte;
    } while (byte == 255);
    return true;
}

static inline bool copy_literals(unpacker *u, size_t length) {
    size_t left = (size_t)(u->from_end - u->from), room = (size_t)(u->to_end - u->to);
    if (length > left || length > room) return false;
    if (left - length >= WIDE && room - length + u->slack >= WIDE) {
        for (size_t i = 0; i < length; i += WIDE) copy_wide(u->to + i, u->from + i);
    } else
        memcpy(u->to, u->from, length);
    u->from += length;
    u->to += length;
    return true;
}

/* A match that overlaps itself repeats the last `offset` bytes; any multiple of offset repeats them as well, so the distance is
 * doubled until wide copies do not overlap. A copy over less than its 32 bytes leaves wrong bytes that the next one puts right. */
static inline void copy_match_wide(uint8_t *to, size_t offset, size_t length) {
    uint8_t *end = to + length;
    while (offset < WIDE && to < end) {
        copy_wide(to, to - offset);
        to += offset;
        offset *= 2;
    }
    for (; to < end; to += WIDE) copy_wide(to, to - offset);
}

static inline bool copy_match(unpacker *u, size_t offset, size_t length) {
    size_t room = (size_t)(u->to_end - u->to);
    if (offset == 0 || offset > (size_t)(u->to - u->to_begin) || length > room) return false;
    const uint8_t *from = u->to - offset;
    if (room - length + u->slack >= 2 * WIDE)
        copy_match_wide(u->to, offset, length);
    else
        for (size_t i = 0; i < length; i++) u->to[i] = from[i];
    u->to += length;
    return true;
}

bool ps_lz4_unpack(const uint8_t *from, size_t n_from, uint8_t *to, size_t n_to, size_t slack) {
    unpacker u = {from, from + n_from, to, to, to + n_to, slack};
    for (;;) {
        if (u.from == u.from_end) return false;
        size_t token = *u.from++, literals = token >> 4, match = token & 15;
        if (!read_length(&u, &literals) || !copy_literals(&u, literals)) return false;
        if (u.from == u.from_end) return u.to == u.to_end;
        if (u.from_end - u.from < 2) return false;
        size_t offset = (size_t)u.from[0] | (size_t)u.from[1] << 8;
        u.from += 2;
        if (!read_length(&u, &match) || !copy_match(&u, offset, match + MIN_MATCH)) return false;
    }
}
