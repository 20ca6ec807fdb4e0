#include "store/drift.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster.h"
#include "cluster/mpi_lock.h"
#include "hdf5/lock.h"
#include "hdf5/write.h"
#include "store/create_parts.h"
#include "store/internal.h"

enum { PLACE_NAME = 96 };

ps_image_place ps_drift_image(const ps_method_set *methods) {
    int64_t at = 0;
    for (int64_t i = methods->n - 1; i >= 0; i--)
        if (methods->items[i].has_strengths) at = i;
    const ps_method_settings *settings = &methods->items[at];
    return (ps_image_place){.method = settings->method, .part = settings->has_strengths ? settings->n_strengths / 2 : 0};
}

/* ---- the table ---- */

void ps_drift_table_free(ps_drift_table *table) {
    void *arrays[] = {table->shift_px, table->step_px, table->trust, table->least_trust, table->reference, table->known, table->inside};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    *table = (ps_drift_table){0};
}

ps_code ps_drift_table_create(int64_t n_frames, ps_drift_table *table, ps_error *error) {
    size_t n = (size_t)n_frames;
    *table = (ps_drift_table){.n_frames = n_frames,
                              .shift_px = calloc(2 * n, sizeof *table->shift_px),
                              .step_px = calloc(2 * n, sizeof *table->step_px),
                              .trust = calloc(n, sizeof *table->trust),
                              .least_trust = calloc(n, sizeof *table->least_trust),
                              .reference = calloc(n, sizeof *table->reference),
                              .known = calloc(n, sizeof *table->known),
                              .inside = calloc(4 * n, sizeof *table->inside)};
    bool whole =
        table->shift_px && table->step_px && table->trust && table->least_trust && table->reference && table->known && table->inside;
    if (whole) return PS_OK;
    ps_drift_table_free(table);
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the drift of %zu frames", n);
}

/* ---- creating ---- */

static ps_code create_columns(hid_t group, const ps_output_spec *spec, ps_error *error) {
    hsize_t n = (hsize_t)spec->n_frames, pairs[2] = {n, 2}, one = 1;
    static const struct {
        const char *name, *long_name;
    } texts[] = {{"shift_pixels", "row, column: where the sample stands in the images, against the first frame that is done"},
                 {"shift", "the same in angstrom"},
                 {"step_pixels", "row, column: against the frame `reference`"},
                 {"trust", "0 to 1, of the step: how much higher its correlation is than that of any other"},
                 {"least_trust", "the smallest trust of the steps from the first frame to this"},
                 {"reference", "the done frame before this one; -1: none"},
                 {"known", "1: a shift was found for this frame and all done ones before it"},
                 {"complete", "1: all frames were dealt with and this is of them; 0: not, or not yet, measured"}};
    PS_TRY(ps_create_f64(group, "shift_pixels", 2, pairs, NULL, "pixel", error));
    PS_TRY(ps_create_f64(group, "shift", 2, pairs, NULL, "angstrom", error));
    PS_TRY(ps_create_f64(group, "step_pixels", 2, pairs, NULL, "pixel", error));
    PS_TRY(ps_create_f64(group, "trust", 1, &n, NULL, NULL, error));
    PS_TRY(ps_create_f64(group, "least_trust", 1, &n, NULL, NULL, error));
    PS_TRY(ps_h5_dataset(group, "reference", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n, NULL, error));
    PS_TRY(ps_h5_dataset(group, "known", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, &n, NULL, error));
    PS_TRY(ps_h5_dataset(group, "complete", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, &one, NULL, error));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        PS_TRY(ps_h5_describe(group, texts[i].name, "long_name", texts[i].long_name, error));
    return PS_OK;
}

static ps_code create_image_name(hid_t group, const ps_output_spec *spec, ps_error *error) {
    const ps_image_place place = ps_drift_image(&spec->job->methods);
    const ps_method_settings *settings = &spec->job->methods.items[0];
    char text[PLACE_NAME];
    for (int64_t i = 0; i < spec->job->methods.n; i++)
        if (spec->job->methods.items[i].method == place.method) settings = &spec->job->methods.items[i];
    int used = snprintf(text, sizeof text, "%s/%s", place.method->name, place.method->results[place.result].name);
    if (settings->has_strengths && settings->automatic)
        snprintf(text + used, sizeof text - (size_t)used, ", automatic strength");
    else if (settings->has_strengths)
        snprintf(text + used, sizeof text - (size_t)used, ", strength %g", settings->strengths[place.part].phase);
    return ps_h5_text(group, "image", PLACE_NAME, text, error);
}

