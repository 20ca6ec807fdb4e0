#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/usage.h"
#include "plan/held_g.h"
#include "tasks/reconstruct/check.h"

static void print_fit(const ps_job *job) {
    if (!job->optics.fit) return;
    ps_check_print_label("fit");
    printf("optics are fitted first, from those below; upsampling and memory may differ with what is found\n");
}

static void print_optics(const ps_run_group *group) {
    const ps_optics *optics = &group->optics;
    printf("%g kV (%.5g A), %g mrad, step %g x %g A, pitch %g x %g mrad, centre (%g, %g) px, rotation %g deg", optics->voltage_V / 1e3,
           ps_wavelength_A(optics->voltage_V), optics->semiangle_mrad, optics->scan_step_A[0], optics->scan_step_A[1],
           optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1], optics->detector_center_px[0], optics->detector_center_px[1],
           optics->rotation_deg);
    for (int i = 0; i < PS_N_ABERRATIONS; i++)
        if (optics->C_A[i] != 0.0) printf(", C%d%d %g A", ps_aberration_orders[i][0], ps_aberration_orders[i][1], optics->C_A[i]);
    if (optics->thickness_A > 0.0)
        printf(", thickness %g A, tilt (%g, %g) mrad", optics->thickness_A, optics->tilt_mrad[0], optics->tilt_mrad[1]);
    printf("\n");
}

/* Where values come from that were not given. */
static void print_origin(const ps_run_group *group) {
    const char *separator = "";
    cJSON *origin = cJSON_Parse(group->origin);
    const cJSON *entry;
    if (origin && origin->child) {
        ps_check_print_label("  found");
        cJSON_ArrayForEach(entry, origin) {
            printf("%s%s: %s", separator, entry->string, entry->valuestring);
            separator = "; ";
        }
        printf("\n");
    }
    cJSON_Delete(origin);
}

static void print_look(const ps_run_plan *run, const ps_run_group *group) {
    const ps_run_inspection *seen = &group->look;
    if (seen->frame < 0 || !seen->has_disc) return;
    double pixel_mrad = sqrt(group->optics.detector_pitch_mrad[0] * group->optics.detector_pitch_mrad[1]);
    ps_check_print_label("  disc");
    printf("in %" PRId64 " patterns of %s: centre (%.2f, %.2f) px, radius %.2f px, %.3g counts a pixel and position", seen->n_positions,
           run->series.items[seen->frame].stem, seen->disc.center_px[0], seen->disc.center_px[1], seen->disc.radius / pixel_mrad,
           seen->disc.plateau);
    if (seen->disc.is_clipped) printf(", %.0f %% of it beyond the detector's edge", 100.0 * seen->disc.missing);
    printf("; %" PRId64 " pixels without a count somewhere, %" PRId64 " hot\n", seen->n_marked, seen->n_hot);
}

static void print_aliases(const ps_plan *plan) {
    const char *separator = "";
    printf("%" PRId64 " to solve (half plane); aliases of each: ", plan->desc.n_frequencies - 1);
    for (int n = 0; n <= PS_MAX_ALIASES; n++) {
        if (plan->alias_histogram[n] == 0) continue;
        printf("%s%d (%" PRId64 " times)", separator, n, plan->alias_histogram[n]);
        separator = ", ";
    }
    printf("\n");
}

static void print_group(const ps_run_plan *run, int64_t index) {
    const ps_run_group *group = &run->groups[index];
    ps_check_print_label(index == 0 ? "optics" : "");
    if (run->n_groups > 1) printf("group %" PRId64 " of %" PRId64 ", ", index + 1, run->n_groups);
    printf("%" PRId64 " frame%s, %s\n", group->n_frames, group->n_frames == 1 ? "" : "s",
           group->source ? group->source : "given in the job");
    ps_check_print_label("");
    print_optics(group);
    print_origin(group);
    print_look(run, group);
    ps_check_print_label("  pixels");
    printf("%" PRId64 " active, %" PRId64 " of them wholly inside the disc", group->plan.desc.n_active, group->plan.n_bright);
    printf("; masked: %" PRId64 " by the recording, %" PRId64 " by the mask file, %" PRId64 " of all inside the disc\n", group->n_bad_file,
           group->n_bad_mask, group->plan.n_left_out);
    ps_check_print_label("  frequencies");
    print_aliases(&group->plan);
}

static void print_method(const ps_method_settings *settings) {
    ps_check_print_label("");
    printf("%s: ", settings->method->name);
    settings->method->describe(settings, stdout);
    printf("\n");
}

