#include "hdf5/util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/assert.h"
#include "core/regular.h"
#include "hdf5/behind.h"
#include "hdf5/failure.h"

bool ps_hdf5_is_file(const char *path) {
    ps_hdf5_lock();
    ps_hdf5_note(path, 0, 0);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    htri_t answer = ps_special_file(path) ? 0 : H5Fis_hdf5(path);
    bool is = answer > 0;
    ps_hdf5_note_lack(answer >= 0);
    ps_hdf5_unlock();
    return is;
}

/* After H5Fopen failed. */
static ps_code explain_refusal(const char *path, ps_error *error) {
    char reason[256];
    int descriptor = -1;
    struct stat status = {0};
    ps_hdf5_reason(reason, sizeof reason);
    bool lacking = ps_hdf5_lacked_memory();
    bool locking = strstr(reason, "unable to lock file") || strstr(reason, "file locking");
    bool cut_off = strstr(reason, "truncated file") != NULL;
    PS_TRY(ps_regular_open(path, PS_E_INPUT, &descriptor, error));
    fstat(descriptor, &status);
    close(descriptor);
    if (lacking) return ps_hdf5_fail(error, "%s: HDF5 cannot open it", path);
    if (!ps_hdf5_is_file(path))
        return PS_FAIL(error, PS_E_INPUT, "%s: not an HDF5 file (%lld bytes, no HDF5 signature)", path, (long long)status.st_size);
    return PS_FAIL(error, PS_E_INPUT, "%s: HDF5 cannot open it: %s%s", path, reason,
                   cut_off   ? "; the file is shorter than it says it is: it was cut off, or is still being copied or written"
                   : locking ? "; if the file system does not support locks, set HDF5_USE_FILE_LOCKING=FALSE"
                             : "");
}

ps_code ps_hdf5_open(const char *path, hid_t *file, ps_error *error) {
    ps_code code = PS_OK;
    *file = H5I_INVALID_HID;
    ps_hdf5_lock();
    ps_hdf5_note(path, 0, 0);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* reasons go into ps_error, not to standard error */
    errno = 0;
    PS_GO(ps_regular_check(path, error));
    *file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (!ps_hdf5_note_lack(*file >= 0)) code = explain_refusal(path, error);
done:
    ps_hdf5_unlock();
    return code;
}

bool ps_hdf5_exists(hid_t location, const char *path) {
    char *part = strdup(path);
    hid_t links = ps_hdf5_links();
    bool exists = part != NULL;
    for (char *end = part; exists && end;) {
        end = strchr(end + 1, '/');
        if (end) *end = '\0';
        exists = strcmp(part, "") == 0 || strcmp(part, "/") == 0 ||
                 (H5Lexists(location, part, links) > 0 && H5Oexists_by_name(location, part, links) > 0);
        if (end) *end = '/';
        if (end && end[1] == '\0') break;
    }
    free(part);
    return ps_hdf5_note_lack(exists);
}

/* A dataset or an attribute, read by the same calls. */
typedef struct {
    hid_t id;
    bool attribute;
} holder;

