/* Any HDF5 file: the dataset named behind ":/", or the only one of rank 3 or 4 with numbers in it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/behind.h"
#include "hdf5/element_type.h"
#include "hdf5/failure.h"
#include "hdf5/linked_file.h"
#include "hdf5/util.h"
#include "input/formats/formats.h"
#include "input/formats/hdf5_axes.h"
#include "input/formats/hdf5_common.h"
#include "input/formats/probe_list.h"
#include "input/name_list.h"
#include "input/series.h"

static bool probe(const char *path, const char *dataset) {
    (void)dataset;
    return ps_hdf5_is_file(path);
}

/* Datasets by what is in them. */
typedef struct {
    ps_name_list counts; /* of rank 3 or 4 */
    char other[200];     /* the first one of rank 3 or 4 that holds something else: "/x holds text" */
} found_datasets;

static void describe_other(const char *name, hid_t type, found_datasets *found) {
    char kind[64];
    if (found->other[0]) return;
    ps_hdf5_type_name(type, kind, sizeof kind);
    snprintf(found->other, sizeof found->other, "/%.100s holds %s", name, kind);
}

static bool holds_counts(hid_t location, const char *name, found_datasets *found) {
    hid_t dataset = H5Dopen2(location, name, H5P_DEFAULT);
    if (!ps_hdf5_note_lack(dataset >= 0)) return false;
    if (ps_hdf5_check_behind(dataset, name, NULL) != PS_OK) { /* opening it will tell why */
        H5Dclose(dataset);
        return true;
    }
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    ps_dtype dtype;
    bool big_endian, converted;
    bool shaped = (rank == 3 || rank == 4) && type >= 0, good = shaped && ps_hdf5_dtype(type, &dtype, &big_endian, &converted);
    if (shaped && !good) describe_other(name, type, found);
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    H5Dclose(dataset);
    return good;
}

static herr_t collect_candidate(hid_t object, const char *name, const H5O_info_t *info, void *target) {
    found_datasets *found = target;
    if (info->type != H5O_TYPE_DATASET || !holds_counts(object, name, found)) return 0;
    return ps_name_list_add(&found->counts, name) == PS_OK ? 0 : -1;
}

static ps_code refuse_empty(const char *path, const char *other, ps_error *error) {
    char *master = ps_linked_file_master(path);
    ps_code code = PS_FAIL(error, PS_E_INPUT, "%s: an HDF5 file without a dataset of counts of rank 3 or 4%s%s%s%s", path,
                           *other ? ": " : "", other, master ? "; the recording is the master beside it: " : "", master ? master : "");
    free(master);
    return code;
}

/* A data file of a master, read by itself. */
static void note_master(ps_reader *reader) {
    char *master = ps_linked_file_master(reader->path);
    if (master)
        ps_reader_note(
            reader, "warning: a part of a recording? The whole of it, its mask and its instrument are in the master beside it, %s", master);
    free(master);
}

/* *dataset: malloc'd, "/..." */
static ps_code find_only_dataset(const char *path, hid_t file, char **dataset, ps_error *error) {
    ps_code code = PS_OK;
    found_datasets found = {0};
    if (H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, collect_candidate, &found, H5O_INFO_BASIC) < 0) {
        code = ps_hdf5_fail(error, "%s: cannot list what the file holds", path);
        goto done;
    }
    ps_name_list names = found.counts;
    if (names.n == 0) {
        code = refuse_empty(path, found.other, error);
        goto done;
    }
    ps_name_list_sort(&found.counts, ps_natural_compare);
    if (names.n > 1) {
        char list[512];
        size_t used = 0;
        for (int64_t i = 0; i < names.n && used < sizeof list; i++)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s/%s", i ? ", " : "", names.names[i]);
        code = PS_FAIL(error, PS_E_INPUT, "%s: holds %" PRId64 " datasets of rank 3 or 4; name one as %s:/DATASET: %s", path, names.n, path,
                       list);
        goto done;
    }
    if (asprintf(dataset, "/%s", names.names[0]) < 0) {
        *dataset = NULL;
        code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a name");
    }
done:
    ps_name_list_free(&found.counts);
    return code;
}

static ps_code open_dataset(const char *path, const char *dataset, const ps_reader_options *options, ps_reader **reader, ps_error *error) {
    ps_code code = PS_OK;
    ps_hdf5_reader *r = NULL;
    hid_t file = -1;
    char *found = NULL;
    ps_hdf5_lock();
    PS_GO(ps_hdf5_reader_create(&ps_reader_hdf5, path, &r, error));
    PS_GO(ps_hdf5_open(path, &file, error));
    if (!dataset) PS_GO(find_only_dataset(path, file, &found, error));
    snprintf(r->base.info.format, sizeof r->base.info.format, "HDF5");
    r->segments.allow_partial = options->allow_partial;
    r->segments.channels = options->channel > 0;
    r->segments.channel = options->channel;
    PS_GO(ps_segments_add(&r->segments, path, dataset ? dataset : found, &r->base.info, error));
    ps_hdf5_note(path, 0, 0); /* the dataset may be linked from another file */
    if (!r->segments.channels) PS_GO(ps_hdf5_axes_take(&r->base, file, dataset ? dataset : found, error));
    PS_GO(ps_probe_list_check(&r->base, file, options, error));
    if (!dataset) note_master(&r->base);
    *reader = &r->base;
    r = NULL;
done:
    free(found);
    if (file >= 0) H5Fclose(file);
    if (r) ps_reader_close(&r->base);
    ps_hdf5_unlock();
    return code;
}

const ps_reader_ops ps_reader_hdf5 = {
    .name = "HDF5",
    .probe = probe,
    .open = open_dataset,
    .close = ps_hdf5_reader_close,
    .read = ps_hdf5_reader_read,
    .mask = ps_hdf5_reader_mask,
    .data_bytes = ps_hdf5_reader_bytes,
};
