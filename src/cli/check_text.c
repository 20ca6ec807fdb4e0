#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/check_report.h"
#include "core/text.h"

enum { MOST_LISTED = 8, LABEL_WIDTH = 12 };

static void label(const char *text) {
    printf("%-*s ", LABEL_WIDTH, text);
}

static void print_bytes(double bytes) {
    char text[PS_BYTES_TEXT];
    printf("%s", ps_text_bytes(bytes, text));
}

static int64_t first_readable(const ps_run_plan *run) {
    int64_t i = 0;
    while (run->frames[i].unreadable) i++;
    return i;
}

/* "1 flyback position a row left out" and the like; separator: what stands before it. */
static void print_count(int64_t n, const char *what, const char *after, const char **separator) {
    if (n == 0) return;
    printf("%s%" PRId64 " %s%s %s", *separator, n, what, n == 1 ? "" : "s", after);
    *separator = ", ";
}

/* How patterns become positions and what counts as a count, where that is not the usual. */
static void print_reading(const ps_job_series *series, int64_t n_missing) {
    const char *separator = "";
    bool is_usual = series->skip_leading + series->skip_trailing + series->flyback + n_missing == 0 && series->repeats == 1 &&
                    !series->serpentine && series->channel == 0 && series->saturation == 0.0;
    if (is_usual) return;
    label("  reading");
    print_count(series->skip_leading, "leading pattern", "skipped", &separator);
    print_count(series->skip_trailing, "trailing pattern", "skipped", &separator);
    print_count(series->flyback, "flyback position", "a row left out", &separator);
    if (series->repeats > 1) print_count(series->repeats, "pattern", "a position summed", &separator);
    print_count(n_missing, "pattern", "of all recordings missing and filled", &separator);
    if (series->serpentine) printf("%severy second row turned", separator);
    separator = series->serpentine ? ", " : separator;
    if (series->channel > 0) printf("%schannel %" PRId64, separator, series->channel);
    separator = series->channel > 0 ? ", " : separator;
    if (isinf(series->saturation)) printf("%sno count taken for saturated", separator);
    if (isfinite(series->saturation) && series->saturation > 0.0) printf("%scounts from %.10g on saturated", separator, series->saturation);
    printf("\n");
}

static int64_t count_unusable(const ps_run_plan *run) {
    int64_t n = 0;
    for (int64_t i = 0; i < run->series.n_items; i++) n += run->frames[i].unreadable || run->frames[i].refused;
    return n;
}

static void print_unusable(const ps_run_plan *run) {
    int64_t listed = 0, n_unusable = count_unusable(run);
    for (int64_t i = 0; i < run->series.n_items && listed < MOST_LISTED; i++) {
        const ps_run_frame *frame = &run->frames[i];
        if (!frame->unreadable && !frame->refused) continue;
        listed++;
        label("");
        if (frame->unreadable)
            printf("unusable: %s\n", frame->unreadable);
        else
            printf("unusable: %s: %s\n", run->series.items[i].stem, frame->refused);
    }
    if (n_unusable > listed) printf("%*s ... and %" PRId64 " more\n", LABEL_WIDTH, "", n_unusable - listed);
}

static void print_frames(const ps_run_plan *run, const ps_job_series *series) {
    const ps_recording *info = &run->frames[first_readable(run)].info;
    int64_t n = run->series.n_items, n_missing = 0, n_unusable = count_unusable(run);
    double bytes = 0.0;
    for (int64_t i = 0; i < n; i++) {
        bytes += (double)run->frames[i].info.data_bytes;
        n_missing += run->frames[i].info.n_missing;
    }
    label("frames");
    printf("%" PRId64, n - n_unusable);
    if (n_unusable > 0) printf(" of %" PRId64 ", %" PRId64 " cannot be used", n, n_unusable);
    printf(": scan %" PRId64 " x %" PRId64 ", detector %" PRId64 " x %" PRId64 ", %s (%s, %s), ", run->scan_rows, run->scan_columns,
           run->detector_rows, run->detector_columns, ps_dtype_name(run->dtype), info->format,
           info->compression[0] ? info->compression : "none");
    print_bytes(bytes);
    printf(" on disk%s\n", series->by_time ? ", in the order of their times" : "");
    print_reading(series, n_missing);
    print_unusable(run);
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
        label("  found");
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
    label("  disc");
    printf("in %" PRId64 " patterns of %s: centre (%.2f, %.2f) px, radius %.2f px, %.3g counts a pixel and position", seen->n_positions,
           run->series.items[seen->frame].stem, seen->disc.center_px[0], seen->disc.center_px[1], seen->disc.radius / pixel_mrad,
           seen->disc.plateau);
    if (seen->disc.is_clipped) printf(", %.0f %% of it beyond the detector's edge", 100.0 * seen->disc.missing);
    printf("; %" PRId64 " pixels without a count somewhere, %" PRId64 " hot\n", seen->n_marked, seen->n_hot);
}