static void print_methods(const ps_check_report *report) {
    const ps_job *job = &report->job;
    ps_check_print_label("methods");
    printf("weights %s\n", job->weights == PS_WEIGHTS_POISSON ? "poisson" : "uniform");
    for (int64_t i = 0; i < job->methods.n; i++) print_method(&job->methods.items[i]);
    ps_check_print_label("images");
    printf("%" PRId64 " x %" PRId64 ", step %.4g x %.4g A (upsampling %" PRId64 ", %s)\n", report->run.image_rows,
           report->run.image_columns, report->run.image_step_A[0], report->run.image_step_A[1], report->run.upsampling,
           job->upsampling > 0 ? "given" : "auto");
}

static void print_host(const ps_check_report *report) {
    const ps_run_memory *memory = &ps_reconstruct_found_of(report)->memory;
    ps_check_print_label("  host");
    ps_check_print_bytes((double)memory->host_bytes);
    printf(" per rank%s: recordings read ahead ", memory->on_device ? "" : ", the above included");
    ps_check_print_bytes((double)memory->ring_bytes);
    printf(", plans, decompression and results ");
    ps_check_print_bytes((double)memory->beside_bytes);
    printf("; one rank may take ");
    ps_check_print_bytes((double)report->share.bytes);
    printf(" on this machine (%s)\n", report->share.text);
    if (memory->packed.n_pieces == 0) return;
    ps_check_print_label("  reading");
    printf("%d thread%s into %d pieces of pinned memory, ", memory->packed.n_threads, memory->packed.n_threads == 1 ? "" : "s",
           memory->packed.n_pieces);
    ps_check_print_bytes((double)memory->packed.n_pieces * (double)memory->packed.piece_bytes);
    printf(" in all, unpacked on the device; ranks of a node divide its CPUs and memory\n");
}

static void print_memory(const ps_check_report *report) {
    const ps_memory_plan *memory = &ps_reconstruct_found_of(report)->memory.backend;
    char g[PS_HELD_G_TEXT];
    ps_check_print_backend(report);
    ps_check_print_label("memory");
    ps_check_print_bytes((double)memory->peak_bytes);
    printf(" per rank: system ");
    ps_check_print_bytes((double)memory->system_bytes);
    printf(", each frame ");
    ps_check_print_bytes((double)memory->frame_bytes);
    printf(", work ");
    ps_check_print_bytes((double)memory->workspace_bytes);
    printf("; %" PRId64 " frame%s and %" PRId64 " pixels at a time; ", memory->frames_per_batch, memory->frames_per_batch == 1 ? "" : "s",
           memory->pixels_per_chunk);
    ps_check_print_budget(&report->job);
    ps_held_g_describe(&report->job, memory, g);
    ps_check_print_label("  g");
    printf("%s\n", g);
    print_host(report);
}

/* What the run will be bound by, in the words in which it will say what it was bound by. */
static void print_bound(const ps_check_report *report) {
    double shares[PS_N_RESOURCES];
    char text[PS_USAGE_TEXT];
    for (int r = 0; r < PS_N_RESOURCES; r++) shares[r] = report->busy_s[r] / report->period_s;
    ps_usage_verdict(shares, text, sizeof text);
    ps_check_print_label("bound");
    printf("%s; seconds a frame:", text);
    for (int r = 0; r < PS_N_RESOURCES; r++)
        if (report->busy_s[r] > 0) printf(" %s %.2g", ps_resource_name((ps_resource)r), report->busy_s[r]);
    printf("%s\n", report->busy_s[PS_RESOURCE_OUTPUT] > 0 ? "" : "; writing could not be measured in the output's folder");
}

static void print_time(const ps_check_report *report) {
    if (report->frame_seconds <= 0) return;
    ps_check_print_label("time");
    printf("about %.2g s to prepare an optics, %.2g s to compute a frame, %.2g s from frame to frame with reading and writing, on one rank "
           "like "
           "this machine; estimated from samples\n",
           report->prepare_seconds, report->frame_seconds, report->period_s);
    print_bound(report);
}

void ps_reconstruct_print_check(const ps_check_report *report) {
    const ps_run_plan *run = &report->run;
    ps_check_print_frames(run, &report->job.series);
    print_fit(&report->job);
    ps_check_print_looked(run);
    for (int64_t i = 0; i < run->n_groups && i < PS_CHECK_MOST_LISTED; i++) print_group(run, i);
    if (run->n_groups > PS_CHECK_MOST_LISTED)
        printf("%*s ... and %" PRId64 " more groups\n", PS_CHECK_LABEL_WIDTH, "", run->n_groups - PS_CHECK_MOST_LISTED);
    if (run->moved.aberrations_rad > 0.0 || run->moved.rotation_deg > 0.0) {
        ps_check_print_label("rounded");
        printf("%" PRId64 " frames make %" PRId64 " preparations; optics moved by up to %.3g degrees and %.3g rad at the rim\n",
               run->series.n_items, run->n_groups, run->moved.rotation_deg, run->moved.aberrations_rad);
    }
    print_methods(report);
    print_memory(report);
    print_time(report);
    ps_check_print_output(report);
    ps_check_print_machine(report);
    ps_check_print_warnings(run);
}
