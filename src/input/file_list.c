#include "input/file_list.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "hdf5/failure.h"
#include "hdf5/linked_file.h"
#include "hdf5/util.h"
#include "hdf5/virtual.h"

enum { DEEPEST = 16 }; /* virtual datasets of virtual datasets */

ps_code ps_file_list_add(ps_name_list *files, const char *path, ps_error *error) {
    char real[PATH_MAX];
    if (realpath(path, real)) path = real;
    for (int64_t i = files->n - 1; i >= 0; i--)
        if (strcmp(files->names[i], path) == 0) return PS_OK;
    if (ps_name_list_add(files, path) == PS_OK) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the names of data files");
}

static ps_code add_external(ps_name_list *files, const ps_hdf5_dataset *dataset, ps_error *error) {
    ps_code code = PS_OK;
    hid_t plist = H5Dget_create_plist(dataset->dataset);
    if (plist < 0) return ps_hdf5_fail(error, "%s:%s: cannot read how it is stored", dataset->path, dataset->name);
    int n = H5Pget_external_count(plist);
    for (int i = 0; i < n && code == PS_OK; i++) {
        char name[PATH_MAX] = "";
        off_t offset;
        hsize_t bytes;
        if (H5Pget_external(plist, (unsigned)i, sizeof name - 1, name, &offset, &bytes) < 0) {
            code = ps_hdf5_fail(error, "%s:%s: cannot read the names of its external files", dataset->path, dataset->name);
            break;
        }
        char *path = ps_external_file_place(dataset->path, name);
        code = path ? ps_file_list_add(files, path, error) : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
        free(path);
    }
    H5Pclose(plist);
    return code;
}

static ps_code add_dataset(ps_name_list *files, const ps_hdf5_dataset *dataset, int depth, ps_error *error);

/* A source may be of any rank and type: only what add_dataset looks at is filled in. */
static ps_code add_source(ps_name_list *files, const ps_hdf5_dataset *from, const ps_virtual_piece *piece, int depth, ps_error *error) {
    ps_code code = PS_OK;
    ps_hdf5_dataset source = {.path = piece->path, .name = piece->name, .file = -1, .dataset = -1};
    hid_t plist = -1;
    if (!piece->exists)
        return PS_FAIL(error, PS_E_INPUT, "%s:%s: the source file %s of the virtual dataset is missing", from->path, from->name,
                       piece->path);
    PS_GO(ps_hdf5_open(piece->path, &source.file, error));
    if (!ps_hdf5_exists(source.file, piece->name) || (source.dataset = H5Dopen2(source.file, piece->name, H5P_DEFAULT)) < 0 ||
        (plist = H5Dget_create_plist(source.dataset)) < 0)
        PS_GO(PS_FAIL(error, PS_E_INPUT, "%s: holds no dataset %s, which is a source of the virtual dataset %s:%s", piece->path,
                      piece->name, from->path, from->name));
    source.is_virtual = H5Pget_layout(plist) == H5D_VIRTUAL;
    PS_GO(add_dataset(files, &source, depth + 1, error));
done:
    if (plist >= 0) H5Pclose(plist);
    if (source.dataset >= 0) H5Dclose(source.dataset);
    if (source.file >= 0) H5Fclose(source.file);
    return code;
}

static ps_code add_dataset(ps_name_list *files, const ps_hdf5_dataset *dataset, int depth, ps_error *error) {
    ps_virtual_piece *pieces = NULL;
    int64_t n_pieces = 0;
    bool whole_frames = false;
    ps_code code = PS_OK;
    PS_TRY(ps_file_list_add(files, dataset->path, error));
    if (!dataset->is_virtual) return add_external(files, dataset, error);
    if (depth > DEEPEST)
        return PS_FAIL(error, PS_E_INPUT, "%s:%s: virtual datasets of virtual datasets more than %d deep", dataset->path, dataset->name,
                       DEEPEST);
    PS_GO(ps_virtual_list(dataset, &pieces, &n_pieces, &whole_frames, error));
    for (int64_t i = 0; i < n_pieces; i++) PS_GO(add_source(files, dataset, &pieces[i], depth, error));
done:
    ps_virtual_free(pieces, n_pieces);
    return code;
}

ps_code ps_file_list_add_dataset(ps_name_list *files, const ps_hdf5_dataset *dataset, ps_error *error) {
    return add_dataset(files, dataset, 0, error);
}
