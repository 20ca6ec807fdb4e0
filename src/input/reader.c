#include "input/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/regular.h"
#include "core/text.h"
#include "hdf5/util.h"
#include "input/adapters/clean.h"
#include "input/adapters/partial.h"
#include "input/adapters/positions.h"
#include "input/adapters/scan_hint.h"
#include "input/file_list.h"
#include "input/formats/formats.h"
#include "input/preflight.h"
#include "input/source.h"
#include "optics/optics.h"

static const ps_reader_ops *const formats[] = {&ps_reader_dectris, &ps_reader_emd, &ps_reader_hdf5,
                                               &ps_reader_npy,     &ps_reader_mib, &ps_reader_empad};
enum { N_FORMATS = sizeof formats / sizeof *formats };

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

/* Files that lie beside recordings, by how they begin. */
static const char *what_else(const unsigned char *bytes, size_t n) {
    if (n >= 4 && memcmp(bytes, "HDR,", 4) == 0) return "; this is the header file of a Merlin recording: name the .mib file";
    if (bytes[0] == '{') return "; this looks like JSON: ptyseries check and ptyseries run take jobs, which name optics files";
    return "";
}

static ps_code unknown_format(const char *path, ps_error *error) {
    char names[256] = "", start[64] = "";
    size_t used = 0;
    for (int i = 0; i < N_FORMATS; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", formats[i]->name);
    unsigned char bytes[8];
    FILE *file = fopen(path, "rb");
    if (!file) return PS_FAIL(error, PS_E_INPUT, "%s: cannot open: %s", path, strerror(errno));
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    if (n == 0) return PS_FAIL(error, PS_E_INPUT, "%s: is empty", path);
    for (size_t i = 0; i < n; i++) snprintf(start + strlen(start), sizeof start - strlen(start), "%s%02x", i ? " " : "", bytes[i]);
    return PS_FAIL(error, PS_E_INPUT, "%s: not a recording of a known kind (it begins with the bytes %s); known are %s%s", path, start,
                   names, what_else(bytes, n));
}

static ps_code find_format(const char *path, const char *dataset, const ps_reader_ops **ops, ps_error *error) {
    struct stat status;
    if (stat(path, &status) != 0) return PS_FAIL(error, PS_E_INPUT, "%s: cannot open: %s", path, strerror(errno));
    PS_TRY(ps_regular_check(path, error));
    for (int i = 0; i < N_FORMATS; i++)
        if (formats[i]->probe(path, dataset)) {
            *ops = formats[i];
            return PS_OK;
        }
    if (dataset) return PS_FAIL(error, PS_E_INPUT, "%s: not an HDF5 file, so there is no dataset %s in it", path, dataset);
    return unknown_format(path, error);
}

/* What could not be looked up is not taken for not said, nor for another format. code: what went wrong besides. */
static ps_code check_memory(const char *path, ps_code code, ps_error *error) {
    if (!ps_hdf5_forget_lack()) return code;
    if (code != PS_OK) {
        ps_error_prefix(error, "%s: memory ran out while HDF5 looked into it; then", path);
        return code;
    }
    return PS_FAIL(error, PS_E_MEMORY, "%s: memory ran out while HDF5 looked up what the file says of itself", path);
}

ps_code ps_reader_open(const char *source, const ps_reader_options *options, ps_reader **reader, ps_error *error) {
    ps_code code = PS_OK;
    ps_source parts = {0};
    const ps_reader_ops *ops = NULL;
    static const ps_reader_options nothing_asked;
    *reader = NULL;
    if (!options) options = &nothing_asked;
    PS_GO(ps_preflight_inspect(source, options, error)); /* before this process touches the file */
    PS_GO(ps_source_split(source, &parts, error));
    ps_hdf5_forget_lack();
    code = find_format(parts.path, parts.dataset, &ops, error);
    PS_GO(check_memory(parts.path, code, error));
    code = ops->open(parts.path, parts.dataset, options, reader, error);
    PS_GO(check_memory(parts.path, code, error));
    PS_GO(ps_positions_check_shape(*reader, options, error));
    if (options->allow_partial) PS_GO(ps_partial_wrap(reader, ps_positions_needed(options), error));
    if (options->saturation > 0) (*reader)->info.saturation = options->saturation;
    if (options->exclude_invalid) PS_GO(ps_clean_wrap(reader, error));
    if (ps_positions_asked(options)) PS_GO(ps_positions_wrap(reader, options, error));
done:
    ps_source_free(&parts);
    if (code != PS_OK) {
        ps_reader_close(*reader);
        *reader = NULL;
    }
    return code;
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

/* "1 x 12, 2 x 6, 3 x 4": pairs whose product is n, the squarest last; as many as fit. */
static void factor_pairs(int64_t n, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = '\0';
    int64_t pairs = 0, shown = 0;
    for (int64_t a = 1; a * a <= n; a++) pairs += n % a == 0;
    for (int64_t a = 1; a * a <= n; a++) {
        if (n % a != 0 || pairs-- > 8) continue; /* the eight squarest are enough */
        int wrote = snprintf(text + used, bytes - used, "%s%" PRId64 " x %" PRId64, shown++ ? ", " : "", a, n / a);
        if (wrote < 0 || (size_t)wrote >= bytes - used) return;
        used += (size_t)wrote;
    }
}

static ps_code check_shape(const ps_reader *reader, int64_t rows, int64_t columns, const char *who, ps_error *error) {
    int64_t product = 0, n = reader->info.n_positions;
    if (!__builtin_mul_overflow(rows, columns, &product) && product == n) return PS_OK;
    char pairs[320], hint[200];
    factor_pairs(n, pairs, sizeof pairs);
    ps_scan_hint(n, rows, columns, hint, sizeof hint);
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: %s says a scan of %" PRId64 " x %" PRId64 " = %" PRId64 " positions, but the recording has %" PRId64
                   " patterns; scans that would fit (either way round): %s%s%s",
                   reader->path, who, rows, columns, product, n, pairs, hint[0] ? "; " : "", hint);
}

static int64_t exact_square_root(int64_t n) {
    int64_t root = 0;
    for (int64_t bit = INT64_C(1) << 31; bit; bit >>= 1)
        if ((root + bit) <= n / (root + bit)) root += bit;
    return root * root == n ? root : 0;
}

ps_code ps_reader_scan_shape(const ps_reader *reader, const ps_reader_options *options, int64_t *rows, int64_t *columns, ps_error *error) {
    const ps_recording *info = &reader->info;
    if (options && options->scan_rows > 0 && options->scan_columns > 0) {
        *rows = options->scan_rows;
        *columns = options->scan_columns;
        return check_shape(reader, *rows, *columns, "the job", error);
    }
    if (info->scan_rows > 0 && info->scan_columns > 0) {
        *rows = info->scan_rows;
        *columns = info->scan_columns;
        return check_shape(reader, *rows, *columns, "the file", error);
    }
    *rows = *columns = info->scan_doubt[0] ? 0 : exact_square_root(info->n_positions);
    if (*rows > 0) return PS_OK;
    char pairs[320], hint[200];
    if (info->scan_doubt[0]) {
        factor_pairs(info->n_positions, pairs, sizeof pairs);
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: the scan shape is not known: the recording holds %" PRId64
                       " patterns, but %s; give series.scan_shape (and series.allow_partial where patterns are missing); scans that "
                       "would fit what is there (either way round): %s",
                       reader->path, info->n_positions, info->scan_doubt, pairs);
    }
    factor_pairs(info->n_positions, pairs, sizeof pairs);
    ps_square_hint(info->n_positions, hint, sizeof hint);
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: the file does not say its scan shape and its %" PRId64 " patterns are no square; give "
                   "series.scan_shape; scans that would fit (either way round): %s%s%s",
                   reader->path, info->n_positions, pairs, hint[0] ? "; " : "", hint);
}
