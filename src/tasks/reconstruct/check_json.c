#include <math.h>
#include <stdio.h>

#include "core/usage.h"
#include "optics/optics_json.h"
#include "tasks/reconstruct/check.h"

static void add_look(cJSON *group, const ps_run_inspection *seen) {
    if (seen->frame < 0) return;
    cJSON *look = cJSON_AddObjectToObject(group, "look");
    ps_check_add_number(look, "frame", (double)seen->frame);
    ps_check_add_number(look, "n_positions", (double)seen->n_positions);
    ps_check_add_number(look, "pixels_without_count", (double)seen->n_marked);
    ps_check_add_number(look, "hot_pixels", (double)seen->n_hot);
    if (!seen->has_disc) {
        cJSON_AddStringToObject(look, "no_disc", seen->no_disc ? seen->no_disc : "");
        return;
    }
    cJSON_AddItemToObject(look, "disc_center_px", cJSON_CreateDoubleArray(seen->disc.center_px, 2));
    ps_check_add_number(look, "disc_radius_mrad", seen->disc.radius);
    ps_check_add_number(look, "disc_counts", seen->disc.plateau);
    ps_check_add_number(look, "disc_missing", seen->disc.missing);
}

static void add_group(cJSON *groups, const ps_run_group *group) {
    cJSON *object = cJSON_CreateObject(), *aliases = cJSON_CreateObject();
    char count[8];
    if (group->source) cJSON_AddStringToObject(object, "optics_file", group->source);
    cJSON_AddItemToObject(object, "optics", ps_optics_to_json(&group->optics));
    cJSON_AddItemToObject(object, "origin", cJSON_Parse(group->origin));
    add_look(object, &group->look);
    ps_check_add_number(object, "wavelength_A", ps_wavelength_A(group->optics.voltage_V));
    ps_check_add_number(object, "n_frames", (double)group->n_frames);
    ps_check_add_number(object, "active_pixels", (double)group->plan.desc.n_active);
    ps_check_add_number(object, "bright_pixels", (double)group->plan.n_bright);
    ps_check_add_number(object, "bad_pixels_file", (double)group->n_bad_file);
    ps_check_add_number(object, "bad_pixels_mask", (double)group->n_bad_mask);
    ps_check_add_number(object, "bad_pixels_dead", (double)group->n_bad_dead);
    ps_check_add_number(object, "bad_pixels_in_disc", (double)group->plan.n_left_out);
    ps_check_add_number(object, "frequencies", (double)(group->plan.desc.n_frequencies - 1));
    ps_check_add_number(object, "full_plane_aliases", (double)group->plan.full_plane_aliases);
    for (int n = 0; n <= PS_MAX_ALIASES; n++) {
        if (group->plan.alias_histogram[n] == 0) continue;
        snprintf(count, sizeof count, "%d", n);
        ps_check_add_number(aliases, count, (double)group->plan.alias_histogram[n]);
    }
    cJSON_AddItemToObject(object, "alias_histogram", aliases);
    cJSON_AddItemToArray(groups, object);
}

/* Estimates; absent where nothing was measured. */
static void add_time(cJSON *root, const ps_check_report *report) {
    if (report->frame_seconds <= 0) return;
    cJSON *estimate = cJSON_AddObjectToObject(root, "time_estimate");
    ps_check_add_number(estimate, "prepare_seconds", report->prepare_seconds);
    ps_check_add_number(estimate, "frame_seconds", report->frame_seconds);
    ps_check_add_number(estimate, "period_seconds", report->period_s);
    for (int r = 0; r < PS_N_RESOURCES; r++) {
        char key[32];
        snprintf(key, sizeof key, "%s_seconds", ps_resource_name((ps_resource)r));
        ps_check_add_number(estimate, key, report->busy_s[r]);
    }
    cJSON_AddStringToObject(estimate, "busiest", ps_resource_name(ps_usage_busiest(report->busy_s)));
}

static void add_memory(cJSON *root, const ps_check_report *report) {
    const ps_reconstruct_found *own = ps_reconstruct_found_of(report);
    cJSON *memory = cJSON_AddObjectToObject(root, "memory_per_rank");
    const ps_memory_plan *backend = &own->memory.backend;
    ps_check_add_number(memory, "peak_bytes", (double)backend->peak_bytes);
    ps_check_add_number(memory, "system_bytes", (double)backend->system_bytes);
    ps_check_add_number(memory, "frame_bytes", (double)backend->frame_bytes);
    ps_check_add_number(memory, "workspace_bytes", (double)backend->workspace_bytes);
    ps_check_add_number(memory, "frames_per_batch", (double)backend->frames_per_batch);
    ps_check_add_number(memory, "pixels_per_chunk", (double)backend->pixels_per_chunk);
    ps_check_add_g(memory, &report->job, backend);
    cJSON_AddBoolToObject(memory, "on_device", own->memory.on_device);
    ps_check_add_number(memory, "least_bytes", (double)own->memory.least_bytes);
    ps_check_add_number(memory, "ring_bytes", (double)own->memory.ring_bytes);
    ps_check_add_number(memory, "beside_bytes", (double)own->memory.beside_bytes);
    ps_check_add_number(memory, "packed_threads", own->memory.packed.n_threads);
    ps_check_add_number(memory, "packed_pieces", own->memory.packed.n_pieces);
    ps_check_add_number(memory, "host_bytes", (double)own->memory.host_bytes);
    ps_check_add_number(memory, "unbounded_host_bytes", (double)own->unbounded_host_bytes);
    ps_check_add_budget(memory, &report->job);
}

void ps_reconstruct_add_check(cJSON *root, const ps_check_report *report) {
    const ps_run_plan *run = &report->run;
    ps_check_add_frames(root, run);
    ps_check_add_output(root, report);
    ps_check_add_machine(root, report);
    cJSON *groups = cJSON_AddArrayToObject(root, "groups"), *warnings;
    for (int64_t i = 0; i < run->n_groups; i++) add_group(groups, &run->groups[i]);
    cJSON_AddBoolToObject(root, "optics_are_fitted_first", report->job.optics.fit != NULL);
    ps_check_add_number(root, "rounded_by_deg", run->moved.rotation_deg);
    ps_check_add_number(root, "rounded_by_rad", run->moved.aberrations_rad);
    ps_check_add_number(root, "upsampling", (double)run->upsampling);
    ps_check_add_shape(root, "image_shape", run->image_rows, run->image_columns);
    cJSON_AddItemToObject(root, "image_step_A", cJSON_CreateDoubleArray(run->image_step_A, 2));
    ps_check_add_backend(root, report);
    add_memory(root, report);
    add_time(root, report);
    warnings = cJSON_AddArrayToObject(root, "warnings");
    if (report->does_not_fit[0]) cJSON_AddItemToArray(warnings, cJSON_CreateString(report->does_not_fit));
    for (int64_t i = 0; i < run->n_warnings; i++) cJSON_AddItemToArray(warnings, cJSON_CreateString(run->warnings[i]));
}
