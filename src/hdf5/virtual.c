#include "hdf5/virtual.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "hdf5/linked_file.h"

void ps_virtual_free(ps_virtual_piece *pieces, int64_t n_pieces) {
    for (int64_t i = 0; i < n_pieces; i++) {
        free(pieces[i].path);
        free(pieces[i].name);
    }
    free(pieces);
}

/* Positions [*first, *first + *n) when the selection is a box of whole patterns one after the other. */
static bool selected_positions(hid_t space, int64_t *first, int64_t *n) {
    hsize_t dims[4], low[4], high[4], points = 1;
    int rank = H5Sget_simple_extent_ndims(space);
    if (rank != 3 && rank != 4) return false;
    hssize_t selected = H5Sget_select_npoints(space);
    if (H5Sget_simple_extent_dims(space, dims, NULL) < 0 || H5Sget_select_bounds(space, low, high) < 0 || selected <= 0) return false;
    for (int i = 0; i < rank; i++) points *= high[i] - low[i] + 1;
    bool box = points == (hsize_t)selected;
    for (int i = rank - 2; i < rank; i++) box &= low[i] == 0 && high[i] == dims[i] - 1;
    if (!box) return false;
    hsize_t columns = rank == 4 ? dims[1] : 1, low_column = rank == 4 ? low[1] : 0, high_column = rank == 4 ? high[1] : 0;
    bool whole_rows = low_column == 0 && high_column == columns - 1;
    if (!whole_rows && low[0] != high[0]) return false;
    *first = (int64_t)(low[0] * columns + low_column);
    *n = (int64_t)((high[0] - low[0] + 1) * (high_column - low_column + 1));
    return true;
}

static char *get_name(hid_t plist, size_t index, ssize_t (*get)(hid_t, size_t, char *, size_t)) {
    ssize_t length = get(plist, index, NULL, 0);
    char *name = length < 0 ? NULL : malloc((size_t)length + 1);
    if (name) get(plist, index, name, (size_t)length + 1);
    return name;
}

/* The source's file: "." is the virtual dataset's own. */
static ps_code find_source(const ps_hdf5_dataset *dataset, const char *written, ps_virtual_piece *piece, ps_error *error) {
    piece->path = strcmp(written, ".") == 0 ? strdup(dataset->path) : ps_linked_file_find(dataset->path, written);
    piece->exists = piece->path != NULL;
    if (!piece->path) piece->path = strdup(written);
    return piece->path ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
}

static ps_code read_mapping(const ps_hdf5_dataset *dataset, hid_t plist, size_t index, ps_virtual_piece *piece, bool *whole_frames,
                            ps_error *error) {
    ps_code code = PS_OK;
    int64_t n_source = 0;
    char *written = get_name(plist, index, H5Pget_virtual_filename);
    hid_t virtual_space = H5Pget_virtual_vspace(plist, index), source_space = H5Pget_virtual_srcspace(plist, index);
    piece->name = get_name(plist, index, H5Pget_virtual_dsetname);
    PS_GO_ALLOC(error, written);
    PS_GO_ALLOC(error, piece->name);
    PS_GO(find_source(dataset, written, piece, error));
    *whole_frames &= virtual_space >= 0 && source_space >= 0 && selected_positions(virtual_space, &piece->first, &piece->n);
    piece->whole_source = source_space >= 0 && H5Sget_select_type(source_space) == H5S_SEL_ALL; /* has no extent in HDF5 1.10 */
    if (*whole_frames && !piece->whole_source)
        *whole_frames = selected_positions(source_space, &piece->source_first, &n_source) && n_source == piece->n;
done:
    if (source_space >= 0) H5Sclose(source_space);
    if (virtual_space >= 0) H5Sclose(virtual_space);
    free(written);
    return code;
}

static int compare_pieces(const void *a, const void *b) {
    const ps_virtual_piece *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Pieces that overlap are no list of patterns. */
static bool are_disjoint(const ps_virtual_piece *pieces, int64_t n_pieces) {
    for (int64_t i = 1; i < n_pieces; i++)
        if (pieces[i].first < pieces[i - 1].first + pieces[i - 1].n) return false;
    return true;
}

ps_code ps_virtual_list(const ps_hdf5_dataset *dataset, ps_virtual_piece **pieces, int64_t *n_pieces, bool *whole_frames, ps_error *error) {
    ps_code code = PS_OK;
    size_t n = 0;
    hid_t plist = H5Dget_create_plist(dataset->dataset);
    *pieces = NULL;
    *n_pieces = 0;
    *whole_frames = true;
    if (plist < 0 || H5Pget_virtual_count(plist, &n) < 0) {
        code = PS_FAIL(error, PS_E_INPUT, "%s:%s: cannot read the sources of the virtual dataset", dataset->path, dataset->name);
        goto done;
    }
    *pieces = calloc(n + 1, sizeof **pieces);
    PS_GO_ALLOC(error, *pieces);
    *n_pieces = (int64_t)n;
    for (size_t i = 0; i < n; i++) PS_GO(read_mapping(dataset, plist, i, &(*pieces)[i], whole_frames, error));
    if (*whole_frames) {
        qsort(*pieces, n, sizeof **pieces, compare_pieces);
        *whole_frames = are_disjoint(*pieces, (int64_t)n);
    }
    for (size_t i = 0; i < n && !*whole_frames && code == PS_OK; i++)
        if (!(*pieces)[i].exists)
            code = PS_FAIL(error, PS_E_INPUT, "%s:%s: the source file %s of the virtual dataset is missing", dataset->path, dataset->name,
                           (*pieces)[i].path);
done:
    if (plist >= 0) H5Pclose(plist);
    if (code != PS_OK) {
        ps_virtual_free(*pieces, *n_pieces);
        *pieces = NULL;
        *n_pieces = 0;
    }
    return code;
}
