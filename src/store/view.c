#include "store/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"
#include "store/layout.h"

bool ps_view_has(const ps_view *view, const char *name) {
    char group[64] = "";
    size_t length = strcspn(name, "/");
    if (length >= sizeof group) return false;
    memcpy(group, name, length);
    return H5Lexists(view->entry, group, H5P_DEFAULT) > 0 && (!strchr(name, '/') || H5Lexists(view->entry, name, H5P_DEFAULT) > 0);
}

bool ps_view_result(const ps_view *view, const ps_method *method, const ps_result_desc *result, char name[64]) {
    ps_result_place place = ps_layout_result(method, result);
    const char *found = ps_layout_name(view->entry, &place);
    snprintf(name, 64, "%s", found ? found : "");
    return found != NULL;
}

static ps_code open_dataset(const ps_view *view, const char *name, int64_t n, hid_t *dataset, ps_error *error) {
    *dataset = H5Dopen2(view->entry, name, H5P_DEFAULT);
    if (*dataset < 0) return ps_h5_fail(error, "%s: cannot open /entry/%s", view->path, name);
    hid_t space = H5Dget_space(*dataset);
    int64_t found = (int64_t)H5Sget_simple_extent_npoints(space);
    ps_h5_close(&space);
    if (found == n) return PS_OK;
    ps_h5_close(dataset);
    return PS_FAIL(error, PS_E_HDF5, "%s: /entry/%s has %lld elements, expected %lld", view->path, name, (long long)found, (long long)n);
}

ps_code ps_view_numbers(const ps_view *view, const char *name, int64_t n, double *values, ps_error *error) {
    hid_t dataset;
    PS_TRY(open_dataset(view, name, n, &dataset, error));
    ps_code code = PS_OK;
    if (H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        code = ps_h5_fail(error, "%s: cannot read /entry/%s", view->path, name);
    ps_h5_close(&dataset);
    return code;
}

/* Splits [n] padded texts of `width` bytes into strings. */
static ps_code split_texts(const char *padded, size_t width, int64_t n, char ***texts, ps_error *error) {
    *texts = calloc((size_t)n, sizeof **texts);
    if (!*texts) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for texts");
    for (int64_t i = 0; i < n; i++) {
        (*texts)[i] = strndup(padded + (size_t)i * width, width);
        if ((*texts)[i]) continue;
        ps_view_free_texts(*texts, n);
        *texts = NULL;
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for texts");
    }
    return PS_OK;
}

ps_code ps_view_texts(const ps_view *view, const char *name, int64_t n, char ***texts, ps_error *error) {
    ps_code code = PS_OK;
    char *padded = NULL;
    hid_t dataset = H5I_INVALID_HID, type = H5I_INVALID_HID;
    PS_GO(open_dataset(view, name, n, &dataset, error));
    type = H5Dget_type(dataset);
    if (type < 0 || H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) > 0) {
        code = PS_FAIL(error, PS_E_HDF5, "%s: /entry/%s is not a fixed-length text", view->path, name);
        goto done;
    }
    size_t width = H5Tget_size(type);
    padded = malloc((size_t)n * width);
    PS_GO_ALLOC(error, padded);
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, padded) < 0) {
        code = ps_h5_fail(error, "%s: cannot read /entry/%s", view->path, name);
        goto done;
    }
    PS_GO(split_texts(padded, width, n, texts, error));
done:
    free(padded);
    ps_h5_close(&type);
    ps_h5_close(&dataset);
    return code;
}

void ps_view_free_texts(char **texts, int64_t n) {
    for (int64_t i = 0; texts && i < n; i++) free(texts[i]);
    free(texts);
}

char *ps_view_text(const ps_view *view, const char *name) {
    char **texts = NULL;
    if (!ps_view_has(view, name) || ps_view_texts(view, name, 1, &texts, NULL) != PS_OK) return strdup("");
    char *text = texts[0];
    free(texts);
    return text;
}

ps_code ps_view_image(const ps_view *view, const char *name, int64_t frame, int64_t strength, float *image, ps_error *error) {
    hsize_t four[4] = {(hsize_t)frame, (hsize_t)strength, 0, 0}, count[4] = {1, 1, (hsize_t)view->rows, (hsize_t)view->columns};
    hsize_t three[3] = {(hsize_t)frame, 0, 0}, count3[3] = {1, (hsize_t)view->rows, (hsize_t)view->columns};
    hsize_t pixels = (hsize_t)view->rows * (hsize_t)view->columns;
    hid_t dataset = H5Dopen2(view->entry, name, H5P_DEFAULT), memory = H5Screate_simple(1, &pixels, NULL);
    hid_t space = dataset < 0 ? H5I_INVALID_HID : H5Dget_space(dataset);
    bool swept = space >= 0 && H5Sget_simple_extent_ndims(space) == 4;
    ps_code code = PS_OK;
    if (space < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, swept ? four : three, NULL, swept ? count : count3, NULL) < 0 ||
        H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, image) < 0)
        code = ps_h5_fail(error, "%s: cannot read frame %lld of /entry/%s", view->path, (long long)frame, name);
    ps_h5_close(&space);
    ps_h5_close(&memory);
    ps_h5_close(&dataset);
    return code;
}

/* ---- opening ---- */

static int64_t count_groups(const ps_view *view, const char *pattern, int first) {
    char name[32];
    for (int n = 0;; n++) {
        snprintf(name, sizeof name, "%s_%d", pattern, first + n);
        if (!ps_view_has(view, name)) return n;
    }
}

