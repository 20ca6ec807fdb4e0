/* The compressed copy: smaller, the same numbers, the same attributes, and never without verification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output_fixture.h"
#include "store/internal.h"
#include "store/pack.h"
#include "store/view.h"

static char folder[64], path[96], copy[96];
static fixture f;
static uint64_t image_offset; /* of frame 1's first complex log-amplitude */

static void must(ps_code code, const ps_error *error) {
    if (code != PS_OK) fail_msg("%s", error->text);
}

/* Frames 0, 1, 3 done, 2 failed, 4 pending. */
static void write_output(void) {
    ps_error error = {0};
    ps_output *output = NULL;
    must(ps_output_create(path, false, &f.spec, &error), &error);
    must(ps_output_open(path, MPI_COMM_WORLD, &output, &error), &error);
    for (int64_t frame = 0; frame < 4; frame++) {
        fixture_result r;
        fixture_result_init(&r, &f, frame);
        if (frame == 2)
            must(ps_output_fail_frame(output, frame, "no", &error), &error);
        else
            must(ps_output_write_frame(output, frame, &r.result, &error), &error);
        fixture_result_free(&r);
    }
    int at = 0;
    while (strcmp(output->places[at].name, "complex/log_amplitude") != 0) at++;
    const ps_rows *rows = &output->results[at];
    image_offset = rows->offset + rows->row_bytes;
    must(ps_output_close(output, &error), &error);
}

static int set_up(void **state) {
    (void)state;
    strcpy(folder, "/tmp/ps_pack_XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/run.h5", folder);
    snprintf(copy, sizeof copy, "%s/run.packed.h5", folder);
    if (fixture_init(&f, 5)) return -1;
    write_output();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char command[96];
    fixture_free(&f);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void assert_same_images(const char *name, int64_t n_strengths) {
    ps_error error = {0};
    ps_view a, b;
    must(ps_view_open(path, &a, &error), &error);
    must(ps_view_open(copy, &b, &error), &error);
    size_t bytes = (size_t)(a.rows * a.columns) * sizeof(float);
    float *x = malloc(bytes), *y = malloc(bytes);
    for (int64_t frame = 0; frame < a.n_frames; frame++)
        for (int64_t strength = 0; strength < n_strengths; strength++) {
            must(ps_view_image(&a, name, frame, strength, x, &error), &error);
            must(ps_view_image(&b, name, frame, strength, y, &error), &error);
            assert_memory_equal(x, y, bytes);
        }
    free(x);
    free(y);
    ps_view_close(&a);
    ps_view_close(&b);
}

static void the_copy_is_smaller_and_the_same(void **state) {
    (void)state;
    ps_error error = {0};
    ps_pack_report report;
    char command[256];
    must(ps_pack(path, &(ps_pack_options){.level = 6, .n_threads = 3}, &report, &error), &error);
    assert_int_equal(report.n_verified, 3);
    assert_true(report.bytes_after < report.bytes_before);
    assert_same_images("phase/phase", FIXTURE_STRENGTHS);
    assert_same_images("complex/log_amplitude", FIXTURE_STRENGTHS);
    assert_same_images("ssb/phase", 1);
    snprintf(command, sizeof command, "h5diff %s %s", path, copy); /* all datasets and attributes */
    assert_int_equal(system(command), 0);
}

static void the_copy_is_not_resumed(void **state) {
    (void)state;
    ps_error error = {0};
    ps_pack_report report;
    must(ps_pack(path, &(ps_pack_options){.level = 1}, &report, &error), &error);
    assert_int_not_equal(ps_output_resume(copy, &f.spec, false, &error), PS_OK);
    assert_non_null(strstr(error.text, "a packed copy cannot be resumed"));
}

static void a_damaged_original_gives_no_copy(void **state) {
    (void)state;
    ps_error error = {0};
    ps_pack_report report;
    FILE *file = fopen(path, "r+b");
    fseek(file, (long)image_offset + 9, SEEK_SET);
    fputc(0x55, file);
    fclose(file);
    assert_int_equal(ps_pack(path, &(ps_pack_options){.level = 1}, &report, &error), PS_E_IO);
    assert_non_null(strstr(error.text, "frame 1 has not the CRC"));
    assert_int_not_equal(access(copy, F_OK), 0);
}

static void what_is_in_the_way_stays(void **state) {
    (void)state;
    ps_error error = {0};
    ps_pack_report report;
    ps_output *output = NULL;
    FILE *file = fopen(copy, "w");
    fclose(file);
    assert_int_equal(ps_pack(path, &(ps_pack_options){.level = 1}, &report, &error), PS_E_ARGUMENT);
    ps_error_clear(&error);
    remove(copy);
    must(ps_output_open(path, MPI_COMM_WORLD, &output, &error), &error);
    assert_int_equal(ps_pack(path, &(ps_pack_options){.level = 1}, &report, &error), PS_E_ARGUMENT);
    assert_non_null(strstr(error.text, "another run writes"));
    ps_error_clear(&error);
    must(ps_output_close(output, &error), &error);
}

int main(int n_arguments, char **arguments) {
    MPI_Init(&n_arguments, &arguments);
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(the_copy_is_smaller_and_the_same),
        T(the_copy_is_not_resumed),
        T(a_damaged_original_gives_no_copy),
        T(what_is_in_the_way_stays),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    MPI_Finalize();
    return failed;
}
