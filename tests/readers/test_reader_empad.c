/* EMPAD: both generations, metadata and what is left out of it, raw files found from the XML and the other way round, damage. */
#include <math.h>

#include "input/formats/empad_xml.h"
#include "input/formats/xml.h"
#include "input/open.h"
#include "input/scan_shape.h"
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
    expect_refusal(in_folder("w.xml"), "are not a whole number of patterns of 130 x 128 float32");
    write_text(in_folder("other.xml"), "<root><picture/></root>");
    expect_refusal(in_folder("other.xml"), "an XML file that names no EMPAD raw file");
    write_text(in_folder("other.xml"), "<root><picture></root>");
    expect_refusal(in_folder("other.xml"), "other.xml: line 1, column");
}

static ps_code open_with(const char *name, ps_reader_options options, ps_reader **reader, ps_error *error) {
    *error = (ps_error){0};
    return ps_reader_open(in_folder(name), &options, reader, error);
}

static void refuse_with(const char *name, ps_reader_options options, const char *text) {
    ps_reader *reader = NULL;
    ps_error error;
    assert_int_equal(open_with(name, options, &reader, &error), PS_E_INPUT);
    expect_text(&error, text);
}

/* note: in the notes; NULL: there are none. */
static void expect_scan(const char *name, ps_reader_options options, int64_t rows, int64_t columns, const char *note) {
    ps_reader *reader = NULL;
    ps_error error;
    int64_t found_rows = 0, found_columns = 0;
    if (open_with(name, options, &reader, &error) != PS_OK) fail_msg("%s", error.text);
    if (ps_reader_scan_shape(reader, &options, &found_rows, &found_columns, &error) != PS_OK) fail_msg("%s", error.text);
    assert_int_equal(found_rows, rows);
    assert_int_equal(found_columns, columns);
    const char *notes = ps_reader_notes(reader);
    if (note ? !strstr(notes, note) : notes[0] != '\0') fail_msg("notes: %s", notes);
    ps_reader_close(reader);
}

/* An XML file that names raw and has an acquired scan and one that was searched with, each rows x columns. */
static void write_two_scans(const char *name, const char *raw, int acquired_rows, int acquired_columns, int rows, int columns) {
    char text[1000];
    snprintf(text, sizeof text,
             "<root><raw_file filename='%s'/><scan_parameters mode='search'><scan_resolution_x>%d</scan_resolution_x><scan_resolution_y>%d"
             "</scan_resolution_y></scan_parameters><scan_parameters mode='acquire'><scan_resolution_x>%d</scan_resolution_x>"
             "<scan_resolution_y>%d</scan_resolution_y></scan_parameters></root>",
             raw, columns, rows, acquired_columns, acquired_rows);
    write_text(in_folder(name), text);
}

static void test_two_scans(void **unused) {
    (void)unused;
    const ps_reader_options nothing = {0};
    write_raw(in_folder("t.raw"), 6, 130);
    write_two_scans("t.xml", "t.raw", 2, 3, 8, 8);
    expect_scan("t.xml", nothing, 2, 3,
                "is taken, as the number of patterns says; the XML file has 2 x 3 (scan_parameters mode acquire), 8 x 8");
    write_two_scans("t.xml", "t.raw", 8, 8, 2, 3); /* only the other one fits */
    expect_scan("t.xml", nothing, 2, 3, "warning: a scan of 2 x 3 is taken, as the number of patterns says");
    expect_scan("t.raw", nothing, 2, 3, "warning: a scan of 2 x 3 is taken");
    write_two_scans("t.xml", "t.raw", 2, 3, 3, 2); /* both fit */
    refuse_with("t.xml", nothing,
                "which scan is it? Several fit: the XML file says 2 x 3 (scan_parameters mode acquire), 3 x 2 (scan_parameters "
                "mode search), the raw file t.raw holds 6 patterns");
    expect_scan("t.xml", (ps_reader_options){.scan_rows = 3, .scan_columns = 2}, 3, 2, "as the job says");
    refuse_with("t.xml", (ps_reader_options){.scan_rows = 6, .scan_columns = 1}, "which scan is it? Several fit");
    expect_scan("t.xml", (ps_reader_options){.scan_rows = 6, .scan_columns = 1, .shape_override = true}, 6, 1, "scan_shape_override");
    write_two_scans("t.xml", "t.raw", 2, 3, 2, 3); /* the same twice */
    expect_scan("t.xml", nothing, 2, 3, NULL);
    write_two_scans("t.xml", "t.raw", 2, 4, 3, 4); /* neither: not trimmed, no square */
    ps_reader *reader = open_good(in_folder("t.xml"));
    int64_t rows, columns;
    ps_error error = {0};
    assert_int_equal(ps_reader_scan_shape(reader, NULL, &rows, &columns, &error), PS_E_INPUT);
    expect_text(&error, "the file says a scan of 2 x 4 = 8 positions, but the recording has 6");
    ps_reader_close(reader);
}

