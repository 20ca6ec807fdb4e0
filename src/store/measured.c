#include "store/measured.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"
#include "store/internal.h"
#include "store/view.h"

enum { NAME = 64 };

static void optics_name(char name[NAME], int64_t optics, const char *what) {
    snprintf(name, NAME, "optics_%lld/%s", (long long)optics, what);
}

/* A recorded array that is all zeros was never filled. */
static bool is_filled(const double *values, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (values[i] > 0 || values[i] < 0) return true;
    return false;
}

static bool are_weights(const double *values, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!(values[i] > 0) || !isfinite(values[i])) return false;
    return n > 0;
}

/* ---- reading ---- */

static ps_code read_number(const ps_view *view, int64_t optics, const char *what, double *value, ps_error *error) {
    char name[NAME];
    optics_name(name, optics, what);
    return ps_view_numbers(view, name, 1, value, error);
}

/* values: malloc'd [n]; NULL when the file has no such dataset, or one that was never filled. */
static ps_code read_filled(const ps_view *view, int64_t optics, const char *what, int64_t n, double **values, ps_error *error) {
    char name[NAME];
    *values = NULL;
    optics_name(name, optics, what);
    if (!ps_view_has(view, name)) return PS_OK;
    double *found = malloc((size_t)n * sizeof *found);
    if (!found) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %s", name);
    ps_code code = ps_view_numbers(view, name, n, found, error);
    if (code == PS_OK && is_filled(found, n))
        *values = found;
    else
        free(found);
    return code;
}

static ps_code read_bad(const ps_view *view, int64_t optics, ps_measured *measured, ps_error *error) {
    ps_code code = PS_OK;
    char name[NAME];
    hsize_t dims[2] = {0};
    optics_name(name, optics, "bad");
    hid_t dataset = H5Dopen2(view->entry, name, H5P_DEFAULT), space = dataset < 0 ? H5I_INVALID_HID : H5Dget_space(dataset);
    if (space < 0 || H5Sget_simple_extent_ndims(space) != 2 || H5Sget_simple_extent_dims(space, dims, NULL) < 0)
        PS_GO(ps_h5_fail(error, "%s: no /entry/%s of detector rows and columns", view->path, name));
    if (optics == 0) {
        measured->detector_rows = (int64_t)dims[0];
        measured->detector_columns = (int64_t)dims[1];
    }
    if ((int64_t)dims[0] != measured->detector_rows || (int64_t)dims[1] != measured->detector_columns)
        PS_GO(PS_FAIL(error, PS_E_HDF5, "%s: /entry/%s has another shape than that of optics_0", view->path, name));
    measured->optics[optics].bad = malloc((size_t)(dims[0] * dims[1]) + 1);
    PS_GO_ALLOC(error, measured->optics[optics].bad);
    if (H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, measured->optics[optics].bad) < 0)
        code = ps_h5_fail(error, "%s: cannot read /entry/%s", view->path, name);
done:
    ps_h5_close(&space);
    ps_h5_close(&dataset);
    return code;
}

static char *read_text(const ps_view *view, int64_t optics, const char *what) {
    char name[NAME];
    optics_name(name, optics, what);
    return ps_view_text(view, name);
}

/* Weights count as recorded when the name of the backend, which is written after them, stands there too. */
static ps_code read_weights(const ps_view *view, int64_t at, ps_measured_optics *optics, ps_error *error) {
    double n_active = 0;
    PS_TRY(read_number(view, at, "n_active", &n_active, error));
    PS_TRY(read_number(view, at, "dose", &optics->dose, error));
    optics->n_active = (int64_t)n_active;
    PS_TRY(read_filled(view, at, "weights", optics->n_active, &optics->weights, error));
    char *backend = read_text(view, at, "backend");
    optics->is_prepared = backend && backend[0] && optics->weights && are_weights(optics->weights, optics->n_active);
    free(backend);
    if (optics->is_prepared) return PS_OK;
    free(optics->weights);
    optics->weights = NULL;
    return PS_OK;
}

