/* The "methods" and "compute" entries. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "job/job_parts.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { MOST_STRENGTHS = 1000 };
static const double smallest_strength = 1e-12, largest_strength = 1e12;

static ps_code read_plain_strength(const ps_json *place, double *strength, ps_error *error) {
    if (cJSON_IsNumber(place->value) && place->value->valuedouble <= 0.0) return ps_json_fail(place, error, "a strength above 0");
    return ps_json_number(place, smallest_strength, largest_strength, strength, error);
}

static ps_code read_strength(const ps_json *place, bool is_complex, ps_strength *strength, ps_error *error) {
    static const char *const keys[] = {"amplitude", "phase"};
    if (!is_complex || !cJSON_IsObject(place->value)) {
        if (!cJSON_IsNumber(place->value))
            return ps_json_fail(place, error, "a number above 0%s", is_complex ? " or {\"amplitude\": ..., \"phase\": ...}" : "");
        PS_TRY(read_plain_strength(place, &strength->phase, error));
        strength->amplitude = strength->phase;
        return PS_OK;
    }
    ps_json amplitude = ps_json_member(place, "amplitude"), phase = ps_json_member(place, "phase");
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(ps_json_require(&amplitude, error));
    PS_TRY(ps_json_require(&phase, error));
    PS_TRY(read_plain_strength(&amplitude, &strength->amplitude, error));
    return read_plain_strength(&phase, &strength->phase, error);
}

static ps_code read_strengths(const ps_json *place, bool is_complex, ps_job_method *method, ps_error *error) {
    PS_TRY(ps_json_require(place, error));
    bool is_list = cJSON_IsArray(place->value);
    int n = is_list ? cJSON_GetArraySize(place->value) : 1;
    method->automatic = cJSON_IsString(place->value) && strcmp(place->value->valuestring, "auto") == 0;
    if (cJSON_IsString(place->value) && !method->automatic)
        return ps_json_fail(place, error, "a number above 0, a list of them, or \"auto\"");
    if (n == 0 || n > MOST_STRENGTHS) return ps_json_fail(place, error, "1 to %d strengths", MOST_STRENGTHS);
    method->strengths = calloc((size_t)n, sizeof *method->strengths);
    if (!method->strengths) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for strengths");
    method->n_strengths = n;
    for (int i = 0; !method->automatic && i < n; i++) {
        ps_json element = is_list ? ps_json_element(place, i) : *place;
        PS_TRY(read_strength(&element, is_complex, &method->strengths[i], error));
    }
    return PS_OK;
}

static ps_code read_method(const ps_json *place, bool is_complex, ps_job_method *method, ps_error *error) {
    static const char *const keys[] = {"strength", "smoothness_inv_A"};
    ps_json strength = ps_json_member(place, "strength"), smoothness = ps_json_member(place, "smoothness_inv_A");
    if (!place->value) return PS_OK;
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    method->enabled = true;
    PS_TRY(read_strengths(&strength, is_complex, method, error));
    if (ps_json_is_null(&smoothness)) return PS_OK;
    return ps_json_number(&smoothness, 1e-6, 1e6, &method->smoothness_inv_A, error);
}

static ps_code read_ssb(const ps_json *place, ps_job *job, ps_error *error) {
    static const char *const keys[] = {"estimator"}, *const estimators[] = {"wave", "phase"};
    ps_json estimator = ps_json_member(place, "estimator");
    int choice = PS_SSB_WAVE;
    if (!place->value) return PS_OK;
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(ps_json_choice(&estimator, estimators, COUNT(estimators), &choice, error));
    job->ssb_enabled = true;
    job->ssb_estimator = (ps_ssb_estimator)choice;
    return PS_OK;
}

ps_code ps_job_read_methods(const ps_json *place, ps_job *job, ps_error *error) {
    static const char *const keys[] = {"ssb", "phase", "complex"};
    ps_json ssb = ps_json_member(place, "ssb"), phase = ps_json_member(place, "phase"), both = ps_json_member(place, "complex");
    PS_TRY(ps_json_require(place, error));
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    if (!place->value->child) return ps_json_fail(place, error, "at least one of: ssb, phase, complex");
    PS_TRY(read_ssb(&ssb, job, error));
    PS_TRY(read_method(&phase, false, &job->phase, error));
    return read_method(&both, true, &job->complex_, error);
}

static ps_code read_backend(const ps_json *place, ps_job *job, ps_error *error) {
    const char *name = "auto";
    PS_TRY(ps_json_text(place, &name, error));
    char names[256];
    ps_backend_names(names, sizeof names);
    if (!ps_backend_name_is_known(name)) return ps_json_fail(place, error, "one of: %s", names);
    job->backend = strdup(name);
    return job->backend ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the backend's name");
}

ps_code ps_job_read_compute(const ps_json *place, ps_job *job, ps_error *error) {
    static const char *const keys[] = {"backend", "precision", "memory_budget_GiB", "threads"}, *const precisions[] = {"fast", "reference"};
    ps_json backend = ps_json_member(place, "backend"), precision = ps_json_member(place, "precision");
    ps_json budget = ps_json_member(place, "memory_budget_GiB"), threads = ps_json_member(place, "threads");
    int choice = PS_PRECISION_FAST;
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(read_backend(&backend, job, error));
    PS_TRY(ps_json_choice(&precision, precisions, COUNT(precisions), &choice, error));
    job->precision = (ps_precision)choice;
    if (job->precision == PS_PRECISION_REFERENCE && !ps_backend_computes(job->backend, "reference"))
        return ps_json_refuse(&precision, error, "reference precision is the CPU's alone; found backend %s", job->backend);
    if (!ps_json_is_null(&budget)) PS_TRY(ps_json_number(&budget, 1e-3, 1e6, &job->memory_budget_GiB, error));
    if (!ps_json_is_null(&threads)) PS_TRY(ps_json_integer(&threads, 1, 4096, &job->n_threads, error));
    return PS_OK;
}
