/* The output file: creation, refusals, single frames, resume and provenance, on one process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "method_named.h"
#include "output_fixture.h"
#include "store/fingerprint.h"
#include "store/info.h"
#include "store/internal.h"
#include "store/lock.h"
#include "store/resume.h"
#include "store/view.h"

static char folder[64], path[96];
static fixture f;

static int set_up(void **state) {
    (void)state;
    strcpy(folder, "/tmp/ps_output_XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/run.h5", folder);
    return fixture_init(&f, 4);
}

static int tear_down(void **state) {
    (void)state;
    char command[96];
    fixture_free(&f);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static int n_files(void) {
    char command[96];
    int n = -1;
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *pipe = popen(command, "r");
    if (fscanf(pipe, "%d", &n) != 1) n = -1;
    pclose(pipe);
    return n;
}

static void must(ps_code code, const ps_error *error) {
    if (code != PS_OK) fail_msg("%s", error->text);
}

static void create(void) {
    ps_error error = {0};
    must(ps_output_create(path, false, &f.spec, &error), &error);
}

static ps_output *open_output(void) {
    ps_error error = {0};
    ps_output *output = NULL;
    must(ps_output_open(path, MPI_COMM_WORLD, &output, &error), &error);
    return output;
}

static void close_output(ps_output *output) {
    ps_error error = {0};
    must(ps_output_close(output, &error), &error);
}

static ps_code write_frame(ps_output *output, int64_t frame, ps_error *error) {
    fixture_result r;
    fixture_result_init(&r, &f, frame);
    ps_code code = ps_output_write_frame(output, frame, &r.result, error);
    fixture_result_free(&r);
    return code;
}

static int state_of(int64_t frame) {
    ps_error error = {0};
    int64_t n;
    uint8_t *states;
    must(ps_output_states(path, &n, &states, &error), &error);
    assert_int_equal(n, f.spec.n_frames);
    int state = states[frame];
    free(states);
    return state;
}

static char *text_at(const char *name) {
    ps_error error = {0};
    ps_view view;
    must(ps_view_open(path, &view, &error), &error);
    char *text = ps_view_text(&view, name);
    ps_view_close(&view);
    return text;
}

static void assert_text_at(const char *name, const char *expected) {
    char *text = text_at(name);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- creation ---- */

static void a_new_file_is_pending_and_zero(void **state) {
    (void)state;
    ps_error error = {0};
    ps_view view;
    float image[36 * 30];
    create();
    assert_int_equal(n_files(), 1);
    assert_true(ps_output_is_output(path));
    must(ps_view_open(path, &view, &error), &error);
    assert_int_equal(view.n_by_state[PS_FRAME_PENDING], 4);
    assert_int_equal(view.rows * view.columns, 36 * 30);
    assert_true(fabs(view.step_A[0] - 0.2) <= 1e-12 && fabs(view.step_A[1] - 0.5 / 3) <= 1e-12);
    must(ps_view_image(&view, "complex/log_amplitude", 3, 2, image, &error), &error);
    for (int i = 0; i < 36 * 30; i++) assert_true(image[i] == 0.0f);
    ps_view_close(&view);
}

static void an_existing_file_stays(void **state) {
    (void)state;
    ps_error error = {0};
    FILE *file = fopen(path, "w");
    fputs("precious", file);
    fclose(file);
    assert_int_equal(ps_output_create(path, false, &f.spec, &error), PS_E_ARGUMENT);
    assert_non_null(strstr(error.text, "--resume"));
    assert_int_equal(n_files(), 1);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 8);
    ps_error_clear(&error);
    must(ps_output_create(path, true, &f.spec, &error), &error);
    assert_true(ps_output_is_output(path));
}

static void a_missing_directory_is_named(void **state) {
    (void)state;
    ps_error error = {0};
    char nowhere[128];
    snprintf(nowhere, sizeof nowhere, "%s/not/there/run.h5", folder);
    assert_int_equal(ps_output_create(nowhere, false, &f.spec, &error), PS_E_IO);
    assert_non_null(strstr(error.text, "No such file or directory; create the directory first"));
}

static void what_killed_runs_left_is_swept(void **state) {
    (void)state;
    char left[128];
    snprintf(left, sizeof left, "%s.partial-0badcafe", path);
    fclose(fopen(left, "w"));
    create();
    assert_int_equal(n_files(), 1);
}