/* Of a group whose first recording could not be read then, but perhaps came back since, the file says which one was the first that could.
 */
static ps_code read_first(const ps_view *view, int64_t at, ps_measured_optics *optics, ps_error *error) {
    char name[NAME];
    double first = -1.0;
    optics_name(name, at, "first_frame");
    optics->first = -1;
    if (!ps_view_has(view, name)) return PS_OK;
    PS_TRY(read_number(view, at, "first_frame", &first, error));
    if (!(first >= 0.0) || !(first < (double)view->n_frames))
        return PS_FAIL(error, PS_E_HDF5, "%s: /entry/%s is %g, expected one of %lld frames", view->path, name, first,
                       (long long)view->n_frames);
    optics->first = (int64_t)first;
    return PS_OK;
}

static ps_code read_optics(const ps_view *view, int64_t at, ps_measured *measured, ps_error *error) {
    ps_measured_optics *optics = &measured->optics[at];
    optics->used = read_text(view, at, "used");
    optics->origin = read_text(view, at, "origin");
    if (!optics->used || !optics->origin) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics");
    PS_TRY(read_bad(view, at, measured, error));
    PS_TRY(read_first(view, at, optics, error));
    int64_t n_pixels = measured->detector_rows * measured->detector_columns;
    PS_TRY(read_filled(view, at, "mean_pattern", n_pixels, &optics->mean_pattern, error));
    return read_weights(view, at, optics, error);
}

static ps_code read_seen(const ps_view *view, ps_measured *measured, ps_error *error) {
    static const char *const columns[] = {"frames/disc_row", "frames/disc_column", "frames/disc_radius", "frames/n_hot", "frames/n_dead"};
    enum { N = sizeof columns / sizeof *columns };
    ps_code code = PS_OK;
    size_t n = (size_t)view->n_frames;
    for (int k = 0; k < N; k++)
        if (!ps_view_has(view, columns[k])) return PS_OK;
    double *values = malloc(n * N * sizeof *values + 1);
    measured->seen = calloc(n + 1, sizeof *measured->seen);
    PS_GO_ALLOC(error, values);
    PS_GO_ALLOC(error, measured->seen);
    for (int k = 0; k < N; k++) PS_GO(ps_view_numbers(view, columns[k], view->n_frames, values + (size_t)k * n, error));
    for (size_t i = 0; i < n; i++)
        measured->seen[i] = (ps_frame_seen){.disc_center_px = {values[i], values[n + i]},
                                            .disc_radius_px = values[2 * n + i],
                                            .n_hot = (int64_t)values[3 * n + i],
                                            .n_dead = (int64_t)values[4 * n + i]};
done:
    free(values);
    return code;
}

static ps_code read_frames(const ps_view *view, ps_measured *measured, ps_error *error) {
    ps_code code = PS_OK;
    size_t n = (size_t)view->n_frames;
    double *optics = malloc(n * sizeof *optics), *checksums = malloc(n * sizeof *checksums);
    measured->n_frames = view->n_frames;
    measured->optics_of = malloc(n * sizeof *measured->optics_of);
    PS_GO_ALLOC(error, optics);
    PS_GO_ALLOC(error, checksums);
    PS_GO_ALLOC(error, measured->optics_of);
    PS_GO(ps_view_numbers(view, "frames/optics", view->n_frames, optics, error));
    PS_GO(ps_view_numbers(view, "frames/source_crc32", view->n_frames, checksums, error));
    PS_GO(ps_view_texts(view, "frames/source", view->n_frames, &measured->sources, error));
    for (size_t i = 0; i < n; i++) {
        int64_t at = measured->optics_of[i] = (int64_t)optics[i];
        if (at < 0 || at >= measured->n_optics)
            PS_GO(PS_FAIL(error, PS_E_HDF5, "%s: frame %zu is of optics %lld, of %lld", view->path, i, (long long)at,
                          (long long)measured->n_optics));
        if (checksums[i] > 0 && measured->optics[at].first < 0) measured->optics[at].first = (int64_t)i;
        measured->optics[at].was_readable |= checksums[i] > 0;
        measured->optics[at].has_done |= view->states[i] == PS_FRAME_DONE;
    }
done:
    free(checksums);
    free(optics);
    return code;
}