/* The axes are those of the images as they are. */
static ps_code link_axes(hid_t group, const char *method, bool sweep, ps_error *error) {
    static const char *const axes[] = {"frame", "row", "column", "strength"};
    for (int i = 0; i < (sweep ? 4 : 3); i++) {
        char path[PLACE_NAME];
        snprintf(path, sizeof path, "/entry/%s/%s", method, axes[i]);
        if (H5Lcreate_soft(path, group, axes[i], H5P_DEFAULT, H5P_DEFAULT) < 0)
            return ps_h5_fail(error, "cannot create the axis %s of aligned images", axes[i]);
    }
    return PS_OK;
}

static ps_code create_aligned_method(hid_t aligned, const ps_method_settings *settings, const ps_output_spec *spec, ps_error *error) {
    static const char *const sweep_axes[] = {"frame", "strength", "row", "column"}, *const axes[] = {"frame", "row", "column"};
    const ps_method *method = settings->method;
    hsize_t frames = (hsize_t)spec->n_frames, rows = (hsize_t)spec->image_rows, columns = (hsize_t)spec->image_columns;
    hsize_t sweep[4] = {frames, (hsize_t)settings->n_strengths, rows, columns}, image[3] = {frames, rows, columns};
    bool has_sweep = method->results[0].axes == PS_RESULT_IMAGE_SWEEP;
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    PS_GO(ps_h5_group(aligned, method->name, "NXdata", &group, error));
    PS_GO(ps_h5_attribute_text(group, "signal", method->results[0].name, error));
    PS_GO(ps_h5_attribute_texts(group, "axes", has_sweep ? sweep_axes : axes, has_sweep ? 4 : 3, error));
    PS_GO(link_axes(group, method->name, has_sweep, error));
    for (int r = 0; r < method->n_results; r++) {
        const ps_result_desc *result = &method->results[r];
        bool is_sweep = result->axes == PS_RESULT_IMAGE_SWEEP;
        if (!ps_result_is_image(result) || !ps_method_leaves(settings, r)) continue;
        PS_GO(ps_create_f32(group, result->name, is_sweep ? 4 : 3, is_sweep ? sweep : image, result->unit, error));
    }
done:
    ps_h5_close(&group);
    return code;
}

static ps_code create_aligned(hid_t entry, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    hsize_t ranges[2] = {(hsize_t)spec->n_frames, 4};
    PS_GO(ps_h5_group(entry, "aligned", "NXcollection", &group, error));
    for (int64_t i = 0; i < spec->job->methods.n; i++) PS_GO(create_aligned_method(group, &spec->job->methods.items[i], spec, error));
    PS_GO(ps_h5_dataset(group, "inside", H5T_STD_I64LE, H5T_NATIVE_INT64, 2, ranges, NULL, error));
    PS_GO(ps_h5_describe(group, "inside", "long_name",
                         "first row, one behind the last, first column, one behind the last, of what the frame shows; 0 beyond it", error));
done:
    ps_h5_close(&group);
    return code;
}

ps_code ps_create_drift(hid_t entry, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    if (spec->n_frames < 2 || !spec->job->measures_drift) return PS_OK;
    PS_GO(ps_h5_group(entry, "drift", "NXcollection", &group, error));
    PS_GO(create_columns(group, spec, error));
    PS_GO(create_image_name(group, spec, error));
    if (spec->job->aligns) PS_GO(create_aligned(entry, spec, error));
done:
    ps_h5_close(&group);
    return code;
}

/* ---- writing ---- */

