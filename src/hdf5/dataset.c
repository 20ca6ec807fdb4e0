#include "hdf5/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/busy.h"
#include "hdf5/behind.h"
#include "hdf5/bslz4.h"
#include "hdf5/chunks.h"
#include "hdf5/element_type.h"
#include "hdf5/failure.h"
#include "hdf5/index.h"
#include "hdf5/util.h"

static ps_code hdf5_failed(const ps_hdf5_dataset *dataset, const char *what, ps_error *error) {
    return ps_hdf5_fail(error, "%s:%s: %s", dataset->path, dataset->name, what);
}

static ps_code read_shape(ps_hdf5_dataset *dataset, ps_error *error) {
    hsize_t dims[4] = {0};
    hid_t space = H5Dget_space(dataset->dataset);
    if (space < 0) return hdf5_failed(dataset, "cannot read its shape", error);
    dataset->rank = H5Sget_simple_extent_ndims(space);
    if (dataset->rank == 3 || dataset->rank == 4) H5Sget_simple_extent_dims(space, dims, NULL);
    H5Sclose(space);
    if (dataset->rank != 3 && dataset->rank != 4)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s:%s: found a dataset of rank %d, expected 3 (position, row, column) or 4 (scan row, scan "
                       "column, row, column)",
                       dataset->path, dataset->name, dataset->rank);
    int detector = dataset->rank - 2;
    dataset->lead[0] = (int64_t)dims[0];
    dataset->lead[1] = detector == 2 ? (int64_t)dims[1] : 1;
    dataset->rows = (int64_t)dims[detector];
    dataset->columns = (int64_t)dims[detector + 1];
    int64_t all = 0;
    bool fits = !__builtin_mul_overflow(dataset->lead[0], dataset->lead[1], &dataset->n_positions) &&
                !__builtin_mul_overflow(dataset->rows, dataset->columns, &all) &&
                !__builtin_mul_overflow(all, dataset->n_positions, &all) && !__builtin_mul_overflow(all, INT64_C(8), &all);
    if (!fits || all == 0)
        return PS_FAIL(error, PS_E_INPUT, "%s:%s: found the shape %lld x %lld x %lld x %lld (rank %d), which holds no counts or too many",
                       dataset->path, dataset->name, (long long)dims[0], (long long)dims[1], (long long)dims[2], (long long)dims[3],
                       dataset->rank);
    return PS_OK;
}

static ps_code read_type(ps_hdf5_dataset *dataset, bool *converted, ps_error *error) {
    hid_t type = H5Dget_type(dataset->dataset);
    if (type < 0) return hdf5_failed(dataset, "cannot read the element type", error);
    bool known = ps_hdf5_dtype(type, &dataset->dtype, &dataset->big_endian, converted);
    dataset->stored_bytes = H5Tget_size(type);
    if (known && dataset->stored_bytes == 8 && H5Tget_class(type) == H5T_INTEGER)
        dataset->stored = H5Tget_sign(type) == H5T_SGN_2 ? PS_FROM_I64 : PS_FROM_U64;
    char kind[64];
    ps_hdf5_type_name(type, kind, sizeof kind);
    H5Tclose(type);
    if (!known)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s:%s: holds %s; counts are integers of 8, 16, 32 or 64 bits or floating-point numbers of 16, 32 or 64 bits: "
                       "convert them",
                       dataset->path, dataset->name, kind);
    return PS_OK;
}

