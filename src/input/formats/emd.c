/* EMD files: 1.0 and py4DSTEM (groups marked by emd_group_type, axes in dim0 ... dim3, calibration in a metadata bundle), older ones (axes
 * in dim1 ... dim4), and bare ones that only have the group structure .../datacubes/NAME/data. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "hdf5/behind.h"
#include "hdf5/failure.h"
#include "hdf5/flag.h"
#include "hdf5/util.h"
#include "input/formats/axis_order.h"
#include "input/formats/formats.h"
#include "input/formats/hdf5_axes.h"
#include "input/formats/hdf5_common.h"
#include "input/formats/probe_list.h"
#include "input/name_list.h"

enum { PATH_BYTES = PS_PLACE_BYTES };

static bool has_rank(hid_t location, const char *path, int rank) {
    hid_t dataset = H5Dopen2(location, path, H5P_DEFAULT);
    bool safe = dataset >= 0 && ps_hdf5_check_behind(dataset, path, NULL) == PS_OK;
    hid_t space = safe ? H5Dget_space(dataset) : -1;
    ps_hdf5_note_lack(space >= 0);
    bool has = space >= 0 && H5Sget_simple_extent_ndims(space) == rank;
    if (space >= 0) H5Sclose(space);
    if (dataset >= 0) H5Dclose(dataset);
    return has;
}

/* A group that holds a data cube by its mark or by its place. */
static bool is_cube_group(hid_t file, const char *group) {
    if (H5Aexists_by_name(file, group, "emd_group_type", H5P_DEFAULT) > 0) return true;
    const char *slash = strrchr(group, '/');
    static const char place[] = "datacubes";
    size_t n = sizeof place - 1;
    return slash && (size_t)(slash - group) >= n && strncmp(slash - n, place, n) == 0;
}

static herr_t collect_cube(hid_t file, const char *name, const H5O_info_t *info, void *list) {
    static const char *const datasets[] = {"data", "datacube"};
    if (info->type != H5O_TYPE_GROUP || strcmp(name, ".") == 0 || !is_cube_group(file, name)) return 0;
    for (int i = 0; i < 2; i++) {
        char path[PATH_BYTES];
        int n = snprintf(path, sizeof path, "%s/%s", name, datasets[i]);
        if (n < PATH_BYTES && ps_hdf5_exists(file, path) && has_rank(file, path, 4)) return ps_name_list_add(list, path) == PS_OK ? 0 : -1;
    }
    return 0;
}

static void list_cubes(hid_t file, ps_name_list *cubes) {
    ps_hdf5_note_lack(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, collect_cube, cubes, H5O_INFO_BASIC) >= 0);
}

static bool names_cube(hid_t file, const char *dataset) {
    char *group = ps_path_directory(dataset);
    bool is = group && strcmp(group, "/") != 0 && ps_hdf5_exists(file, group) && ps_hdf5_exists(file, dataset) &&
              is_cube_group(file, group) && has_rank(file, dataset, 4);
    free(group);
    return is;
}

static bool probe(const char *path, const char *dataset) {
    hid_t file = -1;
    bool found = false;
    ps_name_list cubes = {0};
    if (!ps_hdf5_is_file(path)) return false;
    ps_hdf5_lock();
    if (ps_hdf5_open(path, &file, NULL) == PS_OK) {
        if (dataset)
            found = names_cube(file, dataset);
        else
            list_cubes(file, &cubes);
        found |= cubes.n > 0;
        H5Fclose(file);
    }
    ps_hdf5_unlock();
    ps_name_list_free(&cubes);
    return found;
}

/* *cube: malloc'd, "/..." */
static ps_code choose_cube(const char *path, hid_t file, const char *dataset, char **cube, ps_error *error) {
    ps_name_list cubes = {0};
    ps_code code = PS_OK;
    if (dataset)
        *cube = strdup(dataset);
    else {
        list_cubes(file, &cubes);
        if (cubes.n > 1)
            code = PS_FAIL(error, PS_E_INPUT, "%s: holds %" PRId64 " data cubes; name one as %s:/%s (the next is /%s)", path, cubes.n, path,
                           cubes.names[0], cubes.names[1]);
        else
            *cube = ps_text_format("/%s", cubes.names[0]);
    }
    ps_name_list_free(&cubes);
    if (code == PS_OK && !*cube) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a name");
    return code;
}

