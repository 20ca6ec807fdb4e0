#include "input/reader.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "hdf5/failure.h"
#include "input/file_list.h"
#include "optics/optics.h"

void ps_recording_clear(ps_recording *info) {
    *info = (ps_recording){.voltage_V = NAN,
                           .scan_step_A = {NAN, NAN},
                           .detector_pitch_mrad = {NAN, NAN},
                           .saturation = NAN,
                           .detector_pitch_inv_A = {NAN, NAN}};
}

void ps_recording_pitch(const ps_recording *info, double voltage_V, double pitch_mrad[2]) {
    bool as_frequency = info->detector_pitch_inv_A[0] > 0 && voltage_V > 0;
    for (int axis = 0; axis < 2; axis++)
        pitch_mrad[axis] =
            as_frequency ? info->detector_pitch_inv_A[axis] * ps_wavelength_A(voltage_V) * 1e3 : info->detector_pitch_mrad[axis];
}

void ps_reader_close(ps_reader *reader) {
    if (!reader) return;
    ps_reader *inner = reader->inner;
    free(reader->notes);
    ps_name_list_free(&reader->files);
    reader->ops->close(reader);
    ps_reader_close(inner);
}

ps_code ps_reader_read(ps_reader *reader, int64_t first_position, int64_t n_positions, void *counts, ps_error *error) {
    int64_t all = reader->info.n_positions;
    if (first_position < 0 || n_positions < 0 || first_position > all || n_positions > all - first_position)
        return PS_FAIL(error, PS_E_ARGUMENT, "%s: asked for patterns %" PRId64 " to %" PRId64 ", the recording has %" PRId64, reader->path,
                       first_position, first_position + n_positions - 1, all);
    ps_hdf5_forget_lack();
    return n_positions == 0 ? PS_OK : reader->ops->read(reader, first_position, n_positions, counts, error);
}

ps_code ps_reader_mask(ps_reader *reader, uint8_t *bad, bool *present, ps_error *error) {
    *present = false;
    ps_hdf5_forget_lack();
    memset(bad, 0, (size_t)(reader->info.detector_rows * reader->info.detector_columns));
    while (reader && !reader->ops->mask) reader = reader->inner;
    return reader ? reader->ops->mask(reader, bad, present, error) : PS_OK;
}

ps_code ps_reader_data_bytes(ps_reader *reader, int64_t *bytes, ps_error *error) {
    ps_hdf5_forget_lack();
    while (!reader->ops->data_bytes && reader->inner) reader = reader->inner;
    if (reader->ops->data_bytes) return reader->ops->data_bytes(reader, bytes, error);
    *bytes = reader->info.data_bytes;
    return PS_OK;
}

/* A file that is missing is listed as it was written: beside the recording when that is no whole path. */
static ps_code add_file(ps_name_list *files, const char *folder, const char *name, ps_error *error) {
    if (name[0] == '/') return ps_file_list_add(files, name, error);
    char *path = ps_text_format("%s/%s", folder, name);
    ps_code code = path ? ps_file_list_add(files, path, error) : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    free(path);
    return code;
}

ps_code ps_reader_list_files(const ps_reader *reader, ps_name_list *files, ps_error *error) {
    while (reader->inner) reader = reader->inner;
    ps_name_list named = {0};
    bool listed = false; /* a format with an order of its own lists the named file too */
    PS_TRY(ps_file_list_add(&named, reader->path, error));
    for (int64_t i = 0; i < reader->files.n; i++) listed |= strcmp(reader->files.names[i], named.names[0]) == 0;
    char *folder = ps_path_directory(named.names[0]);
    ps_code code = folder ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    if (code == PS_OK && !listed) code = ps_file_list_add(files, named.names[0], error);
    for (int64_t i = 0; i < reader->files.n && code == PS_OK; i++) code = add_file(files, folder, reader->files.names[i], error);
    free(folder);
    ps_name_list_free(&named);
    return code;
}

/* Readers in front of a format's reader keep no notes of their own. */
const char *ps_reader_notes(const ps_reader *reader) {
    while (reader->inner) reader = reader->inner;
    return reader->notes ? reader->notes : "";
}

void ps_reader_note(ps_reader *reader, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    char *longer = NULL;
    if (asprintf(&longer, "%s%s%s", reader->notes ? reader->notes : "", reader->notes ? "\n" : "", line) < 0)
        return; /* a lost note is not worth failing for */
    free(reader->notes);
    reader->notes = longer;
}

ps_invalid_counts ps_reader_invalid(const ps_reader *reader) {
    while (reader && !reader->ops->invalid) reader = reader->inner;
    return reader ? reader->ops->invalid(reader) : (ps_invalid_counts){0};
}