/* Registered filters that detectors and programs use; "": not one of them. */
static const char *filter_name(H5Z_filter_t filter) {
    static const struct {
        int number;
        const char *name;
    } known[] = {{1, "deflate"},       {2, "shuffle"},
                 {3, "fletcher32"},    {4, "szip"},
                 {5, "nbit"},          {6, "scaleoffset"},
                 {305, "LZO"},         {307, "bzip2"},
                 {32000, "LZF"},       {32001, "Blosc"},
                 {32002, "MAFISC"},    {32003, "Snappy"},
                 {32004, "LZ4"},       {32008, "bitshuffle"},
                 {32009, "SPDP"},      {32012, "B3D"},
                 {32013, "ZFP"},       {32014, "FPZip"},
                 {32015, "Zstandard"}, {32017, "SZ"},
                 {32019, "JPEG"},      {32022, "granular BitRound"},
                 {32024, "SZ3"},       {32025, "Delta-Rice"},
                 {32026, "Blosc2"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == (int)filter) return known[i].name;
    return "";
}

static ps_code refuse_filter(const ps_hdf5_dataset *dataset, H5Z_filter_t filter, const char *name, ps_error *error) {
    const char *known = filter_name(filter), *called = *known ? known : name;
    return PS_FAIL(error, PS_E_INPUT,
                   "%s:%s: compressed with HDF5 filter %d%s%s%s, which this HDF5 library does not have; install its plugin and set "
                   "HDF5_PLUGIN_PATH, or repack the file with bitshuffle-LZ4",
                   dataset->path, dataset->name, (int)filter, *called ? " (" : "", called, *called ? ")" : "");
}

/* Adds "name + name" for people; fails when HDF5 would need a filter that is not there. */
static ps_code describe_filters(ps_hdf5_dataset *dataset, hid_t plist, ps_error *error) {
    int n = H5Pget_nfilters(plist);
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        unsigned flags = 0, config = 0, values[8];
        size_t n_values = 8;
        char name[64] = "";
        H5Z_filter_t filter = H5Pget_filter2(plist, (unsigned)i, &flags, &n_values, values, sizeof name, name, &config);
        name[strcspn(name, ";")] = '\0';
        if (H5Zfilter_avail(filter) <= 0) return refuse_filter(dataset, filter, name, error);
        if (!name[0]) snprintf(name, sizeof name, "%s", filter_name(filter));
        if (!name[0]) snprintf(name, sizeof name, "filter %d", (int)filter);
        int wrote = snprintf(dataset->compression + used, sizeof dataset->compression - used, "%s%s", used ? "+" : "", name);
        used += wrote > 0 ? (size_t)wrote : 0;
        if (used >= sizeof dataset->compression) used = sizeof dataset->compression - 1;
    }
    return PS_OK;
}

enum { BITSHUFFLE_WITH_LZ4 = 2, N_BITSHUFFLE_VALUES = 5 };

/* Whether this program unpacks the chunks itself. */
static bool choose_own_decoder(ps_hdf5_dataset *dataset, hid_t plist) {
    int n = H5Pget_nfilters(plist);
    unsigned flags = 0, config = 0, values[8] = {0};
    size_t n_values = 8;
    if (n == 0) {
        dataset->storage = PS_CHUNKS_PLAIN;
        snprintf(dataset->compression, sizeof dataset->compression, "none");
        return true;
    }
    H5Z_filter_t filter = H5Pget_filter2(plist, 0, &flags, &n_values, values, 0, NULL, &config);
    if (n == 1 && filter == PS_FILTER_LZ4) {
        dataset->storage = PS_CHUNKS_LZ4;
        snprintf(dataset->compression, sizeof dataset->compression, "lz4");
        return true;
    }
    if (n == 1 && filter == PS_FILTER_BITSHUFFLE && n_values >= N_BITSHUFFLE_VALUES && values[4] == BITSHUFFLE_WITH_LZ4 &&
        values[2] == dataset->stored_bytes) {
        dataset->storage = PS_CHUNKS_BSLZ4;
        snprintf(dataset->compression, sizeof dataset->compression, "bitshuffle-lz4");
        return true;
    }
    return false;
}

/* A user block is left to the library, for versions of it differ in whether the address counts from the file's beginning. */
static int64_t find_contiguous(const ps_hdf5_dataset *dataset) {
    hsize_t user_block = 1;
    hid_t file = H5Iget_file_id(dataset->dataset), plist = file < 0 ? -1 : H5Fget_create_plist(file);
    haddr_t at = H5Dget_offset(dataset->dataset);
    bool good = plist >= 0 && H5Pget_userblock(plist, &user_block) >= 0 && user_block == 0 && at != HADDR_UNDEF && at <= INT64_MAX;
    if (plist >= 0) H5Pclose(plist);
    if (file >= 0) H5Fclose(file);
    return good ? (int64_t)at : -1;
}