/* In a child, since the limit stays: the exit status is 0 when the error was as it must be. */
static void a_size_limit_is_an_error_and_leaves_nothing(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        ps_error error = {0};
        struct rlimit limit = {200000, 200000};
        setrlimit(RLIMIT_FSIZE, &limit);
        ps_code code = ps_output_create(path, false, &f.spec, &error);
        if (code != PS_E_IO || !strstr(error.text, "ulimit -f")) fprintf(stderr, "code %d: %s\n", code, error.text);
        _exit(code == PS_E_IO && strstr(error.text, "ulimit -f") ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(n_files(), 0);
}

static void an_automatic_strength_has_a_curve(void **state) {
    (void)state;
    ps_error error = {0};
    ps_view view;
    method_named(&f.job.methods, "phase")->automatic = true;
    method_named(&f.job.methods, "phase")->n_strengths = 1;
    create();
    ps_output *output = open_output();
    must(write_frame(output, 1, &error), &error);
    close_output(output);
    must(ps_view_open(path, &view, &error), &error);
    assert_string_equal(view.methods[0].method->name, "phase");
    assert_string_equal(view.methods[1].method->name, "complex");
    assert_true(view.methods[0].automatic);
    assert_int_equal(view.methods[0].n_strengths, 1);
    assert_int_equal(view.methods[0].n_curve, FIXTURE_CURVE);
    assert_false(view.methods[1].automatic);
    double gcv[4 * FIXTURE_CURVE], chosen[4];
    must(ps_view_numbers(&view, "phase/gcv", 4 * FIXTURE_CURVE, gcv, &error), &error);
    must(ps_view_numbers(&view, "phase/chosen_strength", 4, chosen, &error), &error);
    assert_true(fabs(gcv[FIXTURE_CURVE + 6] - (2.0 + 0.6 + 20.0)) <= 1e-12);
    assert_true(fabs(chosen[1] - 0.1) <= 0 && fabs(chosen[0]) <= 0);
    ps_view_close(&view);
}

/* ---- frames ---- */

static void what_is_not_finite_is_refused(void **state) {
    (void)state;
    ps_error error = {0};
    fixture_result r;
    create();
    ps_output *output = open_output();
    fixture_result_init(&r, &f, 0);
    r.images[2][77] = NAN;
    assert_int_equal(ps_output_write_frame(output, 0, &r.result, &error), PS_E_NUMERIC);
    assert_non_null(strstr(error.text, "complex/log_amplitude"));
    ps_error_clear(&error);
    r.images[2][77] = 0;
    r.curves[5][1] = INFINITY;
    assert_int_equal(ps_output_write_frame(output, 0, &r.result, &error), PS_E_NUMERIC);
    fixture_result_free(&r);
    close_output(output);
    assert_int_equal(state_of(0), PS_FRAME_PENDING);
}

static void results_match_the_file(void **state) {
    (void)state;
    ps_error error = {0};
    fixture_result r;
    create();
    ps_output *output = open_output();
    fixture_result_init(&r, &f, 0);
    ps_method_set fewer = f.job.methods;
    fewer.n--;
    r.methods.set = &fewer;
    assert_int_equal(ps_output_write_frame(output, 0, &r.result, &error), PS_E_INTERNAL);
    assert_non_null(strstr(error.text, "ssb/phase was not computed"));
    ps_error_clear(&error);
    assert_int_equal(ps_output_write_frame(output, 4, &r.result, &error), PS_E_INTERNAL);
    fixture_result_free(&r);
    close_output(output);
}

static void a_failed_frame_can_be_done_later(void **state) {
    (void)state;
    ps_error error = {0};
    create();
    ps_output *output = open_output();
    must(ps_output_fail_frame(output, 1, "chunk 7 is corrupt", &error), &error);
    close_output(output);
    assert_int_equal(state_of(1), PS_FRAME_FAILED);
    assert_text_at("process_1/state", "stopped");
    output = open_output();
    for (int64_t frame = 0; frame < 4; frame++) must(write_frame(output, frame, &error), &error);
    close_output(output);
    assert_int_equal(state_of(1), PS_FRAME_DONE);
    assert_text_at("process_1/state", "finished");
    ps_view view;
    char **errors;
    must(ps_view_open(path, &view, &error), &error);
    must(ps_view_texts(&view, "frames/error", 4, &errors, &error), &error);
    assert_string_equal(errors[1], "");
    ps_view_free_texts(errors, 4);
    ps_view_close(&view);
}

/* ---- one writer ---- */

static void a_second_writer_is_refused(void **state) {
    (void)state;
    ps_error error = {0};
    ps_output *second = NULL;
    create();
    ps_output *output = open_output();
    assert_int_equal(ps_output_open(path, MPI_COMM_SELF, &second, &error), PS_E_ARGUMENT);
    assert_non_null(strstr(error.text, "another run writes this output"));
    ps_error_clear(&error);
    assert_int_equal(ps_output_create(path, true, &f.spec, &error), PS_E_ARGUMENT);
    ps_error_clear(&error);
    assert_int_equal(ps_output_resume(path, &f.spec, false, &error), PS_E_ARGUMENT);
    ps_error_clear(&error);
    must(write_frame(output, 0, &error), &error);
    close_output(output);
    assert_int_equal(n_files(), 2); /* the output and its crate, no lock */
}

static void a_lock_left_by_a_dead_writer_is_taken(void **state) {
    (void)state;
    ps_error error = {0};
    ps_lock lock = PS_LOCK_NONE;
    char name[128];
    snprintf(name, sizeof name, "%s.lock", path);
    FILE *file = fopen(name, "w");
    fputs("host elsewhere pid 4242 job 17 since 2024-01-01T00:00:00Z\n", file);
    fclose(file);
    must(ps_lock_take(path, &lock, &error), &error);
    ps_lock_release(&lock);
    assert_int_equal(n_files(), 0);
}

/* ---- resume ---- */

static void resume_keeps_what_is_done(void **state) {
    (void)state;
    ps_error error = {0};
    ps_resume_report report;
    create();
    ps_output *output = open_output();
    must(write_frame(output, 0, &error), &error);
    must(ps_output_fail_frame(output, 1, "no", &error), &error);
    close_output(output);
    must(ps_output_resume_report(path, &f.spec, false, &report, &error), &error);
    assert_int_equal(report.n_done, 1);
    assert_int_equal(report.n_failed, 1);
    assert_int_equal(report.n_damaged, 0);
    must(ps_output_resume_report(path, &f.spec, true, &report, &error), &error);
    assert_int_equal(report.n_failed, 0);
    assert_int_equal(report.n_pending, 3);
    assert_int_equal(state_of(0), PS_FRAME_DONE);
}

static void flip_byte(uint64_t offset) {
    FILE *file = fopen(path, "r+b");
    fseek(file, (long)offset, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, (long)offset, SEEK_SET);
    fputc(byte ^ 0x10, file);
    fclose(file);
}

static const ps_rows *results_named(const ps_output *output, const char *name) {
    for (int i = 0; i < output->n_results; i++)
        if (strcmp(output->places[i].name, name) == 0) return &output->results[i];
    fail_msg("no place for %s", name);
    return NULL;
}

static void a_damaged_frame_is_done_again(void **state) {
    (void)state;
    ps_error error = {0};
    ps_resume_report report;
    create();
    ps_output *output = open_output();
    for (int64_t frame = 0; frame < 4; frame++) must(write_frame(output, frame, &error), &error);
    const ps_rows *rows = results_named(output, "ssb/phase");
    uint64_t offset = rows->offset + 2 * rows->row_bytes + 5;
    close_output(output);
    flip_byte(offset);
    must(ps_output_resume_report(path, &f.spec, false, &report, &error), &error);
    assert_int_equal(report.n_damaged, 1);
    assert_int_equal(report.n_pending, 1);
    assert_int_equal(state_of(2), PS_FRAME_PENDING);
}

/* Links of /entry that a reader sees, by name and by counting. */
static herr_t count_run(hid_t entry, const char *name, const H5L_info_t *info, void *n) {
    (void)entry;
    (void)info;
    *(int *)n += strncmp(name, "process_", 8) == 0;
    return 0;
}

static void assert_n_runs(int expected) {
    int n = 0;
    char name[32];
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), entry = H5Gopen2(file, "entry", H5P_DEFAULT);
    assert_true(H5Literate(entry, H5_INDEX_NAME, H5_ITER_INC, NULL, count_run, &n) >= 0);
    assert_int_equal(n, expected);
    snprintf(name, sizeof name, "process_%d", expected);
    assert_true(H5Lexists(entry, name, H5P_DEFAULT) > 0);
    snprintf(name, sizeof name, "process_%d", expected + 1);
    assert_true(H5Lexists(entry, name, H5P_DEFAULT) == 0);
    H5Gclose(entry);
    H5Fclose(file);
}

