#include "tasks/simulate/transpose.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"

struct ps_transpose {
    ps_transpose_shape shape;
    uint8_t *memory; /* all tiles, or NULL */
    int file;        /* -1: none */
    char *directory; /* for messages */
};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t positions_of(const ps_transpose_shape *shape, int64_t block) {
    return least(shape->positions_per_block, shape->n_positions - block * shape->positions_per_block);
}

static int64_t pixels_of(const ps_transpose_shape *shape, int64_t group) {
    return least(shape->pixels_per_group, shape->n_pixels - group * shape->pixels_per_group);
}

/* Byte at which a tile starts among all tiles. */
static int64_t tile_offset(const ps_transpose_shape *shape, int64_t block, int64_t group) {
    int64_t before = block * shape->positions_per_block * shape->n_pixels;
    return (before + positions_of(shape, block) * group * shape->pixels_per_group) * (int64_t)shape->element_bytes;
}

/* A file without a name: opened, then unlinked at once. */
static ps_code open_nameless(ps_transpose *turning, ps_error *error) {
    ps_code code = PS_OK;
    char *name = ps_text_format("%s/.ptyseries-simulate-XXXXXX", turning->directory);
    PS_GO_ALLOC(error, name);
    turning->file = mkstemp(name);
    if (turning->file < 0 || unlink(name) != 0)
        code = PS_FAIL(error, PS_E_IO, "%s: cannot create a temporary file for counts: %s", turning->directory, strerror(errno));
done:
    free(name);
    return code;
}

ps_code ps_transpose_create(const char *directory, const ps_transpose_shape *shape, ps_transpose **turning, ps_error *error) {
    ps_code code = PS_OK;
    ps_transpose *made = calloc(1, sizeof *made);
    PS_GO_ALLOC(error, made);
    *made = (ps_transpose){.shape = *shape, .file = -1, .directory = strdup(directory)};
    PS_GO_ALLOC(error, made->directory);
    if (shape->in_memory) {
        made->memory = malloc((size_t)(shape->n_positions * shape->n_pixels) * shape->element_bytes);
        PS_GO_ALLOC(error, made->memory);
    } else {
        PS_GO(open_nameless(made, error));
    }
    *turning = made;
    made = NULL;
done:
    ps_transpose_destroy(made);
    return code;
}

void ps_transpose_destroy(ps_transpose *turning) {
    if (!turning) return;
    if (turning->file >= 0) close(turning->file);
    free(turning->memory);
    free(turning->directory);
    free(turning);
}

enum { SQUARE = 32 }; /* elements a side that are turned at once, so that both sides stay in cache */

/* Defines a function that turns from [n_pixels, stride] into to [n_positions, n_pixels]. */
#define DEFINE_TURN(name, type)                                                                                           \
    static void name(const void *from, int64_t stride, int64_t n_pixels, int64_t n_positions, void *to) {                 \
        const type *in = from;                                                                                            \
        type *out = to;                                                                                                   \
        for (int64_t p = 0; p < n_positions; p += SQUARE)                                                                 \
            for (int64_t k = 0; k < n_pixels; k += SQUARE)                                                                \
                for (int64_t i = p; i < least(p + SQUARE, n_positions); i++)                                              \
                    for (int64_t j = k; j < least(k + SQUARE, n_pixels); j++) out[i * n_pixels + j] = in[j * stride + i]; \
    }
DEFINE_TURN(turn_1, uint8_t)
DEFINE_TURN(turn_2, uint16_t)
DEFINE_TURN(turn_4, uint32_t)

static void turn(const ps_transpose_shape *shape, const void *from, int64_t n_pixels, int64_t n_positions, void *to) {
    switch (shape->element_bytes) {
    case 1: turn_1(from, shape->n_positions, n_pixels, n_positions, to); break;
    case 2: turn_2(from, shape->n_positions, n_pixels, n_positions, to); break;
    default: turn_4(from, shape->n_positions, n_pixels, n_positions, to); break;
    }
}

