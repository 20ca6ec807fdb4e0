/* What a Dectris master says of its recording: scan shape from triggers and images, frames that are lacking, the order of data files by
 * their image numbers, saturation and bit depth in every place, energies that are none of electrons. */
#include <math.h>

#include "input/open.h"
#include "input/scan_shape.h"
#include "recordings.h"

#define DETECTOR "/entry/instrument/detector"
#define SPECIFIC DETECTOR "/detectorSpecific"
enum { ROWS = 3, COLUMNS = 4 };

static void add_attribute(hid_t dataset, const char *name, int64_t value) {
    hid_t space = H5Screate(H5S_SCALAR), attribute = H5Acreate2(dataset, name, H5T_NATIVE_INT64, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(attribute), H5Sclose(space);
}

static void add_text(hid_t file, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), links = H5Pcreate(H5P_LINK_CREATE);
    H5Tset_size(type, strlen(text));
    H5Pset_create_intermediate_group(links, 1);
    hid_t dataset = H5Dcreate2(file, name, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text) >= 0);
    H5Dclose(dataset), H5Sclose(space), H5Tclose(type), H5Pclose(links);
}

/* Frames of positions first ...; low and high: its image numbers, 0: none. */
static void write_data(const char *name, int64_t first, int64_t n, int64_t low, int64_t high) {
    hid_t file = create_file(in_folder(name));
    add_dataset(file, "/entry/data/data",
                &(made_dataset){3, {(hsize_t)n, ROWS, COLUMNS}, {1, ROWS, COLUMNS}, PS_U16, AS_BSLZ4, first, 0, 0});
    hid_t dataset = H5Dopen2(file, "/entry/data/data", H5P_DEFAULT);
    if (high) add_attribute(dataset, "image_nr_low", low), add_attribute(dataset, "image_nr_high", high);
    H5Dclose(dataset), H5Fclose(file);
}

/* A master that links to files a.h5, b.h5 ...; images and triggers 0: not said. */
static hid_t create_master(const char *name, int n_files, double images, double triggers) {
    hid_t file = create_file(in_folder(name)), links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    for (int i = 0; i < n_files; i++) {
        char link[64], data[8];
        snprintf(link, sizeof link, "/entry/data/data_%06d", i + 1);
        snprintf(data, sizeof data, "%c.h5", 'a' + i);
        assert_true(H5Lcreate_external(data, "/entry/data/data", file, link, links, H5P_DEFAULT) >= 0);
    }
    H5Pclose(links);
    if (images > 0) add_number(file, SPECIFIC "/nimages", images);
    if (triggers > 0) add_number(file, SPECIFIC "/ntrigger", triggers);
    return file;
}

static ps_reader *open_with(bool partial) {
    ps_reader *reader = NULL;
    ps_error error = {0};
    if (ps_reader_open(in_folder("m.h5"), &(ps_reader_options){.allow_partial = partial}, &reader, &error) != PS_OK)
        fail_msg("%s", error.text);
    return reader;
}

static void expect_shape(ps_reader *reader, int64_t rows, int64_t columns) {
    int64_t found_rows = 0, found_columns = 0;
    ps_error error = {0};
    if (ps_reader_scan_shape(reader, NULL, &found_rows, &found_columns, &error) != PS_OK) fail_msg("%s", error.text);
    assert_int_equal(found_rows, rows);
    assert_int_equal(found_columns, columns);
    ps_reader_close(reader);
}

static void expect_no_shape(ps_reader *reader, const char *text) {
    int64_t rows = 0, columns = 0;
    ps_error error = {0};
    assert_int_equal(ps_reader_scan_shape(reader, NULL, &rows, &columns, &error), PS_E_INPUT);
    expect_text(&error, text);
    ps_reader_close(reader);
}