static ps_code read_layout(ps_hdf5_dataset *dataset, bool converted, ps_error *error) {
    hid_t plist = H5Dget_create_plist(dataset->dataset);
    if (plist < 0) return hdf5_failed(dataset, "cannot read the layout", error);
    ps_code code = PS_OK;
    hsize_t chunk[4] = {0};
    dataset->storage = PS_THROUGH_HDF5;
    dataset->contiguous_at = -1;
    H5D_layout_t layout = H5Pget_layout(plist);
    dataset->is_virtual = layout == H5D_VIRTUAL;
    if (layout == H5D_CHUNKED) {
        H5Pget_chunk(plist, dataset->rank, chunk);
        int detector = dataset->rank - 2;
        dataset->chunk[0] = (int64_t)chunk[0];
        dataset->chunk[1] = detector == 2 ? (int64_t)chunk[1] : 1;
        dataset->chunk[2] = (int64_t)chunk[detector];
        dataset->chunk[3] = (int64_t)chunk[detector + 1];
        if (converted || !choose_own_decoder(dataset, plist)) code = describe_filters(dataset, plist, error);
    } else {
        snprintf(dataset->compression, sizeof dataset->compression, dataset->is_virtual ? "virtual" : "none");
        bool in_file = layout == H5D_CONTIGUOUS && H5Pget_external_count(plist) == 0;
        if (in_file && H5Dget_storage_size(dataset->dataset) == 0)
            code = PS_FAIL(error, PS_E_INPUT, "%s:%s: was never written", dataset->path, dataset->name);
        else if (in_file && !converted)
            dataset->contiguous_at = find_contiguous(dataset);
    }
    H5Pclose(plist);
    return code;
}

/* A link may lead to another file: path becomes the file that really holds the dataset. */
static ps_code follow_links(ps_hdf5_dataset *dataset, ps_error *error) {
    hid_t file = H5Iget_file_id(dataset->dataset);
    ssize_t length = file < 0 ? -1 : H5Fget_name(file, NULL, 0);
    char *path = length < 0 ? NULL : malloc((size_t)length + 1);
    if (path && H5Fget_name(file, path, (size_t)length + 1) == length) {
        free(dataset->path);
        dataset->path = path;
        path = NULL;
    } else
        length = -1;
    free(path);
    if (file >= 0) H5Fclose(file);
    return length < 0 ? hdf5_failed(dataset, "cannot tell which file holds the dataset", error) : PS_OK;
}

static int64_t read_image_number(const ps_hdf5_dataset *dataset, const char *attribute) {
    double number = 0;
    bool there = H5Aexists(dataset->dataset, attribute) > 0 && ps_hdf5_attribute_number(dataset->file, dataset->name, attribute, &number) &&
                 number >= 0 && number < 0x1p53;
    return there ? (int64_t)number : 0;
}

ps_code ps_hdf5_dataset_open(const char *path, const char *name, ps_hdf5_dataset **dataset, ps_error *error) {
    ps_code code = PS_OK;
    bool converted = false;
    *dataset = NULL;
    ps_hdf5_lock();
    ps_hdf5_dataset *opened = calloc(1, sizeof *opened);
    PS_GO_ALLOC(error, opened);
    opened->file = opened->dataset = -1;
    opened->path = strdup(path);
    opened->name = strdup(name);
    PS_GO_ALLOC(error, opened->path);
    PS_GO_ALLOC(error, opened->name);
    PS_GO(ps_hdf5_open(path, &opened->file, error));
    if (!ps_hdf5_exists(opened->file, name)) {
        const char *link = ps_hdf5_refused_link();
        code = link                      ? PS_FAIL(error, PS_E_INPUT, "%s:%s: behind a link: %s", path, name, link)
               : ps_hdf5_lacked_memory() ? ps_hdf5_fail(error, "%s:%s: cannot look for it", path, name)
                                         : PS_FAIL(error, PS_E_INPUT, "%s: holds no dataset %s", path, name);
        goto done;
    }
    opened->dataset = H5Dopen2(opened->file, name, H5P_DEFAULT);
    if (opened->dataset < 0) {
        code = hdf5_failed(opened, "cannot open the dataset", error);
        goto done;
    }
    PS_GO(follow_links(opened, error));
    PS_GO(ps_hdf5_check_behind(opened->dataset, name, error));
    PS_GO(read_shape(opened, error));
    PS_GO(read_type(opened, &converted, error));
    PS_GO(read_layout(opened, converted, error));
    opened->image_low = read_image_number(opened, "image_nr_low");
    opened->image_high = read_image_number(opened, "image_nr_high");
    *dataset = opened;
    opened = NULL;
done:
    ps_hdf5_dataset_close(opened);
    ps_hdf5_unlock();
    return code;
}

void ps_hdf5_dataset_close(ps_hdf5_dataset *dataset) {
    if (!dataset) return;
    ps_chunk_index_free(dataset->index);
    ps_hdf5_lock();
    ps_hdf5_note(dataset->path, 0, 0);
    if (dataset->dataset >= 0) H5Dclose(dataset->dataset);
    if (dataset->file >= 0) H5Fclose(dataset->file);
    ps_hdf5_unlock();
    free(dataset->path);
    free(dataset->name);
    free(dataset);
}

