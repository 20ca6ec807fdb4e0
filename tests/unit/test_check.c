/* ptyseries check as users meet it: what it prints, its exit status, and that it writes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void remove_file(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    remove(path);
}

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

/* Runs check on a job; text: [16384] what it printed on both streams. Returns the exit status. */
static int check_job(const char *job, const char *arguments, char *text) {
    char command[1024];
    snprintf(command, sizeof command, "'%s' check %s/%s %s 2>&1", PS_PROGRAM, directory, job, arguments);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    text[fread(text, 1, 16383, pipe)] = '\0';
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int check(const char *arguments, char *text) {
    return check_job("job.json", arguments, text);
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

static const char histogram_text[] =
    "{\"task\":\"histogram\",\"series\":{\"files\":[\"scan_*.npy\"]},\"histogram\":{\"bins\":100000,\"range\":[0,65535.5]},"
    "\"output\":{\"file\":\"histogram.h5\"},\"compute\":{\"backend\":\"cpu\"}}";

/* A sanitizer has memory of its own. */
#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static double number_of(const cJSON *object, const char *key) {
    return cJSON_GetObjectItem(object, key)->valuedouble;
}

/* Resident at most, bytes, of a run of the job. */
static double measure_run(const char *job) {
    char path[256];
    struct rusage used;
    int status = 0;
    snprintf(path, sizeof path, "%s/%s", directory, job);
    pid_t child = fork();
    if (child == 0) {
        execl(PS_PROGRAM, PS_PROGRAM, "run", path, "--quiet", "--overwrite", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(wait4(child, &status, 0, &used), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return 1024.0 * (double)used.ru_maxrss;
}

static void counting_memory_is_estimated(void **state) {
    (void)state;
    const double MiB = 1024.0 * 1024.0, counters = 256.0 * (100000 + 3) * 4;
    char text[16384];
    write_file("histogram.json", histogram_text, sizeof histogram_text - 1);
    assert_int_equal(check_job("histogram.json", "", text), 0);
    assert_says(text, "97.7 MiB per rank for counters, up to 2 MiB for patterns");
    assert_says(text, "16 of 16 rows at once; budget not given");
    assert_int_equal(check_job("histogram.json", "--json", text), 0);
    cJSON *report = cJSON_Parse(text);
    const cJSON *memory = cJSON_GetObjectItem(report, "memory_per_rank");
    double all = number_of(memory, "counter_bytes") + number_of(memory, "frame_bytes") + number_of(memory, "host_bytes");
    assert_true(number_of(memory, "counter_bytes") >= counters && number_of(memory, "counter_bytes") <= counters + MiB);
    double peak = measure_run("histogram.json");
    bool as_said = peak >= 0.8 * all && peak <= all + 128 * MiB;
    if (!as_said && !SANITIZED) fail_msg("%g MiB estimated, %g MiB taken", all / MiB, peak / MiB);
    cJSON_Delete(report);
    assert_int_equal(check_job("histogram.json", "--set compute.memory_budget_GiB=0.03", text), 0);
    assert_says(text, "4 of 16 rows at once; budget 0.03 GiB");
    assert_int_equal(check_job("histogram.json", "--set compute.memory_budget_GiB=0.005", text), 2);
    assert_says(text, "/compute/memory_budget_GiB: a single row of 16 pixels with 100000 bins needs 0.006 GiB, the budget is 0.005 GiB");
    assert_int_equal(check_job("histogram.json", "--set histogram.range=[1e9,1000000000.001] --set series.files=scan_1.npy", text), 2);
    remove_file("histogram.json");
    remove_file("histogram.h5");
    remove_file("ro-crate-metadata.json");
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
        cmocka_unit_test(counting_memory_is_estimated),
        cmocka_unit_test(nothing_is_written),
    };
    return cmocka_run_group_tests(tests, prepare, clean);
}
