/* A small output made by hand: two optics groups, a few frames, all methods, results that depend on the frame only. */
#ifndef PS_TESTS_OUTPUT_FIXTURE_H
#define PS_TESTS_OUTPUT_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "store/output.h"

enum { FIXTURE_STRENGTHS = 3, FIXTURE_OPTICS = 2, FIXTURE_CURVE = 7, FIXTURE_MAX_FRAMES = 64, FIXTURE_FILES = 3 };

typedef struct {
    ps_job job;
    ps_strength phase_strengths[FIXTURE_STRENGTHS], complex_strengths[FIXTURE_STRENGTHS];
    ps_plan plans[FIXTURE_OPTICS];
    uint8_t bad[16 * 16];
    ps_output_optics optics[FIXTURE_OPTICS];
    ps_output_frame_source frames[FIXTURE_MAX_FRAMES];
    char sources[FIXTURE_MAX_FRAMES][64], paths[FIXTURE_MAX_FRAMES][FIXTURE_FILES][64];
    ps_output_file files[FIXTURE_MAX_FRAMES][FIXTURE_FILES];
    double curve[FIXTURE_CURVE];
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

static void fixture_methods(fixture *f) {
    for (int i = 0; i < FIXTURE_STRENGTHS; i++) {
        f->phase_strengths[i] = (ps_strength){1, 0.01 * pow(10, i)};
        f->complex_strengths[i] = (ps_strength){0.1 * (i + 1), 0.02 * pow(10, i)};
    }
    f->job.phase = (ps_job_method){true, false, FIXTURE_STRENGTHS, f->phase_strengths, INFINITY};
    f->job.complex_ = (ps_job_method){true, false, FIXTURE_STRENGTHS, f->complex_strengths, 1.0};
    f->job.ssb_enabled = true;
    f->job.ssb_estimator = PS_SSB_PHASE;
    f->job.text = (char *)"{ \"task\": \"reconstruct\" }";
    f->job.effective_text = (char *)"{\"task\":\"reconstruct\"}";
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

/* 0, or 1 when the plan could not be built. The fixture must not be copied: it points into itself. */
static int fixture_init(fixture *f, int64_t n_frames) {
    memset(f, 0, sizeof *f);
    fixture_methods(f);
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
    for (int i = 0; i < FIXTURE_CURVE; i++) f->curve[i] = 1e-4 * pow(10, i);
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
                               .n_curve_strengths = FIXTURE_CURVE,
                               .curve_strengths = f->curve,
                               .n_notes = 3,
                               .notes = f->notes};
    return 0;
}

static void fixture_free(fixture *f) {
    for (int i = 0; i < FIXTURE_OPTICS; i++) ps_plan_free(&f->plans[i]);
}

/* ---- results of one frame ---- */

typedef struct {
    float *images[4]; /* phase, complex phase, complex log amplitude, ssb */
    double curves[6][FIXTURE_CURVE];
    ps_method_result phase, complex_;
    ps_frame_result result;
} fixture_result;

static void fixture_image(float *image, size_t n, int64_t frame, int kind) {
    for (size_t i = 0; i < n; i++) image[i] = (float)(sin(0.01 * (double)(i * (size_t)(kind + 1)) + (double)frame) * (kind + 1));
}

static void fixture_result_init(fixture_result *r, const fixture *f, int64_t frame) {
    size_t pixels = (size_t)(f->spec.image_rows * f->spec.image_columns);
    memset(r, 0, sizeof *r);
    for (int k = 0; k < 4; k++) {
        size_t n = pixels * (k == 0 ? (size_t)f->job.phase.n_strengths : k < 3 ? (size_t)f->job.complex_.n_strengths : 1);
        r->images[k] = malloc(n * sizeof(float));
        fixture_image(r->images[k], n, frame, k);
    }
    for (int c = 0; c < 6; c++)
        for (int i = 0; i < FIXTURE_CURVE; i++) r->curves[c][i] = 1.0 + (double)frame + 0.1 * i + 10.0 * c;
    r->phase = (ps_method_result){r->images[0], NULL, r->curves[0], r->curves[1], r->curves[2], 0.1};
    r->complex_ = (ps_method_result){r->images[1], r->images[2], r->curves[3], r->curves[4], r->curves[5], 0.2};
    r->result = (ps_frame_result){.phase = &r->phase,
                                  .complex_ = &r->complex_,
                                  .ssb_phase = r->images[3],
                                  .ssb_loss = 0.25 + (double)frame,
                                  .dose = 100.0 + (double)frame,
                                  .data_norm = 3.0,
                                  .n_excluded = frame % 3,
                                  .seconds = {0.1, 0.2, 0.3},
                                  .peak_memory_bytes = 1 << 20,
                                  .device = "test device"};
}

static void fixture_result_free(fixture_result *r) {
    for (int k = 0; k < 4; k++) free(r->images[k]);
}

#endif
