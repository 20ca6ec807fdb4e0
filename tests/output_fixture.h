/* A small output made by hand: two optics groups, a few frames, all methods, results that depend on the frame only. */
#ifndef PS_TESTS_OUTPUT_FIXTURE_H
#define PS_TESTS_OUTPUT_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "method/curves.h"
#include "store/output.h"

enum { FIXTURE_STRENGTHS = 3, FIXTURE_OPTICS = 2, FIXTURE_CURVE = PS_N_CURVE_STRENGTHS, FIXTURE_MAX_FRAMES = 64, FIXTURE_FILES = 3 };

typedef struct {
    ps_job job;
    ps_plan plans[FIXTURE_OPTICS];
    uint8_t bad[16 * 16];
    ps_output_optics optics[FIXTURE_OPTICS];
    ps_output_frame_source frames[FIXTURE_MAX_FRAMES];
    char sources[FIXTURE_MAX_FRAMES][64], paths[FIXTURE_MAX_FRAMES][FIXTURE_FILES][64];
    ps_output_file files[FIXTURE_MAX_FRAMES][FIXTURE_FILES];
    ps_output_note notes[3];
    ps_output_spec spec;
} fixture;

static int fixture_plan(ps_plan *plan, const uint8_t *bad, double defocus_A) {
    ps_optics optics = {.voltage_V = 300e3,
                        .semiangle_mrad = 20,
                        .scan_step_A = {0.6, 0.5},
                        .detector_pitch_mrad = {4, 4},
                        .detector_center_px = {7.5, 7.5}};
    optics.C_A[0] = -defocus_A;
    ps_plan_options options = {.scan_rows = 12,
                               .scan_columns = 10,
                               .detector_rows = 16,
                               .detector_columns = 16,
                               .bad = bad,
                               .smoothness_phase_inv_A = INFINITY,
                               .smoothness_complex_inv_A = INFINITY};
    ps_error error = {0};
    if (ps_plan_build(&optics, &options, plan, &error) == PS_OK) return 0;
    fprintf(stderr, "fixture: %s\n", error.text);
    return 1;
}

static int fixture_methods(fixture *f) {
    static const char text[] = "{\"phase\":{\"strength\":[0.01,0.1,1]},\"complex\":{\"strength\":[{\"amplitude\":0.1,\"phase\":0.02},"
                               "{\"amplitude\":0.2,\"phase\":0.2},{\"amplitude\":0.3,\"phase\":2}],\"smoothness_inv_A\":1},"
                               "\"ssb\":{\"estimator\":\"phase\"}}";
    ps_error error = {0};
    cJSON *json = cJSON_Parse(text);
    ps_json place = ps_json_root(json, "fixture");
    ps_code code = ps_method_set_parse(&place, &f->job.methods, &error);
    cJSON_Delete(json);
    if (code != PS_OK) fprintf(stderr, "fixture: %s\n", error.text);
    f->job.text = (char *)"{ \"task\": \"reconstruct\" }";
    f->job.effective_text = (char *)"{\"task\":\"reconstruct\"}";
    return code != PS_OK;
}

/* Frame 0 stands for a recording that cannot be read; the others are a master and its data files. */
static void fixture_source(fixture *f, int i) {
    snprintf(f->sources[i], sizeof f->sources[i], "/data/scan_%d_\xc3\xa9_master.h5", i);
    f->frames[i] = (ps_output_frame_source){.source = f->sources[i],
                                            .bytes = 1000 + i,
                                            .mtime_ns = 5000 + i,
                                            .checksum = (uint32_t)i * 77u,
                                            .acquisition_time = "2024-05-06T07:08:09",
                                            .optics = i % FIXTURE_OPTICS,
                                            .n_files = i ? FIXTURE_FILES : 0,
                                            .files = f->files[i]};
    for (int k = 0; k < FIXTURE_FILES; k++) {
        if (k == 0)
            strcpy(f->paths[i][k], f->sources[i]);
        else
            snprintf(f->paths[i][k], sizeof f->paths[i][k], "/data/scan_%d_\xc3\xa9_data_%06d.h5", i, k);
        f->files[i][k] = (ps_output_file){f->paths[i][k], 2000 + i, 6000 + k, (uint32_t)(100 * i + k + 1), 0};
    }
}

