/* Pictures of an output: grey scales, shapes, labels, and the report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <png.h>
#include <unistd.h>

#include "output_fixture.h"
#include "report/canvas.h"
#include "report/preview.h"

static char folder[64], path[96];
static fixture f;

static int set_up(void **state) {
    (void)state;
    strcpy(folder, "/tmp/ps_preview_XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/run.h5", folder);
    return fixture_init(&f, 5);
}

static int tear_down(void **state) {
    (void)state;
    char command[96];
    fixture_free(&f);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

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
            must(ps_output_fail_frame(output, frame, "chunk <7> & more", &error), &error);
        else
            must(ps_output_write_frame(output, frame, &r.result, &error), &error);
        fixture_result_free(&r);
    }
    must(ps_output_close(output, &error), &error);
}

static int64_t preview(int64_t frame) {
    ps_error error = {0};
    int64_t n_written = -1;
    ps_preview_options options = {.frame = frame, .clip_percent = 0.5};
    must(ps_preview(path, &options, &n_written, &error), &error);
    return n_written;
}

static char *read_file(const char *name) {
    ps_error error = {0};
    char *text = NULL, *full = ps_text_format("%s.preview/%s", path, name);
    must(ps_text_read_file(full, &text, NULL, &error), &error);
    free(full);
    return text;
}

static void png_size(const char *name, unsigned *width, unsigned *height) {
    png_image image = {.version = PNG_IMAGE_VERSION};
    char *full = ps_text_format("%s.preview/%s", path, name);
    assert_true(png_image_begin_read_from_file(&image, full));
    *width = image.width;
    *height = image.height;
    assert_int_equal(image.format & PNG_FORMAT_FLAG_COLOR, 0);
    png_image_free(&image);
    free(full);
}

static void every_frame_method_and_strength_has_a_picture(void **state) {
    (void)state;
    char *full;
    write_output();
    /* 3 frames x (3 + 3 + 3 + 1) images, 4 series, 3 sweeps */
    assert_int_equal(preview(-1), 3 * 10 + 4 + 3);
    full = ps_text_format("%s.preview/complex-log-amplitude_strength0.02-amplitude0.1_frame0003.png", path);
    assert_int_equal(access(full, R_OK), 0);
    free(full);
    full = ps_text_format("%s.preview/phase_strength0.1_frame0002.png", path);
    assert_int_not_equal(access(full, R_OK), 0);
    free(full);
}

static void the_report_is_one_file_and_escaped(void **state) {
    (void)state;
    write_output();
    preview(-1);
    char *report = read_file("report.html");
    assert_non_null(strstr(report, "5 frames: 3 done, 1 failed, 1 pending"));
    assert_non_null(strstr(report, "chunk &lt;7&gt; &amp; more"));
    assert_null(strstr(report, "chunk <7>"));
    assert_non_null(strstr(report, "data:image/png;base64,iVBORw0KGgo"));
    assert_null(strstr(report, "src=\"http"));
    assert_null(strstr(report, "<script"));
    assert_non_null(strstr(report, "phase: gcv, one line a frame"));
    assert_non_null(strstr(report, "ptyseries run job.json"));
    assert_null(strstr(report, "nan<"));
    assert_null(strstr(report, "nan "));
    assert_non_null(strstr(report, "</html>"));
    free(report);
}

static void pictures_have_square_pixels(void **state) {
    (void)state;
    unsigned width, height;
    write_output();
    preview(1);
    png_size("ssb_frame0001.png", &width, &height);
    /* 36 x 30 pixels of 0.2 x 0.1667 A, enlarged 6 times at the finer step, and text below */
    assert_int_equal(width, 180);
    assert_in_range(height, 259 + 20, 259 + 50);
}

static void one_frame_can_be_asked_for(void **state) {
    (void)state;
    ps_error error = {0};
    int64_t n;
    write_output();
    assert_int_equal(preview(3), 10 + 4 + 3);
    ps_preview_options options = {.frame = 2};
    assert_int_equal(ps_preview(path, &options, &n, &error), PS_E_ARGUMENT);
    assert_non_null(strstr(error.text, "frame 2 is failed"));
    ps_error_clear(&error);
    options.frame = 5;
    assert_int_equal(ps_preview(path, &options, &n, &error), PS_E_ARGUMENT);
    assert_non_null(strstr(error.text, "(0 to 4)"));
    ps_error_clear(&error);
    options.frame = -1;
    assert_int_equal(ps_preview("/etc/passwd", &options, &n, &error), PS_E_HDF5);
}

static void a_file_without_done_frames_has_a_report(void **state) {
    (void)state;
    ps_error error = {0};
    must(ps_output_create(path, false, &f.spec, &error), &error);
    assert_int_equal(preview(-1), 0);
    char *report = read_file("report.html");
    assert_non_null(strstr(report, "5 frames: 0 done, 0 failed, 5 pending"));
    free(report);
}

/* ---- the canvas ---- */

static void ranges_ignore_what_is_not_finite(void **state) {
    (void)state;
    float values[1000];
    for (int i = 0; i < 1000; i++) values[i] = (float)i;
    values[5] = NAN;
    values[6] = INFINITY;
    ps_range range = ps_range_of(values, 1000, 1);
    assert_true(range.low >= 9 && range.low <= 12 && range.high >= 988 && range.high <= 990);
    for (int i = 0; i < 1000; i++) values[i] = 7;
    range = ps_range_of(values, 1000, 1);
    assert_true(range.low < 7 && range.high > 7);
    for (int i = 0; i < 1000; i++) values[i] = NAN;
    range = ps_range_of(values, 1000, 1);
    assert_true(range.high > range.low);
}

static void images_are_averaged_and_clipped(void **state) {
    (void)state;
    const float image[2 * 4] = {4, 4, 10, 30, 4, NAN, 20, 40};
    ps_error error = {0};
    ps_canvas canvas;
    must(ps_canvas_create(4, 2, 99, &canvas, &error), &error);
    ps_canvas_image(&canvas, 0, 0, 2, 1, image, 2, 4, (ps_range){0, 50});
    assert_int_equal(canvas.grey[0], 20);  /* mean of 4, 4, 4; the NaN does not count */
    assert_int_equal(canvas.grey[1], 128); /* 25 of 50 */
    assert_int_equal(canvas.grey[2], 99);
    ps_canvas_image(&canvas, 0, 0, 4, 2, image, 2, 4, (ps_range){5, 25});
    assert_int_equal(canvas.grey[3], 255);
    assert_int_equal(canvas.grey[5], 0);
    ps_canvas_image(&canvas, 3, 1, 4, 2, image, 2, 4, (ps_range){-1, 1}); /* over the edge: cut */
    ps_canvas_text(&canvas, -3, -3, 2, 0, "\xc3\xa9g");
    ps_canvas_free(&canvas);
}

int main(int n_arguments, char **arguments) {
    MPI_Init(&n_arguments, &arguments);
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(every_frame_method_and_strength_has_a_picture),
        T(the_report_is_one_file_and_escaped),
        T(pictures_have_square_pixels),
        T(one_frame_can_be_asked_for),
        T(a_file_without_done_frames_has_a_report),
        cmocka_unit_test(ranges_ignore_what_is_not_finite),
        cmocka_unit_test(images_are_averaged_and_clipped),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    MPI_Finalize();
    return failed;
}
