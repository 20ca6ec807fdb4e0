#include "store/part_check.h"

#include <pthread.h>
#include <stdlib.h>
#include <zlib.h>

static const size_t least_slice = (size_t)1 << 20; /* bytes: a thread takes some 30 microseconds to start, these take 800 */

typedef struct {
    const ps_rows *rows;
    int fd;
    uint64_t offset; /* in the file */
    const char *values;
    size_t bytes;
    char *room; /* [PS_ROWS_PIECE] */
    uint32_t crc;
    bool same;
    ps_code code;
    ps_error reason;
    pthread_t thread;
    bool has_thread;
} slice;

struct ps_part_check {
    int n_threads;
    char *room; /* [n_threads, PS_ROWS_PIECE] */
    slice slices[PS_PART_CHECK_MOST];
};

ps_code ps_part_check_create(int n_threads, ps_part_check **created, ps_error *error) {
    ps_part_check *check = calloc(1, sizeof *check);
    *created = NULL;
    if (check) check->room = malloc((size_t)n_threads * PS_ROWS_PIECE);
    if (!check || !check->room) {
        ps_part_check_destroy(check);
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to read results back");
    }
    check->n_threads = n_threads;
    *created = check;
    return PS_OK;
}

void ps_part_check_destroy(ps_part_check *check) {
    if (check) free(check->room);
    free(check);
}

static void *check_slice(void *argument) {
    slice *s = argument;
    s->crc = (uint32_t)crc32_z(0, (const Bytef *)s->values, s->bytes);
    s->code = ps_rows_compare(s->rows, s->fd, s->offset, s->bytes, s->values, s->room, &s->same, &s->reason);
    return NULL;
}

/* Cuts the part into slices. Returns how many. */
static int cut(ps_part_check *check, const ps_rows *rows, int fd, uint64_t offset, const char *values, size_t bytes) {
    size_t most = bytes / least_slice;
    int n = most < 1 ? 1 : most < (size_t)check->n_threads ? (int)most : check->n_threads;
    for (int i = 0; i < n; i++) {
        size_t begin = bytes * (size_t)i / (size_t)n, end = bytes * ((size_t)i + 1) / (size_t)n;
        check->slices[i] = (slice){.rows = rows,
                                   .fd = fd,
                                   .offset = offset + begin,
                                   .values = values + begin,
                                   .bytes = end - begin,
                                   .room = check->room + (size_t)i * PS_ROWS_PIECE};
    }
    return n;
}

ps_code ps_part_check_run(ps_part_check *check, const ps_rows *rows, int fd, int64_t row, int64_t part, const void *values, uint32_t *crc,
                          bool *same, ps_error *error) {
    ps_code code = PS_OK;
    int n = cut(check, rows, fd, ps_rows_part_offset(rows, row, part), values, ps_rows_part_bytes(rows));
    for (int i = 1; i < n; i++)
        check->slices[i].has_thread = pthread_create(&check->slices[i].thread, NULL, check_slice, &check->slices[i]) == 0;
    for (int i = 0; i < n; i++)
        if (!check->slices[i].has_thread) check_slice(&check->slices[i]);
    *crc = 0;
    *same = true;
    for (int i = 0; i < n; i++) {
        slice *s = &check->slices[i];
        if (s->has_thread) pthread_join(s->thread, NULL);
        *crc = (uint32_t)crc32_combine(*crc, s->crc, (z_off_t)s->bytes);
        *same = *same && s->same;
        if (s->code != PS_OK && code == PS_OK) code = PS_FAIL(error, s->code, "%s", s->reason.text);
    }
    return code;
}
