#include "input/formats/hdf5_axes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "hdf5/failure.h"
#include "hdf5/util.h"
#include "input/formats/axis_order.h"
#include "input/formats/hyperspy.h"

enum { MOST_AXES = 4, NAME_BYTES = 64 };

/* Rank of the dataset, and its shape; 0: cannot be told. */
static int shape_of(hid_t file, const char *name, hsize_t shape[MOST_AXES]) {
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = dataset < 0 ? -1 : H5Dget_space(dataset);
    ps_hdf5_note_lack(space >= 0);
    int rank = space < 0 ? 0 : H5Sget_simple_extent_ndims(space);
    if (rank < 3 || rank > MOST_AXES || H5Sget_simple_extent_dims(space, shape, NULL) < 0) rank = 0;
    if (space >= 0) H5Sclose(space);
    if (dataset >= 0) H5Dclose(dataset);
    return rank;
}

/* ---- lists of names ---- */

/* One text that lists names: [\"y\", \"x\"] or y:x or y,x. */
static int split_names(const char *text, int most, char (*names)[NAME_BYTES]) {
    int n = 0;
    while (*text) {
        text += strspn(text, " []\"',:");
        size_t length = strcspn(text, "[]\"',:");
        if (length == 0) break;
        if (n == most) return n + 1;
        snprintf(names[n++], NAME_BYTES, "%.*s", (int)(length < NAME_BYTES ? length : NAME_BYTES - 1), text);
        text += length;
    }
    return n;
}

/* Texts of variable or fixed length, [n] of them. */
static int read_names(hid_t attribute, hid_t type, hssize_t n, char (*names)[NAME_BYTES]) {
    bool variable = H5Tis_variable_str(type) > 0;
    size_t stored = variable ? sizeof(char *) : H5Tget_size(type);
    char *values = calloc((size_t)n, stored + 1);
    bool good = values && ps_hdf5_note_lack(H5Aread(attribute, type, values) >= 0);
    for (hssize_t i = 0; good && i < n; i++) {
        const char *value = variable ? ((char **)(void *)values)[i] : values + (size_t)i * stored;
        size_t most = variable || stored >= NAME_BYTES ? NAME_BYTES - 1 : stored;
        snprintf(names[i], NAME_BYTES, "%.*s", (int)most, value ? value : "");
    }
    if (good && variable)
        for (hssize_t i = 0; i < n; i++) H5free_memory(((char **)(void *)values)[i]);
    free(values);
    return good ? (int)n : 0;
}

int ps_hdf5_attribute_list(hid_t file, const char *object, const char *name, int most, char (*names)[NAME_BYTES]) {
    char text[512];
    if (ps_hdf5_attribute_text(file, object, name, text, sizeof text)) return split_names(text, most, names);
    if (!ps_hdf5_exists(file, object) || H5Aexists_by_name(file, object, name, H5P_DEFAULT) <= 0) return 0;
    hid_t attribute = H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT), type = -1, space = -1;
    int n = 0;
    if (attribute >= 0) type = H5Aget_type(attribute);
    if (attribute >= 0) space = H5Aget_space(attribute);
    ps_hdf5_note_lack(type >= 0 && space >= 0);
    hssize_t count = space < 0 ? 0 : H5Sget_simple_extent_npoints(space);
    if (type >= 0 && H5Tget_class(type) == H5T_STRING && count >= 1 && count <= most) n = read_names(attribute, type, count, names);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    return n;
}

/* The first list that has one name for each axis. */
static void name_axes(hid_t file, const char *dataset, int rank, ps_axis *axes) {
    static const char *const on_dataset[] = {"_ARRAY_DIMENSIONS", "DIMENSION_LABELS", "axes",           "dims",
                                             "dim_names",         "axis_names",       "dimension_names"};
    char names[MOST_AXES][NAME_BYTES] = {{0}}, *group = ps_path_directory(dataset);
    int n = 0;
    for (size_t i = 0; n != rank && i < sizeof on_dataset / sizeof *on_dataset; i++)
        n = ps_hdf5_attribute_list(file, dataset, on_dataset[i], MOST_AXES, names);
    if (n != rank && group) n = ps_hdf5_attribute_list(file, group, "axes", MOST_AXES, names);
    for (int i = 0; n == rank && i < rank; i++) memcpy(axes[i].name, names[i], NAME_BYTES);
    free(group);
}

/* ---- dimension scales ---- */

static void take_scale(hid_t file, hid_t scale, ps_axis *axis) {
    char path[PS_PLACE_BYTES] = "";
    double values[2];
    if (H5Iget_type(scale) != H5I_DATASET || H5Iget_name(scale, path, sizeof path) <= 0) return;
    const char *slash = strrchr(path, '/');
    if (!axis->name[0]) snprintf(axis->name, sizeof axis->name, "%.63s", slash ? slash + 1 : path);
    snprintf(axis->step.place, sizeof axis->step.place, "%s", path);
    ps_hdf5_attribute_text(file, path, "units", axis->step.unit, sizeof axis->step.unit);
    if (axis->step.unit[0] && ps_hdf5_numbers(file, path, 2, values)) axis->step.value = fabs(values[1] - values[0]);
}

/* The first scale attached to each axis, by the attribute that HDF5's dimension scales keep. */
static void read_scales(hid_t file, const char *dataset, int rank, ps_axis *axes) {
    static const char list[] = "DIMENSION_LIST";
    if (H5Aexists_by_name(file, dataset, list, H5P_DEFAULT) <= 0) return;
    hvl_t references[MOST_AXES] = {{0}};
    hid_t attribute = H5Aopen_by_name(file, dataset, list, H5P_DEFAULT, H5P_DEFAULT), type = -1, space = -1;
    hid_t wanted = H5Tvlen_create(H5T_STD_REF_OBJ);
    if (attribute >= 0) type = H5Aget_type(attribute);
    if (attribute >= 0) space = H5Aget_space(attribute);
    bool good = type >= 0 && space >= 0 && H5Tequal(type, wanted) > 0 && H5Sget_simple_extent_npoints(space) == rank &&
                H5Aread(attribute, wanted, references) >= 0;
    for (int i = 0; good && i < rank; i++) {
        hid_t scale = references[i].len > 0 ? H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT, references[i].p) : -1;
        if (scale >= 0) take_scale(file, scale, &axes[i]);
        if (scale >= 0) H5Oclose(scale);
    }
    ps_hdf5_note_lack(wanted >= 0 && type >= 0 && space >= 0);
    if (good) H5Dvlen_reclaim(wanted, space, H5P_DEFAULT, references);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (attribute >= 0) H5Aclose(attribute);
    H5Tclose(wanted);
}

ps_code ps_hdf5_axes_take(ps_reader *reader, hid_t file, const char *dataset, ps_error *error) {
    ps_axis axes[MOST_AXES];
    hsize_t shape[MOST_AXES] = {0};
    bool found = false;
    int rank = shape_of(file, dataset, shape);
    if (rank == 0) return PS_OK;
    for (int i = 0; i < MOST_AXES; i++) ps_axis_clear(&axes[i]);
    PS_TRY(ps_hyperspy_read_axes(reader, file, dataset, rank, shape, axes, &found, error));
    if (!found) {
        name_axes(file, dataset, rank, axes);
        read_scales(file, dataset, rank, axes);
    }
    PS_TRY(ps_axis_order_check(reader, axes, rank, dataset, error));
    ps_axis_take_steps(reader, axes, rank);
    return PS_OK;
}
