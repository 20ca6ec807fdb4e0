/* The "compute" entry. */
#include <stdlib.h>
#include <string.h>

#include "job/job_parts.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static ps_code read_backend(const ps_json *place, ps_job *job, ps_error *error) {
    const char *name = "auto";
    PS_TRY(ps_json_text(place, &name, error));
    char names[256];
    ps_backend_names(names, sizeof names);
    if (!ps_backend_name_is_known(name)) return ps_json_fail(place, error, "one of: %s", names);
    job->backend = strdup(name);
    return job->backend ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the backend's name");
}

static const char *const g_storages[] = {"auto", "none", "exact", "compact"}; /* as ps_job_g */

const char *ps_job_g_name(ps_job_g storage) {
    return g_storages[storage];
}

void ps_job_plan_g(const ps_job *job, bool wants_g, ps_plan_options *options) {
    options->g_storage = job->g_storage == PS_JOB_G_COMPACT ? PS_G_COMPACT : PS_G_EXACT;
    options->keeps_g = job->g_storage == PS_JOB_G_AUTO ? wants_g : job->g_storage != PS_JOB_G_NONE;
}

static ps_code read_g_storage(const ps_json *place, ps_job *job, ps_error *error) {
    int choice = PS_JOB_G_AUTO;
    PS_TRY(ps_json_choice(place, g_storages, COUNT(g_storages), &choice, error));
    job->g_storage = (ps_job_g)choice;
    if (job->precision == PS_PRECISION_REFERENCE && (choice == PS_JOB_G_EXACT || choice == PS_JOB_G_COMPACT))
        return ps_json_refuse(place, error,
                              "reference precision forms g where it is needed and holds none; found %s, expected auto or none",
                              g_storages[choice]);
    return PS_OK;
}

ps_code ps_job_read_compute(const ps_json *place, ps_job *job, ps_error *error) {
    static const char *const keys[] = {"backend", "precision", "memory_budget_GiB", "threads", "unpack", "g_storage"};
    static const char *const precisions[] = {"fast", "reference"}, *const unpackers[] = {"host", "device"};
    ps_json backend = ps_json_member(place, "backend"), precision = ps_json_member(place, "precision");
    ps_json budget = ps_json_member(place, "memory_budget_GiB"), threads = ps_json_member(place, "threads");
    ps_json unpack = ps_json_member(place, "unpack"), storage = ps_json_member(place, "g_storage");
    int choice = PS_PRECISION_FAST, unpacker = 1;
    PS_TRY(ps_json_object(place, keys, COUNT(keys), error));
    PS_TRY(read_backend(&backend, job, error));
    PS_TRY(ps_json_choice(&precision, precisions, COUNT(precisions), &choice, error));
    job->precision = (ps_precision)choice;
    if (job->precision == PS_PRECISION_REFERENCE && !ps_backend_computes(job->backend, "reference"))
        return ps_json_refuse(&precision, error, "reference precision is the CPU's alone; found backend %s", job->backend);
    PS_TRY(ps_json_choice(&unpack, unpackers, COUNT(unpackers), &unpacker, error));
    job->unpacks_on_device = unpacker == 1;
    PS_TRY(read_g_storage(&storage, job, error));
    if (!ps_json_is_null(&budget)) PS_TRY(ps_json_number(&budget, 1e-3, 1e6, &job->memory_budget_GiB, error));
    if (!ps_json_is_null(&threads)) PS_TRY(ps_json_integer(&threads, 1, 4096, &job->n_threads, error));
    return PS_OK;
}
