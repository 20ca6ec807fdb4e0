#include "tasks/simulate/truth.h"

#include <cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"
#include "optics/optics_json.h"
#include "tasks/simulate/partial.h"

/* malloc'd (cJSON); NULL: out of memory. */
static char *optics_text(const ps_simulate_setup *setup, int64_t frame) {
    ps_optics optics = ps_simulate_frame_optics(setup, frame);
    cJSON *json = ps_optics_to_json(&optics);
    char *text = json ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    return text;
}

static ps_code write_field(hid_t group, const char *name, const char *units, const ps_fine_grid *grid, const double *field,
                           ps_error *error) {
    const hsize_t dims[2] = {(hsize_t)grid->rows, (hsize_t)grid->columns};
    PS_TRY(ps_h5_dataset(group, name, H5T_IEEE_F32LE, H5T_NATIVE_DOUBLE, 2, dims, field, error));
    return ps_h5_describe(group, name, "units", units, error);
}

static ps_code write_axis(hid_t group, const char *name, int64_t n, double step_A, ps_error *error) {
    ps_code code = PS_OK;
    double *values = malloc((size_t)n * sizeof *values);
    PS_GO_ALLOC(error, values);
    for (int64_t i = 0; i < n; i++) values[i] = (double)i * step_A;
    PS_GO(ps_h5_dataset(group, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &(hsize_t){(hsize_t)n}, values, error));
    PS_GO(ps_h5_describe(group, name, "units", "angstrom", error));
done:
    free(values);
    return code;
}

/* Where the moving defect is; NaN would be needed without one, so then there is no such dataset. */
static ps_code write_defect(hid_t group, const ps_specimen *specimen, ps_error *error) {
    if (!specimen->has_defect) return PS_OK;
    PS_TRY(ps_h5_dataset(group, "defect", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &(hsize_t){2}, specimen->defect_A, error));
    return ps_h5_describe(group, "defect", "units", "angstrom", error);
}

static ps_code write_lattice(hid_t group, const ps_lattice *lattice, ps_error *error) {
    PS_TRY(ps_h5_dataset(group, "lattice", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, (const hsize_t[]){2, 2}, lattice->vector_A, error));
    return ps_h5_describe(group, "lattice", "units", "angstrom", error);
}

static ps_code write_numbers(hid_t group, const ps_simulate_setup *setup, int64_t frame, ps_error *error) {
    PS_TRY(ps_h5_integer(group, "frame", frame, error));
    PS_TRY(ps_h5_integer(group, "upsampling", setup->upsampling, error));
    PS_TRY(ps_h5_number(group, "counts_per_unit", setup->counts_per_unit, "", error));
    double drift_A[2] = {(double)frame * setup->job->drift_A[0], (double)frame * setup->job->drift_A[1]};
    PS_TRY(ps_h5_dataset(group, "drift", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &(hsize_t){2}, drift_A, error));
    return ps_h5_describe(group, "drift", "units", "angstrom", error);
}

static ps_code write_group(hid_t group, const ps_simulate_setup *setup, const ps_specimen *specimen, int64_t frame, ps_error *error) {
    static const char *const axes[2] = {"row", "column"};
    ps_code code = PS_OK;
    char *optics = optics_text(setup, frame);
    PS_GO_ALLOC(error, optics);
    PS_GO(ps_h5_attribute_text(group, "signal", "phase", error));
    PS_GO(ps_h5_attribute_texts(group, "axes", axes, 2, error));
    PS_GO(write_field(group, "phase", "radian", &specimen->grid, specimen->phase, error));
    PS_GO(write_field(group, "log_amplitude", "", &specimen->grid, specimen->log_amplitude, error));
    PS_GO(write_axis(group, "row", specimen->grid.rows, specimen->grid.step_A[0], error));
    PS_GO(write_axis(group, "column", specimen->grid.columns, specimen->grid.step_A[1], error));
    PS_GO(ps_h5_text(group, "optics", strlen(optics), optics, error));
    PS_GO(write_numbers(group, setup, frame, error));
    PS_GO(write_defect(group, specimen, error));
    if (setup->lattice.n_cells > 0) PS_GO(write_lattice(group, &setup->lattice, error));
done:
    free(optics);
    return code;
}

ps_code ps_truth_write(const char *path, const ps_simulate_setup *setup, const ps_specimen *specimen, int64_t frame, ps_error *error) {
    ps_code code = PS_OK;
    hid_t file = H5I_INVALID_HID, entry = H5I_INVALID_HID, truth = H5I_INVALID_HID;
    ps_h5_quiet();
    PS_GO(ps_partial_create(path, &file, error));
    PS_GO(ps_h5_attribute_text(file, "default", "entry", error));
    PS_GO(ps_h5_group(file, "entry", "NXentry", &entry, error));
    PS_GO(ps_h5_attribute_text(entry, "default", "truth", error));
    PS_GO(ps_h5_group(entry, "truth", "NXdata", &truth, error));
    PS_GO(write_group(truth, setup, specimen, frame, error));
done:
    ps_h5_close(&truth);
    ps_h5_close(&entry);
    ps_code closed = ps_partial_close(path, &file, error);
    if (code == PS_OK) code = closed;
    if (code != PS_OK) ps_partial_remove(path);
    return code;
}

ps_code ps_truth_write_optics(const char *path, const ps_simulate_setup *setup, int64_t frame, ps_error *error) {
    ps_code code = PS_OK;
    FILE *file = NULL;
    char *text = optics_text(setup, frame), *partial = ps_partial_path(path);
    PS_GO_ALLOC(error, text && partial);
    file = fopen(partial, "w");
    if (!file || fprintf(file, "%s\n", text) < 0) {
        code = ps_io_fail(error, errno, "%s: cannot write", partial);
        goto done;
    }
    int closed = fclose(file);
    file = NULL;
    if (closed != 0) code = ps_io_fail(error, errno, "%s: cannot write", partial);
done:
    if (file) fclose(file);
    if (code != PS_OK) ps_partial_remove(path);
    cJSON_free(text);
    free(partial);
    return code;
}