static void other_science_is_refused_with_differences(void **state) {
    (void)state;
    ps_error error = {0};
    create();
    char *before = text_at("signature");
    method_named(&f.job.methods, "phase")->strengths[1].phase = 0.25;
    f.files[2][1].samples++;
    f.optics[1].used = "{\"voltage_V\":200000}";
    assert_int_equal(ps_output_resume(path, &f.spec, false, &error), PS_E_ARGUMENT);
    assert_non_null(strstr(error.text, "method.phase.strength: was 0.01,0.1"));
    assert_non_null(strstr(error.text, "now 0.01,0.25"));
    assert_non_null(
        strstr(error.text, "frame 2: /data/scan_2_\xc3\xa9_data_000001.h5: other content: CRC-32 of samples was 000000ca, now 000000cb"));
    assert_non_null(strstr(error.text, "optics.1.voltage_V: was 300000, now 200000"));
    assert_non_null(strstr(error.text, "optics.1.C10_A: was -200, now is not there"));
    assert_n_runs(1);
    char *after = text_at("signature");
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void moved_inputs_are_the_same_science(void **state) {
    (void)state;
    ps_error error = {0};
    create();
    f.frames[0].source = "/elsewhere/scan_0_\xc3\xa9_master.h5"; /* not compared, so by name */
    f.frames[1].source = f.files[1][0].path = "/elsewhere/renamed.h5";
    f.frames[2].mtime_ns++;
    f.files[2][1].mtime_ns++;
    must(ps_output_resume(path, &f.spec, false, &error), &error);
    f.frames[0].source = "/elsewhere/scan_7_\xc3\xa9_master.h5";
    assert_int_equal(ps_output_resume(path, &f.spec, false, &error), PS_E_ARGUMENT);
    assert_non_null(strstr(error.text, "frame.0.file: was scan_0_\xc3\xa9_master.h5, now scan_7_\xc3\xa9_master.h5"));
}

static void refuses(const char *difference) {
    ps_error error = {0};
    assert_int_equal(ps_output_resume(path, &f.spec, false, &error), PS_E_ARGUMENT);
    if (!strstr(error.text, difference)) fail_msg("%s", error.text);
}

static void every_file_behind_a_frame_is_compared(void **state) {
    (void)state;
    create();
    f.files[3][2].bytes++;
    refuses("frame 3: /data/scan_3_\xc3\xa9_data_000002.h5: was 2003 bytes, now 2004");
    f.files[3][2].bytes--;
    ps_output_file first = f.files[1][1];
    f.files[1][1] = f.files[1][2];
    f.files[1][2] = first;
    refuses("frame 1: /data/scan_1_\xc3\xa9_data_000002.h5 (in the place of scan_1_\xc3\xa9_data_000001.h5): other content");
    f.files[1][2] = f.files[1][1];
    f.files[1][1] = first;
    f.files[1][0].whole = 5; /* was not asked for then */
    ps_error error = {0};
    must(ps_output_resume(path, &f.spec, false, &error), &error);
}

/* A recording with more files than there are columns has its last ones together in the last. */
static void more_files_than_columns_are_compared_together(void **state) {
    (void)state;
    enum { MANY = 40 };
    ps_error error = {0};
    ps_output_file many[MANY];
    create();
    for (int i = 0; i < MANY; i++) many[i] = (ps_output_file){"/data/part.h5", 10 + i, 0, (uint32_t)i + 1, 0};
    f.frames[0].files = many;
    f.frames[0].n_files = MANY;
    f.frames[0].checksum = 9;
    must(ps_output_resume(path, &f.spec, false, &error), &error);
    must(ps_output_resume(path, &f.spec, false, &error), &error);
    many[MANY - 2].samples++;
    refuses("frame 0: further files: other content");
    f.frames[0].n_files = MANY - 1;
    refuses("frame 0: was read from 40 files, now from 39");
}

/* What could not be read then is recorded when it can be, but not for a frame that is done. */
static void what_is_read_later_is_recorded_later(void **state) {
    (void)state;
    ps_error error = {0};
    f.files[1][2].bytes = f.files[2][2].bytes = -1;
    create();
    ps_output *output = open_output();
    must(write_frame(output, 2, &error), &error);
    close_output(output);
    f.files[1][2].bytes = f.files[2][2].bytes = 77;
    f.files[1][2].samples = f.files[2][2].samples = 78;
    must(ps_output_resume(path, &f.spec, false, &error), &error);
    f.files[1][2].samples = f.files[2][2].samples = 79;
    refuses("frame 1: /data/scan_1_\xc3\xa9_data_000002.h5: other content: CRC-32 of samples was 0000004e, now 0000004f");
    f.files[1][2].samples = 78;
    must(ps_output_resume(path, &f.spec, false, &error), &error);
}

/* ---- attempts ---- */

static int attempts_of(int64_t frame) {
    ps_output *output = open_output();
    int attempts = ps_output_attempts(output)[frame];
    close_output(output);
    return attempts;
}

static void attempts_count_until_a_frame_ends(void **state) {
    (void)state;
    ps_error error = {0};
    create();
    for (int64_t frame = 0; frame < 4; frame++) {
        ps_output *output = open_output();
        must(ps_output_write_attempts(output, frame, (int32_t)frame, &error), &error);
        if (frame == 1) must(write_frame(output, frame, &error), &error);
        if (frame == 2) must(ps_output_fail_frame(output, frame, "no", &error), &error);
        close_output(output);
    }
    assert_int_equal(attempts_of(0), 0);
    assert_int_equal(attempts_of(1), 0);
    assert_int_equal(attempts_of(2), 0);
    assert_int_equal(attempts_of(3), 3);
    must(ps_output_resume(path, &f.spec, false, &error), &error);
    assert_int_equal(attempts_of(3), 3);
    ps_output *output = open_output();
    must(ps_output_fail_frame(output, 3, "for its count", &error), &error); /* not begun by this run */
    close_output(output);
    assert_int_equal(attempts_of(3), 3);
    must(ps_output_resume(path, &f.spec, true, &error), &error);
    assert_int_equal(attempts_of(3), 0);
    assert_int_equal(state_of(3), PS_FRAME_PENDING);
}

static void every_run_is_noted(void **state) {
    (void)state;
    ps_error error = {0};
    char command[64], name[64], *long_text = malloc(2000);
    create();
    ps_output *output = open_output();
    must(write_frame(output, 3, &error), &error);
    close_output(output);
    memset(long_text, 'x', 1999);
    long_text[1999] = '\0';
    for (int run = 2; run <= 20; run++) { /* more than the file has room for at first */
        snprintf(command, sizeof command, "run number %d", run);
        f.notes[0] = (ps_output_note){"another_key", long_text};
        f.notes[2].value = command;
        struct stat before, after;
        assert_int_equal(stat(path, &before), 0);
        must(ps_output_resume(path, &f.spec, false, &error), &error);
        assert_int_equal(stat(path, &after), 0);
        assert_int_equal(run != 17, before.st_ino == after.st_ino); /* copied only when the room is used up */
        assert_n_runs(run);
    }
    assert_text_at("process_1/command_line", "ptyseries run job.json");
    assert_text_at("process_1/program", "ptyseries");
    for (int run = 2; run <= 20; run++) {
        snprintf(name, sizeof name, "process_%d/command_line", run);
        snprintf(command, sizeof command, "run number %d", run);
        assert_text_at(name, command);
    }
    assert_n_runs(20);
    char *more = text_at("process_5/more");
    assert_non_null(strstr(more, "another_key"));
    assert_non_null(strstr(more, long_text));
    free(more);
    free(long_text);
    assert_int_equal(state_of(3), PS_FRAME_DONE);
    assert_int_equal(n_files(), 2); /* the output and its crate */
}

/* Someone added to the file, and the library put that where the links of later runs were hidden. */
static void an_edited_file_goes_on(void **state) {
    (void)state;
    ps_error error = {0};
    char name[32];
    create();
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "entry/added_%d", i);
        H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    }
    H5Fclose(file);
    for (int run = 2; run <= 4; run++) {
        must(ps_output_resume(path, &f.spec, false, &error), &error);
        assert_n_runs(run);
    }
    assert_text_at("process_4/state", "running");
}

