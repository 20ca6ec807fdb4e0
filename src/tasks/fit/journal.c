#include "tasks/fit/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/text.h"
#include "core/version.h"
#include "hdf5/write.h"

enum { N_PICTURES = 3 };

/* What a row begins with. Behind it: the item, then the pictures that there are. */
typedef struct {
    int64_t index;
    uint32_t has_pictures, sum; /* CRC-32 of what follows */
} row_head;

static char *path_of(const char *output) {
    return ps_text_format("%s.fit-journal", output);
}

bool ps_fit_journal_is_there(const char *output) {
    char *path = path_of(output);
    bool is_there = path && access(path, F_OK) == 0;
    free(path);
    return is_there;
}

/* Rows are an item's bytes: those of this program alone. */
static char *first_line(const ps_fit_file_spec *spec) {
    unsigned long sum = crc32_z(0, (const Bytef *)spec->signature, strlen(spec->signature));
    return ps_text_format("ptyseries %s fit journal: rows of %zu bytes, of %lld fits, job %08lx\n", ps_version(), sizeof(ps_fit_item),
                          (long long)spec->n_items, sum);
}

/* ---- rows ---- */

static void picture_sizes(const ps_fit_file_spec *spec, size_t bytes[N_PICTURES]) {
    bytes[0] = bytes[1] = (size_t)(spec->run->scan_rows * spec->run->scan_columns) * sizeof(float);
    bytes[2] = (size_t)(spec->run->detector_rows * spec->run->detector_columns) * sizeof(float);
}

static size_t row_bytes(const ps_fit_file_spec *spec, bool has_pictures) {
    size_t sizes[N_PICTURES], bytes = sizeof(row_head) + sizeof(ps_fit_item);
    picture_sizes(spec, sizes);
    for (int i = 0; has_pictures && i < N_PICTURES; i++) bytes += sizes[i];
    return bytes;
}

/* malloc'd; NULL: no memory. */
static char *make_row(const ps_fit_file_spec *spec, int64_t index, size_t *bytes) {
    const ps_fit_pictures *p = &spec->pictures[index];
    const float *pictures[N_PICTURES] = {p->before, p->after, p->residual};
    row_head head = {.index = index, .has_pictures = p->before && p->after && p->residual};
    size_t sizes[N_PICTURES], at = sizeof head + sizeof(ps_fit_item);
    picture_sizes(spec, sizes);
    *bytes = row_bytes(spec, head.has_pictures);
    char *row = malloc(*bytes);
    if (!row) return NULL;
    memcpy(row + sizeof head, &spec->items[index], sizeof spec->items[index]);
    for (int i = 0; head.has_pictures && i < N_PICTURES; i++) {
        memcpy(row + at, pictures[i], sizes[i]);
        at += sizes[i];
    }
    head.sum = (uint32_t)crc32_z(0, (const Bytef *)row + sizeof head, *bytes - sizeof head);
    memcpy(row, &head, sizeof head);
    return row;
}

/* Whether `rest` bytes begin with a whole row. */
static bool is_row(const ps_fit_file_spec *spec, const char *row, size_t rest, row_head *head, size_t *bytes) {
    if (rest < sizeof *head) return false;
    memcpy(head, row, sizeof *head);
    *bytes = row_bytes(spec, head->has_pictures);
    return head->index >= 0 && head->index < spec->n_items && rest >= *bytes &&
           crc32_z(0, (const Bytef *)row + sizeof *head, *bytes - sizeof *head) == head->sum;
}

static ps_code take_pictures(const ps_fit_file_spec *spec, const char *from, ps_fit_pictures *pictures, ps_error *error) {
    float **each[N_PICTURES] = {&pictures->before, &pictures->after, &pictures->residual};
    size_t sizes[N_PICTURES];
    picture_sizes(spec, sizes);
    for (int i = 0; i < N_PICTURES; i++) {
        *each[i] = malloc(sizes[i]);
        if (!*each[i]) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a picture");
        memcpy(*each[i], from, sizes[i]);
        from += sizes[i];
    }
    return PS_OK;
}

/* ---- what is there ---- */

