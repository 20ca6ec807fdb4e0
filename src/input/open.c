#include "input/open.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/regular.h"
#include "hdf5/failure.h"
#include "input/adapters/clean.h"
#include "input/adapters/partial.h"
#include "input/adapters/positions.h"
#include "input/formats/formats.h"
#include "input/preflight.h"
#include "input/source.h"

static const ps_reader_ops *const formats[] = {&ps_reader_dectris, &ps_reader_emd, &ps_reader_hdf5,
                                               &ps_reader_npy,     &ps_reader_mib, &ps_reader_empad};
enum { N_FORMATS = sizeof formats / sizeof *formats };

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
