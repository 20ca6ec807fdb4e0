#include "hdf5/behind.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/regular.h"
#include "core/text.h"
#include "hdf5/failure.h"
#include "hdf5/linked_file.h"

static char refused[PATH_MAX + 100];

static bool refuse_special(char *candidate) {
    const char *special = candidate ? ps_special_file(candidate) : NULL;
    if (special) snprintf(refused, sizeof refused, "%s is %s, expected a regular file", candidate, special);
    free(candidate);
    return special != NULL;
}

/* In the folders of a list "a:b:c", as the library's environment variables give them. */
static bool is_special_in(const char *folders, const char *name) {
    bool special = false;
    for (const char *at = folders; at && *at && !special; at += strcspn(at, ":"), at += *at == ':')
        special = refuse_special(ps_text_format("%.*s/%s", (int)strcspn(at, ":"), at, name));
    return special;
}

/* Whether the library could meet something that is no regular file where it looks for a file that the one at path names: as it is, in the
 * folders of its environment variables, and by its name beside path and beside what path is a link to. */
static bool leads_to_special(const char *path, const char *named, const char *variable) {
    char real[PATH_MAX];
    const char *slash = strrchr(named, '/'), *name = named[0] == '/' ? slash + 1 : named;
    char *beside = ps_path_directory(path), *behind = realpath(path, real) ? ps_path_directory(real) : NULL;
    bool special = refuse_special(strdup(named)) || is_special_in(getenv(variable), name) ||
                   (beside && refuse_special(ps_text_format("%s/%s", beside, name))) ||
                   (behind && refuse_special(ps_text_format("%s/%s", behind, name)));
    free(beside);
    free(behind);
    return special;
}

static herr_t look_at_link(const char *parent, const char *group, const char *file, const char *object, unsigned *flags, hid_t access,
                           void *unused) {
    (void)group, (void)object, (void)flags, (void)access, (void)unused;
    return leads_to_special(parent, file, "HDF5_EXT_PREFIX") ? -1 : 0;
}

hid_t ps_hdf5_links(void) {
    static hid_t links = H5I_INVALID_HID;
    refused[0] = '\0';
    if (links < 0) {
        links = H5Pcreate(H5P_DATASET_ACCESS);
        if (links >= 0 && H5Pset_elink_cb(links, look_at_link, NULL) < 0) {
            H5Pclose(links);
            links = H5I_INVALID_HID;
        }
    }
    return links >= 0 ? links : H5P_DEFAULT;
}

const char *ps_hdf5_refused_link(void) {
    return refused[0] ? refused : NULL;
}

static ps_code check_virtual(hid_t plist, const char *path, const char *name, ps_error *error) {
    size_t n = 0;
    char source[PATH_MAX] = "";
    refused[0] = '\0';
    if (H5Pget_virtual_count(plist, &n) < 0) return PS_OK; /* ps_virtual_list will tell */
    for (size_t i = 0; i < n; i++) {
        if (H5Pget_virtual_filename(plist, i, source, sizeof source) < 0) continue;
        if (strchr(source, '%'))
            return PS_FAIL(error, PS_E_INPUT,
                           "%s:%s: a virtual dataset with numbered source files (%s), which HDF5 would fill with zeros where one is "
                           "missing; name the data files themselves",
                           path, name, source);
        if (strcmp(source, ".") != 0 && leads_to_special(path, source, "HDF5_VDS_PREFIX"))
            return PS_FAIL(error, PS_E_INPUT, "%s:%s: a source of the virtual dataset: %s", path, name, refused);
    }
    return PS_OK;
}

static ps_code check_storage_file(const char *path, const char *name, const char *file, uint64_t end, ps_error *error) {
    struct stat status;
    const char *special = ps_special_file(file);
    if (special) return PS_FAIL(error, PS_E_INPUT, "%s:%s: the external file %s is %s, expected a regular file", path, name, file, special);
    if (stat(file, &status) != 0)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s:%s: the external file %s that holds its data is missing (HDF5 looks for it in the folder where the program "
                       "runs, or where HDF5_EXTFILE_PREFIX says)",
                       path, name, file);
    if ((uint64_t)status.st_size < end)
        return PS_FAIL(error, PS_E_INPUT, "%s:%s: the external file %s has %lld bytes, the data in it ends at byte %llu", path, name, file,
                       (long long)status.st_size, (unsigned long long)end);
    return PS_OK;
}

static uint64_t bytes_of(hid_t dataset) {
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    hssize_t n = space < 0 ? 0 : H5Sget_simple_extent_npoints(space);
    size_t size = type < 0 ? 0 : H5Tget_size(type);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    return n < 0 ? 0 : (uint64_t)n * size;
}

static ps_code check_storage(hid_t dataset, hid_t plist, const char *path, const char *name, ps_error *error) {
    int n = H5Pget_external_count(plist);
    uint64_t left = n > 0 ? bytes_of(dataset) : 0;
    for (int i = 0; i < n; i++) {
        char written[PATH_MAX] = "";
        off_t offset = 0;
        hsize_t size = 0;
        if (H5Pget_external(plist, (unsigned)i, sizeof written - 1, written, &offset, &size) < 0) continue;
        uint64_t taken = size < left ? size : left;
        char *file = ps_external_file_place(path, written);
        if (!file) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
        ps_code code = check_storage_file(path, name, file, (uint64_t)offset + taken, error);
        free(file);
        PS_TRY(code);
        left -= taken;
    }
    return PS_OK;
}

ps_code ps_hdf5_check_behind(hid_t dataset, const char *name, ps_error *error) {
    char path[PATH_MAX] = "";
    H5Fget_name(dataset, path, sizeof path); /* the file that holds it, behind links */
    hid_t plist = H5Dget_create_plist(dataset);
    if (!ps_hdf5_note_lack(plist >= 0)) return PS_OK; /* who reads the layout will tell */
    H5D_layout_t layout = H5Pget_layout(plist);
    ps_code code = PS_OK;
    if (layout == H5D_VIRTUAL) code = check_virtual(plist, path, name, error);
    if (layout == H5D_CONTIGUOUS) code = check_storage(dataset, plist, path, name, error);
    H5Pclose(plist);
    return code;
}
