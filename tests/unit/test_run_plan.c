/* From jobs to groups and plans, on small NumPy recordings written here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "plan/plan.h"
#include "tasks/tasks.h"

static char directory[] = "/tmp/ptyseries_prologue_XXXXXX";

static FILE *create(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    return file;
}

static void write_text(const char *name, const char *text) {
    FILE *file = create(name);
    assert_int_equal(fputs(text, file) >= 0, 1);
    fclose(file);
}

/* A .npy file of zeros; shape as NumPy writes it. */
static void write_npy(const char *name, const char *type, const char *shape, size_t bytes, const uint8_t *data) {
    char header[119];
    FILE *file = create(name);
    int used = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    memset(header + used, ' ', sizeof header - (size_t)used);
    header[117] = '\n';
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, file);
    fwrite(header, 1, 118, file);
    for (size_t i = 0; i < bytes; i++) fputc(data ? data[i] : 0, file);
    fclose(file);
}

/* 24 equal positions of a disc with its centre at (7.2, 8.1) and a radius of 5 pixels; hot: a pixel that counts too much, -1: none. */
static void write_disc(const char *name, int hot) {
    static uint8_t data[24 * 256 * 2];
    for (int i = 0; i < 24 * 256; i++) {
        double distance = hypot(i % 256 / 16 - 7.2, i % 16 - 8.1) - 5.0;
        int counts = distance < -0.5 ? 200 : distance > 0.5 ? 0 : (int)(200 * (0.5 - distance));
        if (i % 256 == hot) counts = 60000;
        data[2 * i] = (uint8_t)counts;
        data[2 * i + 1] = (uint8_t)(counts >> 8);
    }
    write_npy(name, "<u2", "(4, 6, 16, 16)", sizeof data, data);
}

static int write_recordings(void **state) {
    (void)state;
    assert_non_null(mkdtemp(directory));
    for (int i = 8; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof name, "scan_%d.npy", i);
        write_npy(name, "<u2", "(4, 6, 16, 16)", 4 * 6 * 16 * 16 * 2, NULL);
    }
    write_npy("other.npy", "<u2", "(4, 6, 16, 18)", 4 * 6 * 16 * 18 * 2, NULL);
    write_npy("short.npy", "<u2", "(23, 16, 16)", 23 * 16 * 16 * 2, NULL);
    write_text("damaged.npy", "this is not a recording");
    write_disc("disc.npy", -1);
    write_disc("hot.npy", 3 * 16 + 8);
    uint8_t mask[256] = {0};
    mask[0] = mask[7 * 16 + 7] = 1;
    write_npy("mask.npy", "|u1", "(16, 16)", sizeof mask, mask);
    return 0;
}