static void test_flyback_chooses_too(void **unused) {
    (void)unused;
    write_raw(in_folder("fb.raw"), 8, 130);
    write_two_scans("fb.xml", "fb.raw", 2, 4, 2, 3);
    expect_scan("fb.xml", (ps_reader_options){0}, 2, 4, "as the number of patterns says");
    expect_scan("fb.xml", (ps_reader_options){.scan_rows = 2, .scan_columns = 3, .flyback = 1}, 2, 3, "as the number of patterns says");
}

static void test_name_of_the_raw_file(void **unused) {
    (void)unused;
    const ps_reader_options nothing = {0};
    write_raw(in_folder("scan_x3_y2.raw"), 6, 130);
    write_two_scans("n.xml", "scan_x3_y2.raw", 3, 2, 2, 3); /* both fit, the name says which */
    expect_scan("n.xml", nothing, 2, 3, "as the raw file's name says");
    write_two_scans("n.xml", "scan_x3_y2.raw", 8, 8, 2, 3);
    expect_scan("n.xml", nothing, 2, 3, "as the raw file's name says");
    write_two_scans("n.xml", "scan_x3_y2.raw", 3, 2, 8, 8); /* the name's scan is none of them, though it fits as well */
    refuse_with("n.xml", nothing, "the name of the raw file says another scan than its XML file: the XML file says 3 x 2");
    write_two_scans("n.xml", "scan_x3_y2.raw", 8, 8, 4, 4);
    expect_scan("n.xml", nothing, 2, 3, "as the raw file's name says");
    refuse_with("n.xml", (ps_reader_options){.scan_rows = 3, .scan_columns = 2},
                "but the file says a scan of 2 x 3 = 6 positions (the raw file's name)");
    int64_t rows = 0, columns = 0;
    assert_true(ps_empad_name_scan("Scan_X128_Y64.raw", &rows, &columns));
    assert_int_equal(rows, 64);
    assert_int_equal(columns, 128);
    assert_true(ps_empad_name_scan("a_x7-y12_2.raw", &rows, &columns) && rows == 12 && columns == 7);
    static const char *const others[] = {"scan.raw", "max3_y2.raw", "x3_y2b.raw", "x_y.raw", "x0_y3.raw", "y3_x2.raw", "x3", ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ps_empad_name_scan(others[i], &rows, &columns)) fail_msg("%s", others[i]);
}

static void test_two_xml_files(void **unused) {
    (void)unused;
    write_raw(in_folder("twice.raw"), 6, 130);
    write_two_scans("one.xml", "twice.raw", 2, 3, 2, 3);
    write_two_scans("two_of_them.xml", "twice.raw", 3, 2, 3, 2);
    expect_refusal(in_folder("twice.raw"), "two XML files name it");
    write_two_scans("twice.xml", "twice.raw", 6, 1, 6, 1);
    expect_scan("twice.raw", (ps_reader_options){0}, 6, 1, NULL);
}

