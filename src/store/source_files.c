#include "store/source_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "hdf5/write.h"

enum { LEAST_WIDTH = 64, SPARE_ROOM = 16 }; /* for recordings that can only be read later */

const char *ps_file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- the named files ---- */

typedef const char *(*source_text)(const ps_output_frame_source *frame);
static const char *text_of_source(const ps_output_frame_source *frame) {
    return frame->source;
}
static const char *text_of_time(const ps_output_frame_source *frame) {
    return frame->acquisition_time ? frame->acquisition_time : "";
}

static ps_code create_source_texts(hid_t group, const char *name, source_text text, int64_t n_frames, const ps_output_frame_source *frames,
                                   ps_error *error) {
    ps_code code = PS_OK;
    size_t width = 1;
    const char **texts = malloc((size_t)n_frames * sizeof *texts);
    PS_GO_ALLOC(error, texts);
    for (int64_t i = 0; i < n_frames; i++) {
        texts[i] = text(&frames[i]);
        if (strlen(texts[i]) > width) width = strlen(texts[i]);
    }
    PS_GO(ps_h5_texts(group, name, width, n_frames, texts, error));
done:
    free(texts);
    return code;
}

static ps_code create_source_numbers(hid_t group, int64_t n_frames, const ps_output_frame_source *frames, ps_error *error) {
    ps_code code = PS_OK;
    hsize_t n = (hsize_t)n_frames;
    int64_t *values = malloc(3 * n * sizeof *values);
    PS_GO_ALLOC(error, values);
    for (hsize_t i = 0; i < n; i++) {
        values[i] = frames[i].bytes;
        values[n + i] = frames[i].mtime_ns;
        values[2 * n + i] = (int64_t)frames[i].checksum;
    }
    PS_GO(ps_h5_dataset(group, "source_bytes", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n, values, error));
    PS_GO(ps_h5_dataset(group, "source_mtime_ns", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n, values + n, error));
    PS_GO(ps_h5_dataset(group, "source_crc32", H5T_STD_U32LE, H5T_NATIVE_INT64, 1, &n, values + 2 * n, error));
done:
    free(values);
    return code;
}

ps_code ps_frame_sources_create(hid_t group, int64_t n_frames, const ps_output_frame_source *frames, ps_error *error) {
    PS_TRY(create_source_texts(group, "source", text_of_source, n_frames, frames, error));
    PS_TRY(create_source_texts(group, "acquisition_time", text_of_time, n_frames, frames, error));
    return create_source_numbers(group, n_frames, frames, error);
}

/* ---- a row ---- */

void ps_file_row_free(ps_file_row *row) {
    free(row->files);
    free(row->names);
    *row = (ps_file_row){0};
}

static ps_code allocate_row(int64_t n, size_t width, ps_file_row *row, ps_error *error) {
    *row = (ps_file_row){.n_files = n, .n = n};
    row->files = calloc((size_t)n + 1, sizeof *row->files);
    row->names = calloc((size_t)n + 1, width + 1);
    for (int64_t i = 0; row->files && row->names && i < n; i++) row->files[i].path = row->names + (size_t)i * (width + 1);
    if (row->files && row->names) return PS_OK;
    ps_file_row_free(row);
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a list of files");
}

/* One entry that changes when any of the files does. */
static ps_output_file fold(const ps_output_file *files, int64_t n) {
    ps_output_file all = {.path = "further files"};
    bool whole = true, samples = true;
    for (int64_t i = 0; i < n; i++) {
        uint32_t sums[2] = {files[i].samples, files[i].whole};
        all.bytes += files[i].bytes > 0 ? files[i].bytes : 0;
        if (files[i].mtime_ns > all.mtime_ns) all.mtime_ns = files[i].mtime_ns;
        all.samples = (uint32_t)crc32_z(all.samples, (const Bytef *)&sums[0], sizeof sums[0]);
        all.whole = (uint32_t)crc32_z(all.whole, (const Bytef *)&sums[1], sizeof sums[1]);
        samples &= sums[0] != 0;
        whole &= sums[1] != 0;
    }
    if (!samples) all.samples = 0;
    if (!whole) all.whole = 0;
    return all;
}

ps_code ps_file_row_from(const ps_output_frame_source *source, int64_t room, ps_file_row *row, ps_error *error) {
    int64_t n = source->n_files <= room ? source->n_files : room;
    PS_TRY(allocate_row(n, 0, row, error));
    row->n_files = source->n_files;
    for (int64_t i = 0; i < n; i++) row->files[i] = source->files[i];
    if (n < source->n_files) row->files[n - 1] = fold(source->files + n - 1, source->n_files - n + 1);
    return PS_OK;
}

/* ---- creation ---- */

