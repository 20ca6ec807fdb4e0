#include "tasks/simulate/master_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "hdf5/bslz4.h"
#include "hdf5/write.h"
#include "input/name_list.h"
#include "store/publish.h"
#include "tasks/simulate/leftovers.h"
#include "tasks/simulate/partial.h"

struct ps_master_writer {
    ps_master_spec spec;
    int64_t n_positions, written; /* positions */
    hid_t file, dataset;          /* the data file in hand */
};

static const char master_ending[] = "_master.h5";

char *ps_master_data_path(const char *master_path, int64_t number) {
    int stem = (int)(strlen(master_path) - strlen(master_ending));
    return ps_text_format("%.*s_data_%06" PRId64 ".h5", stem, master_path, number);
}

static int64_t n_files(const ps_master_writer *writer) {
    return (writer->n_positions + writer->spec.positions_per_file - 1) / writer->spec.positions_per_file;
}

static hid_t type_of(ps_dtype dtype) {
    return dtype == PS_U8 ? H5T_STD_U8LE : dtype == PS_U16 ? H5T_STD_U16LE : H5T_STD_U32LE;
}

ps_code ps_master_create(const ps_master_spec *spec, ps_master_writer **writer, ps_error *error) {
    ps_code code = PS_OK;
    ps_master_writer *made = calloc(1, sizeof *made);
    PS_GO_ALLOC(error, made);
    ps_h5_quiet();
    *made = (ps_master_writer){
        .spec = *spec, .n_positions = spec->scan_rows * spec->scan_columns, .file = H5I_INVALID_HID, .dataset = H5I_INVALID_HID};
    *writer = made;
done:
    return code;
}

/* One chunk per position, filter 32008. A filter that is registered completes the two user values itself; all five are
 * written when none is. */
static ps_code chunk_properties(const ps_master_spec *spec, hid_t *properties, ps_error *error) {
    const hsize_t chunk[3] = {1, (hsize_t)spec->detector_rows, (hsize_t)spec->detector_columns};
    const unsigned all[5] = {0, 3, (unsigned)ps_dtype_bytes(spec->dtype), 0, 2}, *values = all;
    size_t n_values = 5;
    if (H5Zfilter_avail(PS_FILTER_BITSHUFFLE) > 0) {
        values = all + 3;
        n_values = 2;
    }
    *properties = H5Pcreate(H5P_DATASET_CREATE);
    if (*properties < 0 || H5Pset_chunk(*properties, 3, chunk) < 0 || H5Pset_fill_time(*properties, H5D_FILL_TIME_NEVER) < 0 ||
        H5Pset_obj_track_times(*properties, 0) < 0 ||
        H5Pset_filter(*properties, PS_FILTER_BITSHUFFLE, H5Z_FLAG_OPTIONAL, n_values, values) < 0)
        return ps_h5_fail(error, "cannot ask HDF5 for bitshuffle-LZ4 chunks");
    return PS_OK;
}

