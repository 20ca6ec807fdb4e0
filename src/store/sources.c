#include "store/sources.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "hdf5/write.h"
#include "store/source_files.h"

enum { MOST_LISTED = 8 };

/* ---- the columns ---- */

typedef struct {
    ps_rows source, state, bytes, mtime_ns, checksum, optics;
    ps_file_columns files;
} source_columns;
#define NO_COLUMNS                            \
    ((source_columns){.source.dataset = -1,   \
                      .state.dataset = -1,    \
                      .bytes.dataset = -1,    \
                      .mtime_ns.dataset = -1, \
                      .checksum.dataset = -1, \
                      .optics.dataset = -1,   \
                      .files = PS_FILE_COLUMNS_NONE})

/* What the file says of one frame. */
typedef struct {
    int64_t bytes, mtime_ns;
    uint32_t checksum; /* 0: could not be read */
    int32_t optics;
    uint8_t state;
    ps_file_row files;
} source_row;

static void close_columns(source_columns *columns) {
    ps_rows *all[] = {&columns->source, &columns->state, &columns->bytes, &columns->mtime_ns, &columns->checksum, &columns->optics};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ps_rows_close(all[i]);
    ps_file_columns_close(&columns->files);
}

static ps_code open_columns(hid_t entry, source_columns *columns, ps_error *error) {
    const struct {
        const char *name;
        ps_rows *rows;
    } all[] = {{"frames/source", &columns->source},         {"frames/state", &columns->state},
               {"frames/source_bytes", &columns->bytes},    {"frames/source_mtime_ns", &columns->mtime_ns},
               {"frames/source_crc32", &columns->checksum}, {"frames/optics", &columns->optics}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool present = false;
        PS_TRY(ps_rows_open(entry, all[i].name, all[i].rows, &present, error));
        if (!present) return PS_FAIL(error, PS_E_HDF5, "no /entry/%s: not an output of this program", all[i].name);
    }
    return ps_file_columns_open(entry, &columns->files, error);
}

/* row->files is to be freed. */
static ps_code read_row(const source_columns *columns, int fd, int64_t frame, source_row *row, ps_error *error) {
    *row = (source_row){0};
    PS_TRY(ps_rows_read(&columns->bytes, fd, frame, &row->bytes, error));
    PS_TRY(ps_rows_read(&columns->mtime_ns, fd, frame, &row->mtime_ns, error));
    PS_TRY(ps_rows_read(&columns->checksum, fd, frame, &row->checksum, error));
    PS_TRY(ps_rows_read(&columns->optics, fd, frame, &row->optics, error));
    PS_TRY(ps_rows_read(&columns->state, fd, frame, &row->state, error));
    return ps_file_columns_read(&columns->files, fd, frame, &row->files, error);
}

/* ---- what is found ---- */

typedef struct {
    FILE *out; /* the differences */
    int64_t n_differences, n_said;
    bool whole;
    ps_sources_report *report;
} comparison;

