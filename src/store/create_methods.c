/* Groups of methods: axes, images, curves and numbers, as the table of methods describes them. */
#include <stdlib.h>

#include "hdf5/write.h"
#include "store/create_parts.h"

ps_code ps_create_f32(hid_t parent, const char *name, int rank, const hsize_t *dims, const char *units, ps_error *error) {
    PS_TRY(ps_h5_dataset(parent, name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, rank, dims, NULL, error));
    return units ? ps_h5_describe(parent, name, "units", units, error) : PS_OK;
}

ps_code ps_create_f64(hid_t parent, const char *name, int rank, const hsize_t *dims, const double *values, const char *units,
                      ps_error *error) {
    PS_TRY(ps_h5_dataset(parent, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, rank, dims, values, error));
    return units ? ps_h5_describe(parent, name, "units", units, error) : PS_OK;
}

/* ---- axes ---- */

/* values[i] = i * step */
static ps_code create_position_axis(hid_t parent, const char *name, int64_t n, double step_A, ps_error *error) {
    ps_code code = PS_OK;
    double *values = malloc((size_t)n * sizeof *values);
    PS_GO_ALLOC(error, values);
    for (int64_t i = 0; i < n; i++) values[i] = (double)i * step_A;
    PS_GO(ps_create_f64(parent, name, 1, &(hsize_t){(hsize_t)n}, values, "angstrom", error));
done:
    free(values);
    return code;
}

static ps_code create_frame_axis(hid_t parent, int64_t n, ps_error *error) {
    ps_code code = PS_OK;
    int64_t *values = malloc((size_t)n * sizeof *values);
    PS_GO_ALLOC(error, values);
    for (int64_t i = 0; i < n; i++) values[i] = i;
    PS_GO(ps_h5_dataset(parent, "frame", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &(hsize_t){(hsize_t)n}, values, error));
done:
    free(values);
    return code;
}

static ps_code create_image_axes(hid_t group, const ps_output_spec *spec, ps_error *error) {
    PS_TRY(create_frame_axis(group, spec->n_frames, error));
    PS_TRY(create_position_axis(group, "row", spec->image_rows, spec->image_step_A[0], error));
    return create_position_axis(group, "column", spec->image_columns, spec->image_step_A[1], error);
}

/* A method's strengths as its axis: the numbers asked for; for an automatic strength one entry 0, each frame's own in chosen_strength. */
static ps_code create_strength_axes(hid_t group, const ps_method_settings *settings, ps_error *error) {
    ps_code code = PS_OK;
    hsize_t n = (hsize_t)settings->n_strengths;
    double *values = calloc((size_t)n, sizeof *values);
    PS_GO_ALLOC(error, values);
    for (hsize_t i = 0; i < n && !settings->automatic; i++) values[i] = settings->strengths[i].phase;
    PS_GO(ps_create_f64(group, "strength", 1, &n, values, NULL, error));
    if (settings->automatic) PS_GO(ps_h5_describe(group, "strength", "long_name", "automatic: see chosen_strength", error));
    if (!settings->method->has_amplitudes) goto done;
    for (hsize_t i = 0; i < n && !settings->automatic; i++) values[i] = settings->strengths[i].amplitude;
    PS_GO(ps_create_f64(group, "strength_amplitude", 1, &n, values, NULL, error));
done:
    free(values);
    return code;
}

static ps_code create_curve_axis(hid_t group, const ps_method_settings *settings, ps_error *error) {
    ps_code code = PS_OK;
    hsize_t n = (hsize_t)ps_method_curve_points(settings);
    double *values = malloc((size_t)n * sizeof *values);
    ps_strength *strengths = malloc((size_t)n * sizeof *strengths);
    PS_GO_ALLOC(error, values);
    PS_GO_ALLOC(error, strengths);
    ps_method_curve_strengths(settings, strengths);
    for (hsize_t i = 0; i < n; i++) values[i] = strengths[i].phase;
    PS_GO(ps_create_f64(group, "curve_strength", 1, &n, values, NULL, error));
done:
    free(strengths);
    free(values);
    return code;
}

static ps_code create_axes(hid_t group, const ps_method_settings *settings, const ps_output_spec *spec, ps_error *error) {
    PS_TRY(create_image_axes(group, spec, error));
    if (!settings->has_strengths) return PS_OK;
    PS_TRY(create_strength_axes(group, settings, error));
    return create_curve_axis(group, settings, error);
}

