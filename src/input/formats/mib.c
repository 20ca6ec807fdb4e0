/* Merlin .mib files: patterns one after the other, which the format calls frames, each behind a text header "MQ1,number,header
 * bytes,chips,columns,rows,type,layout,...". Counts are big endian; U08, U16, U32 hold counters of 1 and 6, 12, 24 bits. Each header has
 * the frame's number: a jump means lost patterns. The .hdr file beside it gives the scan's shape, or tells that patterns came line by line.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/busy.h"
#include "core/byte_order.h"
#include "core/file_read.h"
#include "core/text.h"
#include "input/adapters/partial.h"
#include "input/file_list.h"
#include "input/formats/formats.h"
#include "input/formats/frame_numbers.h"
#include "input/formats/mib_header.h"

typedef struct {
    ps_reader base;
    ps_mib_header header; /* of the first pattern */
    int descriptor;
    int64_t frame_bytes; /* header and counts */
    ps_frame_numbers numbers;
} mib_reader;

static bool probe(const char *path, const char *dataset) {
    uint8_t start[4];
    return !dataset && ps_file_start(path, start, sizeof start) == sizeof start && memcmp(start, "MQ1,", 4) == 0;
}

static void close_reader(ps_reader *reader) {
    mib_reader *r = (mib_reader *)reader;
    if (r->descriptor >= 0) close(r->descriptor);
    ps_frame_numbers_free(&r->numbers);
    free(r->base.path);
    free(r);
}

/* The .hdr file beside the recording: "" when there is none. */
static void read_companion(mib_reader *r, ps_mib_companion *companion) {
    const char *dot = strrchr(r->base.path, '.');
    char *path = ps_text_format("%.*s.hdr", dot ? (int)(dot - r->base.path) : (int)strlen(r->base.path), r->base.path), *text = NULL;
    *companion = (ps_mib_companion){0};
    if (path && access(path, R_OK) == 0 && ps_text_read_file(path, &text, NULL, NULL) == PS_OK) {
        ps_file_list_add(&r->base.files, path, NULL);
        ps_mib_parse_companion(text, companion);
    }
    free(text);
    free(path);
}

static void take_scan(ps_recording *info, int64_t rows, int64_t columns, const char *place) {
    info->scan_rows = rows;
    info->scan_columns = columns;
    snprintf(info->scan_place, sizeof info->scan_place, "%s", place);
}

/* The scan's own entries; else lines of as many patterns as a trigger starts. An acquisition of which patterns are missing says at least
 * how many there should be, so that what is there is not taken for a square. */
static void describe_scan(mib_reader *r, const ps_mib_companion *c) {
    ps_recording *info = &r->base.info;
    int64_t frames = c->n_frames, per_trigger = c->frames_per_trigger;
    bool by_trigger = per_trigger > 1 && frames > 0 && frames % per_trigger == 0;
    if (frames > 0 && frames != info->n_positions)
        ps_reader_note(&r->base, "warning: the .hdr file says %" PRId64 " frames in the acquisition, the recording holds %" PRId64, frames,
                       info->n_positions);
    if (c->scan_rows > 0)
        take_scan(info, c->scan_rows, c->scan_columns, "ScanY and ScanX in the .hdr file");
    else if (by_trigger)
        take_scan(info, frames / per_trigger, per_trigger, "frames per trigger in the .hdr file");
    else if (frames > 0 && frames != info->n_positions)
        take_scan(info, 1, frames, "frames in acquisition in the .hdr file");
    if (c->scan_rows > 0 && by_trigger && per_trigger != c->scan_columns && per_trigger != frames)
        ps_reader_note(&r->base, "warning: the .hdr file says a scan of %" PRId64 " x %" PRId64 ", but %" PRId64 " frames per trigger",
                       c->scan_rows, c->scan_columns, per_trigger);
}

static ps_code read_number(void *context, int64_t stored, int64_t *number, ps_error *error) {
    enum { BYTES = 32 };
    const mib_reader *r = context;
    char start[BYTES + 1] = "", *end = NULL;
    PS_TRY(ps_file_read(r->base.path, r->descriptor, stored * r->frame_bytes, BYTES, start, error));
    if (strncmp(start, "MQ1,", 4) != 0)
        return PS_FAIL(error, PS_E_INPUT, "%s: pattern %" PRId64 " at byte %" PRId64 ": no MIB header (MQ1) where one should begin",
                       r->base.path, stored, stored * r->frame_bytes);
    *number = start[4] >= '0' && start[4] <= '9' ? strtoll(start + 4, &end, 10) : -1;
    if (!end || *end != ',') *number = -1;
    return PS_OK;
}

static ps_code refuse_lost(const mib_reader *r, ps_error *error) {
    const ps_frame_numbers *n = &r->numbers;
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: %" PRId64 " of %" PRId64 " patterns were lost, the first at position %" PRId64
                   ": the frame numbers in the headers jump; series.allow_partial fills what is missing",
                   r->base.path, n->n_lost, n->n_positions, n->first_lost);
}

