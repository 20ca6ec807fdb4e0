#include "tasks/simulate/fingerprint.h"

#include <cJSON.h>
#include <hdf5.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"
#include "optics/optics_json.h"

static const char dataset_name[] = "/entry/simulation/science";

static bool add_pair(cJSON *object, const char *name, double first, double second) {
    cJSON *pair = cJSON_AddArrayToObject(object, name);
    return pair && cJSON_AddItemToArray(pair, cJSON_CreateNumber(first)) && cJSON_AddItemToArray(pair, cJSON_CreateNumber(second));
}

static bool add_object(cJSON *object, const ps_simulate_setup *setup) {
    const ps_job_simulate *job = setup->job;
    bool ok = cJSON_AddStringToObject(object, "object", job->object) && cJSON_AddNumberToObject(object, "phase_rad", job->phase_rad) &&
              cJSON_AddNumberToObject(object, "log_amplitude", job->log_amplitude) &&
              add_pair(object, "drift_A", job->drift_A[0], job->drift_A[1]) &&
              cJSON_AddNumberToObject(object, "object_upsampling", (double)setup->upsampling) &&
              cJSON_AddBoolToObject(object, "moving_defect", job->moving_defect);
    if (!ok || setup->lattice.n_cells == 0) return ok;
    return cJSON_AddNumberToObject(object, "lattice_A", job->lattice_A) &&
           cJSON_AddNumberToObject(object, "lattice_rotation_deg", job->lattice_rotation_deg) &&
           cJSON_AddNumberToObject(object, "atom_sigma_A", ps_crystal_sigma_A(job)) &&
           cJSON_AddNumberToObject(object, "vacancies", (double)job->n_vacancies);
}

static bool add_recording(cJSON *object, const ps_job_simulate *job) {
    char seed[32]; /* 64 bits, which a JSON number does not hold */
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)job->seed);
    return cJSON_AddStringToObject(object, "seed", seed) &&
           add_pair(object, "scan_shape", (double)job->scan_rows, (double)job->scan_columns) &&
           add_pair(object, "detector_shape", (double)job->detector_rows, (double)job->detector_columns) &&
           cJSON_AddNumberToObject(object, "dose_per_position", job->dose_per_position) &&
           cJSON_AddNumberToObject(object, "defocus_step_A", job->defocus_step_A) &&
           cJSON_AddStringToObject(object, "dtype", ps_dtype_name(job->dtype));
}

ps_code ps_simulate_fingerprint_text(const ps_simulate_setup *setup, char **text, ps_error *error) {
    ps_code code = PS_OK;
    char *printed = NULL;
    cJSON *object = cJSON_CreateObject(), *optics = ps_optics_to_json(&setup->optics);
    PS_GO_ALLOC(error, object && optics);
    PS_GO_ALLOC(error, add_recording(object, setup->job) && add_object(object, setup) && cJSON_AddItemToObject(object, "optics", optics));
    optics = NULL;
    printed = cJSON_Print(object);
    PS_GO_ALLOC(error, printed);
    *text = printed;
done:
    cJSON_Delete(optics);
    cJSON_Delete(object);
    return code;
}

static ps_code read_text(const char *path, char **text, ps_error *error) {
    ps_code code = PS_OK;
    hid_t file = H5I_INVALID_HID, dataset = H5I_INVALID_HID, type = H5I_INVALID_HID;
    *text = NULL;
    PS_GO(ps_h5_open_read(path, &file, error));
    dataset = H5Dopen2(file, dataset_name, H5P_DEFAULT);
    type = dataset < 0 ? H5I_INVALID_HID : H5Dget_type(dataset);
    size_t bytes = type < 0 ? 0 : H5Tget_size(type);
    if (bytes == 0) {
        code = PS_FAIL(error, PS_E_INPUT, "%s: holds no %s, so it was not simulated and is not resumed", path, dataset_name);
        goto done;
    }
    *text = calloc(bytes + 1, 1);
    PS_GO_ALLOC(error, *text);
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, *text) < 0)
        code = ps_h5_fail(error, "%s: cannot read %s", path, dataset_name);
done:
    ps_h5_close(&type);
    ps_h5_close(&dataset);
    ps_h5_close(&file);
    return code;
}

ps_code ps_simulate_fingerprint_compare(const char *master_path, const char *text, ps_error *error) {
    ps_code code = PS_OK;
    char *found = NULL;
    ps_h5_quiet();
    PS_GO(read_text(master_path, &found, error));
    const char *a = found, *b = text;
    while (*a || *b) {
        size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        if (n != m || memcmp(a, b, n) != 0) {
            code = PS_FAIL(error, PS_E_JOB, "%s: was simulated with %.*s, this job has %.*s; --overwrite replaces it", master_path,
                           (int)(n - strspn(a, " \t")), a + strspn(a, " \t"), (int)(m - strspn(b, " \t")), b + strspn(b, " \t"));
            break;
        }
        a += n + (a[n] == '\n');
        b += m + (b[m] == '\n');
    }
done:
    free(found);
    return code;
}
