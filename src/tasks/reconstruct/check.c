#include "tasks/reconstruct/check.h"

#include <stdlib.h>

#include "tasks/fit/beside.h"

const ps_reconstruct_found *ps_reconstruct_found_of(const ps_check_report *report) {
    return report->own;
}

/* What the backend may take of a device that is here; 0: of none. */
static size_t device_bytes(const ps_check_report *report) {
    ps_backend *backend = NULL;
    ps_device_info info = {0};
    if (!report->device_is_here || !report->ops->device_count) return 0;
    if (ps_backend_open(report->ops, &report->backend_options, &backend, NULL) != PS_OK) return 0;
    ps_backend_info(backend, &info);
    ps_backend_close(backend);
    return info.budget_bytes;
}

static ps_code plan_memory(ps_check_report *report, const ps_memory_share *share, size_t device, ps_error *error) {
    ps_run_memory *memory = &((ps_reconstruct_found *)report->own)->memory;
    PS_TRY(ps_run_memory_begin(&report->job, &report->run, report->ops, share, 0, memory, error));
    return ps_run_memory_finish(&report->job, &report->run, report->ops, share, device, memory, error);
}

/* Planned into this machine's memory, for one rank. Where the job will run elsewhere this machine's memory is worth a warning only. */
static ps_code check_memory(ps_check_report *report, ps_error *error) {
    ps_error reason = {0};
    ps_reconstruct_found *own = report->own;
    ps_check_look_at_machine(report);
    PS_TRY(plan_memory(report, NULL, 0, error));
    own->unbounded_host_bytes = own->memory.host_bytes;
    const ps_run_memory unbounded = own->memory;
    ps_code code = plan_memory(report, &report->share, device_bytes(report), &reason);
    if (code == PS_OK) return PS_OK;
    own->memory = unbounded;
    return ps_check_judge_machine(report, code, &reason, error);
}

/* With every recording looked at, the optics too: what a little rotation and defocus beside them would explain. */
static ps_code look_at_optics(ps_check_report *report, ps_error *error) {
    const ps_reconstruct_found *own = report->own;
    ps_fit_source source = {.job = &report->job, .run = &report->run};
    ps_code code = PS_OK;
    if (!report->device_is_here || report->job.optics.fit) return PS_OK;
    const ps_loader_shape shape = ps_run_loader_shape(&report->job, &report->run);
    ps_backend_options options = report->backend_options;
    options.memory_budget_bytes = own->memory.backend_budget;
    PS_GO(ps_backend_open(report->ops, &options, &source.backend, error));
    PS_GO(ps_loader_create(&shape, own->memory.ring_bytes, &source.loader, error));
    for (int64_t g = 0; g < report->run.n_groups; g++) {
        char text[PS_BESIDE_TEXT];
        PS_GO(ps_fit_look_at_optics(&source, g, text, error));
        if (text[0]) PS_GO(ps_run_plan_add_warning(&report->run, error, "%s: %s", ps_run_plan_group_name(&report->run.groups[g]), text));
    }
done:
    ps_loader_destroy(source.loader);
    if (source.backend) ps_backend_close(source.backend);
    return code;
}

/* Images, and the few numbers that go with each. */
static int64_t reconstruct_bytes(const ps_check_report *report) {
    const ps_job *job = &report->job;
    int64_t images = ps_method_set_images(&job->methods);
    return report->run.series.n_items * images * report->run.image_rows * report->run.image_columns * (int64_t)sizeof(float);
}

ps_code ps_reconstruct_check(ps_check_report *report, const ps_check_options *options, ps_error *error) {
    enum { MOST_LOOKED_AT = 32 };
    report->own = calloc(1, sizeof(ps_reconstruct_found));
    if (!report->own) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the report");
    PS_TRY(ps_check_output(report, error));
    PS_TRY(ps_check_backend(report, error));
    PS_TRY(ps_run_plan_build(&report->job, &report->run, error));
    PS_TRY(ps_run_plan_survey(NULL, &report->job, NULL, &report->run, options->every_recording ? 0 : MOST_LOOKED_AT, error));
    PS_TRY(ps_run_plan_inspect(&report->job, &report->run, error));
    PS_TRY(check_memory(report, error));
    if (options->every_recording) PS_TRY(look_at_optics(report, error));
    report->output_bytes = reconstruct_bytes(report);
    return PS_OK;
}