static void note_numbers(mib_reader *r) {
    const ps_frame_numbers *n = &r->numbers;
    ps_reader *base = &r->base;
    if (!n->numbered && base->info.n_positions > 1)
        ps_reader_note(base, "the headers do not number the patterns: lost patterns cannot be seen");
    if (n->n_elsewhere > 0)
        ps_reader_note(base, "warning: the first pattern has the number %" PRId64 ": %" PRId64 " patterns before it are not in this file",
                       n->runs[0].number, n->n_elsewhere);
    if (n->every > 0) ps_reader_note(base, "the frame numbers in the headers begin again every %" PRId64 " patterns", n->every);
    if (n->n_lost > 0)
        ps_reader_note(base,
                       "warning: %" PRId64 " patterns were lost, the first at position %" PRId64
                       ", as the frame numbers in the headers tell; they are filled from the nearest one",
                       n->n_lost, n->first_lost);
}

/* Numbers that begin again now and then may hide lost patterns; a scan that has as many positions as there are patterns rules that out. */
static ps_code check_rounds(mib_reader *r, const ps_reader_options *options, ps_error *error) {
    const ps_frame_numbers *n = &r->numbers;
    if (n->begins_again < 0) return PS_OK;
    if (ps_positions_needed(options) != n->n_positions)
        return PS_FAIL(
            error, PS_E_INPUT,
            "%s: the frame numbers in the headers begin again at pattern %" PRId64
            ", and not at regular distances: nothing tells whether patterns were lost; a series.scan_shape of as many positions as "
            "there are patterns takes them one after the other",
            r->base.path, n->begins_again);
    ps_reader_note(&r->base, "warning: the frame numbers in the headers begin again at pattern %" PRId64 ": taken one after the other",
                   n->begins_again);
    return PS_OK;
}

static ps_code place_frames(mib_reader *r, const ps_mib_companion *companion, const ps_reader_options *options, ps_error *error) {
    ps_recording *info = &r->base.info;
    int64_t needed = ps_positions_needed(options);
    ps_frame_plan plan = {.n_expected = needed > 0 ? needed : companion->n_frames, .per_round = companion->frames_per_trigger};
    PS_TRY(ps_frame_numbers_build(r->base.path, info->n_positions, plan, read_number, r, &r->numbers, error));
    if (r->numbers.n_lost > 0 && !options->allow_partial) return refuse_lost(r, error);
    PS_TRY(check_rounds(r, options, error));
    info->n_positions = r->numbers.n_positions;
    info->n_missing = r->numbers.n_lost;
    note_numbers(r);
    return PS_OK;
}

static ps_code describe(mib_reader *r, bool allow_partial, ps_error *error) {
    const ps_mib_header *h = &r->header;
    ps_recording *info = &r->base.info;
    struct stat status;
    if (fstat(r->descriptor, &status) != 0) return PS_FAIL(error, PS_E_INPUT, "%s: cannot stat: %s", r->base.path, strerror(errno));
    r->frame_bytes = h->header_bytes + h->rows * h->columns * (int64_t)ps_dtype_bytes(h->dtype);
    ps_recording_clear(info);
    info->n_positions = status.st_size / r->frame_bytes;
    if (status.st_size % r->frame_bytes != 0 && !(allow_partial && info->n_positions > 0))
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: ends inside pattern %" PRId64 " (%lld bytes, patterns of %" PRId64 " bytes: %lld are missing)", r->base.path,
                       info->n_positions, (long long)status.st_size, r->frame_bytes,
                       (long long)(r->frame_bytes - status.st_size % r->frame_bytes));
    snprintf(info->format, sizeof info->format, "Merlin MIB (%s, %d-bit)", h->layout, h->counter_bits);
    snprintf(info->compression, sizeof info->compression, "none");
    info->detector_rows = h->rows;
    info->detector_columns = h->columns;
    info->dtype = h->dtype;
    info->big_endian = ps_dtype_bytes(h->dtype) > 1;
    if (h->counter_bits > 1) info->saturation = (double)((INT64_C(1) << h->counter_bits) - 1);
    memcpy(info->acquisition_time, h->time, sizeof info->acquisition_time);
    info->n_files = 1;
    info->data_bytes = status.st_size;
    return PS_OK;
}

static ps_code open_recording(const char *path, const char *dataset, const ps_reader_options *options, ps_reader **reader,
                              ps_error *error) {
    (void)dataset;
    ps_code code = PS_OK;
    ps_mib_companion companion;
    char start[PS_MIB_MAX_HEADER + 1] = "";
    mib_reader *r = calloc(1, sizeof *r);
    PS_GO_ALLOC(error, r);
    r->base.ops = &ps_reader_mib;
    r->descriptor = -1;
    r->base.path = strdup(path);
    PS_GO_ALLOC(error, r->base.path);
    r->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (r->descriptor < 0) {
        code = PS_FAIL(error, PS_E_INPUT, "%s: cannot open: %s", path, strerror(errno));
        goto done;
    }
    size_t got = 0;
    PS_GO(ps_file_read_some(path, r->descriptor, 0, PS_MIB_MAX_HEADER, start, &got, error));
    PS_GO(ps_mib_parse(path, start, got, &r->header, error));
    PS_GO(describe(r, options->allow_partial, error));
    read_companion(r, &companion);
    PS_GO(place_frames(r, &companion, options, error));
    describe_scan(r, &companion);
    *reader = &r->base;
    r = NULL;
done:
    if (r) ps_reader_close(&r->base);
    return code;
}

