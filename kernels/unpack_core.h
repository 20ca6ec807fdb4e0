/* How one block of a packed pattern is unpacked by the 32 lanes of a warp: the one source that the CUDA backend compiles for the device and
 * unpack.c for the host, where a loop stands for the lanes. So what is tested and fuzzed on any machine is what runs on a GPU.
 *
 * A block of bitshuffle-LZ4 is an LZ4 block; what it unpacks to are bit-rows ("planes"): n elements of `element_bytes`, n a multiple of 8;
 * plane 8 b + t is n/8 bytes long, and bit i & 7 of its byte i >> 3 is bit t of byte b of element i. Planes are turned in place, eight at
 * a time: afterwards byte b of element i lies at ps_unpack_place(i, n) + 8 b * (n / 8).
 *
 * LZ4: a list of sequences: a token (literal length, match length, 4 bits each; 15: more bytes follow), literals, a 16-bit offset back
 * into what was unpacked, a match of at least 4 bytes. The last sequence ends behind its literals. All lanes know every length; literals
 * and matches are copied by all lanes. A match that overlaps itself repeats what lies in front of it, so that no lane waits for another's
 * bytes. Nothing outside of the block and its room is read or written, whatever the bytes are; on the device whole aligned words of which
 * at least one byte is inside are read.
 *
 * Lane-private values live inside one PS_UNPACK_LANES loop only; everything else is the same in all lanes. */
#ifndef PS_KERNELS_UNPACK_CORE_H
#define PS_KERNELS_UNPACK_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    PS_UNPACK_PLAIN_BLOCK = 8192,
    PS_UNPACK_WINDOW = 128,
    PS_UNPACK_LONG = 15,
    PS_UNPACK_MIN_MATCH = 4,
    PS_UNPACK_BYTEWISE = 64,
    PS_UNPACK_ROUND = 128
};

/* The next bytes of a packed block, held by the lanes: the byte at `base` is the first. base may lie up to 3 bytes in front of the block.
 */
#ifdef __CUDACC__

#define PS_UNPACK static __device__ __forceinline__
#define PS_UNPACK_BOTH static __host__ __device__ __forceinline__ /* what the launching side asks too */
#define PS_UNPACK_LANES(lane) for (uint32_t lane = threadIdx.x % 32, once_ = 1; once_; once_ = 0)
#define PS_UNPACK_SYNC() __syncwarp()
#define PS_UNPACK_UNROLL _Pragma("unroll")

typedef struct {
    uint32_t base, word; /* a lane's own four bytes */
} ps_unpack_window;

/* Where `bytes + at` lies in its aligned word. */
PS_UNPACK uint32_t ps_unpack_misalignment(const uint8_t *bytes, uint32_t at) {
    return (uint32_t)((uintptr_t)bytes + at) & 3;
}

PS_UNPACK uint32_t ps_unpack_word(const uint8_t *bytes, uint32_t at) {
    uint32_t shift = ps_unpack_misalignment(bytes, at);
    const uint32_t *words = (const uint32_t *)(bytes + at - shift);
    uint32_t low = words[0];
    return shift == 0 ? low : __funnelshift_r(low, words[1], 8 * shift);
}

/* at: aligned */
PS_UNPACK void ps_unpack_set_word(uint8_t *bytes, uint32_t at, uint32_t word) {
    *(uint32_t *)(bytes + at) = word;
}

PS_UNPACK void ps_unpack_look(ps_unpack_window *window, const uint8_t *from, uint32_t at, uint32_t n_from) {
    uint32_t shift = ps_unpack_misalignment(from, at), first = 4 * (threadIdx.x % 32);
    window->base = at - shift;
    bool inside = first < n_from - at + shift;
    window->word = inside ? *(const uint32_t *)(from + at + first - shift) : 0;
}

/* Four bytes from `at` on, the first the lowest; what lies behind the window or the block is undefined. */
PS_UNPACK uint32_t ps_unpack_four(const ps_unpack_window *window, uint32_t at) {
    uint32_t i = at - window->base, low = __shfl_sync(0xffffffffu, window->word, i / 4),
             high = __shfl_sync(0xffffffffu, window->word, i / 4 + 1);
    return __funnelshift_r(low, high, 8 * (i & 3));
}