static ps_code write_integer_attribute(hid_t object, const char *name, int64_t value, ps_error *error) {
    hid_t space = H5Screate(H5S_SCALAR), attribute = H5Acreate2(object, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
    ps_code code = PS_OK;
    if (attribute < 0 || H5Awrite(attribute, H5T_NATIVE_INT64, &value) < 0) code = ps_h5_fail(error, "cannot write the attribute %s", name);
    ps_h5_close(&attribute);
    ps_h5_close(&space);
    return code;
}

static ps_code create_dataset(ps_master_writer *writer, hid_t group, int64_t n, ps_error *error) {
    ps_code code = PS_OK;
    const ps_master_spec *spec = &writer->spec;
    hid_t properties = H5I_INVALID_HID;
    const hsize_t dims[3] = {(hsize_t)n, (hsize_t)spec->detector_rows, (hsize_t)spec->detector_columns};
    hid_t space = H5Screate_simple(3, dims, NULL);
    PS_GO(chunk_properties(spec, &properties, error));
    writer->dataset = H5Dcreate2(group, "data", type_of(spec->dtype), space, H5P_DEFAULT, properties, H5P_DEFAULT);
    if (writer->dataset < 0) {
        code = ps_h5_fail(error, "%s: cannot create the counts", spec->master_path);
        goto done;
    }
    PS_GO(write_integer_attribute(writer->dataset, "image_nr_low", writer->written + 1, error));
    PS_GO(write_integer_attribute(writer->dataset, "image_nr_high", writer->written + n, error));
done:
    ps_h5_close(&space);
    ps_h5_close(&properties);
    return code;
}

/* Opens the data file that the next position begins. */
static ps_code open_data_file(ps_master_writer *writer, ps_error *error) {
    ps_code code = PS_OK;
    int64_t per_file = writer->spec.positions_per_file, left = writer->n_positions - writer->written;
    hid_t entry = H5I_INVALID_HID, data = H5I_INVALID_HID;
    char *path = ps_master_data_path(writer->spec.master_path, writer->written / per_file + 1);
    PS_GO_ALLOC(error, path);
    PS_GO(ps_partial_create(path, &writer->file, error));
    PS_GO(ps_h5_group(writer->file, "entry", "NXentry", &entry, error));
    PS_GO(ps_h5_group(entry, "data", "NXdata", &data, error));
    PS_GO(create_dataset(writer, data, left < per_file ? left : per_file, error));
done:
    ps_h5_close(&data);
    ps_h5_close(&entry);
    free(path);
    return code;
}

static ps_code close_data_file(ps_master_writer *writer, ps_error *error) {
    ps_h5_close(&writer->dataset);
    return ps_partial_close(writer->spec.master_path, &writer->file, error);
}

ps_code ps_master_append(ps_master_writer *writer, const void *stream, size_t bytes, ps_error *error) {
    int64_t in_file = writer->written % writer->spec.positions_per_file;
    if (writer->written >= writer->n_positions)
        return PS_FAIL(error, PS_E_INTERNAL, "%s: more than %" PRId64 " positions", writer->spec.master_path, writer->n_positions);
    if (in_file == 0) {
        PS_TRY(close_data_file(writer, error));
        PS_TRY(open_data_file(writer, error));
    }
    const hsize_t at[3] = {(hsize_t)in_file, 0, 0};
    if (H5Dwrite_chunk(writer->dataset, H5P_DEFAULT, 0, at, bytes, stream) < 0)
        return ps_h5_fail(error, "%s: cannot write position %" PRId64, writer->spec.master_path, writer->written);
    writer->written++;
    return PS_OK;
}

static ps_code write_unsigned(hid_t parent, const char *name, uint64_t value, ps_error *error) {
    return ps_h5_dataset(parent, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, 0, NULL, &value, error);
}

static ps_code write_mask(hid_t parent, const ps_master_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    const hsize_t dims[2] = {(hsize_t)spec->detector_rows, (hsize_t)spec->detector_columns};
    uint32_t *mask = calloc((size_t)(spec->detector_rows * spec->detector_columns), sizeof *mask);
    PS_GO_ALLOC(error, mask);
    PS_GO(ps_h5_dataset(parent, "pixel_mask", H5T_STD_U32LE, H5T_NATIVE_UINT32, 2, dims, mask, error));
done:
    free(mask);
    return code;
}

/* One trigger per scan row, as a scan generator gives them. */
static ps_code write_detector_specific(hid_t detector, const ps_master_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    PS_GO(ps_h5_group(detector, "detectorSpecific", "NXcollection", &group, error));
    PS_GO(write_unsigned(group, "ntrigger", (uint64_t)spec->scan_rows, error));
    PS_GO(write_unsigned(group, "nimages", (uint64_t)spec->scan_columns, error));
    PS_GO(write_unsigned(group, "x_pixels_in_detector", (uint64_t)spec->detector_columns, error));
    PS_GO(write_unsigned(group, "y_pixels_in_detector", (uint64_t)spec->detector_rows, error));
    PS_GO(ps_h5_text(group, "compression", 5, "bslz4", error));
    PS_GO(write_mask(group, spec, error));
done:
    ps_h5_close(&group);
    return code;
}

static ps_code write_instrument(hid_t entry, const ps_master_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hid_t instrument = H5I_INVALID_HID, beam = H5I_INVALID_HID, detector = H5I_INVALID_HID;
    PS_GO(ps_h5_group(entry, "instrument", "NXinstrument", &instrument, error));
    PS_GO(ps_h5_group(instrument, "beam", "NXbeam", &beam, error));
    PS_GO(ps_h5_number(beam, "incident_energy", spec->voltage_V, "eV", error));
    PS_GO(ps_h5_group(instrument, "detector", "NXdetector", &detector, error));
    PS_GO(write_unsigned(detector, "bit_depth_image", 8 * (uint64_t)ps_dtype_bytes(spec->dtype), error));
    PS_GO(ps_h5_text(detector, "description", strlen(spec->description), spec->description, error));
    PS_GO(write_detector_specific(detector, spec, error));
done:
    ps_h5_close(&detector);
    ps_h5_close(&beam);
    ps_h5_close(&instrument);
    return code;
}

static ps_code write_links(const ps_master_writer *writer, hid_t entry, ps_error *error) {
    ps_code code = PS_OK;
    hid_t data = H5I_INVALID_HID;
    PS_GO(ps_h5_group(entry, "data", "NXdata", &data, error));
    PS_GO(ps_h5_attribute_text(data, "signal", "data_000001", error));
    for (int64_t number = 1; number <= n_files(writer) && code == PS_OK; number++) {
        char *path = ps_master_data_path(writer->spec.master_path, number), *name = ps_text_format("data_%06" PRId64, number);
        const char *slash = path ? strrchr(path, '/') : NULL;
        if (!path || !name)
            code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for names of data files");
        else if (H5Lcreate_external(slash ? slash + 1 : path, "/entry/data/data", data, name, H5P_DEFAULT, H5P_DEFAULT) < 0)
            code = ps_h5_fail(error, "%s: cannot link %s", writer->spec.master_path, path);
        free(path);
        free(name);
    }
done:
    ps_h5_close(&data);
    return code;
}

static ps_code write_origin(hid_t entry, const ps_master_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    PS_GO(ps_h5_group(entry, "simulation", "NXcollection", &group, error));
    PS_GO(ps_h5_text(group, "job", strlen(spec->job_text), spec->job_text, error));
    PS_GO(ps_h5_text(group, "science", strlen(spec->science), spec->science, error));
    PS_GO(ps_h5_integer(group, "frame", spec->frame, error));
done:
    ps_h5_close(&group);
    return code;
}

static ps_code write_master(const ps_master_writer *writer, ps_error *error) {
    ps_code code = PS_OK;
    hid_t file = H5I_INVALID_HID, entry = H5I_INVALID_HID;
    PS_GO(ps_partial_create(writer->spec.master_path, &file, error));
    PS_GO(ps_h5_group(file, "entry", "NXentry", &entry, error));
    PS_GO(ps_h5_attribute_text(entry, "default", "data", error));
    PS_GO(write_links(writer, entry, error));
    PS_GO(write_instrument(entry, &writer->spec, error));
    PS_GO(write_origin(entry, &writer->spec, error));
done:
    ps_h5_close(&entry);
    ps_code closed = ps_partial_close(writer->spec.master_path, &file, error);
    return code == PS_OK ? closed : code;
}

/* ---- names ---- */

static bool links_data(const char *path, int64_t number) {
    hid_t file = H5I_INVALID_HID;
    char name[40];
    snprintf(name, sizeof name, "entry/data/data_%06" PRId64, number);
    if (access(path, R_OK) != 0 || ps_h5_open_read(path, &file, NULL) != PS_OK) return false;
    bool found = H5Lexists(file, "entry", H5P_DEFAULT) > 0 && H5Lexists(file, "entry/data", H5P_DEFAULT) > 0 &&
                 H5Lexists(file, name, H5P_DEFAULT) > 0;
    H5Fclose(file);
    return found;
}

/* Whether data file `number` is of the recording that is replaced: its master, or what a killed run left of that, links to it. */
static bool is_of_old(const char *master, int64_t number) {
    enum { MOST_LEFT = 9 };
    bool found = links_data(master, number);
    for (int k = 1; k <= MOST_LEFT && !found; k++) {
        char *left = ps_text_format("%s.previous-%d", master, k);
        found = left && links_data(left, number);
        free(left);
    }
    return found;
}

/* All files of the recording but the master: companions, data files, then those of an earlier, longer recording. */
static ps_code list_files(const ps_master_writer *writer, ps_name_list *files, int64_t *n_new, ps_error *error) {
    for (int i = 0; i < 2; i++)
        if (writer->spec.companions[i] && ps_name_list_add(files, writer->spec.companions[i]) != PS_OK) goto failed;
    *n_new = files->n + n_files(writer);
    for (int64_t number = 1;; number++) {
        char *path = ps_master_data_path(writer->spec.master_path, number);
        bool wanted = path && (number <= n_files(writer) || (access(path, F_OK) == 0 && is_of_old(writer->spec.master_path, number)));
        bool failed = !path || (wanted && ps_name_list_add(files, path) != PS_OK);
        free(path);
        if (failed) goto failed;
        if (!wanted) return PS_OK;
    }
failed:
    return PS_FAIL(error, PS_E_MEMORY, "%s: cannot allocate memory for names", writer->spec.master_path);
}

/* What stands there gets second names; kept[i] NULL: nothing stood there. The master is the last. */
static ps_code keep_old(const char *master, const ps_name_list *files, char **kept, ps_error *error) {
    for (int64_t i = 0; i < files->n; i++) PS_TRY(ps_publish_keep(files->names[i], &kept[i], error));
    return ps_publish_keep(master, &kept[files->n], error);
}

static void restore_old(const char *master, const ps_name_list *files, char *const *kept) {
    for (int64_t i = 0; i < files->n; i++)
        if (kept[i]) rename(kept[i], files->names[i]);
    if (kept[files->n]) rename(kept[files->n], master);
}

/* The master goes first when it replaces one, and comes last, so that it is never beside data of another run. Data files that are too
 * many go from the last one on: what a kill leaves has no gap, and the next run finds it. */
static ps_code move_in(const char *master, const ps_name_list *files, int64_t n_new, ps_error *error) {
    if (unlink(master) != 0 && errno != ENOENT) return ps_io_fail(error, errno, "%s: cannot replace", master);
    for (int64_t i = 0; i < n_new; i++) PS_TRY(ps_partial_rename(files->names[i], error));
    for (int64_t i = files->n - 1; i >= n_new; i--) unlink(files->names[i]);
    return ps_partial_rename(master, error);
}

static ps_code name_files(const ps_master_writer *writer, ps_error *error) {
    ps_code code = PS_OK;
    const char *master = writer->spec.master_path;
    ps_name_list files = {0};
    int64_t n_new = 0;
    char **kept = NULL;
    PS_GO(list_files(writer, &files, &n_new, error));
    kept = calloc((size_t)files.n + 1, sizeof *kept);
    PS_GO_ALLOC(error, kept);
    code = keep_old(master, &files, kept, error);
    if (code == PS_OK) code = move_in(master, &files, n_new, error);
    if (code == PS_OK)
        ps_leftovers_remove(master);
    else
        restore_old(master, &files, kept);
done:
    for (int64_t i = 0; kept && i <= files.n; i++) free(kept[i]);
    free(kept);
    ps_name_list_free(&files);
    return code;
}

ps_code ps_master_finish(ps_master_writer *writer, ps_error *error) {
    ps_code code = PS_OK;
    if (writer->written != writer->n_positions) {
        code = PS_FAIL(error, PS_E_INTERNAL, "%s: %" PRId64 " positions written, expected %" PRId64, writer->spec.master_path,
                       writer->written, writer->n_positions);
        goto done;
    }
    PS_GO(close_data_file(writer, error));
    PS_GO(write_master(writer, error));
    PS_GO(name_files(writer, error));
done:
    ps_master_abandon(writer); /* nothing carries a temporary name any more when all went well */
    return code;
}

void ps_master_abandon(ps_master_writer *writer) {
    if (!writer) return;
    close_data_file(writer, NULL);
    ps_partial_remove(writer->spec.master_path);
    for (int i = 0; i < 2; i++)
        if (writer->spec.companions[i]) ps_partial_remove(writer->spec.companions[i]);
    for (int64_t number = 1; number <= n_files(writer); number++) {
        char *path = ps_master_data_path(writer->spec.master_path, number);
        if (path) ps_partial_remove(path);
        free(path);
    }
    free(writer);
}