/* *end: of the last whole row. */
static ps_code take_rows(const ps_fit_file_spec *spec, const char *text, size_t n_bytes, bool again, ps_fit_item *items,
                         ps_fit_pictures *pictures, bool *settled, size_t *end, ps_error *error) {
    row_head head;
    size_t bytes;
    for (; is_row(spec, text + *end, n_bytes - *end, &head, &bytes); *end += bytes) {
        const char *item = text + *end + sizeof head;
        ps_fit_item found;
        memcpy(&found, item, sizeof found);
        items[head.index] = found; /* the last row of an item holds */
        settled[head.index] = found.code == PS_OK || !again;
        ps_fit_pictures_free(&pictures[head.index]);
        if (head.has_pictures) PS_TRY(take_pictures(spec, item + sizeof found, &pictures[head.index], error));
    }
    return PS_OK;
}

static ps_code take(const ps_fit_file_spec *spec, const char *path, bool again, ps_fit_item *items, ps_fit_pictures *pictures,
                    bool *settled, size_t *end, ps_error *error) {
    char *line = first_line(spec), *text = NULL;
    size_t bytes = 0;
    ps_code code = line ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a journal");
    if (code == PS_OK) code = ps_text_read_file(path, &text, &bytes, error);
    *end = line ? strlen(line) : 0;
    if (code == PS_OK && (bytes < *end || memcmp(text, line, *end) != 0))
        code = PS_FAIL(error, PS_E_ARGUMENT,
                       "%s: was left by a run whose job, recordings or program differ from this one's; --overwrite begins anew", path);
    if (code == PS_OK) code = take_rows(spec, text, bytes, again, items, pictures, settled, end, error);
    free(text);
    free(line);
    return code;
}

/* ---- writing ---- */

static ps_code write_whole(const ps_fit_journal *journal, const char *data, size_t bytes, ps_error *error) {
    while (bytes > 0) {
        ssize_t written = write(journal->fd, data, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return ps_io_fail(error, errno, "%s: cannot be written", journal->path);
        data += written;
        bytes -= (size_t)written;
    }
    return fdatasync(journal->fd) == 0 ? PS_OK : ps_io_fail(error, errno, "%s: cannot be brought to disk", journal->path);
}

static ps_code open_file(ps_fit_journal *journal, ps_error *error) {
    journal->fd = open(journal->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return journal->fd >= 0 ? PS_OK : ps_io_fail(error, errno, "%s: cannot be opened", journal->path);
}

ps_code ps_fit_journal_begin(const ps_fit_file_spec *spec, bool goes_on, bool again, ps_fit_item *items, ps_fit_pictures *pictures,
                             bool *settled, ps_fit_journal *journal, ps_error *error) {
    size_t end = 0;
    *journal = (ps_fit_journal){.path = path_of(spec->job->output_file), .fd = -1};
    if (!journal->path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    if (!goes_on) {
        unlink(journal->path);
        return PS_OK;
    }
    PS_TRY(take(spec, journal->path, again, items, pictures, settled, &end, error));
    PS_TRY(open_file(journal, error));
    return ftruncate(journal->fd, (off_t)end) == 0 ? PS_OK : ps_io_fail(error, errno, "%s: cannot be cut", journal->path);
}

static ps_code write_first_line(const ps_fit_file_spec *spec, ps_fit_journal *journal, ps_error *error) {
    char *line = first_line(spec);
    if (!line) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a journal");
    ps_code code = open_file(journal, error);
    if (code == PS_OK) code = write_whole(journal, line, strlen(line), error);
    free(line);
    return code;
}

ps_code ps_fit_journal_add(ps_fit_journal *journal, const ps_fit_file_spec *spec, int64_t index, ps_error *error) {
    size_t bytes;
    if (journal->fd < 0) PS_TRY(write_first_line(spec, journal, error));
    char *row = make_row(spec, index, &bytes);
    if (!row) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a journal");
    ps_code code = write_whole(journal, row, bytes, error);
    free(row);
    return code;
}

void ps_fit_journal_end(ps_fit_journal *journal, bool done) {
    if (journal->fd >= 0) close(journal->fd);
    if (journal->path && done) unlink(journal->path);
    free(journal->path);
    *journal = PS_FIT_JOURNAL_NONE;
}
