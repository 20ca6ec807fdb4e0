#include <math.h>
#include <stdio.h>

#include "cli/check_report.h"
#include "optics/optics_json.h"

/* Every add_* ignores what cannot be allocated; the end is checked once, by printing. */
static void add_number(cJSON *object, const char *key, double value) {
    cJSON_AddNumberToObject(object, key, value);
}

static void add_shape(cJSON *object, const char *key, int64_t rows, int64_t columns) {
    const double shape[2] = {(double)rows, (double)columns};
    cJSON_AddItemToObject(object, key, cJSON_CreateDoubleArray(shape, 2));
}

/* What some of its patterns show. */
static void add_seen(cJSON *frame, const ps_run_seen *seen) {
    if (!seen->looked) return;
    cJSON *json = cJSON_AddObjectToObject(frame, "seen");
    add_number(json, "n_positions", (double)seen->n_positions);
    add_number(json, "empty_patterns", (double)seen->n_empty);
    add_number(json, "marked_patterns", (double)seen->n_marked_patterns);
    add_number(json, "hot_pixels", (double)seen->n_hot);
    add_number(json, "dead_pixels", (double)seen->n_dead);
    if (!seen->has_disc) return;
    cJSON_AddItemToObject(json, "disc_center_px", cJSON_CreateDoubleArray(seen->center_px, 2));
    add_number(json, "disc_radius_px", seen->radius_px);
}

static void add_frames(cJSON *root, const ps_run_plan *run) {
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
            add_number(frame, "data_bytes", (double)found->info.data_bytes);
            add_number(frame, "n_missing", (double)found->info.n_missing);
            if (found->group >= 0) add_number(frame, "group", (double)found->group);
            if (found->refused) cJSON_AddStringToObject(frame, "unusable", found->refused);
            add_seen(frame, &found->seen);
        }
        cJSON_AddItemToArray(frames, frame);
    }
    add_number(root, "n_frames", (double)run->series.n_items);
    int64_t n_unusable = 0;
    for (int64_t i = 0; i < run->series.n_items; i++) n_unusable += run->frames[i].unreadable || run->frames[i].refused;
    add_number(root, "n_unusable", (double)n_unusable);
    add_shape(root, "scan_shape", run->scan_rows, run->scan_columns);
    add_shape(root, "detector_shape", run->detector_rows, run->detector_columns);
    cJSON_AddStringToObject(root, "dtype", ps_dtype_name(run->dtype));
}

static void add_look(cJSON *group, const ps_run_inspection *seen) {
    if (seen->frame < 0) return;
    cJSON *look = cJSON_AddObjectToObject(group, "look");
    add_number(look, "frame", (double)seen->frame);
    add_number(look, "n_positions", (double)seen->n_positions);
    add_number(look, "pixels_without_count", (double)seen->n_marked);
    add_number(look, "hot_pixels", (double)seen->n_hot);
    if (!seen->has_disc) {
        cJSON_AddStringToObject(look, "no_disc", seen->no_disc ? seen->no_disc : "");
        return;
    }
    cJSON_AddItemToObject(look, "disc_center_px", cJSON_CreateDoubleArray(seen->disc.center_px, 2));
    add_number(look, "disc_radius_mrad", seen->disc.radius);
    add_number(look, "disc_counts", seen->disc.plateau);
    add_number(look, "disc_missing", seen->disc.missing);
}

static void add_group(cJSON *groups, const ps_run_group *group) {
    cJSON *object = cJSON_CreateObject(), *aliases = cJSON_CreateObject();
    char count[8];
    if (group->source) cJSON_AddStringToObject(object, "optics_file", group->source);
    cJSON_AddItemToObject(object, "optics", ps_optics_to_json(&group->optics));
    cJSON_AddItemToObject(object, "origin", cJSON_Parse(group->origin));
    add_look(object, &group->look);
    add_number(object, "wavelength_A", ps_wavelength_A(group->optics.voltage_V));
    add_number(object, "n_frames", (double)group->n_frames);
    add_number(object, "active_pixels", (double)group->plan.desc.n_active);
    add_number(object, "bright_pixels", (double)group->plan.n_bright);
    add_number(object, "bad_pixels_file", (double)group->n_bad_file);
    add_number(object, "bad_pixels_mask", (double)group->n_bad_mask);
    add_number(object, "bad_pixels_dead", (double)group->n_bad_dead);
    add_number(object, "bad_pixels_in_disc", (double)group->plan.n_left_out);
    add_number(object, "frequencies", (double)(group->plan.desc.n_frequencies - 1));
    add_number(object, "full_plane_aliases", (double)group->plan.full_plane_aliases);
    for (int n = 0; n <= PS_MAX_ALIASES; n++) {
        if (group->plan.alias_histogram[n] == 0) continue;
        snprintf(count, sizeof count, "%d", n);
        add_number(aliases, count, (double)group->plan.alias_histogram[n]);
    }
    cJSON_AddItemToObject(object, "alias_histogram", aliases);
    cJSON_AddItemToArray(groups, object);
}

/* Estimates; absent where nothing was measured. */
static void add_time(cJSON *root, const ps_check_report *report) {
    if (report->frame_seconds <= 0) return;
    cJSON *estimate = cJSON_AddObjectToObject(root, "time_estimate");
    add_number(estimate, "prepare_seconds", report->prepare_seconds);
    add_number(estimate, "frame_seconds", report->frame_seconds);
}