/* At most 32 literals that are in the window. */
PS_UNPACK void ps_unpack_from_window(const ps_unpack_window *window, uint32_t at, uint32_t n, uint8_t *to) {
    uint32_t lane = threadIdx.x % 32, i = at - window->base + lane, word = __shfl_sync(0xffffffffu, window->word, i / 4);
    if (lane < n) to[lane] = (uint8_t)(word >> 8 * (i & 3));
}

PS_UNPACK uint32_t ps_unpack_sum(uint32_t own) {
    return __reduce_add_sync(0xffffffffu, own);
}

#else

#define PS_UNPACK static inline
#define PS_UNPACK_BOTH static inline
#ifndef PS_UNPACK_LANES /* a test takes the lanes in another order */
#define PS_UNPACK_LANES(lane) for (uint32_t lane = 0; lane < 32; lane++)
#endif
#define PS_UNPACK_SYNC() (void)0
#define PS_UNPACK_UNROLL

typedef struct {
    uint32_t base;
    uint8_t bytes[PS_UNPACK_WINDOW];
} ps_unpack_window;

PS_UNPACK uint32_t ps_unpack_misalignment(const uint8_t *bytes, uint32_t at) {
    return (uint32_t)((uintptr_t)bytes + at) & 3;
}

PS_UNPACK uint32_t ps_unpack_word(const uint8_t *bytes, uint32_t at) {
    uint32_t word;
    memcpy(&word, bytes + at, sizeof word);
    return word;
}

PS_UNPACK void ps_unpack_set_word(uint8_t *bytes, uint32_t at, uint32_t word) {
    memcpy(bytes + at, &word, sizeof word);
}

PS_UNPACK void ps_unpack_look(ps_unpack_window *window, const uint8_t *from, uint32_t at, uint32_t n_from) {
    uint32_t left = n_from - at;
    window->base = at;
    memset(window->bytes, 0, sizeof window->bytes);
    memcpy(window->bytes, from + at, left < PS_UNPACK_WINDOW ? left : PS_UNPACK_WINDOW);
}

PS_UNPACK uint32_t ps_unpack_four(const ps_unpack_window *window, uint32_t at) {
    uint32_t four = 0, i = at - window->base;
    for (uint32_t k = 0; k < 4 && i + k < PS_UNPACK_WINDOW; k++) four |= (uint32_t)window->bytes[i + k] << 8 * k;
    return four;
}

PS_UNPACK void ps_unpack_from_window(const ps_unpack_window *window, uint32_t at, uint32_t n, uint8_t *to) {
    memcpy(to, window->bytes + (at - window->base), n);
}

#endif

/* --- LZ4 --- */

/* Moves the window when fewer than `n` (at most 124) bytes from `at` on are in it. at < n_from. */
PS_UNPACK void ps_unpack_need(ps_unpack_window *window, const uint8_t *from, uint32_t at, uint32_t n_from, uint32_t n) {
    if (at - window->base + n > PS_UNPACK_WINDOW) ps_unpack_look(window, from, at, n_from);
}

/* Adds the bytes that lengthen a length, from *at on; false: they do not end, or say more than `most`, for which there is no room. */
PS_UNPACK bool ps_unpack_lengthen(ps_unpack_window *window, const uint8_t *from, uint32_t n_from, uint32_t *at, uint32_t *length,
                                  uint32_t most) {
    uint32_t byte;
    do {
        if (*at >= n_from || *length > most) return false;
        ps_unpack_need(window, from, *at, n_from, 4);
        byte = ps_unpack_four(window, *at) & 255;
        *at += 1;
        *length += byte;
    } while (byte == 255);
    return true;
}

/* n bytes that do not overlap, to wherever: words where `to` is aligned, bytes around them. */
PS_UNPACK void ps_unpack_copy(const uint8_t *from, uint32_t n, uint8_t *to) {
    uint32_t head = (4 - ps_unpack_misalignment(to, 0)) & 3;
    if (head > n) head = n;
    uint32_t words = (n - head) / 4, tail = head + 4 * words;
    PS_UNPACK_LANES(lane) {
        if (lane < head) to[lane] = from[lane];
        for (uint32_t i = lane; i < words; i += 32) ps_unpack_set_word(to, head + 4 * i, ps_unpack_word(from, head + 4 * i));
        if (lane < n - tail) to[tail + lane] = from[tail + lane];
    }
}