/* A pattern's header must say what the first one said, and its own number, so that nothing is read askew. */
static ps_code check_header(const mib_reader *r, const ps_frame_run *run, int64_t stored, const char *start, size_t n, ps_error *error) {
    ps_mib_header h;
    char name[PS_ERROR_TEXT / 2];
    snprintf(name, sizeof name, "%s: pattern %" PRId64 " at byte %" PRId64, r->base.path, stored, stored * r->frame_bytes);
    PS_TRY(ps_mib_parse(name, start, n, &h, error));
    if (h.header_bytes != r->header.header_bytes || h.rows != r->header.rows || h.columns != r->header.columns ||
        h.dtype != r->header.dtype)
        return PS_FAIL(error, PS_E_INPUT, "%s: %" PRId64 " x %" PRId64 " %s, but the first pattern is %" PRId64 " x %" PRId64 " %s", name,
                       h.rows, h.columns, ps_dtype_name(h.dtype), r->header.rows, r->header.columns, ps_dtype_name(r->header.dtype));
    return ps_frame_numbers_check(&r->numbers, run, r->base.path, stored, h.number, error);
}

static ps_code read_counts(ps_reader *reader, int64_t first, int64_t n, void *counts, ps_error *error) {
    mib_reader *r = (mib_reader *)reader;
    ps_code code = PS_OK;
    size_t header = (size_t)r->header.header_bytes, bytes = (size_t)r->frame_bytes - header;
    char *start = malloc(header + 1);
    PS_GO_ALLOC(error, start);
    for (int64_t i = 0; i < n; i++) {
        const ps_frame_run *run = NULL;
        int64_t stored = ps_frame_numbers_find(&r->numbers, first + i, &run), at = stored * r->frame_bytes;
        uint8_t *to = (uint8_t *)counts + (size_t)i * bytes;
        PS_GO(ps_file_read(reader->path, r->descriptor, at, header, start, error));
        PS_GO(check_header(r, run, stored, start, header, error));
        PS_GO(ps_file_read(reader->path, r->descriptor, at + r->header.header_bytes, bytes, to, error));
    }
    ps_busy_begin(PS_RESOURCE_DECODE);
    ps_swap_bytes(counts, (size_t)n * bytes / ps_dtype_bytes(reader->info.dtype), ps_dtype_bytes(reader->info.dtype));
    ps_busy_end(PS_RESOURCE_DECODE);
done:
    free(start);
    return code;
}

static ps_code check_lead(const ps_reader *reader, int64_t position, const uint8_t *lead, ps_error *error) {
    const mib_reader *r = (const mib_reader *)reader;
    const ps_frame_run *run = NULL;
    int64_t stored = ps_frame_numbers_find(&r->numbers, position, &run);
    return check_header(r, run, stored, (const char *)lead, (size_t)r->header.header_bytes, error);
}

/* Lost patterns leave no room in the file: positions behind them do not lie where the first ones say. */
static bool find_plain(const ps_reader *reader, ps_reader_plain *plain) {
    const mib_reader *r = (const mib_reader *)reader;
    *plain = (ps_reader_plain){.path = reader->path,
                               .descriptor = r->descriptor,
                               .stride_bytes = r->frame_bytes,
                               .big_endian = reader->info.big_endian,
                               .lead_bytes = r->header.header_bytes,
                               .check = check_lead};
    return r->numbers.n_lost == 0;
}

/* Layouts that end in G keep the gap between the chips as rows and columns of pixels, which hold no counts. */
static ps_code read_mask(ps_reader *reader, uint8_t *bad, bool *present, ps_error *error) {
    (void)error;
    const ps_mib_header *h = &((mib_reader *)reader)->header;
    int64_t row_gap = h->rows - 2 * PS_MIB_CHIP, column_gap = h->columns - 2 * PS_MIB_CHIP;
    *present = h->has_gap && row_gap >= 0 && column_gap >= 0 && row_gap + column_gap > 0;
    if (!*present) return PS_OK;
    for (int64_t u = 0; u < h->rows; u++)
        for (int64_t v = 0; v < h->columns; v++) {
            bool in_rows = u >= PS_MIB_CHIP && u < PS_MIB_CHIP + row_gap, in_columns = v >= PS_MIB_CHIP && v < PS_MIB_CHIP + column_gap;
            bad[u * h->columns + v] = in_rows || in_columns;
        }
    return PS_OK;
}

const ps_reader_ops ps_reader_mib = {.name = "Merlin MIB",
                                     .probe = probe,
                                     .open = open_recording,
                                     .close = close_reader,
                                     .read = read_counts,
                                     .mask = read_mask,
                                     .plain = find_plain};