static int remove_recordings(void **state) {
    (void)state;
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

#define OPTICS(rotation, step)                                                                                       \
    "{\"voltage_V\":300000,\"semiangle_mrad\":10,\"scan_step_A\":[" step "," step "],\"detector_pitch_mrad\":[2,2]," \
    "\"detector_center_px\":[7.5,7.5],\"rotation_deg\":" rotation "}"
#define JOB(series, optics, extra)                                                     \
    "{\"task\":\"reconstruct\",\"series\":{\"files\":[" series "]},\"optics\":" optics \
    ",\"methods\":{\"phase\":{\"strength\":0.1}},\"output\":{\"file\":\"o.h5\"}" extra "}"

static ps_code build(const char *text, const char *setting, ps_job *job, ps_run_plan *plan, ps_error *error) {
    ps_error problem = {0};
    if (ps_job_parse(ps_task_job_kinds(), text, directory, &setting, setting ? 1 : 0, job, &problem) != PS_OK) fail_msg("%s", problem.text);
    return ps_run_plan_build(job, plan, error);
}

static void accept_with(const char *text, const char *setting, ps_job *job, ps_run_plan *plan) {
    ps_error error = {0};
    if (build(text, setting, job, plan, &error) != PS_OK) fail_msg("%s", error.text);
}

static void assert_refused(const char *text, ps_code expected, const char *first, const char *second) {
    ps_job job;
    ps_run_plan plan;
    ps_error error = {0};
    assert_int_equal(build(text, NULL, &job, &plan, &error), expected);
    if (!strstr(error.text, first) || !strstr(error.text, second)) fail_msg("'%s' lacks '%s' or '%s'", error.text, first, second);
    assert_null(plan.frames);
    ps_job_free(&job);
}

static void release(ps_job *job, ps_run_plan *plan) {
    ps_run_plan_free(plan);
    ps_job_free(job);
}

static bool warned(const ps_run_plan *plan, const char *text) {
    for (int64_t i = 0; i < plan->n_warnings; i++)
        if (strstr(plan->warnings[i], text)) return true;
    return false;
}

static void one_optics_is_one_group(void **state) {
    (void)state;
    ps_job job;
    ps_run_plan plan;
    accept_with(JOB("\"scan_*.npy\"", OPTICS("0", "0.5"), ""), NULL, &job, &plan);
    assert_int_equal(plan.series.n_items, 4);
    assert_string_equal(plan.series.items[0].stem, "scan_8");
    assert_string_equal(plan.series.items[3].stem, "scan_11");
    assert_int_equal(plan.n_groups, 1);
    assert_int_equal(plan.groups[0].n_frames, 4);
    assert_int_equal(plan.frames[3].group, 0);
    assert_int_equal(plan.dtype, PS_U16);
    assert_int_equal(plan.scan_columns, 6);
    assert_int_equal(plan.detector_rows, 16);
    assert_int_equal(plan.upsampling, 2); /* 4 * 0.5 * 0.01 / 0.0197 = 1.02 */
    assert_int_equal(plan.image_rows, 8);
    assert_true(plan.image_step_A[0] == 0.25);
    assert_int_equal(plan.n_warnings, 0);
    assert_true(plan.groups[0].plan.desc.n_active > 0 && plan.groups[0].plan.desc.n_aliases > 0);
    assert_null(plan.groups[0].plan.desc.frequencies);
    ps_error error = {0};
    assert_int_equal(ps_run_group_open(&job, &plan, 0, &error), PS_OK);
    assert_non_null(plan.groups[0].plan.desc.frequencies);
    ps_run_group_close(&plan, 0);
    assert_null(plan.groups[0].plan.desc.frequencies);
    assert_int_equal(ps_method_set_bits(&job.methods), PS_METHOD_PHASE);
    release(&job, &plan);
}

static void per_frame_optics_group_what_is_equal(void **state) {
    (void)state;
    write_text("scan_8.json", OPTICS("0", "0.5"));
    write_text("scan_9.json", OPTICS("5", "1.5"));
    write_text("scan_10.json", OPTICS("0.0", "0.50"));
    write_text("scan_11.json", OPTICS("5", "0.5"));
    ps_job job;
    ps_run_plan plan;
    assert_refused(JOB("\"scan_*.npy\"", "{\"per_frame\":\"{stem}.json\"}", ""), PS_E_JOB, "scan_9.json: /scan_step_A", "share one grid");
    write_text("scan_9.json", OPTICS("5", "0.5"));
    accept_with(JOB("\"scan_*.npy\"", "{\"per_frame\":\"{stem}.json\"}", ""), NULL, &job, &plan);
    assert_int_equal(plan.n_groups, 2);
    assert_int_equal(plan.groups[0].n_frames, 2);
    assert_int_equal(plan.groups[0].frames[1], 2);
    assert_int_equal(plan.groups[1].frames[0], 1);
    assert_int_equal(plan.groups[1].frames[1], 3);
    assert_string_equal(plan.groups[1].given, OPTICS("5", "0.5"));
    assert_non_null(strstr(plan.groups[0].source, "/scan_8.json"));
    release(&job, &plan);
    assert_refused(JOB("\"scan_*.npy\"", "{\"per_frame\":\"no_{stem}.json\"}", ""), PS_E_JOB, "no_scan_8.json", "cannot open");
}

static void masks_and_hot_pixels_leave_pixels_out(void **state) {
    (void)state;
    ps_job job;
    ps_run_plan plan;
    accept_with(JOB("\"scan_*.npy\"", OPTICS("0", "0.5"), ""), "series.bad_pixels.mask=mask.npy", &job, &plan);
    ps_run_group *group = &plan.groups[0];
    assert_int_equal(group->n_bad_mask, 2);
    assert_int_equal(group->plan.n_left_out, 1);
    int64_t before = group->plan.desc.n_active;
    uint8_t hot[256] = {0};
    hot[0] = hot[8 * 16 + 8] = 1;
    ps_error error = {0};
    assert_int_equal(ps_run_group_set_hot(&job, &plan, 0, hot, &error), PS_OK);
    assert_int_equal(group->plan.desc.n_active, before - 1);
    assert_int_equal(group->n_bad_hot, 1);
    assert_int_equal(group->bad[0], PS_BAD_MASK);
    assert_int_equal(group->bad[8 * 16 + 8], PS_BAD_HOT);
    memset(hot, 0, sizeof hot);
    assert_int_equal(ps_run_group_set_hot(&job, &plan, 0, hot, &error), PS_OK);
    assert_int_equal(group->plan.desc.n_active, before);
    release(&job, &plan);
}

static void unreadable_recordings_do_not_stop_the_others(void **state) {
    (void)state;
    ps_job job;
    ps_run_plan plan;
    accept_with(JOB("\"damaged.npy\",\"scan_8.npy\",\"short.npy\"", OPTICS("0", "0.5"), ""), "series.scan_shape=[4,6]", &job, &plan);
    assert_int_equal(plan.n_unreadable, 2);
    assert_non_null(plan.frames[0].unreadable);
    assert_int_equal(plan.frames[0].group, 0);
    assert_int_equal(plan.frames[1].group, 0);
    assert_non_null(strstr(plan.frames[2].unreadable, "23"));
    release(&job, &plan);
    assert_refused(JOB("\"damaged.npy\"", OPTICS("0", "0.5"), ""), PS_E_INPUT, "damaged.npy", "");
    assert_refused(JOB("\"damaged.npy\",\"short.npy\"", OPTICS("0", "0.5"), ""), PS_E_INPUT, "none of the 2 recordings", "damaged.npy");
    assert_refused(JOB("\"nothing_*.npy\"", OPTICS("0", "0.5"), ""), PS_E_INPUT, "nothing_*.npy", "");
}

static void different_shapes_are_refused_with_the_list(void **state) {
    (void)state;
    assert_refused(JOB("\"scan_8.npy\",\"other.npy\"", OPTICS("0", "0.5"), ""), PS_E_INPUT, "1 of 2 recordings differ",
                   "other: scan 4 x 6, detector 16 x 18, uint16");
}

static void doubtful_settings_are_warned_about(void **state) {
    (void)state;
    ps_job job;
    ps_run_plan plan;
    accept_with(JOB("\"scan_8.npy\"", OPTICS("0", "1.5"), ",\"probe_form\":\"published\""), "optics.detector_center_px=[7.5,2]", &job,
                &plan);
    assert_true(warned(&plan, "beyond the detector's edge"));
    assert_true(warned(&plan, "mirrors the probe"));
    assert_true(plan.groups[0].plan.desc.probe.mirrored_probe);
    release(&job, &plan);
    accept_with(JOB("\"scan_8.npy\"", OPTICS("0", "1.5"), ""), "upsampling=2", &job, &plan);
    assert_true(warned(&plan, "needs 4"));
    release(&job, &plan);
}

static ps_run_plan looked_at(const char *text, const char *setting, ps_job *job) {
    ps_run_plan plan;
    ps_error error = {0};
    accept_with(text, setting, job, &plan);
    if (ps_run_plan_inspect(job, &plan, &error) != PS_OK) fail_msg("%s", error.text);
    return plan;
}

static void the_disc_fills_what_optics_leave_open(void **state) {
    (void)state;
    ps_job job;
    ps_run_plan plan = looked_at(JOB("\"damaged.npy\",\"disc.npy\"", OPTICS("0", "0.5"), ""), "optics.detector_center_px=null", &job);
    const ps_run_group *group = &plan.groups[0];
    assert_true(fabs(group->optics.detector_center_px[0] - 7.2) <= 0.1 && fabs(group->optics.detector_center_px[1] - 8.1) <= 0.1);
    assert_non_null(strstr(group->origin, "\"detector_center_px\":\"mean of 24 patterns of frame 1\""));
    assert_null(strstr(group->origin, "semiangle"));
    assert_non_null(strstr(group->used, "\"detector_center_px\":[7."));
    assert_int_equal(plan.n_warnings, 0);
    release(&job, &plan);
    const char *open[] = {"optics.semiangle_mrad=null", "optics.detector_pitch_mrad=null"};
    for (int i = 0; i < 2; i++) {
        plan = looked_at(JOB("\"disc.npy\"", OPTICS("0", "0.5"), ""), open[i], &job);
        assert_true(fabs(plan.groups[0].optics.semiangle_mrad - 10.0) <= 0.2);
        assert_true(fabs(plan.groups[0].optics.detector_pitch_mrad[1] - 2.0) <= 0.04);
        assert_int_equal(plan.n_warnings, 0);
        release(&job, &plan);
    }
}

static void open_optics_without_an_answer_are_refused(void **state) {
    (void)state;
    assert_refused(JOB("\"disc.npy\"", "{\"semiangle_mrad\":10,\"detector_pitch_mrad\":[2,2],\"scan_step_A\":[1,1]}", ""), PS_E_JOB,
                   "/optics: /voltage_V: missing", "disc does not tell it");
    assert_refused(JOB("\"disc.npy\"", "{\"voltage_V\":3e5,\"scan_step_A\":[1,1]}", ""), PS_E_JOB, "/semiangle_mrad: missing",
                   "one of semiangle_mrad and detector_pitch_mrad");
    assert_refused(
        JOB("\"scan_8.npy\"", "{\"voltage_V\":3e5,\"semiangle_mrad\":10,\"detector_pitch_mrad\":[2,2],\"scan_step_A\":[1,1]}", ""),
        PS_E_JOB, "cannot be measured in scan_8", "no counts");
    assert_refused(
        JOB("\"disc.npy\"", "{\"voltage_V\":3e5,\"semiangle_mrad\":10,\"detector_pitch_mrad\":[0.5,0.5],\"scan_step_A\":[1,1]}", ""),
        PS_E_JOB, "covers all of the 16 x 16 detector", "a radius of 5.");
}

static void frames_and_optics_that_do_not_fit_are_warned_about(void **state) {
    (void)state;
    ps_job job;
    ps_run_plan plan = looked_at(JOB("\"disc.npy\"", OPTICS("0", "0.5"), ""), NULL, &job);
    assert_int_equal(plan.n_warnings, 0);
    release(&job, &plan);
    plan = looked_at(JOB("\"disc.npy\"", OPTICS("0", "0.5"), ""), "optics.detector_center_px=[3,8]", &job);
    assert_true(warned(&plan, "detector_center_px is (3, 8), but the bright-field disc of disc lies at (7.2, 8.1)"));
    release(&job, &plan);
    plan = looked_at(JOB("\"disc.npy\"", OPTICS("0", "0.5"), ""), "optics.detector_pitch_mrad=[4,4]", &job);
    assert_true(warned(&plan, "2 times larger (was the detector binned"));
    release(&job, &plan);
    plan = looked_at(JOB("\"scan_8.npy\"", OPTICS("0", "0.5"), ""), NULL, &job);
    assert_true(warned(&plan, "cannot be compared with scan_8: there is no bright-field disc"));
    release(&job, &plan);
    plan = looked_at(JOB("\"hot.npy\"", OPTICS("0", "0.5"), ""), NULL, &job);
    assert_true(warned(&plan, "1 pixels count more than 2 times"));
    assert_int_equal(plan.groups[0].look.n_hot, 1);
    assert_true(plan.groups[0].look.has_disc && fabs(plan.groups[0].look.disc.radius - 10.0) <= 0.2);
    release(&job, &plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_optics_is_one_group),
        cmocka_unit_test(per_frame_optics_group_what_is_equal),
        cmocka_unit_test(masks_and_hot_pixels_leave_pixels_out),
        cmocka_unit_test(unreadable_recordings_do_not_stop_the_others),
        cmocka_unit_test(different_shapes_are_refused_with_the_list),
        cmocka_unit_test(doubtful_settings_are_warned_about),
        cmocka_unit_test(the_disc_fills_what_optics_leave_open),
        cmocka_unit_test(open_optics_without_an_answer_are_refused),
        cmocka_unit_test(frames_and_optics_that_do_not_fit_are_warned_about),
    };
    return cmocka_run_group_tests(tests, write_recordings, remove_recordings);
}