/* ---- results ---- */

static ps_code describe_axes(hid_t group, const char *name, ps_error *error) {
    static const char *const axes[] = {"frame", "curve_strength"};
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    ps_code code = ps_h5_attribute_texts(dataset, "axes", axes, 2, error);
    ps_h5_close(&dataset);
    return code;
}

static ps_code create_dataset(hid_t group, const ps_method_settings *settings, const ps_result_desc *result, const ps_output_spec *spec,
                              ps_error *error) {
    hsize_t frames = (hsize_t)spec->n_frames, rows = (hsize_t)spec->image_rows, columns = (hsize_t)spec->image_columns;
    hsize_t sweep[4] = {frames, (hsize_t)settings->n_strengths, rows, columns}, image[3] = {frames, rows, columns};
    hsize_t curve[2] = {frames, (hsize_t)ps_method_curve_points(settings)};
    switch (result->axes) {
    case PS_RESULT_IMAGE_SWEEP: return ps_create_f32(group, result->name, 4, sweep, result->unit, error);
    case PS_RESULT_IMAGE: return ps_create_f32(group, result->name, 3, image, result->unit, error);
    case PS_RESULT_NUMBER: return ps_create_f64(group, result->name, 1, &frames, NULL, result->unit, error);
    case PS_RESULT_CURVE:
        PS_TRY(ps_create_f64(group, result->name, 2, curve, NULL, result->unit, error));
        return describe_axes(group, result->name, error);
    }
    return PS_FAIL(error, PS_E_INTERNAL, "%s: a result without axes", result->name);
}

ps_code ps_create_former_name(hid_t parent, const char *name, const char *former, ps_error *error) {
    if (H5Lcreate_soft(name, parent, former, H5P_DEFAULT, H5P_DEFAULT) >= 0) return PS_OK;
    return ps_h5_fail(error, "cannot create %s as another name of %s", former, name);
}

static ps_code create_results(hid_t group, const ps_method_settings *settings, const ps_output_spec *spec, ps_error *error) {
    for (int r = 0; r < settings->method->n_results; r++) {
        const ps_result_desc *result = &settings->method->results[r];
        if (!ps_method_leaves(settings, r)) continue;
        PS_TRY(create_dataset(group, settings, result, spec, error));
        if (result->former) PS_TRY(ps_create_former_name(group, result->name, result->former, error));
        if (result->long_name) PS_TRY(ps_h5_describe(group, result->name, "long_name", result->long_name, error));
    }
    return PS_OK;
}

/* The first result is what viewers show, the other images beside it. */
static ps_code describe_signals(hid_t group, const ps_method_settings *settings, ps_error *error) {
    static const char *const axes[] = {"frame", "strength", "row", "column"}, *const plain[] = {"frame", "row", "column"};
    const ps_method *method = settings->method;
    const char *others[PS_MOST_METHOD_RESULTS];
    bool sweep = method->results[0].axes == PS_RESULT_IMAGE_SWEEP;
    int n_others = 0;
    for (int r = 1; r < method->n_results; r++)
        if (ps_result_is_image(&method->results[r]) && ps_method_leaves(settings, r)) others[n_others++] = method->results[r].name;
    PS_TRY(ps_h5_attribute_text(group, "signal", method->results[0].name, error));
    PS_TRY(ps_h5_attribute_texts(group, "axes", sweep ? axes : plain, sweep ? 4 : 3, error));
    return n_others > 0 ? ps_h5_attribute_texts(group, "auxiliary_signals", others, n_others, error) : PS_OK;
}

static ps_code create_method(hid_t entry, const ps_method_settings *settings, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    PS_GO(ps_h5_group(entry, settings->method->name, "NXdata", &group, error));
    PS_GO(describe_signals(group, settings, error));
    PS_GO(create_axes(group, settings, spec, error));
    PS_GO(create_results(group, settings, spec, error));
done:
    ps_h5_close(&group);
    return code;
}

ps_code ps_create_methods(hid_t entry, const ps_output_spec *spec, ps_error *error) {
    const ps_method_set *methods = &spec->job->methods;
    for (int64_t i = 0; i < methods->n; i++) PS_TRY(create_method(entry, &methods->items[i], spec, error));
    return PS_OK;
}
