#include "tasks/simulate/entry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/job_parts.h"
#include "tasks/task_list.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static ps_code read_object_grid(const ps_json *place, ps_job_simulate *simulate, ps_error *error) {
    if (place->value && cJSON_IsString(place->value) && strcmp(place->value->valuestring, "auto") == 0) return PS_OK;
    if (place->value && !cJSON_IsNumber(place->value)) return ps_json_fail(place, error, "\"auto\" or a whole number from 1 to 64");
    return ps_json_integer(place, 1, 64, &simulate->object_upsampling, error);
}

static ps_code read_object(const ps_json *place, ps_job_simulate *simulate, ps_error *error) {
    static const char *const objects[] = {"crystal", "random"};
    ps_json object = ps_json_member(place, "object"), lattice = ps_json_member(place, "lattice_A");
    ps_json turn = ps_json_member(place, "lattice_rotation_deg"), sigma = ps_json_member(place, "atom_sigma_A");
    ps_json vacancies = ps_json_member(place, "vacancies"), phase = ps_json_member(place, "phase_rad");
    ps_json amplitude = ps_json_member(place, "log_amplitude"), grid = ps_json_member(place, "object_upsampling");
    int choice = 0;
    PS_TRY(ps_json_choice(&object, objects, COUNT(objects), &choice, error));
    snprintf(simulate->object, sizeof simulate->object, "%s", objects[choice]);
    PS_TRY(read_object_grid(&grid, simulate, error));
    PS_TRY(ps_json_number(&lattice, 0.1, 1e5, &simulate->lattice_A, error));
    PS_TRY(ps_json_number(&turn, -360.0, 360.0, &simulate->lattice_rotation_deg, error));
    if (!ps_json_is_null(&sigma)) PS_TRY(ps_json_number(&sigma, 1e-3, 1e5, &simulate->atom_sigma_A, error));
    PS_TRY(ps_json_integer(&vacancies, 0, 1 << 30, &simulate->n_vacancies, error));
    PS_TRY(ps_json_number(&phase, 0.0, 10.0, &simulate->phase_rad, error));
    return ps_json_number(&amplitude, 0.0, 10.0, &simulate->log_amplitude, error);
}

static ps_code read_changes(const ps_json *place, ps_job_simulate *simulate, ps_error *error) {
    ps_json drift = ps_json_member(place, "drift_A"), step = ps_json_member(place, "defocus_step_A");
    ps_json defect = ps_json_member(place, "moving_defect");
    PS_TRY(ps_json_pair(&drift, -1e6, 1e6, simulate->drift_A, error));
    PS_TRY(ps_json_number(&step, -1e7, 1e7, &simulate->defocus_step_A, error));
    return ps_json_bool(&defect, &simulate->moving_defect, error);
}

static ps_code read_detection(const ps_json *place, ps_job_simulate *simulate, ps_error *error) {
    static const char *const types[] = {"uint8", "uint16", "uint32"};
    static const ps_dtype dtypes[] = {PS_U8, PS_U16, PS_U32};
    ps_json dose = ps_json_member(place, "dose_per_position"), type = ps_json_member(place, "dtype");
    ps_json per_file = ps_json_member(place, "positions_per_file");
    int choice = 1;
    if (!ps_json_is_null(&dose)) PS_TRY(ps_json_number(&dose, 1e-6, 1e12, &simulate->dose_per_position, error));
    PS_TRY(ps_json_choice(&type, types, COUNT(types), &choice, error));
    simulate->dtype = dtypes[choice];
    return ps_json_is_null(&per_file) ? PS_OK : ps_json_integer(&per_file, 1, INT64_MAX, &simulate->frames_per_file, error);
}

static ps_code read_output(const ps_json *place, const char *base_directory, ps_job_simulate *simulate, ps_error *error) {
    PS_TRY(ps_json_require(place, error));
    PS_TRY(ps_job_read_path(place, base_directory, &simulate->output_master, error));
    if (simulate->n_frames == 1 || strstr(simulate->output_master, "{frame}")) return PS_OK;
    return ps_json_fail(place, error, "a pattern with {frame}, which stands for the frame's number");
}

static ps_code read_shapes(const ps_json *place, ps_job_simulate *simulate, ps_error *error) {
    ps_json scan = ps_json_member(place, "scan_shape"), detector = ps_json_member(place, "detector_shape");
    PS_TRY(ps_json_require(&scan, error));
    PS_TRY(ps_json_integer_pair(&scan, 1, 1 << 16, &simulate->scan_rows, &simulate->scan_columns, error));
    PS_TRY(ps_json_require(&detector, error));
    return ps_json_integer_pair(&detector, 1, 1 << 15, &simulate->detector_rows, &simulate->detector_columns, error);
}

static ps_code read_simulate(const ps_json *place, const char *base_directory, ps_job_simulate *simulate, ps_error *error) {
    static const char *const keys[] = {
        "seed",      "output_master",        "frames",        "scan_shape", "detector_shape",    "object_upsampling", "object",
        "lattice_A", "lattice_rotation_deg", "atom_sigma_A",  "vacancies",  "phase_rad",         "log_amplitude",     "dose_per_position",
        "drift_A",   "defocus_step_A",       "moving_defect", "dtype",      "positions_per_file"};
    ps_json seed = ps_json_member(place, "seed"), frames = ps_json_member(place, "frames"), output = ps_json_member(place, "output_master");
    int64_t number = 1;
    *simulate = (ps_job_simulate){.n_frames = 1, .lattice_A = 3.9, .phase_rad = 0.1};
    PS_TRY(ps_json_require(place, error));
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(ps_json_integer(&seed, 0, INT64_MAX, &number, error));
    simulate->seed = (uint64_t)number;
    PS_TRY(ps_json_integer(&frames, 1, 1 << 20, &simulate->n_frames, error));
    PS_TRY(read_output(&output, base_directory, simulate, error));
    PS_TRY(read_shapes(place, simulate, error));
    PS_TRY(read_object(place, simulate, error));
    PS_TRY(read_changes(place, simulate, error));
    return read_detection(place, simulate, error);
}

static ps_code read_entry(const ps_json *root, ps_job *job, ps_error *error) {
    ps_json place = ps_json_member(root, "simulate");
    ps_job_simulate *simulate = calloc(1, sizeof *simulate);
    if (!simulate) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the simulate entry");
    job->own = simulate;
    return read_simulate(&place, job->base_directory, simulate, error);
}

static void free_entry(void *own) {
    ps_job_simulate *simulate = own;
    free(simulate->output_master);
    free(simulate);
}

const ps_job_simulate *ps_simulate_entry(const ps_job *job) {
    return job->own;
}

static const char *const entries[] = {"optics", "compute", "simulate"};

const ps_job_kind ps_kind_simulate = {
    .name = "simulate", .entries = entries, .n_entries = COUNT(entries), .read = read_entry, .free_own = free_entry};