/* ---- the crate ---- */

static cJSON *load_crate(void) {
    ps_error error = {0};
    char name[96], *text;
    snprintf(name, sizeof name, "%s/ro-crate-metadata.json", folder);
    must(ps_text_read_file(name, &text, NULL, &error), &error);
    cJSON *crate = cJSON_Parse(text);
    free(text);
    assert_non_null(crate);
    return crate;
}

static const cJSON *entity(const cJSON *crate, const char *id) {
    const cJSON *found;
    cJSON_ArrayForEach(found, cJSON_GetObjectItem(crate, "@graph")) if (strcmp(cJSON_GetObjectItem(found, "@id")->valuestring, id) ==
                                                                        0) return found;
    fail_msg("no entity %s", id);
    return NULL;
}

static const char *id_at(const cJSON *item) {
    return cJSON_GetObjectItem(item, "@id")->valuestring;
}

static void the_crate_tells_what_made_what(void **state) {
    (void)state;
    ps_error error = {0};
    create();
    close_output(open_output());
    must(ps_output_resume(path, &f.spec, false, &error), &error);
    ps_output *output = open_output();
    for (int64_t frame = 0; frame < 4; frame++) must(write_frame(output, frame, &error), &error);
    close_output(output);
    cJSON *crate = load_crate();
    const cJSON *first = entity(crate, "#run.h5-run-1"), *second = entity(crate, "#run.h5-run-2");
    assert_string_equal(cJSON_GetObjectItem(first, "actionStatus")->valuestring, "http://schema.org/FailedActionStatus");
    assert_string_equal(cJSON_GetObjectItem(second, "actionStatus")->valuestring, "http://schema.org/CompletedActionStatus");
    assert_string_equal(id_at(cJSON_GetObjectItem(second, "result")), "run.h5");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(second, "object")), 1 + 4);
    entity(crate, id_at(cJSON_GetObjectItem(second, "instrument")));
    entity(crate, "file:///data/scan_3_%C3%A9_master.h5");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(entity(crate, "./"), "hasPart")), 1 + 4);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(entity(crate, "./"), "mentions")), 2);
    cJSON_Delete(crate);
}