static ps_code access_whole(ps_output *output, const char *name, hid_t type, void *values, bool writes, ps_error *error) {
    ps_code code = PS_OK;
    hid_t dataset = H5Dopen2(output->entry, name, H5P_DEFAULT);
    if (dataset < 0) return ps_h5_fail(error, "%s: cannot open /entry/%s", output->path, name);
    if (!writes && H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        code = ps_h5_fail(error, "%s: cannot read /entry/%s", output->path, name);
    if (writes && H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
        code = ps_h5_fail(error, "%s: cannot write /entry/%s", output->path, name);
        ps_hdf5_mark_broken();
    }
    ps_h5_close(&dataset);
    return code;
}

/* Opening objects reads the file, through MPI-IO as well. */
static ps_code access_locked(ps_output *output, const char *name, hid_t type, void *values, bool writes, ps_error *error) {
    ps_hdf5_lock();
    ps_mpi_lock();
    ps_code code = access_whole(output, name, type, values, writes, error);
    ps_mpi_unlock();
    ps_hdf5_unlock();
    return code;
}

static bool has(const ps_output *output, const char *name) {
    ps_hdf5_lock();
    bool present = H5Lexists(output->entry, name, H5P_DEFAULT) > 0;
    ps_hdf5_unlock();
    return present;
}

ps_code ps_output_drift_state(ps_output *output, bool *present, bool *complete, ps_error *error) {
    uint8_t value = 0;
    *present = has(output, "drift");
    *complete = false;
    if (!*present) return PS_OK;
    PS_TRY(access_locked(output, "drift/complete", H5T_NATIVE_UINT8, &value, false, error));
    *complete = value == 1;
    return PS_OK;
}

ps_code ps_output_drift_set_complete(ps_output *output, bool complete, ps_error *error) {
    uint8_t value = complete;
    if (!has(output, "drift")) return PS_OK;
    PS_TRY(ps_output_sync(output, error));
    PS_TRY(access_locked(output, "drift/complete", H5T_NATIVE_UINT8, &value, true, error));
    return ps_output_sync(output, error);
}

ps_code ps_output_write_drift(ps_output *output, const ps_drift_table *table, const double step_A[2], ps_error *error) {
    size_t n = (size_t)table->n_frames;
    double *shift_A = malloc(2 * n * sizeof *shift_A);
    if (!shift_A) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the drift of %zu frames", n);
    for (size_t i = 0; i < 2 * n; i++) shift_A[i] = table->shift_px[i] * step_A[i % 2];
    const struct {
        const char *name;
        hid_t type;
        void *values;
    } all[] = {{"drift/shift_pixels", H5T_NATIVE_DOUBLE, table->shift_px},
               {"drift/shift", H5T_NATIVE_DOUBLE, shift_A},
               {"drift/step_pixels", H5T_NATIVE_DOUBLE, table->step_px},
               {"drift/trust", H5T_NATIVE_DOUBLE, table->trust},
               {"drift/least_trust", H5T_NATIVE_DOUBLE, table->least_trust},
               {"drift/reference", H5T_NATIVE_INT64, table->reference},
               {"drift/known", H5T_NATIVE_UINT8, table->known},
               {"aligned/inside", H5T_NATIVE_INT64, table->inside}};
    size_t n_all = sizeof all / sizeof *all - !has(output, "aligned");
    ps_code code = PS_OK;
    for (size_t i = 0; code == PS_OK && i < n_all; i++) code = access_locked(output, all[i].name, all[i].type, all[i].values, true, error);
    free(shift_A);
    return code;
}

ps_code ps_output_bring_to_disk(const ps_output *output, ps_error *error) {
    return ps_output_sync(output, error);
}

ps_code ps_output_gather_states(ps_output *output, uint8_t **states, ps_error *error) {
    ps_code code = PS_OK;
    *states = malloc((size_t)output->n_frames);
    if (!*states) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for frame states");
    PS_TRY(ps_output_agree(output->communicator, code, error));
    PS_TRY(PS_MPI(error, MPI_Allreduce(output->written, *states, (int)output->n_frames, MPI_UINT8_T, MPI_MAX, output->communicator)));
    for (int64_t i = 0; i < output->n_frames; i++) (*states)[i] = (*states)[i] ? (uint8_t)((*states)[i] - 1) : output->states[i];
    return PS_OK;
}

/* ---- images ---- */

static const ps_rows *rows_of(const ps_output *output, const ps_image_place *place) {
    return &output->results[ps_layout_index(place->method, place->result)];
}

int64_t ps_output_image_parts(const ps_output *output, const ps_image_place *place) {
    const ps_rows *rows = rows_of(output, place);
    return rows->dataset < 0 ? 0 : ps_rows_parts(rows);
}

ps_code ps_output_read_image(ps_output *output, int64_t frame, const ps_image_place *place, float *image, ps_error *error) {
    return ps_rows_read_part(rows_of(output, place), output->fd, frame, place->part, image, error);
}

ps_code ps_output_write_aligned(ps_output *output, int64_t frame, const ps_image_place *place, const float *image, ps_error *error) {
    char name[PLACE_NAME];
    ps_rows rows;
    bool present;
    snprintf(name, sizeof name, "aligned/%s/%s", place->method->name, place->method->results[place->result].name);
    ps_hdf5_lock();
    ps_mpi_lock();
    ps_code code = ps_rows_open(output->entry, name, &rows, &present, error);
    ps_mpi_unlock();
    ps_hdf5_unlock();
    PS_TRY(code);
    if (!present) return ps_h5_fail(error, "%s: no /entry/%s", output->path, name);
    code = ps_rows_write_part(&rows, frame, place->part, image, output->write_limit, error);
    ps_hdf5_lock();
    ps_rows_close(&rows);
    ps_hdf5_unlock();
    return code;
}