static void test_without_xml(void **unused) {
    (void)unused;
    const ps_reader_options job = {.scan_rows = 2, .scan_columns = 3};
    write_raw(in_folder("alone.raw"), 6, 130);
    expect_refusal(in_folder("alone.raw"), "by its size it holds 6 EMPAD patterns of 130 x 128 float32: give series.scan_shape");
    expect_scan("alone.raw", job, 2, 3, "no XML file beside it names it");
    ps_reader *reader = NULL;
    ps_error error;
    assert_int_equal(open_with("alone.raw", job, &reader, &error), PS_OK);
    assert_int_equal(reader->info.detector_rows, 128);
    expect_counts(reader, 0, 6);
    ps_reader_close(reader);
    write_raw(in_folder("alone.bin"), 6, 130); /* by its size, not by its name */
    expect_scan("alone.bin", job, 2, 3, "no XML file beside it names it");
    expect_scan("alone.raw", (ps_reader_options){.scan_rows = 2, .scan_columns = 2, .flyback = 1}, 2, 2, "no XML file beside it");
    refuse_with("alone.raw", (ps_reader_options){.scan_rows = 2, .scan_columns = 4}, "which the job's scan of 2 x 4 does not account for");
    refuse_with("alone.raw", (ps_reader_options){.scan_rows = 2, .scan_columns = 4, .allow_partial = true}, "does not account for");
    write_raw(in_folder("lone_x3_y2.raw"), 6, 130); /* the name against the job */
    expect_scan("lone_x3_y2.raw", job, 2, 3, "no XML file beside it");
    refuse_with("lone_x3_y2.raw", (ps_reader_options){.scan_rows = 3, .scan_columns = 2},
                "says a scan of 2 x 3 = 6 positions (the raw file's name)");
    write_raw(in_folder("g2.raw"), 6, 128);
    refuse_with("g2.raw", job,
                "in patterns of 128 x 128 float32, as an EMPAD of the second generation writes them; that needs its XML file");
    refuse_with("g2.raw", (ps_reader_options){0},
                "393216 bytes are no whole number of EMPAD patterns of 130 x 128 float32 (66560 bytes each)");
    assert_int_equal(truncate(in_folder("alone.raw"), 6 * 66560 - 4), 0);
    refuse_with("alone.raw", job, "399356 bytes are no whole number of EMPAD patterns");
    char *text = malloc(66560);
    memset(text, 0xff, 66560); /* as long as a frame, but no numbers */
    write_file(in_folder("other.bin"), text, 66560);
    free(text);
    expect_refusal(in_folder("other.bin"), "not a recording of a known kind");
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
    refuse_xml("", "x.xml: line 1, column 1: no element found");
    refuse_xml("<root>", "no element found");
    refuse_xml("<root>\n</toor>", "line 2, column 3: mismatched tag");
    refuse_xml("</root>", "not well-formed");
    refuse_xml("<root", "unclosed token");
    refuse_xml("<!-- <root>", "unclosed token");
    refuse_xml("<root a='>", "unclosed token");
    refuse_xml("<>", "not well-formed");
    refuse_xml("<root/><root/>", "junk after document element");
    refuse_xml("<root>\xff</root>", "not well-formed");
    refuse_xml("<root>&unknown;</root>", "undefined entity");
    refuse_xml("<root></root>", "names no EMPAD raw file");
    for (int i = 0; i < 100; i++) strcat(deep, "<a>");
    refuse_xml(deep, "elements nested too deeply");
}

/* Entities that grow by being expanded, or that would read another file, are refused where they are declared. */
static void test_entities(void **unused) {
    (void)unused;
    ps_empad_metadata metadata;
    refuse_xml("<!DOCTYPE root [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;'>]><root>&b;</root>", "declares entities");
    refuse_xml("<!DOCTYPE root [<!ENTITY file SYSTEM 'file:///etc/hostname'>]><root>&file;</root>", "declares entities");
    refuse_xml("<!DOCTYPE root [<!ENTITY % p 'x'>%p;]><root/>", "declares entities");
    static const char escaped[] = "\xef\xbb\xbf\n<root><raw_file filename='a &amp; &#x62;.raw'/><!-- <raw_file filename='c'/> --></root>";
    assert_int_equal(ps_empad_parse("x.xml", escaped, sizeof escaped - 1, &metadata, NULL), PS_OK);
    assert_string_equal(metadata.raw_file, "a & b.raw");
    static const char cdata[] = "<root><rawfile><filename>\n<![CDATA[x<y.raw]]> </filename></rawfile></root>";
    assert_int_equal(ps_empad_parse("x.xml", cdata, sizeof cdata - 1, &metadata, NULL), PS_OK);
    assert_string_equal(metadata.raw_file, "x<y.raw");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_generation),
        cmocka_unit_test(test_second_generation),
        cmocka_unit_test(test_ambiguous_field_of_view),
        cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_bad_xml),
        cmocka_unit_test(test_entities),
        cmocka_unit_test(test_two_scans),
        cmocka_unit_test(test_flyback_chooses_too),
        cmocka_unit_test(test_name_of_the_raw_file),
        cmocka_unit_test(test_two_xml_files),
        cmocka_unit_test(test_without_xml),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