/* n bytes that repeat the `offset` bytes in front of `to`. */
PS_UNPACK void ps_unpack_repeat(uint8_t *to, uint32_t offset, uint32_t n) {
    const uint8_t *pattern = to - offset;
    if (n <= 32) { /* most matches of counts; without a quotient where the pattern is long enough */
        PS_UNPACK_LANES(lane) {
            if (lane < n) to[lane] = pattern[n <= offset ? lane : offset == 1 ? 0 : lane % offset];
        }
        return;
    }
    uint32_t step = offset > 32 ? 32 : offset == 1 ? 0 : 32 % offset;
    PS_UNPACK_LANES(lane) {
        uint32_t at = offset > 31 ? lane : offset == 1 ? 0 : lane % offset;
        for (uint32_t i = lane; i < n; i += 32) {
            to[i] = pattern[at];
            at += step;
            if (at >= offset) at -= offset;
        }
    }
}

/* The same of a long match whose offset is short: in words, which repeat after a multiple of the offset. */
PS_UNPACK void ps_unpack_repeat_words(uint8_t *to, uint32_t offset, uint32_t n) {
    uint32_t period = offset % 4 == 0 ? offset : offset % 2 == 0 ? 2 * offset : 4 * offset, begin = period - offset;
    begin += (4 - ps_unpack_misalignment(to, begin)) & 3;
    if (begin > n) begin = n;
    ps_unpack_repeat(to, offset, begin);
    PS_UNPACK_SYNC();
    uint32_t words = (n - begin) / 4, period_words = period / 4, step = period_words > 32 ? 32 : 32 % period_words;
    uint8_t *first = to + begin;
    PS_UNPACK_LANES(lane) {
        uint32_t at = lane % period_words;
        for (uint32_t i = lane; i < words; i += 32) {
            ps_unpack_set_word(first, 4 * i, ps_unpack_word(first - period, 4 * at));
            at += step;
            if (at >= period_words) at -= period_words;
        }
    }
    PS_UNPACK_SYNC();
    PS_UNPACK_LANES(lane) {
        if (lane < n - begin - 4 * words) first[4 * words + lane] = (first - period)[4 * words + lane];
    }
}

/* A long match from further back than one round of all lanes reaches. */
PS_UNPACK void ps_unpack_repeat_far(uint8_t *to, uint32_t offset, uint32_t n) {
    for (uint32_t done = 0; done < n; done += PS_UNPACK_ROUND) {
        uint32_t some = n - done < PS_UNPACK_ROUND ? n - done : PS_UNPACK_ROUND;
        if (done > 0) PS_UNPACK_SYNC();
        ps_unpack_copy(to + done - offset, some, to + done);
    }
}

/* offset: 1 ... what was unpacked; n: at most what is left. */
PS_UNPACK void ps_unpack_match(uint8_t *to, uint32_t offset, uint32_t n) {
    PS_UNPACK_SYNC(); /* what lies in front was written by other lanes */
    if (n < PS_UNPACK_BYTEWISE)
        ps_unpack_repeat(to, offset, n);
    else if (offset >= PS_UNPACK_ROUND + 8)
        ps_unpack_repeat_far(to, offset, n);
    else
        ps_unpack_repeat_words(to, offset, n);
}

/* from: [n_from]; to: [n_to]. true when the block is sound and unpacks to exactly n_to bytes: as ps_lz4_unpack of hdf5/lz4_block.h says.
 * Other lanes' bytes are to be read after PS_UNPACK_SYNC. */
