/* EMD files: 1.0 and py4DSTEM (groups marked by emd_group_type, axes in dim0 ... dim3, calibration in a metadata bundle), older ones (axes
 * in dim1 ... dim4), and bare ones that only have the group structure .../datacubes/NAME/data. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "input/hdf5_behind.h"
#include "input/hdf5_util.h"
#include "input/name_list.h"
#include "input/reader_formats.h"
#include "input/reader_hdf5_common.h"
#include "input/units.h"
#include "optics/optics.h"

enum { PATH_BYTES = 512 };

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
    ps_hdf5_note_lack(H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, collect_cube, cubes) >= 0);
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

/* A number with its unit and where it stands. */
typedef struct {
    double value; /* NAN: not there */
    char unit[32], place[PATH_BYTES];
} quantity;

/* The spacing of axis 0 ... 3 from its dim dataset. */
static quantity read_axis(hid_t file, const char *group, int axis) {
    quantity q = {.value = NAN};
    double values[2];
    char first[PATH_BYTES];
    snprintf(first, sizeof first, "%s/dim0", group);
    int number = ps_hdf5_exists(file, first) ? axis : axis + 1;
    if (snprintf(q.place, sizeof q.place, "%s/dim%d", group, number) >= PATH_BYTES) return q;
    if (ps_hdf5_numbers(file, q.place, 2, values)) q.value = fabs(values[1] - values[0]);
    ps_hdf5_attribute_text(file, q.place, "units", q.unit, sizeof q.unit);
    return q;
}

/* "R_pixel_size" and "R_pixel_units" of a calibration group, as datasets or attributes. */
static quantity read_calibration(hid_t file, const char *group, const char *size, const char *units) {
    quantity q = {.value = NAN};
    char unit_path[PATH_BYTES];
    snprintf(q.place, sizeof q.place, "%s/%s", group, size);
    snprintf(unit_path, sizeof unit_path, "%s/%s", group, units);
    if (!ps_hdf5_number(file, q.place, &q.value)) ps_hdf5_attribute_number(file, group, size, &q.value);
    if (!ps_hdf5_text(file, unit_path, q.unit, sizeof q.unit)) ps_hdf5_attribute_text(file, group, units, q.unit, sizeof q.unit);
    return q;
}

static double in_A(const quantity *q) {
    return q->value > 0 ? q->value * ps_unit_length_A(q->unit) : NAN;
}

static double in_mrad(const quantity *q, double voltage_V) {
    double angle = ps_unit_angle_mrad(q->unit), reciprocal = ps_unit_reciprocal_inv_A(q->unit);
    if (!(q->value > 0)) return NAN;
    if (!isnan(angle)) return q->value * angle;
    return voltage_V > 0 ? q->value * reciprocal * ps_wavelength_A(voltage_V) * 1e3 : NAN;
}

/* Some programs write Angstrom under the name nm. */
static void check_nm(ps_reader *reader, const quantity *q, double step_A) {
    enum { LONGEST_STEP_A = 50 };
    if (ps_unit_length_A(q->unit) == 10 && step_A > LONGEST_STEP_A)
        ps_reader_note(reader, "warning: %s says a scan step of %g nm; was %g Angstrom meant? Give the scan step in the optics if so",
                       q->place, q->value, q->value);
}

static void take_step(ps_reader *reader, const quantity rows_columns[2]) {
    ps_recording *info = &reader->info;
    double step[2] = {in_A(&rows_columns[0]), in_A(&rows_columns[1])};
    if (!isnan(info->scan_step_A[0]) || isnan(step[0]) || isnan(step[1])) return;
    memcpy(info->scan_step_A, step, sizeof step);
    snprintf(info->step_place, sizeof info->step_place, "%.79s", rows_columns[0].place);
    check_nm(reader, &rows_columns[0], step[0]);
}

static void take_pitch(ps_reader *reader, const quantity rows_columns[2]) {
    ps_recording *info = &reader->info;
    double pitch[2] = {in_mrad(&rows_columns[0], info->voltage_V), in_mrad(&rows_columns[1], info->voltage_V)};
    static const char no_angle[] = "without a voltage in the file this is no angle";
    bool reciprocal = !isnan(ps_unit_reciprocal_inv_A(rows_columns[0].unit)) && rows_columns[0].value > 0;
    if (isnan(pitch[0]) && reciprocal && !strstr(ps_reader_notes(reader), no_angle)) /* said once, of the first place */
        ps_reader_note(reader, "%s: a detector pixel is %g %s; %s", rows_columns[0].place, rows_columns[0].value, rows_columns[0].unit,
                       no_angle);
    if (!isnan(info->detector_pitch_mrad[0]) || isnan(pitch[0]) || isnan(pitch[1])) return;
    memcpy(info->detector_pitch_mrad, pitch, sizeof pitch);
    snprintf(info->pitch_place, sizeof info->pitch_place, "%.79s", rows_columns[0].place);
}

/* Files that keep the detector's axes in front of the scan's say so in their units. */
static ps_code refuse_detector_first(const ps_reader *reader, const quantity axes[4], ps_error *error) {
    bool detector_first = !isnan(ps_unit_reciprocal_inv_A(axes[0].unit)) || !isnan(ps_unit_angle_mrad(axes[0].unit));
    if (!detector_first || isnan(ps_unit_length_A(axes[2].unit))) return PS_OK;
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: its axes are detector row, detector column, scan row, scan column (units %s and %s); expected the scan's axes "
                   "first: save it transposed",
                   reader->path, axes[0].unit, axes[2].unit);
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
    H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, look_for_voltage, &s);
    if (isnan(s.volts)) return;
    if (s.volts < BELOW_IS_KV) {
        ps_reader_note(reader, "warning: %s says %g, taken as kV", s.place, s.volts);
        s.volts *= 1000;
    }
    reader->info.voltage_V = s.volts;
    memcpy(reader->info.voltage_place, s.place, sizeof s.place);
}

static ps_code read_metadata(ps_reader *reader, hid_t file, const char *cube, ps_error *error) {
    quantity axes[4];
    ps_code code = PS_OK;
    char *group = ps_path_directory(cube), *root = group ? ps_path_directory(group) : NULL;
    PS_GO_ALLOC(error, root);
    for (int i = 0; i < 4; i++) axes[i] = read_axis(file, group, i);
    PS_GO(refuse_detector_first(reader, axes, error));
    read_voltage(reader, file);
    for (int i = 0; i < 3; i++) {
        char place[PATH_BYTES];
        if (i == 2)
            snprintf(place, sizeof place, "/4DSTEM_experiment/metadata/metadata_0/calibration");
        else
            snprintf(place, sizeof place, "%s/metadatabundle/calibration", i == 0 ? root : group);
        quantity step = read_calibration(file, place, "R_pixel_size", "R_pixel_units"),
                 pitch = read_calibration(file, place, "Q_pixel_size", "Q_pixel_units");
        take_step(reader, (quantity[2]){step, step});
        take_pitch(reader, (quantity[2]){pitch, pitch});
    }
    take_step(reader, axes);
    take_pitch(reader, axes + 2);
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
};