static int64_t length_of(const ps_view *view, const char *name) {
    hid_t dataset = H5Dopen2(view->entry, name, H5P_DEFAULT);
    hid_t space = dataset < 0 ? H5I_INVALID_HID : H5Dget_space(dataset);
    int64_t n = space < 0 ? 0 : (int64_t)H5Sget_simple_extent_npoints(space);
    ps_h5_close(&space);
    ps_h5_close(&dataset);
    return n;
}

static ps_code load_axis(const ps_view *view, const char *method, const char *axis, int64_t *n, double **values, ps_error *error) {
    char name[64];
    snprintf(name, sizeof name, "%s/%s", method, axis);
    *n = length_of(view, name);
    *values = malloc(((size_t)*n + 1) * sizeof **values);
    if (!*values) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for /entry/%s", name);
    return ps_view_numbers(view, name, *n, *values, error);
}

static bool is_automatic(const ps_view *view, const char *method) {
    char name[64];
    snprintf(name, sizeof name, "%s/strength", method);
    return H5Aexists_by_name(view->entry, name, "long_name", H5P_DEFAULT) > 0;
}

static ps_code load_method(ps_view *view, int index, ps_error *error) {
    ps_view_method *method = &view->methods[index];
    const char *name = ps_method_table[index]->name;
    int64_t n;
    method->method = ps_method_table[index];
    method->present = ps_view_has(view, name);
    method->n_strengths = 1;
    if (!method->present || method->method->results[0].axes != PS_RESULT_IMAGE_SWEEP) return PS_OK;
    method->automatic = is_automatic(view, name);
    PS_TRY(load_axis(view, name, "strength", &method->n_strengths, &method->strengths, error));
    PS_TRY(load_axis(view, name, "curve_strength", &method->n_curve, &method->curve_strengths, error));
    return method->method->has_amplitudes ? load_axis(view, name, "strength_amplitude", &n, &method->amplitudes, error) : PS_OK;
}

static ps_code load_states(ps_view *view, ps_error *error) {
    view->n_frames = length_of(view, "frames/state");
    view->states = malloc((size_t)view->n_frames);
    if (!view->states) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for frame states");
    hid_t dataset;
    PS_TRY(open_dataset(view, "frames/state", view->n_frames, &dataset, error));
    herr_t status = H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, view->states);
    ps_h5_close(&dataset);
    if (status < 0) return ps_h5_fail(error, "%s: cannot read frame states", view->path);
    for (int64_t i = 0; i < view->n_frames; i++)
        if (view->states[i] < 3) view->n_by_state[view->states[i]]++;
    return PS_OK;
}

/* Rows, columns and the step of images from the axes of any method. */
static ps_code load_image_axes(ps_view *view, ps_error *error) {
    int at = 0;
    while (at < ps_n_methods && !view->methods[at].present) at++;
    if (at == ps_n_methods) return PS_FAIL(error, PS_E_HDF5, "%s: /entry holds no group of a method that this version knows", view->path);
    const char *method = view->methods[at].method->name;
    int64_t *sizes[] = {&view->rows, &view->columns};
    const char *const axes[] = {"row", "column"};
    for (int axis = 0; axis < 2; axis++) {
        double *values = NULL;
        ps_code code = load_axis(view, method, axes[axis], sizes[axis], &values, error);
        view->step_A[axis] = code == PS_OK && *sizes[axis] > 1 ? values[1] - values[0] : 0;
        free(values);
        PS_TRY(code);
    }
    if (view->step_A[0] <= 0) view->step_A[0] = view->step_A[1];
    if (view->step_A[1] <= 0) view->step_A[1] = view->step_A[0];
    return PS_OK;
}

ps_code ps_view_open(const char *path, ps_view *view, ps_error *error) {
    ps_code code = PS_OK;
    *view = (ps_view){.path = strdup(path), .file = H5I_INVALID_HID, .entry = H5I_INVALID_HID};
    ps_h5_quiet();
    PS_GO_ALLOC(error, view->path);
    PS_GO(ps_h5_open_read(path, &view->file, error));
    view->entry = H5Gopen2(view->file, "entry", H5P_DEFAULT);
    if (view->entry < 0 || !ps_view_has(view, "frames/state")) {
        code = PS_FAIL(error, PS_E_ARGUMENT, "%s: no /entry/frames/state: not an output of ptyseries", path);
        goto done;
    }
    PS_GO(ps_layout_check_version(view->entry, path, error));
    PS_GO(load_states(view, error));
    for (int i = 0; i < ps_n_methods; i++) PS_GO(load_method(view, i, error));
    if (ps_view_has(view, "optics_0")) PS_GO(load_image_axes(view, error)); /* what is made without optics has no images */
    view->n_optics = count_groups(view, "optics", 0);
    view->n_processes = count_groups(view, "process", 1);
done:
    if (code != PS_OK) ps_view_close(view);
    return code;
}

void ps_view_close(ps_view *view) {
    for (int i = 0; i < ps_n_methods; i++) {
        free(view->methods[i].strengths);
        free(view->methods[i].amplitudes);
        free(view->methods[i].curve_strengths);
    }
    ps_h5_close(&view->entry);
    if (view->file >= 0) H5Fclose(view->file);
    free(view->states);
    free(view->path);
    *view = (ps_view){.file = H5I_INVALID_HID, .entry = H5I_INVALID_HID};
}