static void what_is_no_crate_stays(void **state) {
    (void)state;
    char name[96], *text;
    ps_error error = {0};
    snprintf(name, sizeof name, "%s/ro-crate-metadata.json", folder);
    FILE *file = fopen(name, "w");
    fputs("{\"mine\": 1}", file);
    fclose(file);
    create();
    close_output(open_output());
    must(ps_text_read_file(name, &text, NULL, &error), &error);
    assert_string_equal(text, "{\"mine\": 1}");
    free(text);
}

int main(int n_arguments, char **arguments) {
    MPI_Init(&n_arguments, &arguments);
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_new_file_is_pending_and_zero),
        T(an_existing_file_stays),
        T(a_missing_directory_is_named),
        T(what_killed_runs_left_is_swept),
        T(a_size_limit_is_an_error_and_leaves_nothing),
        T(an_automatic_strength_has_a_curve),
        T(what_is_not_finite_is_refused),
        T(results_match_the_file),
        T(a_failed_frame_can_be_done_later),
        T(a_second_writer_is_refused),
        T(a_lock_left_by_a_dead_writer_is_taken),
        T(resume_keeps_what_is_done),
        T(a_damaged_frame_is_done_again),
        T(other_science_is_refused_with_differences),
        T(moved_inputs_are_the_same_science),
        T(every_file_behind_a_frame_is_compared),
        T(more_files_than_columns_are_compared_together),
        T(what_is_read_later_is_recorded_later),
        T(attempts_count_until_a_frame_ends),
        T(every_run_is_noted),
        T(an_edited_file_goes_on),
        T(the_crate_tells_what_made_what),
        T(what_is_no_crate_stays),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    MPI_Finalize();
    return failed;
}
