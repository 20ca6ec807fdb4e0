/* EMPAD: both generations, metadata and what is left out of it, raw files found from the XML and the other way round, damage. */
#include <math.h>

#include "input/empad.h"
#include "input/xml.h"
#include "recordings.h"

static void write_raw(const char *path, int64_t n, int64_t stored_rows) {
    float *frames = calloc((size_t)(n * stored_rows * 128), sizeof *frames);
    for (int64_t p = 0; p < n; p++)
        for (int64_t u = 0; u < stored_rows; u++)
            for (int64_t v = 0; v < 128; v++) frames[(p * stored_rows + u) * 128 + v] = u < 128 ? (float)count_at(p, u, v) : -1e9f;
    write_file(path, frames, (size_t)(n * stored_rows * 128) * sizeof *frames);
    free(frames);
}

static void write_text(const char *path, const char *text) {
    write_file(path, text, strlen(text));
}

static const char first_generation[] =
    "<?xml version=\"1.0\"?>\n<!-- a > comment -->\n<root>\n <timestamp isoformat=\"2021-02-03T04:05:06\"/>\n"
    " <raw_file filename=\"C:\\data\\scan x.raw\"/>\n"
    " <scan_parameters "
    "mode=\"search\"><scan_resolution_x>64</scan_resolution_x><scan_resolution_y>64</scan_resolution_y></scan_parameters>\n"
    " <scan_parameters "
    "mode=\"acquire\"><scan_resolution_x>3</scan_resolution_x><scan_resolution_y>3</scan_resolution_y></scan_parameters>\n"
    " <iom_measurements><high_voltage>300000</high_voltage><calibrated_diffraction_angle>0.0005</calibrated_diffraction_angle>\n"
    "  <optics.get_full_scan_field_of_view>[6e-9, 6e-9]</optics.get_full_scan_field_of_view></iom_measurements>\n</root>\n";

static void test_first_generation(void **unused) {
    (void)unused;
    write_raw(in_folder("scan x.raw"), 9, 130);
    write_text(in_folder("a.xml"), first_generation);
    static const char *const names[] = {"a.xml", "scan x.raw"};
    for (int i = 0; i < 2; i++) {
        expect_recording(in_folder(names[i]), 9, 128, 128, PS_F32);
        ps_reader *reader = open_good(in_folder(names[i]));
        assert_string_equal(reader->info.format, "EMPAD");
        assert_int_equal(reader->info.scan_rows, 3);
        assert_int_equal(reader->info.scan_columns, 3);
        assert_true(reader->info.voltage_V == 300000);
        assert_true(fabs(reader->info.detector_pitch_mrad[1] - 0.5) <= 1e-12);
        assert_true(fabs(reader->info.scan_step_A[0] - 20) <= 1e-9);
        assert_string_equal(reader->info.acquisition_time, "2021-02-03T04:05:06");
        ps_reader_close(reader);
    }
}

static void test_second_generation(void **unused) {
    (void)unused;
    write_raw(in_folder("two.raw"), 6, 128);
    write_text(in_folder("two.xml"), "<root><scan><type>scan</type><shape>(2, 3)</shape></scan><sensor><type>EMPAD2</type></sensor>"
                                     "<rawfile><datatype>float32</datatype><filename>/x/two.raw</filename></rawfile></root>");
    expect_recording(in_folder("two.xml"), 6, 128, 128, PS_F32);
    ps_reader *reader = open_good(in_folder("two.xml"));
    assert_int_equal(reader->info.scan_rows, 2);
    assert_int_equal(reader->info.scan_columns, 3);
    assert_true(isnan(reader->info.voltage_V));
    ps_reader_close(reader);
}

static void test_ambiguous_field_of_view(void **unused) {
    (void)unused;
    write_raw(in_folder("f.raw"), 6, 130);
    write_text(in_folder("f.xml"),
               "<root><raw_file filename='f.raw'/><pix_x>3</pix_x><pix_y>2</pix_y><iom_measurements><full_scan_field_of_view>"
               "<x>2e-9</x><y>2e-9</y><scale_factor>0.72</scale_factor></full_scan_field_of_view></iom_measurements></root>");
    ps_reader *reader = open_good(in_folder("f.xml"));
    assert_int_equal(reader->info.scan_rows, 2);
    assert_true(isnan(reader->info.scan_step_A[0]));
    assert_true(strstr(ps_reader_notes(reader), "which programs read differently: not used") != NULL);
    ps_reader_close(reader);
}

static void test_what_is_wrong(void **unused) {
    (void)unused;
    int64_t rows, columns;
    ps_error error = {0};
    write_text(in_folder("w.xml"), "<root><raw_file filename='nowhere.raw'/></root>");
    expect_refusal(in_folder("w.xml"), "nowhere.raw, cannot be opened: No such file");
    write_raw(in_folder("w.raw"), 5, 130);
    write_text(in_folder("w.xml"), "<root><raw_file filename='w.raw'/><pix_x>3</pix_x><pix_y>2</pix_y></root>");
    ps_reader *reader = open_good(in_folder("w.xml"));
    assert_int_equal(ps_reader_scan_shape(reader, NULL, &rows, &columns, &error), PS_E_INPUT);
    expect_text(&error, "the file says a scan of 2 x 3 = 6 positions, but the recording has 5");
    ps_reader_close(reader);
    assert_int_equal(truncate(in_folder("w.raw"), 4 * 130 * 128 * 5 - 4), 0);
    expect_refusal(in_folder("w.xml"), "are not a whole number of frames of 130 x 128 float32");
    write_raw(in_folder("alone.raw"), 1, 130);
    expect_refusal(in_folder("alone.raw"), "not a recording of a known kind");
    write_text(in_folder("other.xml"), "<root><picture/></root>");
    expect_refusal(in_folder("other.xml"), "not a recording of a known kind");
}

static void refuse_xml(const char *text, const char *reason) {
    ps_empad_metadata metadata;
    ps_error error = {0};
    assert_int_equal(ps_empad_parse("x.xml", text, strlen(text), &metadata, &error), PS_E_INPUT);
    expect_text(&error, reason);
}

static void test_bad_xml(void **unused) {
    (void)unused;
    char deep[400] = "";
    refuse_xml("", "names no EMPAD raw file");
    refuse_xml("<root>", "the document ends inside an element");
    refuse_xml("<root></toor>", "byte 6: an end tag without its start tag");
    refuse_xml("</root>", "an end tag without its start tag");
    refuse_xml("<root", "markup that does not end");
    refuse_xml("<!-- <root>", "markup that does not end");
    refuse_xml("<root a='>", "markup that does not end");
    refuse_xml("<>", "a tag without a name");
    for (int i = 0; i < 100; i++) strcat(deep, "<a>");
    refuse_xml(deep, "elements nested too deeply");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_generation), cmocka_unit_test(test_second_generation), cmocka_unit_test(test_ambiguous_field_of_view),
        cmocka_unit_test(test_what_is_wrong),    cmocka_unit_test(test_bad_xml),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
