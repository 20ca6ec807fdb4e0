/* A job file, and behind NUL characters what --set says. What is accepted is in the ranges the parser promises, and is accepted again as
 * provenance keeps it, with the same meaning. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "tasks/histogram/entry.h"
#include "tasks/simulate/entry.h"
#include "tasks/task_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_SETTINGS = 4 };

/* Solvers in the files of the methods, which hold their parsers too: reading a job solves nothing. */
ps_code ps_system_scales(ps_system *system, ps_methods method, double *amplitude, double *phase, ps_error *error) {
    abort();
}
ps_code ps_system_solve(ps_frame *frame, ps_methods method, int64_t n_strengths, const ps_strength *strengths, const ps_solution *solution,
                        ps_error *error) {
    abort();
}
ps_code ps_frame_ssb(ps_frame *frame, ps_ssb_estimator estimator, float *phase_f32, double *phase_f64, double *loss, ps_error *error) {
    abort();
}
int64_t ps_frame_image_pixels(const ps_frame *frame) {
    abort();
}
ps_code ps_frame_right_side_image(ps_frame *frame, float *image_f32, double *image_f64, ps_error *error) {
    abort();
}

static void check(bool holds) {
    if (!holds) abort();
}

static void check_method(const ps_method_settings *method) {
    if (!method->has_strengths) return;
    check(method->n_strengths >= 1 && method->strengths && method->smoothness_inv_A > 0);
    for (int64_t i = 0; !method->automatic && i < method->n_strengths; i++)
        check(method->strengths[i].phase > 0 && method->strengths[i].amplitude > 0 && isfinite(method->strengths[i].phase));
}

static void check_series(const ps_job_series *series) {
    check(series->n_files >= 1 && series->first >= 0 && series->count != 0 && series->stride >= 1 && series->repeats >= 1);
    check(series->scan_rows >= 0 && series->scan_columns >= 0 && series->flyback >= 0 && !isnan(series->saturation));
    for (int64_t i = 0; i < series->n_files; i++) check(series->files[i][0] != '\0');
}

#define X(name) &ps_kind_##name,
static const ps_job_kind *const kind_list[] = {PS_TASK_LIST(X)};
#undef X
static const ps_job_kinds kinds = {.kinds = kind_list, .n = sizeof kind_list / sizeof *kind_list};

static void check_histogram(const ps_job_histogram *h) {
    check(h->n_bins >= 1 && h->stride >= 1 && h->sample >= 1 && h->rows[0] >= 0 && h->columns[0] >= 0);
    check(h->automatic_range || h->range[0] < h->range[1]);
    check((h->centre == PS_CENTRE_FILE) == (h->centre_file != NULL));
}

static void check_simulate(const ps_job_simulate *s) {
    check(s->output_master && s->n_frames >= 1 && s->scan_rows >= 1 && s->scan_columns >= 1 && s->detector_rows >= 1);
    check(s->detector_columns >= 1 && s->frames_per_file >= 0 && s->n_vacancies >= 0 && s->lattice_A > 0);
}

static void check_job(const ps_job *job) {
    check(job->json && job->effective_text && job->backend && job->upsampling >= 0 && job->memory_budget_GiB >= 0);
    if (job->kind == &ps_kind_simulate) {
        check_simulate(ps_simulate_entry(job));
        return;
    }
    check_series(&job->series);
    check(job->output_file && job->output_file[0] == '/');
    for (int64_t i = 0; i < job->methods.n; i++) check_method(&job->methods.items[i]);
    if (job->kind == &ps_kind_histogram) check_histogram(ps_histogram_entry(job));
}

static void parse_again(const ps_job *job) {
    ps_job again;
    check(ps_job_parse(&kinds, job->effective_text, "/base", NULL, 0, &again, NULL) == PS_OK);
    check(strcmp(again.effective_text, job->effective_text) == 0 && again.kind == job->kind);
    check(again.series.n_files == job->series.n_files && again.methods.n == job->methods.n);
    ps_job_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ps_job job;
    ps_error error = {0};
    const char *settings[MOST_SETTINGS];
    int64_t n_settings = 0;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *at = text + strlen(text); at < text + size && n_settings < MOST_SETTINGS; at += strlen(at)) settings[n_settings++] = ++at;
    if (ps_job_parse(&kinds, text, "/base", settings, n_settings, &job, &error) == PS_OK) {
        check_job(&job);
        parse_again(&job);
        ps_job_free(&job);
    } else
        check(error.code == PS_E_JOB && error.text[0] && !job.json);
    free(text);
    return 0;
}