static void print_looked(const ps_run_plan *run) {
    int64_t looked = 0, readable = run->series.n_items - run->n_unreadable;
    for (int64_t i = 0; i < run->series.n_items; i++) looked += run->frames[i].seen.looked;
    if (looked == 0 || readable < 2) return;
    label("  looked at");
    printf("some patterns of %" PRId64 " of %" PRId64 " recordings%s\n", looked, readable,
           looked < readable ? "; --data looks at all, as the run does" : "");
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
    label(index == 0 ? "optics" : "");
    if (run->n_groups > 1) printf("group %" PRId64 " of %" PRId64 ", ", index + 1, run->n_groups);
    printf("%" PRId64 " frame%s, %s\n", group->n_frames, group->n_frames == 1 ? "" : "s",
           group->source ? group->source : "given in the job");
    label("");
    print_optics(group);
    print_origin(group);
    print_look(run, group);
    label("  pixels");
    printf("%" PRId64 " active, %" PRId64 " of them wholly inside the disc", group->plan.desc.n_active, group->plan.n_bright);
    printf("; masked: %" PRId64 " by the recording, %" PRId64 " by the mask file, %" PRId64 " of all inside the disc\n", group->n_bad_file,
           group->n_bad_mask, group->plan.n_left_out);
    label("  frequencies");
    print_aliases(&group->plan);
}

static void print_method(const char *name, const ps_job_method *method) {
    if (!method->enabled) return;
    label("");
    printf("%s: strength ", name);
    if (method->automatic) printf("chosen per frame by cross-validation");
    for (int64_t i = 0; !method->automatic && i < method->n_strengths; i++) {
        const ps_strength *strength = &method->strengths[i];
        if (strength->amplitude == strength->phase)
            printf("%s%g", i ? ", " : "", strength->phase);
        else
            printf("%s(amplitude %g, phase %g)", i ? ", " : "", strength->amplitude, strength->phase);
    }
    if (isfinite(method->smoothness_inv_A)) printf("; smoothness %g 1/A", method->smoothness_inv_A);
    printf("\n");
}

static void print_methods(const ps_check_report *report) {
    const ps_job *job = &report->job;
    label("methods");
    printf("weights %s\n", job->weights == PS_WEIGHTS_POISSON ? "poisson" : "uniform");
    if (job->ssb_enabled) printf("%*s ssb: estimator %s\n", LABEL_WIDTH, "", job->ssb_estimator == PS_SSB_PHASE ? "phase" : "wave");
    print_method("phase", &job->phase);
    print_method("complex", &job->complex_);
    label("images");
    printf("%" PRId64 " x %" PRId64 ", step %.4g x %.4g A (upsampling %" PRId64 ", %s)\n", report->run.image_rows,
           report->run.image_columns, report->run.image_step_A[0], report->run.image_step_A[1], report->run.upsampling,
           job->upsampling > 0 ? "given" : "auto");
}

static void print_backend(const ps_check_report *report) {
    label("backend");
    printf("%s%s%s%s\n", report->ops->name, *report->backend_note ? " (" : "", report->backend_note, *report->backend_note ? ")" : "");
}

static void print_budget(const ps_job *job) {
    if (job->memory_budget_GiB > 0.0)
        printf("budget %g GiB\n", job->memory_budget_GiB);
    else
        printf("budget not given\n");
}

static void print_host(const ps_check_report *report) {
    const ps_run_memory *memory = &report->memory;
    label("  host");
    print_bytes((double)memory->host_bytes);
    printf(" per rank%s: recordings read ahead ", memory->on_device ? "" : ", the above included");
    print_bytes((double)memory->ring_bytes);
    printf(", plans, decompression and results ");
    print_bytes((double)memory->beside_bytes);
    printf("; one rank may take ");
    print_bytes((double)report->share.bytes);
    printf(" on this machine (%s)\n", report->share.text);
}

static void print_memory(const ps_check_report *report) {
    const ps_memory_plan *memory = &report->memory.backend;
    print_backend(report);
    label("memory");
    print_bytes((double)memory->peak_bytes);
    printf(" per rank: system ");
    print_bytes((double)memory->system_bytes);
    printf(", each frame ");
    print_bytes((double)memory->frame_bytes);
    printf(", work ");
    print_bytes((double)memory->workspace_bytes);
    printf("; %" PRId64 " frame%s and %" PRId64 " pixels at a time; ", memory->frames_per_batch, memory->frames_per_batch == 1 ? "" : "s",
           memory->pixels_per_chunk);
    print_budget(&report->job);
    print_host(report);
}