PS_UNPACK bool ps_unpack_lz4(const uint8_t *from, uint32_t n_from, uint8_t *to, uint32_t n_to) {
    uint32_t at = 0, put = 0;
    ps_unpack_window window;
    if (n_from == 0) return false;
    ps_unpack_look(&window, from, 0, n_from);
    for (;;) {
        if (at >= n_from) return false;
        ps_unpack_need(&window, from, at, n_from, 32);
        uint32_t token = ps_unpack_four(&window, at) & 255, literals = token >> 4, length = token & 15;
        at++;
        if (literals == PS_UNPACK_LONG && !ps_unpack_lengthen(&window, from, n_from, &at, &literals, n_to - put)) return false;
        if (literals > n_from - at || literals > n_to - put) return false;
        if (literals <= 32 && at - window.base + literals <= PS_UNPACK_WINDOW)
            ps_unpack_from_window(&window, at, literals, to + put);
        else
            ps_unpack_copy(from + at, literals, to + put);
        at += literals;
        put += literals;
        if (at == n_from) return put == n_to;
        if (n_from - at < 2) return false;
        ps_unpack_need(&window, from, at, n_from, 4);
        uint32_t offset = ps_unpack_four(&window, at) & 0xffff;
        at += 2;
        if (length == PS_UNPACK_LONG && !ps_unpack_lengthen(&window, from, n_from, &at, &length, n_to - put)) return false;
        length += PS_UNPACK_MIN_MATCH;
        if (offset == 0 || offset > put || length > n_to - put) return false;
        if (at < n_from) ps_unpack_need(&window, from, at, n_from, 32); /* under way while the match is copied */
        ps_unpack_match(to + put, offset, length);
        put += length;
    }
}

/* --- planes --- */

/* Where byte 0 of element i of a turned block lies. */
PS_UNPACK_BOTH uint32_t ps_unpack_place(uint32_t i, uint32_t n) {
    return (i & 7) * (n / 8) + (i >> 3);
}

/* Turns the 8 x 8 bits that byte k of the eight words holds, for every k. */
PS_UNPACK void ps_unpack_turn_eight(uint32_t x[8]){
#define PS_UNPACK_EXCHANGE(a, b, j, mask)              \
    {                                                  \
        uint32_t t_ = ((x[a] >> (j)) ^ x[b]) & (mask); \
        x[b] ^= t_;                                    \
        x[a] ^= t_ << (j);                             \
    }
    PS_UNPACK_EXCHANGE(0, 4, 4, 0x0f0f0f0fu) PS_UNPACK_EXCHANGE(1, 5, 4, 0x0f0f0f0fu) PS_UNPACK_EXCHANGE(2, 6, 4, 0x0f0f0f0fu)
        PS_UNPACK_EXCHANGE(3, 7, 4, 0x0f0f0f0fu) PS_UNPACK_EXCHANGE(0, 2, 2, 0x33333333u) PS_UNPACK_EXCHANGE(1, 3, 2, 0x33333333u)
            PS_UNPACK_EXCHANGE(4, 6, 2, 0x33333333u) PS_UNPACK_EXCHANGE(5, 7, 2, 0x33333333u) PS_UNPACK_EXCHANGE(0, 1, 1, 0x55555555u)
                PS_UNPACK_EXCHANGE(2, 3, 1, 0x55555555u) PS_UNPACK_EXCHANGE(4, 5, 1, 0x55555555u) PS_UNPACK_EXCHANGE(6, 7, 1, 0x55555555u)
#undef PS_UNPACK_EXCHANGE
}

/* Of 32 elements from 32 w on, the bits of plane p; elements behind the last are 0. No lane looks at another's bytes. */
PS_UNPACK uint32_t ps_unpack_plane(const uint8_t *planes, uint32_t columns, uint32_t p, uint32_t w) {
    const uint8_t *at = planes + p * columns + 4 * w;
    if (4 * w + 4 <= columns && ps_unpack_misalignment(at, 0) == 0) return ps_unpack_word(at, 0);
    uint32_t word = 0;
    for (uint32_t k = 0; k < 4 && 4 * w + k < columns; k++) word |= (uint32_t)at[k] << 8 * k;
    return word;
}

PS_UNPACK void ps_unpack_set_plane(uint8_t *planes, uint32_t columns, uint32_t p, uint32_t w, uint32_t word) {
    uint8_t *at = planes + p * columns + 4 * w;
    if (4 * w + 4 <= columns && ps_unpack_misalignment(at, 0) == 0) {
        ps_unpack_set_word(at, 0, word);
        return;
    }
    for (uint32_t k = 0; k < 4 && 4 * w + k < columns; k++) at[k] = (uint8_t)(word >> 8 * k);
}

/* What values mean. */
typedef struct {
    uint32_t value_planes;    /* bits of which one at least is set where a count is not 0 */
    uint32_t no_count_planes; /* bits that are all set where there is no count; 0: none says so */
    uint32_t limit;           /* counts at and above become the invalid-count value; 0: none do. Unsigned types */
} ps_unpack_meaning;