static hid_t holder_type(holder h) {
    hid_t type = h.attribute ? H5Aget_type(h.id) : H5Dget_type(h.id);
    ps_hdf5_note_lack(type >= 0);
    return type;
}
static hid_t holder_space(holder h) {
    hid_t space = h.attribute ? H5Aget_space(h.id) : H5Dget_space(h.id);
    ps_hdf5_note_lack(space >= 0);
    return space;
}
static herr_t holder_read(holder h, hid_t type, void *values) {
    herr_t result = h.attribute ? H5Aread(h.id, type, values) : H5Dread(h.id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    ps_hdf5_note_lack(result >= 0);
    return result;
}

enum { MAX_VALUES = 1 << 20 }; /* what is longer is no metadata */

static hssize_t holder_count(holder h) {
    hid_t space = holder_space(h);
    hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    if (space >= 0) H5Sclose(space);
    return n;
}

static bool read_numbers(holder h, size_t wanted, double *numbers) {
    hssize_t n = holder_count(h);
    hid_t type = holder_type(h);
    bool numeric = type >= 0 && (H5Tget_class(type) == H5T_INTEGER || H5Tget_class(type) == H5T_FLOAT);
    double *values = numeric && n >= (hssize_t)wanted && n <= MAX_VALUES ? malloc((size_t)n * sizeof *values) : NULL;
    bool good = values && holder_read(h, H5T_NATIVE_DOUBLE, values) >= 0;
    if (good) memcpy(numbers, values, wanted * sizeof *values);
    free(values);
    if (type >= 0) H5Tclose(type);
    return good;
}

static bool read_variable_text(holder h, hid_t type, char *text, size_t bytes) {
    char *value = NULL;
    if (holder_read(h, type, &value) < 0 || !value) return false;
    snprintf(text, bytes, "%s", value);
    H5free_memory(value);
    return true;
}

static bool read_fixed_text(holder h, hid_t type, char *text, size_t bytes) {
    size_t stored = H5Tget_size(type);
    char *value = calloc(1, stored + 1);
    bool good = value && holder_read(h, type, value) >= 0;
    if (good) {
        snprintf(text, bytes, "%s", value);
        for (size_t n = strlen(text); n > 0 && text[n - 1] == ' '; n--) text[n - 1] = '\0';
    }
    free(value);
    return good;
}

static bool read_text(holder h, char *text, size_t bytes) {
    hid_t type = holder_type(h);
    bool good = type >= 0 && H5Tget_class(type) == H5T_STRING && holder_count(h) == 1;
    if (good) good = H5Tis_variable_str(type) > 0 ? read_variable_text(h, type, text, bytes) : read_fixed_text(h, type, text, bytes);
    if (type >= 0) H5Tclose(type);
    return good;
}

static holder open_dataset(hid_t location, const char *path) {
    if (!ps_hdf5_exists(location, path)) return (holder){-1, false};
    hid_t dataset = H5Dopen2(location, path, H5P_DEFAULT);
    if (ps_hdf5_note_lack(dataset >= 0) && ps_hdf5_check_behind(dataset, path, NULL) != PS_OK) {
        H5Dclose(dataset);
        dataset = -1;
    }
    return (holder){dataset, false};
}

static holder open_attribute(hid_t location, const char *path, const char *name) {
    if (!ps_hdf5_exists(location, path)) return (holder){-1, true};
    htri_t there = H5Aexists_by_name(location, path, name, H5P_DEFAULT);
    ps_hdf5_note_lack(there >= 0);
    hid_t attribute = there > 0 ? H5Aopen_by_name(location, path, name, H5P_DEFAULT, H5P_DEFAULT) : -1;
    ps_hdf5_note_lack(there <= 0 || attribute >= 0);
    return (holder){attribute, true};
}

static void close_holder(holder h) {
    if (h.id >= 0) h.attribute ? H5Aclose(h.id) : H5Dclose(h.id);
}

static bool numbers_of(holder h, size_t n, double *values) {
    bool good = h.id >= 0 && read_numbers(h, n, values);
    close_holder(h);
    return good;
}

static bool text_of(holder h, char *text, size_t bytes) {
    bool good = h.id >= 0 && read_text(h, text, bytes);
    close_holder(h);
    return good;
}

bool ps_hdf5_number(hid_t location, const char *path, double *value) {
    return numbers_of(open_dataset(location, path), 1, value);
}
bool ps_hdf5_numbers(hid_t location, const char *path, size_t n, double *values) {
    PS_ASSERT(n > 0);
    return numbers_of(open_dataset(location, path), n, values);
}
bool ps_hdf5_text(hid_t location, const char *path, char *text, size_t bytes) {
    return text_of(open_dataset(location, path), text, bytes);
}
bool ps_hdf5_attribute_number(hid_t location, const char *path, const char *name, double *value) {
    return numbers_of(open_attribute(location, path, name), 1, value);
}
bool ps_hdf5_attribute_text(hid_t location, const char *path, const char *name, char *text, size_t bytes) {
    return text_of(open_attribute(location, path, name), text, bytes);
}