/* Name and spacing of axis 0 ... 3 from its dim dataset. */
static void read_axis(hid_t file, const char *group, int number, ps_axis *axis) {
    ps_quantity *q = &axis->step;
    double values[2];
    char first[PATH_BYTES];
    ps_axis_clear(axis);
    snprintf(first, sizeof first, "%s/dim0", group);
    if (!ps_hdf5_exists(file, first)) number++;
    if (snprintf(q->place, sizeof q->place, "%s/dim%d", group, number) >= (int)sizeof q->place) return;
    if (ps_hdf5_numbers(file, q->place, 2, values)) q->value = fabs(values[1] - values[0]);
    ps_hdf5_attribute_text(file, q->place, "units", q->unit, sizeof q->unit);
    ps_hdf5_attribute_text(file, q->place, "name", axis->name, sizeof axis->name);
}

/* A number of a calibration group, as dataset or attribute; false: not there. */
static bool read_number(hid_t file, const char *group, const char *name, double *value) {
    char place[PATH_BYTES + 64];
    snprintf(place, sizeof place, "%s/%s", group, name);
    return ps_hdf5_number(file, place, value) || ps_hdf5_attribute_number(file, group, name, value);
}

/* "R_pixel_size" and "R_pixel_units" of a calibration group, as datasets or attributes. */
static ps_quantity read_calibration(hid_t file, const char *group, const char *size, const char *units) {
    ps_quantity q = {.value = NAN};
    char unit_path[PATH_BYTES];
    snprintf(q.place, sizeof q.place, "%s/%s", group, size);
    snprintf(unit_path, sizeof unit_path, "%s/%s", group, units);
    read_number(file, group, size, &q.value);
    if (!ps_hdf5_text(file, unit_path, q.unit, sizeof q.unit)) ps_hdf5_attribute_text(file, group, units, q.unit, sizeof q.unit);
    return q;
}

/* How the scan's axes are turned and mirrored against the detector's: told, because the optics decide it. */
static void note_orientation(ps_reader *reader, hid_t file, const char *group) {
    double degrees = 0, other = 0;
    bool flip = false;
    char place[PATH_BYTES];
    if (snprintf(place, sizeof place, "%s/QR_flip", group) >= PATH_BYTES) return;
    if (read_number(file, group, "QR_rotation_degrees", &degrees)) {
        if (degrees != 0)
            ps_reader_note(reader, "warning: %s says QR_rotation_degrees %g: not used, the optics' rotation_deg is", group, degrees);
    } else if (read_number(file, group, "QR_rotation", &other) && other != 0)
        ps_reader_note(reader,
                       "warning: %s says QR_rotation %g (degrees in older, radians in newer versions of py4DSTEM): not used, the optics' "
                       "rotation_deg is",
                       group, other);
    if ((ps_hdf5_flag(file, place, NULL, &flip) || ps_hdf5_flag(file, group, "QR_flip", &flip)) && flip)
        ps_reader_note(reader,
                       "warning: %s says that detector and scan axes are flipped (QR_flip): not used, the optics' detector_transpose and "
                       "detector_flip are",
                       group);
}

/* A dataset called like an accelerating voltage, wherever it is. */
typedef struct {
    hid_t file;
    double volts;
    char place[80];
} voltage_search;

static herr_t look_for_voltage(hid_t file, const char *name, const H5O_info_t *info, void *context) {
    static const char *const names[] = {"accelerating_voltage", "beam_energy", "high_tension", "high tension", "voltage"};
    voltage_search *s = context;
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    for (int i = 0; i < 5; i++) {
        double value = NAN;
        bool found = info->type == H5O_TYPE_DATASET
                         ? strcmp(last, names[i]) == 0 && ps_hdf5_number(file, name, &value)
                         : strcmp(last, "microscope") == 0 && ps_hdf5_attribute_number(file, name, names[i], &value);
        if (!found || !(value > 0)) continue;
        s->volts = value;
        snprintf(s->place, sizeof s->place, "/%.78s", name);
        return 1;
    }
    return 0;
}