/* 0, or the errno of what failed. */
static int write_all(int file, const uint8_t *bytes, size_t n_bytes, int64_t offset) {
    while (n_bytes > 0) {
        ssize_t done = pwrite(file, bytes, n_bytes, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? errno : EIO;
        bytes += done;
        offset += done;
        n_bytes -= (size_t)done;
    }
    return 0;
}

static int read_all(int file, uint8_t *bytes, size_t n_bytes, int64_t offset) {
    while (n_bytes > 0) {
        ssize_t done = pread(file, bytes, n_bytes, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? errno : EIO;
        bytes += done;
        offset += done;
        n_bytes -= (size_t)done;
    }
    return 0;
}

/* Turns one tile into its place, through buffer when that is a file. 0, or an errno. */
static int put_tile(ps_transpose *turning, int64_t block, int64_t group, const uint8_t *counts, uint8_t *buffer) {
    const ps_transpose_shape *shape = &turning->shape;
    int64_t n_pixels = pixels_of(shape, group), n_positions = positions_of(shape, block), offset = tile_offset(shape, block, group);
    uint8_t *to = turning->memory ? turning->memory + offset : buffer;
    turn(shape, counts + (size_t)(block * shape->positions_per_block) * shape->element_bytes, n_pixels, n_positions, to);
    if (turning->memory) return 0;
    return write_all(turning->file, buffer, (size_t)(n_pixels * n_positions) * shape->element_bytes, offset);
}

ps_code ps_transpose_put(ps_transpose *turning, int64_t group, const void *counts, int n_threads, ps_error *error) {
    const ps_transpose_shape *shape = &turning->shape;
    int64_t n_blocks = (shape->n_positions + shape->positions_per_block - 1) / shape->positions_per_block;
    size_t tile_bytes = (size_t)(shape->positions_per_block * shape->pixels_per_group) * shape->element_bytes;
    int failed = 0;
#pragma omp parallel num_threads(n_threads) reduction(max : failed)
    {
        uint8_t *buffer = turning->memory ? NULL : malloc(tile_bytes);
        if (!turning->memory && !buffer) failed = ENOMEM;
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < n_blocks; block++)
            if (failed <= 0) failed = put_tile(turning, block, group, counts, buffer);
        free(buffer);
    }
    if (failed == 0) return PS_OK;
    return PS_FAIL(error, PS_E_IO, "%s: cannot write a temporary file of %" PRId64 " bytes for counts: %s", turning->directory,
                   shape->n_positions * shape->n_pixels * (int64_t)shape->element_bytes, strerror(failed));
}

ps_code ps_transpose_get(ps_transpose *turning, int64_t block, void *tiles, const void **found, ps_error *error) {
    const ps_transpose_shape *shape = &turning->shape;
    int64_t offset = tile_offset(shape, block, 0);
    *found = turning->memory ? turning->memory + offset : tiles;
    if (turning->memory) return PS_OK;
    int failed = read_all(turning->file, tiles, (size_t)(positions_of(shape, block) * shape->n_pixels) * shape->element_bytes, offset);
    if (failed == 0) return PS_OK;
    return PS_FAIL(error, PS_E_IO, "%s: cannot read back the temporary file for counts: %s", turning->directory, strerror(failed));
}

void ps_transpose_pick(const ps_transpose *turning, int64_t block, const void *tiles, int64_t position, void *pixels) {
    const ps_transpose_shape *shape = &turning->shape;
    int64_t n_groups = (shape->n_pixels + shape->pixels_per_group - 1) / shape->pixels_per_group;
    for (int64_t group = 0; group < n_groups; group++) {
        size_t bytes = (size_t)pixels_of(shape, group) * shape->element_bytes;
        int64_t offset = tile_offset(shape, block, group) - tile_offset(shape, block, 0) + position * (int64_t)bytes;
        memcpy((uint8_t *)pixels + (size_t)(group * shape->pixels_per_group) * shape->element_bytes, (const uint8_t *)tiles + offset,
               bytes);
    }
}
