#include "tasks/histogram/file_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"
#include "store/layout.h"
#include "store/process.h"
#include "store/source_files.h"
#include "tasks/series.h"

enum { ERROR_WIDTH = 512, DEVICE_WIDTH = 128 };

/* Maps of the region: name below /entry/histogram, whether a count or a number, long name. */
#define MAPS(X)                                                            \
    X(underflow, true, "values below the range")                           \
    X(overflow, true, "values above the range")                            \
    X(nonfinite, true, "NaN and infinities, which are in no other number") \
    X(n_saturated, true, "values at or above saturation")                  \
    X(mean, false, "mean of all finite values")                            \
    X(variance, false, "population variance of all finite values")         \
    X(median, false, "median of all finite values, from the histogram")    \
    X(mode, false, "centre of the fullest bin")                            \
    X(minimum, false, "smallest finite value")                             \
    X(maximum, false, "largest finite value")

/* ---- /entry/histogram ---------------------------------------------------------------------------------------------------------------- */

static ps_code create_axis(hid_t group, const char *name, int64_t first, int64_t n, ps_error *error) {
    ps_code code = PS_OK;
    int64_t *values = malloc((size_t)n * sizeof *values);
    PS_GO_ALLOC(error, values);
    for (int64_t i = 0; i < n; i++) values[i] = first + i;
    PS_GO(ps_h5_dataset(group, name, H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &(hsize_t){(hsize_t)n}, values, error));
    PS_GO(ps_h5_describe(group, name, "units", "pixel", error));
done:
    free(values);
    return code;
}

static ps_code create_axes(hid_t group, const ps_histogram_file_spec *spec, ps_error *error) {
    const ps_histogram_plan *plan = spec->plan;
    hsize_t n_edges = (hsize_t)spec->map->n_bins + 1;
    PS_TRY(create_axis(group, "row", plan->first_row, plan->rows, error));
    PS_TRY(create_axis(group, "column", plan->first_column, plan->columns, error));
    PS_TRY(ps_h5_dataset(group, "edges", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &n_edges, spec->map->edges, error));
    PS_TRY(ps_h5_describe(group, "edges", "units", "counts", error));
    return ps_h5_describe(group, "edges", "long_name", "bin i holds edges[i] <= value < edges[i + 1], the last one its right edge too",
                          error);
}