static void print_counting(const ps_check_report *report) {
    const ps_histogram_memory *memory = &report->counting;
    print_backend(report);
    label("memory");
    print_bytes((double)memory->counter_bytes);
    printf(" %s for counters", memory->on_device ? "on the device" : "per rank");
    if (memory->frame_bytes > 0) {
        printf(", up to ");
        print_bytes((double)memory->frame_bytes);
        printf(" for patterns");
    } else if (memory->on_device)
        printf(", more for patterns");
    printf(", ");
    print_bytes((double)memory->host_bytes);
    printf(" %s; %" PRId64 " of %" PRId64 " rows at once; ", memory->on_device ? "per rank in the process" : "beside them",
           memory->rows_at_once, report->counting_rows);
    print_budget(&report->job);
}

static void print_output(const ps_check_report *report) {
    label("output");
    printf("%s, ", report->job.output_file);
    print_bytes((double)report->output_bytes);
    printf("%s\n", report->output_exists ? "; it exists: run needs --resume or --overwrite" : "");
}

static void print_simulate(const ps_check_report *report) {
    const ps_job_simulate *job = &report->job.simulate;
    const ps_simulate_plan *plan = &report->simulate;
    label("frames");
    printf("%" PRId64 ": scan %" PRId64 " x %" PRId64 ", detector %" PRId64 " x %" PRId64 ", %s, ", job->n_frames, job->scan_rows,
           job->scan_columns, job->detector_rows, job->detector_columns, ps_dtype_name(job->dtype));
    print_bytes((double)plan->bytes_per_frame);
    printf(" each before compression\n");
    label("object");
    printf("%s, %" PRId64 " x %" PRId64 ", step %.4g x %.4g A (%" PRId64 " times finer than the scan)", job->object, plan->object_rows,
           plan->object_columns, plan->object_step_A[0], plan->object_step_A[1], plan->upsampling);
    if (plan->n_atoms > 0) printf(", %" PRId64 " atoms", plan->n_atoms);
    printf("\n");
    label("memory");
    print_bytes((double)plan->memory_bytes);
    printf(" per rank");
    if (plan->scratch_bytes > 0) {
        printf(", and a temporary file of ");
        print_bytes((double)plan->scratch_bytes);
    }
    printf("\n");
    label("output");
    printf("%s\n", job->output_master);
}

static void print_histogram(const ps_check_report *report) {
    const ps_job_histogram *histogram = &report->job.histogram;
    label("bins");
    printf("%" PRId64 ", ", histogram->n_bins);
    if (histogram->automatic_range)
        printf("range from the data\n");
    else
        printf("from %g to %g\n", histogram->range[0], histogram->range[1]);
}

static void print_time(const ps_check_report *report) {
    if (report->frame_seconds <= 0) return;
    label("time");
    printf(
        "about %.2g s to prepare an optics, %.2g s a frame on one rank like this machine; estimated from a sample, reading and writing not "
        "counted\n",
        report->prepare_seconds, report->frame_seconds);
}

static void print_machine(const ps_check_report *report) {
    if (report->does_not_fit[0])
        printf("%-*s on this machine, from which the job may be sent elsewhere: %s\n", LABEL_WIDTH, "warning", report->does_not_fit);
}

void ps_check_print_text(const ps_check_report *report) {
    const ps_run_plan *run = &report->run;
    label("job");
    printf("%s: %s\n", report->job.path, ps_check_task_name(report->job.task));
    if (report->job.task == PS_TASK_SIMULATE) {
        print_simulate(report);
        print_machine(report);
        return;
    }
    print_frames(run, &report->job.series);
    if (report->job.task == PS_TASK_HISTOGRAM) {
        print_histogram(report);
        print_counting(report);
    }
    print_looked(run);
    for (int64_t i = 0; i < run->n_groups && i < MOST_LISTED; i++) print_group(run, i);
    if (run->n_groups > MOST_LISTED) printf("%*s ... and %" PRId64 " more groups\n", LABEL_WIDTH, "", run->n_groups - MOST_LISTED);
    if (report->job.task == PS_TASK_RECONSTRUCT) {
        print_methods(report);
        print_memory(report);
        print_time(report);
    }
    print_output(report);
    print_machine(report);
    for (int64_t i = 0; i < run->n_warnings; i++) printf("%-*s %s\n", LABEL_WIDTH, "warning", run->warnings[i]);
}