/* Of 32 elements, a bit each. */
typedef struct {
    uint32_t lit, marked, limited; /* a count that is not 0; none; none because it reached the limit */
} ps_unpack_seen;

/* flip: as in ps_unpack_shape. */
PS_UNPACK ps_unpack_seen ps_unpack_see(const uint8_t *planes, uint32_t columns, uint32_t element_bytes, uint32_t flip, uint32_t w,
                                       ps_unpack_meaning meaning) {
    uint32_t any = 0, all = meaning.no_count_planes ? 0xffffffffu : 0, reached = meaning.limit ? 0xffffffffu : 0;
    for (uint32_t p = 0; p < 8 * element_bytes; p++) {
        uint32_t plane = ps_unpack_plane(planes, columns, p ^ flip, w);
        if (meaning.value_planes >> p & 1) any |= plane;
        if (meaning.no_count_planes >> p & 1) all &= plane;
        if (meaning.limit) reached = meaning.limit >> p & 1 ? plane & reached : plane | reached;
    }
    uint32_t left = columns - 4 * w, exist = left >= 4 ? 0xffffffffu : (1u << 8 * left) - 1;
    ps_unpack_seen seen = {any & ~all & ~reached, (all | reached) & exist, reached & ~all & exist};
    return seen;
}

/* Turns the planes of elements 32 w to 32 w + 31 in place; those of `limited` become the invalid-count value. */
PS_UNPACK void ps_unpack_turn(uint8_t *planes, uint32_t columns, uint32_t element_bytes, uint32_t w, uint32_t limited) {
    for (uint32_t b = 0; b < element_bytes; b++) {
        uint32_t x[8];
        PS_UNPACK_UNROLL
        for (uint32_t t = 0; t < 8; t++) x[t] = ps_unpack_plane(planes, columns, 8 * b + t, w) | limited;
        ps_unpack_turn_eight(x);
        PS_UNPACK_UNROLL
        for (uint32_t t = 0; t < 8; t++) ps_unpack_set_plane(planes, columns, 8 * b + t, w, x[t]);
    }
}

/* The value of a turned element: at most four bytes, n apart. */
PS_UNPACK uint32_t ps_unpack_element(const uint8_t *turned, uint32_t n, uint32_t element_bytes, uint32_t flip, uint32_t place) {
    uint32_t value = 0;
    for (uint32_t b = 0; b < element_bytes; b++) value |= (uint32_t)turned[place + b * n] << (8 * b ^ flip);
    return value;
}

/* The value of an element that was read in the byte order of this machine. */
PS_UNPACK uint32_t ps_unpack_native(uint32_t stored, uint32_t flip) {
    if (flip == 0) return stored;
    uint32_t turned = stored << 24 | (stored & 0xff00u) << 8 | (stored >> 8 & 0xff00u) | stored >> 24;
    return turned >> (24 - flip);
}

/* Of one element: bits of ps_unpack_seen, each 0 or 1; *value becomes the invalid-count value where the limit says so. */
PS_UNPACK ps_unpack_seen ps_unpack_see_value(uint32_t *value, uint32_t element_bytes, ps_unpack_meaning meaning) {
    bool marked = meaning.no_count_planes && (*value & meaning.no_count_planes) == meaning.no_count_planes;
    bool limited = meaning.limit && *value >= meaning.limit && !marked;
    bool lit = (*value & meaning.value_planes) && !marked && !limited;
    if (limited) *value = 0xffffffffu >> (32 - 8 * element_bytes);
    ps_unpack_seen seen = {lit, marked || limited, limited};
    return seen;
}

/* --- streams --- */

/* How a pattern is packed; what hdf5/bslz4.h says of the two filters. */
typedef enum { PS_PACKED_PLAIN, PS_PACKED_BSLZ4, PS_PACKED_LZ4 } ps_packing;

enum { PS_UNPACK_HEADER = 12, PS_UNPACK_LENGTH = 4 };

PS_UNPACK uint64_t ps_unpack_big_endian(const uint8_t *bytes, uint32_t n) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < n; i++) value = value << 8 | bytes[i];
    return value;
}