/* 0, or 1 when methods or the plan could not be made. The fixture must not be copied: it points into itself. */
static int fixture_init(fixture *f, int64_t n_frames) {
    memset(f, 0, sizeof *f);
    if (fixture_methods(f)) return 1;
    f->bad[3] = 1;
    for (int i = 0; i < FIXTURE_OPTICS; i++) {
        if (fixture_plan(&f->plans[i], f->bad, 100.0 * (i + 1))) return 1;
        f->optics[i] = (ps_output_optics){.given = "{ \"defocus_A\": 100 }",
                                          .used = i ? "{\"voltage_V\":300000,\"C10_A\":-200}" : "{\"voltage_V\":300000,\"C10_A\":-100}",
                                          .plan = &f->plans[i],
                                          .bad = f->bad,
                                          .n_bad_file = 1};
    }
    for (int i = 0; i < FIXTURE_MAX_FRAMES; i++) fixture_source(f, i);
    f->notes[0] = (ps_output_note){"program", "ptyseries"};
    f->notes[1] = (ps_output_note){"version", "0.0"};
    f->notes[2] = (ps_output_note){"command_line", "ptyseries run job.json"};
    const ps_system_desc *desc = &f->plans[0].desc;
    f->spec = (ps_output_spec){.job = &f->job,
                               .n_frames = n_frames,
                               .frames = f->frames,
                               .n_optics = FIXTURE_OPTICS,
                               .optics = f->optics,
                               .image_rows = desc->scan_rows * desc->upsampling,
                               .image_columns = desc->scan_columns * desc->upsampling,
                               .image_step_A = {0.6 / (double)desc->upsampling, 0.5 / (double)desc->upsampling},
                               .n_notes = 3,
                               .notes = f->notes};
    return 0;
}

static void fixture_free(fixture *f) {
    for (int i = 0; i < FIXTURE_OPTICS; i++) ps_plan_free(&f->plans[i]);
    ps_method_set_free(&f->job.methods);
}

/* ---- results of one frame ---- */

typedef struct {
    ps_method_results methods;
    float *images[4];  /* of methods: phase, complex phase, complex log amplitude, ssb */
    double *curves[6]; /* of methods: residual, effective degrees of freedom, gcv of phase, then of complex */
    ps_frame_result result;
} fixture_result;

static void fixture_image(float *image, size_t n, int64_t frame, int kind) {
    for (size_t i = 0; i < n; i++) image[i] = (float)(sin(0.01 * (double)(i * (size_t)(kind + 1)) + (double)frame) * (kind + 1));
}

/* One result of one method; *n_images, *n_curves: of those before. */
static void fixture_fill(fixture_result *r, const ps_method_settings *settings, int index, size_t pixels, int64_t frame, void *values,
                         int *n_images, int *n_curves) {
    const ps_result_desc *desc = &settings->method->results[index];
    size_t n = (size_t)ps_method_result_elements(settings, index, (int64_t)pixels);
    if (ps_result_is_image(desc)) {
        fixture_image(values, n, frame, *n_images);
        r->images[(*n_images)++] = values;
    } else if (desc->axes == PS_RESULT_CURVE) {
        r->curves[*n_curves] = values;
        for (size_t i = 0; i < n; i++) r->curves[*n_curves][i] = 1.0 + (double)frame + 0.1 * (double)i + 10.0 * *n_curves;
        ++*n_curves;
    } else {
        *(double *)values = settings->has_strengths ? 0.1 * (*n_curves / 3) : 0.25 + (double)frame;
    }
}

static void fixture_result_init(fixture_result *r, const fixture *f, int64_t frame) {
    int64_t pixels = f->spec.image_rows * f->spec.image_columns;
    int n_images = 0, n_curves = 0;
    ps_error error = {0};
    memset(r, 0, sizeof *r);
    if (ps_method_results_create(&f->job.methods, pixels, &r->methods, &error) != PS_OK) abort();
    for (int64_t i = 0; i < f->job.methods.n; i++)
        for (int k = 0; k < f->job.methods.items[i].method->n_results; k++)
            if (r->methods.values[i][k])
                fixture_fill(r, &f->job.methods.items[i], k, (size_t)pixels, frame, r->methods.values[i][k], &n_images, &n_curves);
    r->result = (ps_frame_result){.methods = &r->methods,
                                  .dose = 100.0 + (double)frame,
                                  .data_norm = 3.0,
                                  .n_excluded = frame % 3,
                                  .seconds = {0.1, 0.2, 0.3},
                                  .peak_memory_bytes = 1 << 20,
                                  .device = "test device"};
}

static void fixture_result_free(fixture_result *r) {
    ps_method_results_free(&r->methods);
}

#endif