static ps_code create_maps(hid_t group, const ps_histogram_file_spec *spec, ps_error *error) {
    hsize_t dims[2] = {(hsize_t)spec->plan->rows, (hsize_t)spec->plan->columns};
#define X(name, is_count, long_name)                                                                                                       \
    PS_TRY(ps_h5_dataset(group, #name, (is_count) ? H5T_STD_U64LE : H5T_IEEE_F64LE, (is_count) ? H5T_NATIVE_UINT64 : H5T_NATIVE_DOUBLE, 2, \
                         dims, NULL, error));                                                                                              \
    PS_TRY(ps_h5_describe(group, #name, "long_name", long_name, error));
    MAPS(X)
#undef X
    return PS_OK;
}

static ps_code create_mask(hid_t group, const ps_histogram_file_spec *spec, ps_error *error) {
    hsize_t detector[2] = {(hsize_t)spec->plan->run.detector_rows, (hsize_t)spec->plan->run.detector_columns};
    PS_TRY(ps_h5_dataset(group, "mask", H5T_STD_U32LE, H5T_NATIVE_UINT32, 2, detector, NULL, error));
    PS_TRY(ps_h5_describe(group, "mask", "long_name", "pixels not to trust, of the whole detector; 0 outside the region", error));
    return ps_h5_describe(group, "mask", "bits", "1 hot, 2 dead, 4 noisy, 8 saturated, 16 given", error);
}

/* How the numbers came about. */
static ps_code create_settings(hid_t group, const ps_histogram_file_spec *spec, ps_error *error) {
    const ps_job_histogram *job = spec->plan->wanted;
    const char *centre = job->centre == PS_CENTRE_FILE ? job->centre_file : job->centre == PS_CENTRE_MEDIAN ? "median" : "none";
    const char *range = job->automatic_range ? "auto, from sampled patterns" : "given";
    const struct {
        const char *name;
        double value;
    } thresholds[] = {{"hot_sigma", job->hot_sigma},
                      {"dead_fraction", job->dead_fraction},
                      {"noisy_ratio", job->noisy_ratio},
                      {"saturated_fraction", job->saturated_fraction}};
    PS_TRY(ps_h5_text(group, "dtype", 16, ps_dtype_name(spec->map->dtype), error));
    PS_TRY(ps_h5_text(group, "range_source", strlen(range), range, error));
    PS_TRY(ps_h5_text(group, "centre_source", strlen(centre), centre, error));
    PS_TRY(ps_h5_integer(group, "n_sampled", spec->sample->n_sampled, error));
    PS_TRY(ps_h5_integer(group, "stride", job->stride, error));
    if (isfinite(spec->plan->saturation)) PS_TRY(ps_h5_number(group, "saturation", spec->plan->saturation, "counts", error));
    for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++)
        PS_TRY(ps_h5_number(group, thresholds[i].name, thresholds[i].value, "", error));
    for (int kind = 0; kind < PS_MASK_KINDS; kind++) {
        char name[32];
        snprintf(name, sizeof name, "n_%s_pixels", ps_mask_names[kind]);
        PS_TRY(ps_h5_integer(group, name, 0, error));
    }
    return PS_OK;
}

ps_code ps_histogram_create_data(hid_t entry, const ps_histogram_file_spec *spec, ps_error *error) {
    static const char *const axes[] = {"row", "column", "edges"};
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    hsize_t dims[3] = {(hsize_t)spec->plan->rows, (hsize_t)spec->plan->columns, (hsize_t)spec->map->n_bins};
    PS_GO(ps_h5_group(entry, "histogram", "NXdata", &group, error));
    PS_GO(ps_h5_attribute_text(group, "signal", "histogram", error));
    PS_GO(ps_h5_attribute_texts(group, "axes", axes, 3, error));
    PS_GO(create_axes(group, spec, error));
    PS_GO(ps_h5_dataset(group, "histogram", H5T_STD_U64LE, H5T_NATIVE_UINT64, 3, dims, NULL, error));
    PS_GO(ps_h5_describe(group, "histogram", "long_name", "how often each pixel had a value in each bin", error));
    PS_GO(ps_h5_dataset(group, "total", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &dims[2], NULL, error));
    PS_GO(ps_h5_describe(group, "total", "long_name", "the histogram of all pixels together", error));
    PS_GO(create_maps(group, spec, error));
    PS_GO(create_mask(group, spec, error));
    if (spec->sample->centre)
        PS_GO(ps_h5_dataset(group, "centre", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, dims, spec->sample->centre, error));
    PS_GO(create_settings(group, spec, error));
done:
    ps_h5_close(&group);
    return code;
}

/* ---- /entry/frames ------------------------------------------------------------------------------------------------------------------- */

static ps_code create_sources(hid_t group, const ps_histogram_plan *plan, ps_error *error) {
    ps_code code = PS_OK;
    ps_output_frame_source *frames = calloc((size_t)plan->run.series.n_items, sizeof *frames);
    PS_GO_ALLOC(error, frames);
    ps_series_describe(&plan->run, &plan->checks, frames);
    PS_GO(ps_frame_sources_create(group, plan->run.series.n_items, frames, error));
done:
    free(frames);
    return code;
}

ps_code ps_histogram_create_frames(hid_t entry, const ps_histogram_file_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    hsize_t n = (hsize_t)spec->plan->run.series.n_items;
    PS_GO(ps_h5_group(entry, "frames", "NXcollection", &group, error));
    PS_GO(create_sources(group, spec->plan, error));
    PS_GO(ps_h5_dataset(group, "state", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, &n, NULL, error));
    PS_GO(ps_h5_describe(group, "state", "values", "0 pending, 1 done, 2 failed", error));
    PS_GO(ps_h5_texts(group, "error", ERROR_WIDTH, (int64_t)n, NULL, error));
    PS_GO(ps_h5_dataset(group, "n_positions", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n, NULL, error));
    PS_GO(ps_h5_describe(group, "n_positions", "long_name", "patterns that were counted", error));
    PS_GO(ps_h5_dataset(group, "total", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &n, NULL, error));
    PS_GO(ps_h5_describe(group, "total", "long_name", "sum of all finite values of the region", error));
    PS_GO(ps_h5_dataset(group, "dose", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &n, NULL, error));
    PS_GO(ps_h5_describe(group, "dose", "long_name", "total per pattern", error));
    PS_GO(ps_h5_text(group, "device", DEVICE_WIDTH, "", error));
done:
    ps_h5_close(&group);
    return code;
}

/* ---- results ---------------------------------------------------------------------------------------------------------------------------
 */

static ps_code write_all(hid_t entry, const char *name, hid_t type, const void *values, ps_error *error) {
    ps_code code = PS_OK;
    hid_t dataset = H5Dopen2(entry, name, H5P_DEFAULT);
    if (dataset < 0 || H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        code = ps_h5_fail(error, "cannot write /entry/%s", name);
    ps_h5_close(&dataset);
    return code;
}

static ps_code write_maps(hid_t entry, const ps_histogram_maps *maps, ps_error *error) {
#define X(name, is_count, long_name) \
    PS_TRY(write_all(entry, "histogram/" #name, (is_count) ? H5T_NATIVE_UINT64 : H5T_NATIVE_DOUBLE, maps->name, error));
    MAPS(X)
#undef X
    return write_all(entry, "histogram/total", H5T_NATIVE_UINT64, maps->total, error);
}

static ps_code write_mask(hid_t entry, const ps_histogram_results *results, ps_error *error) {
    PS_TRY(write_all(entry, "histogram/mask", H5T_NATIVE_UINT32, results->mask, error));
    for (int kind = 0; kind < PS_MASK_KINDS; kind++) {
        char name[48];
        snprintf(name, sizeof name, "histogram/n_%s_pixels", ps_mask_names[kind]);
        PS_TRY(write_all(entry, name, H5T_NATIVE_INT64, &results->n_masked[kind], error));
    }
    return PS_OK;
}

static ps_code write_text(hid_t entry, const char *name, size_t width, const char *text, ps_error *error) {
    ps_code code = PS_OK;
    hid_t type = ps_h5_text_type(width);
    char *room = malloc(width);
    PS_GO_ALLOC(error, room);
    ps_h5_pad_text(room, width, text);
    code = write_all(entry, name, type, room, error);
done:
    ps_h5_close(&type);
    free(room);
    return code;
}

static ps_code write_errors(hid_t entry, const ps_histogram_results *results, ps_error *error) {
    hid_t type = ps_h5_text_type(ERROR_WIDTH);
    ps_code code = write_all(entry, "frames/error", type, results->errors, error);
    ps_h5_close(&type);
    return code;
}

static ps_code write_frames(hid_t entry, int64_t n, const ps_histogram_results *results, ps_error *error) {
    ps_code code = PS_OK;
    double *dose = calloc((size_t)n, sizeof *dose);
    PS_GO_ALLOC(error, dose);
    for (int64_t i = 0; i < n; i++)
        if (results->n_positions[i] > 0) dose[i] = results->total[i] / (double)results->n_positions[i];
    PS_GO(write_all(entry, "frames/state", H5T_NATIVE_UINT8, results->states, error));
    PS_GO(write_all(entry, "frames/n_positions", H5T_NATIVE_INT64, results->n_positions, error));
    PS_GO(write_all(entry, "frames/total", H5T_NATIVE_DOUBLE, results->total, error));
    PS_GO(write_all(entry, "frames/dose", H5T_NATIVE_DOUBLE, dose, error));
    PS_GO(write_errors(entry, results, error));
    PS_GO(write_text(entry, "frames/device", DEVICE_WIDTH, results->device, error));
done:
    free(dose);
    return code;
}

ps_code ps_histogram_write_results(hid_t entry, const ps_histogram_file_spec *spec, const ps_histogram_results *results, ps_error *error) {
    int64_t n = spec->plan->run.series.n_items, counts[3] = {0};
    for (int64_t i = 0; i < n; i++) counts[results->states[i]]++;
    PS_TRY(write_maps(entry, results->maps, error));
    PS_TRY(write_mask(entry, results, error));
    PS_TRY(write_frames(entry, n, results, error));
    return ps_process_finish(entry, 1, counts, error);
}