static int64_t room_for(const ps_output_spec *spec) {
    int64_t most = 0, spare = 0;
    for (int64_t i = 0; i < spec->n_frames; i++) {
        if (spec->frames[i].n_files > most) most = spec->frames[i].n_files;
        if (spec->frames[i].n_files == 0) spare = SPARE_ROOM;
    }
    return most == 0 ? 0 : most > spare ? most : spare;
}

static size_t width_for(const ps_output_spec *spec) {
    size_t width = LEAST_WIDTH;
    for (int64_t i = 0; i < spec->n_frames; i++)
        for (int64_t k = 0; k < spec->frames[i].n_files; k++) {
            size_t length = strlen(ps_file_name(spec->frames[i].files[k].path));
            if (length > width) width = length;
        }
    return width;
}

int64_t ps_file_columns_bytes(const ps_output_spec *spec) {
    return spec->n_frames * room_for(spec) * ((int64_t)width_for(spec) + 24) + spec->n_frames * 4;
}

/* One frame's part of each column. */
typedef struct {
    int64_t *bytes, *mtime_ns;
    uint32_t *samples, *whole;
    char *names;
} row_arrays;

static void fill_arrays(const ps_file_row *row, size_t width, const row_arrays *to) {
    for (int64_t i = 0; i < row->n; i++) {
        const ps_output_file *file = &row->files[i];
        to->bytes[i] = file->bytes;
        to->mtime_ns[i] = file->mtime_ns;
        to->samples[i] = file->samples;
        to->whole[i] = file->whole;
        ps_h5_pad_text(to->names + (size_t)i * width, width, ps_file_name(file->path));
    }
}

/* Room for n_rows rows, all zero; freed with free_arrays. */
static ps_code allocate_arrays(int64_t n_rows, int64_t room, size_t width, row_arrays *arrays, ps_error *error) {
    size_t n = (size_t)(n_rows * room);
    *arrays = (row_arrays){calloc(n, sizeof(int64_t)), calloc(n, sizeof(int64_t)), calloc(n, sizeof(uint32_t)), calloc(n, sizeof(uint32_t)),
                           calloc(n, width)};
    if (arrays->bytes && arrays->mtime_ns && arrays->samples && arrays->whole && arrays->names) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the names of %zu data files", n);
}

static void free_arrays(row_arrays *arrays) {
    free(arrays->bytes);
    free(arrays->mtime_ns);
    free(arrays->samples);
    free(arrays->whole);
    free(arrays->names);
}

static ps_code write_columns(hid_t frames, const hsize_t dims[2], size_t width, const row_arrays *all, ps_error *error) {
    hid_t text = ps_h5_text_type(width);
    ps_code code = ps_h5_dataset(frames, "file_name", text, text, 2, dims, all->names, error);
    ps_h5_close(&text);
    if (code == PS_OK) code = ps_h5_dataset(frames, "file_bytes", H5T_STD_I64LE, H5T_NATIVE_INT64, 2, dims, all->bytes, error);
    if (code == PS_OK) code = ps_h5_dataset(frames, "file_mtime_ns", H5T_STD_I64LE, H5T_NATIVE_INT64, 2, dims, all->mtime_ns, error);
    if (code == PS_OK) code = ps_h5_dataset(frames, "file_crc32", H5T_STD_U32LE, H5T_NATIVE_UINT32, 2, dims, all->samples, error);
    if (code == PS_OK) code = ps_h5_dataset(frames, "file_whole_crc32", H5T_STD_U32LE, H5T_NATIVE_UINT32, 2, dims, all->whole, error);
    return code;
}

ps_code ps_file_columns_create(hid_t frames, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    int64_t room = room_for(spec);
    size_t width = width_for(spec);
    hsize_t dims[2] = {(hsize_t)spec->n_frames, (hsize_t)room};
    row_arrays all = {0};
    int32_t *n = malloc((size_t)spec->n_frames * sizeof *n);
    PS_GO_ALLOC(error, n);
    if (room == 0) goto done;
    PS_GO(allocate_arrays(spec->n_frames, room, width, &all, error));
    for (int64_t i = 0; i < spec->n_frames; i++) {
        ps_file_row row;
        row_arrays at = {all.bytes + i * room, all.mtime_ns + i * room, all.samples + i * room, all.whole + i * room,
                         all.names + (size_t)(i * room) * width};
        PS_GO(ps_file_row_from(&spec->frames[i], room, &row, error));
        fill_arrays(&row, width, &at);
        n[i] = (int32_t)row.n_files;
        ps_file_row_free(&row);
    }
    PS_GO(ps_h5_dataset(frames, "n_files", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, dims, n, error));
    PS_GO(write_columns(frames, dims, width, &all, error));
done:
    free_arrays(&all);
    free(n);
    return code;
}

/* ---- in a file that exists ---- */

void ps_file_columns_close(ps_file_columns *columns) {
    ps_rows *all[] = {&columns->n, &columns->name, &columns->bytes, &columns->mtime_ns, &columns->samples, &columns->whole};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ps_rows_close(all[i]);
}