static void triggers_are_rows(void **unused) {
    (void)unused;
    static const struct {
        int64_t n;
        double images, triggers;
        int64_t rows, columns;
    } cases[] = {{256, 8, 32, 32, 8},   {256, 32, 8, 8, 32}, {256, 1, 256, 16, 16},
                 {256, 256, 1, 16, 16}, {12, 4, 3, 3, 4},    {16, 0, 16, 4, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_data("a.h5", 0, cases[i].n, 1, cases[i].n);
        H5Fclose(create_master("m.h5", 1, cases[i].images, cases[i].triggers));
        expect_shape(open_with(false), cases[i].rows, cases[i].columns);
    }
    ps_reader *reader = open_with(false);
    int64_t rows = 0, columns = 0; /* the job has the last word */
    assert_int_equal(ps_reader_scan_shape(reader, &(ps_reader_options){.scan_rows = 2, .scan_columns = 8}, &rows, &columns, NULL), PS_OK);
    ps_reader_close(reader);
}

/* Neither fewer nor more frames than were planned are a square of their own. */
static void no_square_of_what_is_left(void **unused) {
    (void)unused;
    write_data("a.h5", 0, 144, 0, 0);
    H5Fclose(create_master("m.h5", 1, 16, 12));
    expect_no_shape(open_with(false), "holds 144 patterns, but 192 were planned (ntrigger 12, nimages 16");
    expect_shape(open_with(true), 12, 16);
    H5Fclose(create_master("m.h5", 1, 1, 192));
    expect_no_shape(open_with(false), "192 were planned");
    expect_no_shape(open_with(true), "192 patterns are no square");
    H5Fclose(create_master("m.h5", 1, 1, 100));
    expect_no_shape(open_with(false), "holds 144 patterns, but 100 were planned");
    H5Fclose(create_master("m.h5", 1, 1, 169));
    expect_shape(open_with(true), 13, 13);
}

/* Modes in which each image has its trigger; and as many triggers as positions. */
static void triggers_that_are_no_rows(void **unused) {
    (void)unused;
    write_data("a.h5", 0, 16, 1, 16);
    hid_t master = create_master("m.h5", 1, 5, 16);
    add_text(master, SPECIFIC "/trigger_mode", "exte");
    H5Fclose(master);
    ps_reader *reader = open_with(true);
    assert_int_equal(reader->info.n_positions, 16);
    expect_shape(reader, 4, 4);
    write_data("a.h5", 0, 288, 1, 288);
    H5Fclose(create_master("m.h5", 1, 2, 144));
    expect_no_shape(open_with(false), "144 triggers of 2 images, which may be scan rows, or positions with series.repeats");
}

static void expect_order(bool partial, const int64_t *positions, int64_t n) {
    ps_reader *reader = open_with(partial);
    uint16_t counts[ROWS * COLUMNS];
    assert_int_equal(reader->info.n_positions, n);
    for (int64_t p = 0; p < n; p++) {
        assert_int_equal(ps_reader_read(reader, p, 1, counts, NULL), PS_OK);
        for (int i = 0; i < ROWS * COLUMNS; i++) assert_int_equal(counts[i], count_at(positions[p], i / COLUMNS, i % COLUMNS));
    }
    ps_reader_close(reader);
}

static void image_numbers_decide(void **unused) {
    (void)unused;
    static const int64_t positions[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    for (int64_t base = 0; base < 2; base++) {
        write_data("a.h5", 6, 3, 6 + base, 8 + base);
        write_data("b.h5", 0, 4, base, 3 + base);
        write_data("c.h5", 4, 2, 4 + base, 5 + base);
        H5Fclose(create_master("m.h5", 3, 1, 9));
        expect_order(false, positions, 9);
    }
    ps_reader *reader = open_with(false);
    assert_non_null(strstr(ps_reader_notes(reader), "which is not that of their names: b.h5 comes first"));
    ps_reader_close(reader);
    write_data("a.h5", 0, 4, 101, 104); /* goes on from another recording */
    write_data("b.h5", 4, 5, 105, 109);
    H5Fclose(create_master("m.h5", 2, 1, 9));
    expect_order(false, positions, 9);
}

static void holes_in_image_numbers(void **unused) {
    (void)unused;
    static const int64_t middle[9] = {0, 1, 2, 2, 2, 5, 6, 7, 8}, front[9] = {3, 3, 3, 3, 4, 5, 6, 7, 8},
                         end[9] = {0, 1, 2, 3, 3, 3, 6, 7, 8};
    write_data("a.h5", 0, 3, 1, 3);
    write_data("b.h5", 5, 4, 6, 9);
    H5Fclose(create_master("m.h5", 2, 1, 9));
    expect_refusal(in_folder("m.h5"), "no data file holds the images 4 to 5");
    expect_order(true, middle, 9);
    write_data("a.h5", 3, 6, 4, 9);
    H5Fclose(create_master("m.h5", 1, 0, 0));
    expect_refusal(in_folder("m.h5"), "no data file holds the images 1 to 3");
    expect_order(true, front, 9);
    write_data("a.h5", 0, 4, 1, 6); /* cut short */
    write_data("b.h5", 6, 3, 7, 9);
    H5Fclose(create_master("m.h5", 2, 0, 0));
    expect_refusal(in_folder("m.h5"), "no data file holds the images 5 to 6");
    expect_order(true, end, 9);
    unlink(in_folder("a.h5")); /* the numbers of the other one tell how many it held, though its length says otherwise */
    H5Fclose(create_master("m.h5", 2, 1, 9));
    static const int64_t gone[9] = {6, 6, 6, 6, 6, 6, 6, 7, 8};
    expect_order(true, gone, 9);
}

static void contradictions_are_refused(void **unused) {
    (void)unused;
    for (int partial = 0; partial < 2; partial++) {
        ps_reader *reader = NULL;
        ps_error error = {0};
        ps_reader_options options = {.allow_partial = partial};
        write_data("a.h5", 0, 5, 1, 5);
        write_data("b.h5", 4, 5, 5, 9);
        H5Fclose(create_master("m.h5", 2, 1, 9));
        assert_int_equal(ps_reader_open(in_folder("m.h5"), &options, &reader, &error), PS_E_INPUT);
        expect_text(&error, "a.h5 and b.h5 both number images 5 to 5");
        write_data("a.h5", 0, 5, 1, 4);
        ps_error_clear(&error);
        assert_int_equal(ps_reader_open(in_folder("m.h5"), &options, &reader, &error), PS_E_INPUT);
        expect_text(&error, "a.h5 holds 5 patterns, but numbers its images 1 to 4");
        write_data("a.h5", 0, 4, 0, 0);
        write_data("b.h5", 4, 5, 1, 5);
        ps_error_clear(&error);
        assert_int_equal(ps_reader_open(in_folder("m.h5"), &options, &reader, &error), PS_E_INPUT);
        expect_text(&error, "b.h5 numbers its images 1 to 5, but by the name of its link (data_000002) it holds patterns from 5");
    }
}

static void expect_saturation(const char *const *places, const double *values, int n, double expected) {
    write_data("a.h5", 0, 4, 0, 0);
    hid_t master = create_master("m.h5", 1, 0, 0);
    for (int i = 0; i < n; i++) add_number(master, places[i], values[i]);
    H5Fclose(master);
    ps_reader *reader = open_with(false);
    assert_true(isnan(expected) ? isnan(reader->info.saturation) : reader->info.saturation == expected);
    ps_reader_close(reader);
}

static void saturation_stands_in_many_places(void **unused) {
    (void)unused;
    static const char *const places[] = {
        DETECTOR "/saturation_value", SPECIFIC "/saturation_value", SPECIFIC "/countrate_correction_count_cutoff",
        SPECIFIC "/detectorModule_000/countrate_correction_count_cutoff", SPECIFIC "/detectorModule_003/countrate_correction_count_cutoff"};
    for (int i = 0; i < 5; i++) {
        expect_saturation(&places[i], (double[]){8000}, 1, 8000);
        expect_saturation(&places[i], (double[]){UINT32_MAX}, 1, NAN);
        expect_saturation(&places[i], (double[]){0}, 1, NAN);
    }
    expect_saturation(&places[2], (double[]){9000, 8000, 7000}, 3, 7000);
}

/* 65535 in uint32 is a count, or none: the depth decides. */
static void expect_top(const char *const *places, const double *values, int n, bool is_invalid_value) {
    hid_t master = create_file(in_folder("m.h5"));
    add_dataset(master, "/entry/data/data_000001", &(made_dataset){3, {2, ROWS, COLUMNS}, {0}, PS_U32, AS_CONTIGUOUS, 0, 0, 0});
    uint32_t counts[2 * ROWS * COLUMNS] = {3, 65535, 65534, UINT32_MAX};
    hid_t dataset = H5Dopen2(master, "/entry/data/data_000001", H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, counts);
    H5Dclose(dataset);
    for (int i = 0; i < n; i++) add_number(master, places[i], values[i]);
    H5Fclose(master);
    ps_reader *reader = NULL;
    assert_int_equal(ps_reader_open(in_folder("m.h5"), &(ps_reader_options){.exclude_invalid = true}, &reader, NULL), PS_OK);
    assert_int_equal(ps_reader_read(reader, 0, 2, counts, NULL), PS_OK);
    assert_int_equal(counts[0], 3);
    assert_int_equal(counts[1], is_invalid_value ? UINT32_MAX : 65535);
    assert_int_equal(counts[2], 65534);
    assert_int_equal(counts[3], UINT32_MAX);
    ps_reader_close(reader);
}

static void bit_depth_decides(void **unused) {
    (void)unused;
    static const char *const image_first[] = {DETECTOR "/bit_depth_image", DETECTOR "/bit_depth_readout"};
    static const char *const readout_first[] = {DETECTOR "/bit_depth_readout", SPECIFIC "/auto_summation"};
    expect_top(image_first, (double[]){16}, 1, true);
    expect_top(image_first, (double[]){32, 16}, 2, false);
    expect_top(image_first, (double[]){16, 32}, 2, true);
    expect_top(readout_first, (double[]){16}, 1, true);
    expect_top(readout_first, (double[]){16, 1}, 2, false);
    expect_top(NULL, NULL, 0, false);
}

static void expect_voltage(double beam, double photon, double expected, const char *note) {
    write_data("a.h5", 0, 4, 0, 0);
    hid_t master = create_master("m.h5", 1, 0, 0);
    if (beam > 0) add_number(master, "/entry/instrument/beam/incident_energy", beam);
    if (photon > 0) add_number(master, SPECIFIC "/photon_energy", photon);
    H5Fclose(master);
    ps_reader *reader = open_with(false);
    assert_true(isnan(expected) ? isnan(reader->info.voltage_V) : reader->info.voltage_V == expected);
    if (note && !strstr(ps_reader_notes(reader), note)) fail_msg("'%s' does not say '%s'", ps_reader_notes(reader), note);
    ps_reader_close(reader);
}

static void photons_are_no_electrons(void **unused) {
    (void)unused;
    expect_voltage(12398, 0, NAN, "incident_energy is 12398 eV, an energy of photons or a default");
    expect_voltage(12398.4, 8041, NAN, "photon_energy is 8041 eV");
    expect_voltage(12398.42, 300000, 300000, "incident_energy is 12398.4 eV");
    expect_voltage(300, 0, NAN, "not used");
    expect_voltage(80000, 200000, 80000, "which is used, says 80000 eV");
    expect_voltage(30000, 0, 30000, NULL);
}

/* A data file that is exchanged while it is in use is refused at every read, not at the first one only. */
static void a_changed_file_stays_refused(void **unused) {
    (void)unused;
    uint32_t counts[4 * ROWS * COLUMNS];
    for (int kind = 0; kind < 3; kind++) {
        write_data("a.h5", 0, 4, 0, 0);
        H5Fclose(create_master("m.h5", 1, 0, 0));
        ps_reader *reader = open_with(false);
        hid_t file = create_file(in_folder("a.h5"));
        const made_dataset now = {3,
                                  {kind == 0 ? 2 : 4, kind == 1 ? COLUMNS : ROWS, kind == 1 ? ROWS : COLUMNS},
                                  {1, 3, 3},
                                  kind == 2 ? PS_I16 : PS_U16,
                                  AS_CONTIGUOUS,
                                  0,
                                  0,
                                  0}; /* fewer; turned; signed, as many bytes */
        add_dataset(file, "/entry/data/data", &now);
        H5Fclose(file);
        for (int i = 0; i < 3; i++) {
            ps_error error = {0};
            assert_int_equal(ps_reader_read(reader, 0, 2, counts, &error), PS_E_INPUT);
            expect_text(&error, "changed while it was in use");
        }
        ps_reader_close(reader);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(triggers_are_rows),
        cmocka_unit_test(no_square_of_what_is_left),
        cmocka_unit_test(triggers_that_are_no_rows),
        cmocka_unit_test(image_numbers_decide),
        cmocka_unit_test(holes_in_image_numbers),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(saturation_stands_in_many_places),
        cmocka_unit_test(bit_depth_decides),
        cmocka_unit_test(photons_are_no_electrons),
        cmocka_unit_test(a_changed_file_stays_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