static void add_memory(cJSON *root, const ps_check_report *report) {
    cJSON *memory = cJSON_AddObjectToObject(root, "memory_per_rank");
    const ps_memory_plan *backend = &report->memory.backend;
    add_number(memory, "peak_bytes", (double)backend->peak_bytes);
    add_number(memory, "system_bytes", (double)backend->system_bytes);
    add_number(memory, "frame_bytes", (double)backend->frame_bytes);
    add_number(memory, "workspace_bytes", (double)backend->workspace_bytes);
    add_number(memory, "frames_per_batch", (double)backend->frames_per_batch);
    add_number(memory, "pixels_per_chunk", (double)backend->pixels_per_chunk);
    cJSON_AddBoolToObject(memory, "on_device", report->memory.on_device);
    add_number(memory, "least_bytes", (double)report->memory.least_bytes);
    add_number(memory, "ring_bytes", (double)report->memory.ring_bytes);
    add_number(memory, "beside_bytes", (double)report->memory.beside_bytes);
    add_number(memory, "host_bytes", (double)report->memory.host_bytes);
    add_number(memory, "unbounded_host_bytes", (double)report->unbounded_host_bytes);
    if (report->job.memory_budget_GiB > 0.0) add_number(memory, "budget_GiB", report->job.memory_budget_GiB);
}

/* Of this machine, for one rank. */
static void add_machine(cJSON *root, const ps_check_report *report) {
    cJSON *machine = cJSON_AddObjectToObject(root, "this_machine");
    add_number(machine, "free_bytes", (double)report->share.bytes);
    cJSON_AddStringToObject(machine, "limit", report->share.text);
    cJSON_AddBoolToObject(machine, "job_fits", report->does_not_fit[0] == '\0');
    cJSON_AddBoolToObject(machine, "may_run_elsewhere", report->may_run_elsewhere);
}

static void add_reconstruct(cJSON *root, const ps_check_report *report) {
    const ps_run_plan *run = &report->run;
    cJSON *groups = cJSON_AddArrayToObject(root, "groups"), *warnings;
    for (int64_t i = 0; i < run->n_groups; i++) add_group(groups, &run->groups[i]);
    add_number(root, "upsampling", (double)run->upsampling);
    add_shape(root, "image_shape", run->image_rows, run->image_columns);
    cJSON_AddItemToObject(root, "image_step_A", cJSON_CreateDoubleArray(run->image_step_A, 2));
    cJSON_AddStringToObject(root, "backend", report->ops->name);
    cJSON_AddStringToObject(root, "backend_note", report->backend_note);
    add_memory(root, report);
    add_time(root, report);
    warnings = cJSON_AddArrayToObject(root, "warnings");
    if (report->does_not_fit[0]) cJSON_AddItemToArray(warnings, cJSON_CreateString(report->does_not_fit));
    for (int64_t i = 0; i < run->n_warnings; i++) cJSON_AddItemToArray(warnings, cJSON_CreateString(run->warnings[i]));
}

static void add_histogram(cJSON *root, const ps_check_report *report) {
    const ps_histogram_memory *counting = &report->counting;
    add_number(root, "bins", (double)report->job.histogram.n_bins);
    cJSON_AddStringToObject(root, "backend", report->ops->name);
    cJSON_AddStringToObject(root, "backend_note", report->backend_note);
    cJSON *memory = cJSON_AddObjectToObject(root, "memory_per_rank");
    cJSON_AddBoolToObject(memory, "on_device", counting->on_device);
    add_number(memory, "counter_bytes", (double)counting->counter_bytes);
    add_number(memory, "frame_bytes", (double)counting->frame_bytes);
    add_number(memory, "host_bytes", (double)counting->host_bytes);
    add_number(memory, "rows_at_once", (double)counting->rows_at_once);
    add_number(memory, "rows", (double)report->counting_rows);
    if (report->job.memory_budget_GiB > 0.0) add_number(memory, "budget_GiB", report->job.memory_budget_GiB);
}

static void add_simulate(cJSON *root, const ps_check_report *report) {
    const ps_job_simulate *job = &report->job.simulate;
    const ps_simulate_plan *plan = &report->simulate;
    add_number(root, "n_frames", (double)job->n_frames);
    add_shape(root, "scan_shape", job->scan_rows, job->scan_columns);
    add_shape(root, "detector_shape", job->detector_rows, job->detector_columns);
    cJSON_AddStringToObject(root, "dtype", ps_dtype_name(job->dtype));
    add_shape(root, "object_shape", plan->object_rows, plan->object_columns);
    cJSON_AddItemToObject(root, "object_step_A", cJSON_CreateDoubleArray(plan->object_step_A, 2));
    add_number(root, "object_upsampling", (double)plan->upsampling);
    add_number(root, "n_atoms", (double)plan->n_atoms);
    add_number(root, "memory_bytes", (double)plan->memory_bytes);
    add_number(root, "scratch_bytes", (double)plan->scratch_bytes);
    cJSON_AddStringToObject(root, "output_master", job->output_master);
}

ps_code ps_check_print_json(const ps_check_report *report, ps_error *error) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "job", report->job.path);
    cJSON_AddStringToObject(root, "task", ps_check_task_name(report->job.task));
    if (report->job.task == PS_TASK_SIMULATE)
        add_simulate(root, report);
    else {
        add_frames(root, &report->run);
        cJSON_AddStringToObject(root, "output_file", report->job.output_file);
        cJSON_AddBoolToObject(root, "output_exists", report->output_exists);
    }
    add_machine(root, report);
    if (report->job.task == PS_TASK_RECONSTRUCT) add_reconstruct(root, report);
    if (report->job.task == PS_TASK_HISTOGRAM) add_histogram(root, report);
    add_number(root, "output_bytes", (double)report->output_bytes);
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the report");
    puts(text);
    cJSON_free(text);
    return PS_OK;
}