ps_code ps_measured_read(const char *path, ps_measured **read, ps_error *error) {
    ps_code code = PS_OK;
    ps_view view;
    ps_measured *measured = calloc(1, sizeof *measured);
    *read = NULL;
    if (!measured) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for what an output says");
    ps_h5_quiet();
    code = ps_view_open(path, &view, error);
    if (code != PS_OK) {
        free(measured);
        return code;
    }
    measured->path = strdup(path);
    measured->optics = calloc((size_t)view.n_optics + 1, sizeof *measured->optics);
    PS_GO_ALLOC(error, measured->path);
    PS_GO_ALLOC(error, measured->optics);
    measured->n_optics = view.n_optics;
    if (view.n_optics == 0)
        PS_GO(PS_FAIL(error, PS_E_ARGUMENT, "%s: holds no optics: it is no output of a reconstruction and cannot be gone on with", path));
    for (int64_t i = 0; i < view.n_optics; i++) PS_GO(read_optics(&view, i, measured, error));
    PS_GO(read_frames(&view, measured, error));
    PS_GO(read_seen(&view, measured, error));
    *read = measured;
    measured = NULL;
done:
    ps_view_close(&view);
    ps_measured_free(measured);
    return code;
}

void ps_measured_free(ps_measured *measured) {
    if (!measured) return;
    for (int64_t i = 0; i < measured->n_optics; i++) {
        ps_measured_optics *optics = &measured->optics[i];
        free(optics->used);
        free(optics->origin);
        free(optics->bad);
        free(optics->mean_pattern);
        free(optics->weights);
    }
    free(measured->optics);
    ps_view_free_texts(measured->sources, measured->n_frames);
    free(measured->optics_of);
    free(measured->seen);
    free(measured->path);
    free(measured);
}

ps_measured_optics *ps_measured_of_frame(const ps_measured *measured, int64_t frame) {
    if (!measured || frame < 0 || frame >= measured->n_frames) return NULL;
    return &measured->optics[measured->optics_of[frame]];
}

/* ---- writing ---- */

static ps_code add_pattern(const ps_output *output, int64_t optics, const ps_output_optics *given, ps_error *error) {
    ps_code code = PS_OK;
    char name[NAME];
    int64_t n = given->plan->desc.detector_rows * given->plan->desc.detector_columns;
    double *before = malloc((size_t)n * sizeof *before);
    hid_t dataset = H5I_INVALID_HID;
    PS_GO_ALLOC(error, before);
    optics_name(name, optics, "mean_pattern");
    if (H5Lexists(output->entry, name, H5P_DEFAULT) <= 0) goto done;
    dataset = H5Dopen2(output->entry, name, H5P_DEFAULT);
    if (dataset < 0 || H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, before) < 0)
        PS_GO(ps_h5_fail(error, "%s: cannot read /entry/%s", output->path, name));
    if (!is_filled(before, n) && H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, given->mean_pattern) < 0)
        code = ps_h5_fail(error, "%s: cannot write /entry/%s", output->path, name);
done:
    ps_h5_close(&dataset);
    free(before);
    return code;
}

ps_code ps_measured_add_patterns(const ps_output *output, const ps_output_spec *spec, ps_error *error) {
    for (int64_t i = 0; i < spec->n_optics; i++)
        if (spec->optics[i].mean_pattern) PS_TRY(add_pattern(output, i, &spec->optics[i], error));
    return ps_output_sync(output, error);
}
