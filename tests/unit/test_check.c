/* ptyseries check as users meet it: what it prints, its exit status, and that it writes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cJSON.h>

static char directory[] = "/tmp/ptyseries_check_XXXXXX";

static void write_file(const char *name, const void *content, size_t bytes) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static const char job_text[] =
    "{\"task\":\"reconstruct\",\"series\":{\"files\":[\"scan_*.npy\"]},\"optics\":{\"voltage_V\":300000,\"semiangle_mrad\":10,"
    "\"scan_step_A\":[0.5,0.5],\"detector_pitch_mrad\":[2,2],\"detector_center_px\":[7.5,7.5]},"
    "\"methods\":{\"ssb\":{},\"phase\":{\"strength\":[0.1,1]}},\"output\":{\"file\":\"out.h5\"},\"compute\":{\"backend\":\"cpu\"}}";

enum { HEADER = 128, COUNTS = 4 * 6 * 16 * 16 * 2 };

static int prepare(void **state) {
    (void)state;
    static char recording[HEADER + COUNTS];
    assert_non_null(mkdtemp(directory));
    memset(recording, ' ', HEADER);
    memcpy(recording, "\x93NUMPY\x01\x00\x76\x00", 10);
    static const char shape[] = "{'descr': '<u2', 'fortran_order': False, 'shape': (4, 6, 16, 16), }";
    memcpy(recording + 10, shape, sizeof shape - 1);
    recording[HEADER - 1] = '\n';
    write_file("scan_1.npy", recording, sizeof recording);
    write_file("scan_2.npy", recording, sizeof recording);
    write_file("job.json", job_text, sizeof job_text - 1);
    return 0;
}

static int clean(void **state) {
    (void)state;
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    return system(command);
}

/* Runs check on the job; text: [16384] what it printed on both streams. Returns the exit status. */
static int check(const char *arguments, char *text) {
    char command[1024];
    snprintf(command, sizeof command, "'%s' check %s/job.json %s 2>&1", PS_PROGRAM, directory, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    text[fread(text, 1, 16383, pipe)] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void assert_says(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' is not in:\n%s", part, text);
}

static void assert_refused(const char *arguments, const char *first, const char *second) {
    char text[16384];
    assert_int_equal(check(arguments, text), 2);
    assert_says(text, first);
    assert_says(text, second);
}

static void the_plan_is_printed(void **state) {
    (void)state;
    char text[16384];
    assert_int_equal(check("", text), 0);
    assert_says(text, "2: scan 4 x 6, detector 16 x 16, uint16 (NumPy");
    assert_says(text, "88 active");
    assert_says(text, "8 x 12, step 0.25 x 0.25 A (upsampling 2, auto)");
    assert_says(text, "cpu-fast");
    assert_says(text, "per rank");
    assert_says(text, "out.h5");
}

static void json_says_the_same(void **state) {
    (void)state;
    char text[16384];
    assert_int_equal(check("--json --set upsampling=3", text), 0);
    cJSON *report = cJSON_Parse(text);
    assert_non_null(report);
    assert_true(cJSON_GetObjectItem(report, "upsampling")->valuedouble == 3);
    assert_true(cJSON_GetObjectItem(report, "n_frames")->valuedouble == 2);
    assert_true(cJSON_GetObjectItem(report, "output_bytes")->valuedouble == 2.0 * 3 * 12 * 18 * 4);
    const cJSON *group = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "groups"), 0);
    assert_true(cJSON_GetObjectItem(group, "active_pixels")->valuedouble == 88);
    assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(report, "memory_per_rank"), "peak_bytes")->valuedouble > 0);
    cJSON_Delete(report);
}

static void wrong_jobs_end_with_2_and_a_reason(void **state) {
    (void)state;
    assert_refused("--set methods.fase.strength=1", "/methods/fase: unknown key", "\"phase\"");
    assert_refused("--set upsampling=two", "/upsampling: found \"two\"", "whole number");
    assert_refused("--set optics.semiangle_mrad=0.01", "/optics/semiangle_mrad: found 0.01", "0.01 rad would be 10 mrad");
    assert_refused("--set optics.voltage_V=null", "/optics: /voltage_V: missing", "scan_1 does not tell it");
    assert_refused("--set methods.phase.strength=0", "/methods/phase/strength: found 0", "above 0");
    assert_refused("--set 'series.files=[\"none_*.npy\"]'", "none_*.npy", "nothing matches");
    assert_refused("--set 'series.files=[\"job.json\"]'", "job.json", "");
    assert_refused("--set 'series.scan_shape=[5,5]'", "24", "25");
    assert_refused("--set output.file=missing/out.h5", "/output/file", "create it first");
    assert_refused("--set 'optics.detector_center_px=[500,500]'", "no usable pixel", "detector_center_px");
    assert_refused("--sett x=1", "unknown option --sett", "--set");
}

static void an_existing_output_is_said(void **state) {
    (void)state;
    char text[16384];
    write_file("there.h5", "x", 1);
    assert_int_equal(check("--set output.file=there.h5", text), 0);
    assert_says(text, "it exists: run needs --resume or --overwrite");
}

static void nothing_is_written(void **state) {
    (void)state;
    int n = 0;
    DIR *found = opendir(directory);
    assert_non_null(found);
    while (readdir(found)) n++;
    closedir(found);
    assert_int_equal(n, 2 + 2 + 1 + 1); /* . and .., two recordings, the job, the output made above */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_is_printed),
        cmocka_unit_test(json_says_the_same),
        cmocka_unit_test(wrong_jobs_end_with_2_and_a_reason),
        cmocka_unit_test(an_existing_output_is_said),
        cmocka_unit_test(nothing_is_written),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