int64_t ps_hdf5_dataset_bytes(const ps_hdf5_dataset *dataset) {
    if (dataset->is_virtual) return dataset->n_positions * dataset->rows * dataset->columns * (int64_t)dataset->stored_bytes;
    ps_hdf5_lock();
    ps_hdf5_note(dataset->path, 0, 0);
    int64_t bytes = (int64_t)H5Dget_storage_size(dataset->dataset);
    ps_hdf5_unlock();
    return bytes;
}

ps_code ps_hdf5_dataset_is_empty(ps_hdf5_dataset *dataset, bool *empty, ps_error *error) {
    *empty = false;
    if (dataset->is_virtual || dataset->chunk[0] == 0) return PS_OK; /* contiguous ones without data are refused */
    ps_hdf5_lock();
    ps_hdf5_note(dataset->path, 0, 0);
    ps_code code = ps_chunk_index_begin(dataset, error);
    if (code == PS_OK && dataset->index->tree != PS_NO_TREE)
        *empty = ps_chunk_index_is_empty(dataset->index);
    else if (code == PS_OK) {
        *empty = H5Dget_storage_size(dataset->dataset) == 0;
        if (*empty && ps_hdf5_lacked_memory()) code = hdf5_failed(dataset, "cannot tell what was written", error);
    }
    ps_hdf5_unlock();
    return code;
}

/* A block of whole or partial scan rows that is one hyperslab. counts: [lead0, lead1, rows, columns] */
static ps_code read_slab(ps_hdf5_dataset *dataset, const int64_t start[2], const int64_t extent[2], void *counts, ps_error *error) {
    hsize_t from[4] = {(hsize_t)start[0], (hsize_t)start[1], 0, 0};
    hsize_t size[4] = {(hsize_t)extent[0], (hsize_t)extent[1], (hsize_t)dataset->rows, (hsize_t)dataset->columns};
    if (dataset->rank == 3)
        for (int i = 1; i < 3; i++) {
            from[i] = from[i + 1];
            size[i] = size[i + 1];
        }
    ps_code code = PS_OK;
    hid_t space = H5Dget_space(dataset->dataset), memory = H5Screate_simple(dataset->rank, size, NULL);
    if (space < 0 || memory < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, size, NULL) < 0 ||
        H5Dread(dataset->dataset, ps_hdf5_native(dataset->dtype), memory, space, H5P_DEFAULT, counts) < 0)
        code = hdf5_failed(dataset, "cannot read", error);
    if (memory >= 0) H5Sclose(memory);
    if (space >= 0) H5Sclose(space);
    return code;
}

static ps_code read_through_hdf5(ps_hdf5_dataset *dataset, const ps_hdf5_read *read, ps_error *error) {
    size_t frame_bytes = (size_t)(dataset->rows * dataset->columns) * ps_dtype_bytes(dataset->dtype);
    if (dataset->chunk[0] > 0) PS_TRY(ps_hdf5_chunks_check(dataset, read, error));
    for (int64_t done = 0; done < read->n;) {
        int64_t at = read->first + done, left = read->n - done;
        int64_t start[2] = {at / dataset->lead[1], at % dataset->lead[1]}, extent[2] = {1, dataset->lead[1] - start[1]};
        if (extent[1] > left) extent[1] = left;
        if (start[1] == 0 && extent[1] == dataset->lead[1]) extent[0] = left / dataset->lead[1];
        ps_code code = read_slab(dataset, start, extent, (uint8_t *)read->counts + (size_t)done * frame_bytes, error);
        if (code != PS_OK) {
            ps_error_prefix(error, "patterns %" PRId64 " to %" PRId64, read->frame_offset + at,
                            read->frame_offset + at + extent[0] * extent[1] - 1);
            return code;
        }
        done += extent[0] * extent[1];
    }
    return PS_OK;
}

ps_code ps_hdf5_dataset_read(ps_hdf5_dataset *dataset, const ps_hdf5_read *read, ps_error *error) {
    if (read->n == 0) return PS_OK;
    if (dataset->storage != PS_THROUGH_HDF5) return ps_hdf5_chunks_read(dataset, read, error);
    ps_hdf5_lock();
    ps_hdf5_note(dataset->path, read->frame_offset + read->first, read->n);
    /* The library reads and unpacks in one call; what its filters unpack takes most of that. */
    ps_code code = PS_BUSY(dataset->chunk[0] > 0 ? PS_RESOURCE_DECODE : PS_RESOURCE_FILE, read_through_hdf5(dataset, read, error));
    ps_hdf5_unlock();
    return code;
}