static void read_voltage(ps_reader *reader, hid_t file) {
    enum { BELOW_IS_KV = 3000 };
    voltage_search s = {.file = file, .volts = NAN};
    H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, look_for_voltage, &s, H5O_INFO_BASIC);
    if (isnan(s.volts)) return;
    if (s.volts < BELOW_IS_KV) {
        ps_reader_note(reader, "warning: %s says %g, taken as kV", s.place, s.volts);
        s.volts *= 1000;
    }
    reader->info.voltage_V = s.volts;
    memcpy(reader->info.voltage_place, s.place, sizeof s.place);
}

/* Where calibrations of the cube in `group` are kept, the most special place last; number 0 ... 2. */
static void calibration_place(const char *group, const char *root, int number, char place[PATH_BYTES]) {
    if (number == 2)
        snprintf(place, PATH_BYTES, "/4DSTEM_experiment/metadata/metadata_0/calibration");
    else
        snprintf(place, PATH_BYTES, "%s/metadatabundle/calibration", number == 0 ? root : group);
}

static ps_code read_metadata(ps_reader *reader, hid_t file, const char *cube, ps_error *error) {
    ps_axis axes[4];
    ps_code code = PS_OK;
    char *group = ps_path_directory(cube), *root = group ? ps_path_directory(group) : NULL;
    PS_GO_ALLOC(error, root);
    for (int i = 0; i < 4; i++) read_axis(file, group, i, &axes[i]);
    PS_GO(ps_axis_order_check(reader, axes, 4, group, error));
    read_voltage(reader, file);
    for (int i = 0; i < 3; i++) {
        char place[PATH_BYTES];
        calibration_place(group, root, i, place);
        ps_quantity step = read_calibration(file, place, "R_pixel_size", "R_pixel_units"),
                    pitch = read_calibration(file, place, "Q_pixel_size", "Q_pixel_units");
        ps_calibration_take_step(reader, (ps_quantity[2]){step, step});
        ps_calibration_take_pitch(reader, (ps_quantity[2]){pitch, pitch});
        if (i != 1 || strcmp(root, group) != 0) note_orientation(reader, file, place);
    }
    ps_axis_take_steps(reader, axes, 4);
    PS_GO(ps_hdf5_axes_take(reader, file, cube, error));
done:
    free(root);
    free(group);
    return code;
}

static ps_code open_cube(const char *path, const char *dataset, const ps_reader_options *options, ps_reader **reader, ps_error *error) {
    ps_code code = PS_OK;
    ps_hdf5_reader *r = NULL;
    hid_t file = -1;
    char *cube = NULL;
    ps_hdf5_lock();
    PS_GO(ps_hdf5_reader_create(&ps_reader_emd, path, &r, error));
    PS_GO(ps_hdf5_open(path, &file, error));
    PS_GO(choose_cube(path, file, dataset, &cube, error));
    snprintf(r->base.info.format, sizeof r->base.info.format, "EMD");
    r->segments.allow_partial = options->allow_partial;
    PS_GO(ps_segments_add(&r->segments, path, cube, &r->base.info, error));
    ps_hdf5_note(path, 0, 0); /* the cube may be linked from another file */
    PS_GO(read_metadata(&r->base, file, cube, error));
    PS_GO(ps_probe_list_check(&r->base, file, options, error));
    *reader = &r->base;
    r = NULL;
done:
    free(cube);
    if (file >= 0) H5Fclose(file);
    if (r) ps_reader_close(&r->base);
    ps_hdf5_unlock();
    return code;
}

const ps_reader_ops ps_reader_emd = {
    .name = "EMD",
    .probe = probe,
    .open = open_cube,
    .close = ps_hdf5_reader_close,
    .read = ps_hdf5_reader_read,
    .mask = ps_hdf5_reader_mask,
    .data_bytes = ps_hdf5_reader_bytes,
};