/* Every pattern of a call has the same shape. */
typedef struct {
    ps_packing packing;
    uint32_t element_bytes; /* 1, 2 or 4 */
    uint32_t flip;          /* big-endian elements: 8 (element_bytes - 1), which turns the number of a bit into that of its plane; else 0 */
    uint32_t n_elements;    /* of a pattern */
    uint32_t block_bytes;   /* as the header says, or (plain) what a warp takes at a time; 0: no stream of this packing says so */
    uint32_t n_blocks;      /* that have a length in front, or (plain) nothing; further elements follow as they are */
} ps_unpack_shape;

/* Bytes that block number `block` unpacks to. */
PS_UNPACK_BOTH uint32_t ps_unpack_block_bytes(const ps_unpack_shape *shape, uint32_t block) {
    uint32_t all = shape->n_elements * shape->element_bytes;
    if (shape->packing == PS_PACKED_BSLZ4) all -= shape->n_elements % 8 * shape->element_bytes;
    uint32_t left = all - block * shape->block_bytes;
    return left < shape->block_bytes ? left : shape->block_bytes;
}

/* Bytes of the elements behind the blocks. */
PS_UNPACK_BOTH uint32_t ps_unpack_rest_bytes(const ps_unpack_shape *shape) {
    return shape->packing == PS_PACKED_BSLZ4 ? shape->n_elements % 8 * shape->element_bytes : 0;
}

/* Whether the header of a stream is one of the shape; true for plain patterns, which have none, when they are of the right length. */
PS_UNPACK bool ps_unpack_header_fits(const ps_unpack_shape *shape, const uint8_t *stream, uint32_t n_stream) {
    uint32_t all = shape->n_elements * shape->element_bytes;
    if (shape->packing == PS_PACKED_PLAIN) return n_stream == all;
    return n_stream >= PS_UNPACK_HEADER && ps_unpack_big_endian(stream, 8) == all &&
           ps_unpack_big_endian(stream + 8, 4) == shape->block_bytes;
}

/* Walks the lengths. starts: [n_blocks + 1] where the bytes of each block begin in the stream, and what follows them; false: the stream is
 * none of the shape, or a length leads out of it. One lane. */
PS_UNPACK bool ps_unpack_find_blocks(const ps_unpack_shape *shape, const uint8_t *stream, uint32_t n_stream, uint32_t *starts) {
    if (!ps_unpack_header_fits(shape, stream, n_stream)) return false;
    uint32_t at = shape->packing == PS_PACKED_PLAIN ? 0 : PS_UNPACK_HEADER;
    if (shape->packing == PS_PACKED_PLAIN) {
        for (uint32_t block = 0; block < shape->n_blocks; block++) starts[block] = block * shape->block_bytes;
        starts[shape->n_blocks] = n_stream;
        return true;
    }
    for (uint32_t block = 0; block < shape->n_blocks; block++) {
        if (n_stream - at < PS_UNPACK_LENGTH) return false;
        uint32_t length = (uint32_t)ps_unpack_big_endian(stream + at, PS_UNPACK_LENGTH);
        at += PS_UNPACK_LENGTH;
        if (length > n_stream - at) return false;
        starts[block] = at;
        at += length;
    }
    starts[shape->n_blocks] = at;
    return n_stream - at >= ps_unpack_rest_bytes(shape);
}

/* Bytes that block number `block`, which begins at start, takes in the stream. */
PS_UNPACK uint32_t ps_unpack_stored_bytes(const ps_unpack_shape *shape, const uint8_t *stream, uint32_t start, uint32_t block) {
    if (shape->packing == PS_PACKED_PLAIN) return ps_unpack_block_bytes(shape, block);
    return (uint32_t)ps_unpack_big_endian(stream + start - PS_UNPACK_LENGTH, PS_UNPACK_LENGTH);
}

/* Unpacks a block of a stream of plain or LZ4 patterns, whose blocks may be stored as they are, to: [n_to]. */
PS_UNPACK bool ps_unpack_bytes(const ps_unpack_shape *shape, const uint8_t *from, uint32_t n_from, uint8_t *to, uint32_t n_to) {
    bool is_stored = shape->packing != PS_PACKED_BSLZ4 && n_from == n_to;
    if (!is_stored) return ps_unpack_lz4(from, n_from, to, n_to);
    ps_unpack_copy(from, n_to, to);
    return true;
}

#endif