static void differ(comparison *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void differ(comparison *c, const char *format, ...) {
    va_list arguments;
    if (c->n_differences++ >= MOST_LISTED) return;
    va_start(arguments, format);
    vfprintf(c->out, format, arguments);
    va_end(arguments);
    fputc('\n', c->out);
}

static void say(comparison *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(comparison *c, const char *format, ...) {
    char text[PS_ERROR_TEXT];
    va_list arguments;
    if (c->n_said++ >= MOST_LISTED) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ps_log(PS_LOG_WARNING, "%s", text);
}

/* "/data/b_data_000001.h5", or with the name it had when that was another; malloc'd. */
static char *file_text(const ps_output_file *before, const ps_output_file *now) {
    if (strcmp(before->path, ps_file_name(now->path)) == 0) return strdup(now->path);
    return ps_text_format("%s (in the place of %s)", now->path, before->path);
}

static void compare_file(comparison *c, int64_t frame, const source_row *row, const ps_output_file *before, const ps_output_file *now) {
    char *name = file_text(before, now);
    const char *text = name ? name : now->path;
    bool done = row->state == PS_FRAME_DONE;
    if (before->bytes < 0 && now->bytes < 0) {
        /* missing then as now */
    } else if (now->bytes < 0) {
        say(c, "frame %" PRId64 ": %s is not there now%s", frame, text, done ? "; the frame is done and stays" : "");
    } else if (before->bytes < 0) {
        say(c, "frame %" PRId64 ": %s was not there when the output was made%s", frame, text,
            done ? "; the frame is done without it and stays" : ", and is now");
    } else if (before->bytes != now->bytes) {
        differ(c, "frame %" PRId64 ": %s: was %" PRId64 " bytes, now %" PRId64, frame, text, before->bytes, now->bytes);
    } else if (before->samples == 0 || now->samples == 0) {
        say(c, "frame %" PRId64 ": %s cannot be compared: it could not be read %s", frame, text,
            now->samples == 0 ? "now" : "when the output was made");
    } else if (before->samples != now->samples) {
        differ(c, "frame %" PRId64 ": %s: other content: CRC-32 of samples was %08" PRIx32 ", now %08" PRIx32, frame, text, before->samples,
               now->samples);
    } else if (before->whole && now->whole && before->whole != now->whole) {
        differ(c, "frame %" PRId64 ": %s: other content: CRC-32 of the whole file was %08" PRIx32 ", now %08" PRIx32, frame, text,
               before->whole, now->whole);
    } else if (c->whole && !before->whole) {
        c->report->n_unwhole++;
    }
    free(name);
}

static const ps_output_file *find_name(const ps_output_file *files, int64_t n, const char *path) {
    for (int64_t i = 0; i < n; i++)
        if (strcmp(ps_file_name(files[i].path), ps_file_name(path)) == 0) return &files[i];
    return NULL;
}

/* Another number of files: those of the same name belong together, the others came or went. */
static void compare_by_name(comparison *c, int64_t frame, const source_row *row, const ps_file_row *now) {
    for (int64_t i = 0; i < row->files.n; i++) {
        const ps_output_file *before = &row->files.files[i], *same = find_name(now->files, now->n, before->path);
        ps_output_file gone = {.path = before->path, .bytes = -1};
        compare_file(c, frame, row, before, same ? same : &gone);
    }
    for (int64_t i = 0; i < now->n; i++) {
        ps_output_file absent = {.path = ps_file_name(now->files[i].path), .bytes = -1};
        if (!find_name(row->files.files, row->files.n, now->files[i].path)) compare_file(c, frame, row, &absent, &now->files[i]);
    }
}

static ps_code compare_files(comparison *c, int64_t frame, const source_row *row, const ps_output_frame_source *source, ps_error *error) {
    ps_file_row now;
    bool folded = row->files.n < row->files.n_files;
    PS_TRY(ps_file_row_from(source, folded ? row->files.n : source->n_files, &now, error));
    if (row->files.n_files == now.n_files)
        for (int64_t i = 0; i < now.n; i++) compare_file(c, frame, row, &row->files.files[i], &now.files[i]);
    else if (folded)
        differ(c, "frame %" PRId64 ": was read from %" PRId64 " files, now from %" PRId64, frame, row->files.n_files, now.n_files);
    else
        compare_by_name(c, frame, row, &now);
    ps_file_row_free(&now);
    return PS_OK;
}

/* An earlier version recorded the named file only. */
static void compare_named(comparison *c, int64_t frame, const source_row *before, const ps_output_frame_source *now) {
    c->report->n_old++;
    if (before->bytes != now->bytes)
        differ(c, "frame %" PRId64 ": %s: was %" PRId64 " bytes, now %" PRId64, frame, now->source, before->bytes, now->bytes);
    else if (before->checksum != now->checksum)
        differ(c, "frame %" PRId64 ": %s: other content: CRC-32 of its ends was %08" PRIx32 ", now %08" PRIx32, frame, now->source,
               before->checksum, now->checksum);
}

/* "/dataset" of "file:/dataset", else "". */
static const char *dataset_of(const char *source) {
    const char *found = "";
    if (access(source, F_OK) == 0) return found;
    for (const char *at = strstr(source, ":/"); at; at = strstr(at + 1, ":/")) found = at + 1;
    return found;
}

static ps_code compare_dataset(comparison *c, const source_columns *columns, int fd, int64_t frame, const ps_output_frame_source *now,
                               ps_error *error) {
    char *before = calloc(columns->source.row_bytes + 1, 1);
    if (!before) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a name");
    ps_code code = ps_rows_read(&columns->source, fd, frame, before, error);
    if (code == PS_OK && strcmp(dataset_of(before), dataset_of(now->source)) != 0)
        differ(c, "frame %" PRId64 ": the dataset in %s was \"%s\", now \"%s\"", frame, now->source, dataset_of(before),
               dataset_of(now->source));
    free(before);
    return code;
}

static ps_code compare_frame(comparison *c, const source_columns *columns, int fd, int64_t frame, const ps_output_frame_source *now,
                             ps_error *error) {
    ps_code code = PS_OK;
    source_row row;
    PS_GO(read_row(columns, fd, frame, &row, error));
    if (now->checksum == 0 && now->n_files == 0) {
        if (row.state == PS_FRAME_DONE)
            say(c, "frame %" PRId64 " is done and stays; its recording cannot be read now and is not compared: %s", frame,
                now->unreadable ? now->unreadable : now->source);
        goto done;
    }
    if (row.checksum == 0 && row.files.n_files == 0) goto done;
    c->report->compared[frame] = true;
    PS_GO(compare_dataset(c, columns, fd, frame, now, error));
    if (row.optics != now->optics) differ(c, "frame.%" PRId64 ".optics: was %d, now %d", frame, (int)row.optics, (int)now->optics);
    if (row.files.n_files > 0 && now->n_files > 0)
        PS_GO(compare_files(c, frame, &row, now, error));
    else if (row.checksum != 0 && now->checksum != 0)
        compare_named(c, frame, &row, now);
done:
    ps_file_row_free(&row.files);
    return code;
}

void ps_sources_report_free(ps_sources_report *report) {
    free(report->differences);
    free(report->compared);
    *report = (ps_sources_report){0};
}

ps_code ps_sources_compare(const char *path, const ps_output_spec *spec, ps_sources_report *report, ps_error *error) {
    ps_code code = PS_OK;
    source_columns columns = NO_COLUMNS;
    hid_t file = H5I_INVALID_HID, entry = H5I_INVALID_HID;
    int fd = -1;
    size_t bytes = 0;
    *report = (ps_sources_report){.compared = calloc((size_t)spec->n_frames, sizeof(bool))};
    comparison c = {.out = open_memstream(&report->differences, &bytes), .whole = spec->job->series.verify_whole, .report = report};
    PS_GO_ALLOC(error, c.out);
    PS_GO_ALLOC(error, report->compared);
    PS_GO(ps_h5_open_read(path, &file, error));
    if ((entry = H5Gopen2(file, "entry", H5P_DEFAULT)) < 0 || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        PS_GO(ps_h5_fail(error, "%s: cannot read /entry", path));
    PS_GO(open_columns(entry, &columns, error));
    for (int64_t frame = 0; frame < spec->n_frames && frame < (int64_t)columns.bytes.dims[0]; frame++)
        PS_GO(compare_frame(&c, &columns, fd, frame, &spec->frames[frame], error));
    if (c.n_differences > MOST_LISTED) fprintf(c.out, "and %" PRId64 " more differences of files\n", c.n_differences - MOST_LISTED);
    if (c.n_said > MOST_LISTED) ps_log(PS_LOG_WARNING, "%s: %" PRId64 " more files could not be compared", path, c.n_said - MOST_LISTED);
done:
    if (c.out && fclose(c.out) != 0 && code == PS_OK)
        code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a list of differences");
    close_columns(&columns);
    if (fd >= 0) close(fd);
    ps_h5_close(&entry);
    ps_h5_close(&file);
    return code;
}

/* ---- what can be read now ---- */

static ps_code write_row(const source_columns *columns, const ps_output *output, int64_t frame, const ps_output_frame_source *now,
                         ps_error *error) {
    int32_t optics = (int32_t)now->optics;
    PS_TRY(ps_rows_write(&columns->bytes, frame, &now->bytes, output->write_limit, error));
    PS_TRY(ps_rows_write(&columns->mtime_ns, frame, &now->mtime_ns, output->write_limit, error));
    PS_TRY(ps_rows_write(&columns->optics, frame, &optics, output->write_limit, error));
    PS_TRY(ps_file_columns_write(&columns->files, frame, now, output->write_limit, error));
    return ps_rows_write(&columns->checksum, frame, &now->checksum, output->write_limit, error);
}

/* Something was not there, or could not be read, when the row was written. */
static bool has_gaps(const source_row *row, bool has_file_columns) {
    if (!has_file_columns || row->files.n_files == 0) return row->checksum == 0;
    for (int64_t i = 0; i < row->files.n; i++)
        if (row->files.files[i].bytes < 0 || row->files.files[i].samples == 0) return true;
    return false;
}

ps_code ps_sources_refresh(const ps_output *output, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    source_columns columns = NO_COLUMNS;
    PS_GO(open_columns(output->entry, &columns, error));
    for (int64_t frame = 0; frame < output->n_frames; frame++) {
        source_row row;
        const ps_output_frame_source *now = &spec->frames[frame];
        bool readable = now->checksum != 0 || now->n_files > 0;
        code = read_row(&columns, output->fd, frame, &row, error);
        if (code == PS_OK && row.state != PS_FRAME_DONE && readable && has_gaps(&row, columns.files.present))
            code = write_row(&columns, output, frame, now, error);
        ps_file_row_free(&row.files);
        PS_GO(code);
    }
done:
    close_columns(&columns);
    return code;
}
