#include "tasks/check.h"

#include "plan/held_g.h"

void ps_check_add_number(cJSON *object, const char *key, double value) {
    cJSON_AddNumberToObject(object, key, value);
}

void ps_check_add_shape(cJSON *object, const char *key, int64_t rows, int64_t columns) {
    const double shape[2] = {(double)rows, (double)columns};
    cJSON_AddItemToObject(object, key, cJSON_CreateDoubleArray(shape, 2));
}

/* What some of its patterns show. */
static void add_seen(cJSON *frame, const ps_run_seen *seen) {
    if (!seen->looked) return;
    cJSON *json = cJSON_AddObjectToObject(frame, "seen");
    ps_check_add_number(json, "n_positions", (double)seen->n_positions);
    ps_check_add_number(json, "empty_patterns", (double)seen->n_empty);
    ps_check_add_number(json, "marked_patterns", (double)seen->n_marked_patterns);
    ps_check_add_number(json, "hot_pixels", (double)seen->n_hot);
    ps_check_add_number(json, "dead_pixels", (double)seen->n_dead);
    if (!seen->has_disc) return;
    cJSON_AddItemToObject(json, "disc_center_px", cJSON_CreateDoubleArray(seen->center_px, 2));
    ps_check_add_number(json, "disc_radius_px", seen->radius_px);
}

void ps_check_add_frames(cJSON *root, const ps_run_plan *run) {
    cJSON *frames = cJSON_AddArrayToObject(root, "frames");
    for (int64_t i = 0; i < run->series.n_items; i++) {
        cJSON *frame = cJSON_CreateObject();
        const ps_run_frame *found = &run->frames[i];
        cJSON_AddStringToObject(frame, "source", run->series.items[i].source);
        if (found->unreadable)
            cJSON_AddStringToObject(frame, "unusable", found->unreadable);
        else {
            cJSON_AddStringToObject(frame, "format", found->info.format);
            cJSON_AddStringToObject(frame, "compression", found->info.compression);
            cJSON_AddStringToObject(frame, "acquisition_time", found->info.acquisition_time);
            ps_check_add_number(frame, "data_bytes", (double)found->info.data_bytes);
            ps_check_add_number(frame, "n_missing", (double)found->info.n_missing);
            if (found->group >= 0) ps_check_add_number(frame, "group", (double)found->group);
            if (found->refused) cJSON_AddStringToObject(frame, "unusable", found->refused);
            add_seen(frame, &found->seen);
        }
        cJSON_AddItemToArray(frames, frame);
    }
    ps_check_add_number(root, "n_frames", (double)run->series.n_items);
    int64_t n_unusable = 0;
    for (int64_t i = 0; i < run->series.n_items; i++) n_unusable += run->frames[i].unreadable || run->frames[i].refused;
    ps_check_add_number(root, "n_unusable", (double)n_unusable);
    ps_check_add_shape(root, "scan_shape", run->scan_rows, run->scan_columns);
    ps_check_add_shape(root, "detector_shape", run->detector_rows, run->detector_columns);
    cJSON_AddStringToObject(root, "dtype", ps_dtype_name(run->dtype));
}

void ps_check_add_output(cJSON *root, const ps_check_report *report) {
    cJSON_AddStringToObject(root, "output_file", report->job.output_file);
    cJSON_AddBoolToObject(root, "output_exists", report->output_exists);
}

void ps_check_add_machine(cJSON *root, const ps_check_report *report) {
    cJSON *machine = cJSON_AddObjectToObject(root, "this_machine");
    ps_check_add_number(machine, "free_bytes", (double)report->share.bytes);
    cJSON_AddStringToObject(machine, "limit", report->share.text);
    cJSON_AddBoolToObject(machine, "job_fits", report->does_not_fit[0] == '\0');
    cJSON_AddBoolToObject(machine, "may_run_elsewhere", report->may_run_elsewhere);
}

void ps_check_add_backend(cJSON *root, const ps_check_report *report) {
    cJSON_AddStringToObject(root, "backend", report->ops->name);
    cJSON_AddStringToObject(root, "backend_note", report->backend_note);
}

void ps_check_add_g(cJSON *memory, const ps_job *job, const ps_memory_plan *plan) {
    char text[PS_HELD_G_TEXT];
    ps_held_g_describe(job, plan, text);
    cJSON_AddStringToObject(memory, "g_storage", ps_job_g_name(job->g_storage));
    cJSON_AddBoolToObject(memory, "holds_g", plan->holds_g);
    ps_check_add_number(memory, "g_bytes", (double)plan->g_bytes);
    cJSON_AddStringToObject(memory, "g", text);
}

void ps_check_add_budget(cJSON *memory, const ps_job *job) {
    if (job->memory_budget_GiB > 0.0) ps_check_add_number(memory, "budget_GiB", job->memory_budget_GiB);
}