ps_code ps_file_columns_open(hid_t entry, ps_file_columns *columns, ps_error *error) {
    const struct {
        const char *name;
        ps_rows *rows;
        size_t element_bytes; /* 0: any */
    } all[] = {{"frames/n_files", &columns->n, 4},          {"frames/file_name", &columns->name, 0},
               {"frames/file_bytes", &columns->bytes, 8},   {"frames/file_mtime_ns", &columns->mtime_ns, 8},
               {"frames/file_crc32", &columns->samples, 4}, {"frames/file_whole_crc32", &columns->whole, 4}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        bool there = false;
        PS_TRY(ps_rows_open(entry, all[i].name, all[i].rows, &there, error));
        if (!there && i == 0) return PS_OK;
        if (!there) return PS_FAIL(error, PS_E_HDF5, "no /entry/%s beside frames/n_files: the file is damaged", all[i].name);
        columns->room = i == 0 ? 0 : i == 1 ? (int64_t)all[i].rows->dims[1] : columns->room;
        bool fits = all[i].rows->rank == (i == 0 ? 1 : 2) && (i == 0 || (int64_t)all[i].rows->dims[1] == columns->room) &&
                    (all[i].element_bytes == 0 || all[i].rows->element_bytes == all[i].element_bytes);
        if (!fits) return PS_FAIL(error, PS_E_HDF5, "/entry/%s has another shape or type than this program writes", all[i].name);
    }
    columns->present = true;
    return PS_OK;
}

static ps_code read_arrays(const ps_file_columns *columns, int fd, int64_t frame, const row_arrays *to, ps_error *error) {
    PS_TRY(ps_rows_read(&columns->name, fd, frame, to->names, error));
    PS_TRY(ps_rows_read(&columns->bytes, fd, frame, to->bytes, error));
    PS_TRY(ps_rows_read(&columns->mtime_ns, fd, frame, to->mtime_ns, error));
    PS_TRY(ps_rows_read(&columns->samples, fd, frame, to->samples, error));
    return ps_rows_read(&columns->whole, fd, frame, to->whole, error);
}

ps_code ps_file_columns_read(const ps_file_columns *columns, int fd, int64_t frame, ps_file_row *row, ps_error *error) {
    ps_code code = PS_OK;
    int32_t n_files = 0;
    size_t width = columns->present ? columns->name.element_bytes : 0;
    row_arrays arrays = {0};
    *row = (ps_file_row){0};
    if (!columns->present) return PS_OK;
    PS_GO(ps_rows_read(&columns->n, fd, frame, &n_files, error));
    if (n_files < 0) PS_GO(PS_FAIL(error, PS_E_HDF5, "/entry/frames/n_files is %d for frame %lld", (int)n_files, (long long)frame));
    PS_GO(allocate_arrays(1, columns->room, width, &arrays, error));
    PS_GO(read_arrays(columns, fd, frame, &arrays, error));
    PS_GO(allocate_row(n_files < columns->room ? n_files : columns->room, width, row, error));
    row->n_files = n_files;
    for (int64_t i = 0; i < row->n; i++) {
        memcpy(row->names + (size_t)i * (width + 1), arrays.names + (size_t)i * width, width);
        row->files[i].bytes = arrays.bytes[i];
        row->files[i].mtime_ns = arrays.mtime_ns[i];
        row->files[i].samples = arrays.samples[i];
        row->files[i].whole = arrays.whole[i];
    }
done:
    free_arrays(&arrays);
    return code;
}

ps_code ps_file_columns_write(const ps_file_columns *columns, int64_t frame, const ps_output_frame_source *source, size_t limit_bytes,
                              ps_error *error) {
    ps_code code = PS_OK;
    ps_file_row row = {0};
    row_arrays arrays = {0};
    int32_t n_files = (int32_t)source->n_files;
    if (!columns->present) return PS_OK;
    PS_GO(allocate_arrays(1, columns->room, columns->name.element_bytes, &arrays, error));
    PS_GO(ps_file_row_from(source, columns->room, &row, error));
    fill_arrays(&row, columns->name.element_bytes, &arrays);
    PS_GO(ps_rows_write(&columns->name, frame, arrays.names, limit_bytes, error));
    PS_GO(ps_rows_write(&columns->bytes, frame, arrays.bytes, limit_bytes, error));
    PS_GO(ps_rows_write(&columns->mtime_ns, frame, arrays.mtime_ns, limit_bytes, error));
    PS_GO(ps_rows_write(&columns->samples, frame, arrays.samples, limit_bytes, error));
    PS_GO(ps_rows_write(&columns->whole, frame, arrays.whole, limit_bytes, error));
    PS_GO(ps_rows_write(&columns->n, frame, &n_files, limit_bytes, error));
done:
    ps_file_row_free(&row);
    free_arrays(&arrays);
    return code;
}
