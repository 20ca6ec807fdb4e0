#include "output/sources.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "output/h5.h"

typedef struct {
    ps_rows bytes, mtime_ns, checksum, optics;
} source_columns;

typedef struct {
    int64_t bytes, mtime_ns;
    uint32_t checksum; /* 0: could not be read */
    int32_t optics;
} source_row;

static void close_columns(source_columns *columns) {
    ps_rows_close(&columns->bytes);
    ps_rows_close(&columns->mtime_ns);
    ps_rows_close(&columns->checksum);
    ps_rows_close(&columns->optics);
}

static ps_code open_columns(hid_t entry, source_columns *columns, ps_error *error) {
    const struct {
        const char *name;
        ps_rows *rows;
    } all[] = {{"frames/source_bytes", &columns->bytes},
               {"frames/source_mtime_ns", &columns->mtime_ns},
               {"frames/source_crc32", &columns->checksum},
               {"frames/optics", &columns->optics}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool present = false;
        PS_TRY(ps_rows_open(entry, all[i].name, all[i].rows, &present, error));
        if (!present) return PS_FAIL(error, PS_E_HDF5, "no /entry/%s: not an output of this program", all[i].name);
    }
    return PS_OK;
}

static ps_code read_row(const source_columns *columns, int fd, int64_t frame, source_row *row, ps_error *error) {
    PS_TRY(ps_rows_read(&columns->bytes, fd, frame, &row->bytes, error));
    PS_TRY(ps_rows_read(&columns->mtime_ns, fd, frame, &row->mtime_ns, error));
    PS_TRY(ps_rows_read(&columns->checksum, fd, frame, &row->checksum, error));
    return ps_rows_read(&columns->optics, fd, frame, &row->optics, error);
}

static ps_code add_line(char **text, char *line, ps_error *error) {
    char *longer = line ? ps_text_format("%s%s\n", *text ? *text : "", line) : NULL;
    free(line);
    if (!longer) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a list of differences");
    free(*text);
    *text = longer;
    return PS_OK;
}

static ps_code compare_row(int64_t frame, const source_row *before, const ps_output_frame_source *now, char **text, ps_error *error) {
    if (before->checksum == 0 || now->checksum == 0) return PS_OK;
    if (before->bytes != now->bytes)
        PS_TRY(add_line(text, ps_text_format("frame.%" PRId64 ".bytes: was %" PRId64 ", now %" PRId64, frame, before->bytes, now->bytes), error));
    if (before->mtime_ns != now->mtime_ns)
        PS_TRY(add_line(text, ps_text_format("frame.%" PRId64 ".mtime_ns: was %" PRId64 ", now %" PRId64, frame, before->mtime_ns, now->mtime_ns),
                        error));
    if (before->checksum != now->checksum)
        PS_TRY(add_line(text, ps_text_format("frame.%" PRId64 ".crc: was %08x, now %08x", frame, before->checksum, now->checksum), error));
    if (before->optics != now->optics)
        PS_TRY(add_line(text, ps_text_format("frame.%" PRId64 ".optics: was %d, now %d", frame, before->optics, (int)now->optics), error));
    return PS_OK;
}

ps_code ps_sources_differences(const char *path, const ps_output_spec *spec, char **text, ps_error *error) {
    ps_code code = PS_OK;
    source_columns columns = {.bytes.dataset = -1, .mtime_ns.dataset = -1, .checksum.dataset = -1, .optics.dataset = -1};
    hid_t file = H5I_INVALID_HID, entry = H5I_INVALID_HID;
    int fd = -1;
    PS_GO(ps_h5_open_read(path, &file, error));
    if ((entry = H5Gopen2(file, "entry", H5P_DEFAULT)) < 0 || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        PS_GO(ps_h5_fail(error, "%s: cannot read /entry", path));
    PS_GO(open_columns(entry, &columns, error));
    for (int64_t frame = 0; frame < spec->n_frames && frame < (int64_t)columns.bytes.dims[0]; frame++) {
        source_row before;
        PS_GO(read_row(&columns, fd, frame, &before, error));
        PS_GO(compare_row(frame, &before, &spec->frames[frame], text, error));
    }
done:
    close_columns(&columns);
    if (fd >= 0) close(fd);
    ps_h5_close(&entry);
    ps_h5_close(&file);
    return code;
}

static ps_code write_row(const source_columns *columns, const ps_output *output, int64_t frame, const ps_output_frame_source *now,
                         ps_error *error) {
    int32_t optics = (int32_t)now->optics;
    PS_TRY(ps_rows_write(&columns->bytes, frame, &now->bytes, output->write_limit, error));
    PS_TRY(ps_rows_write(&columns->mtime_ns, frame, &now->mtime_ns, output->write_limit, error));
    PS_TRY(ps_rows_write(&columns->optics, frame, &optics, output->write_limit, error));
    return ps_rows_write(&columns->checksum, frame, &now->checksum, output->write_limit, error);
}

ps_code ps_sources_refresh(const ps_output *output, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    source_columns columns = {.bytes.dataset = -1, .mtime_ns.dataset = -1, .checksum.dataset = -1, .optics.dataset = -1};
    PS_GO(open_columns(output->entry, &columns, error));
    for (int64_t frame = 0; frame < output->n_frames; frame++) {
        source_row before;
        PS_GO(read_row(&columns, output->fd, frame, &before, error));
        if (before.checksum == 0 && spec->frames[frame].checksum != 0) PS_GO(write_row(&columns, output, frame, &spec->frames[frame], error));
    }
done:
    close_columns(&columns);
    return code;
}
