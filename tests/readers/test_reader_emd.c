/* EMD: 1.0 as py4DSTEM writes it, older axes, bare groups; calibrations with units that mislead; which cube; real files. */
#include <math.h>

#include "input/formats/axis_order.h"
#include "input/units.h"
#include "recordings.h"

static void add_text_attribute(hid_t file, const char *object, const char *name, const char *value) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, strlen(value) + 1);
    hid_t attribute = H5Acreate_by_name(file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, type, value) >= 0);
    H5Aclose(attribute), H5Sclose(space), H5Tclose(type);
}

static void add_text(hid_t file, const char *name, const char *value) {
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), links = H5Pcreate(H5P_LINK_CREATE);
    H5Tset_size(type, H5T_VARIABLE);
    H5Pset_create_intermediate_group(links, 1);
    hid_t dataset = H5Dcreate2(file, name, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0);
    H5Dclose(dataset), H5Pclose(links), H5Sclose(space), H5Tclose(type);
}

static void add_axis(hid_t file, const char *name, double step, const char *units) {
    hid_t space = H5Screate_simple(1, (hsize_t[]){2}, NULL);
    hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, (double[]){0, step}) >= 0);
    H5Dclose(dataset), H5Sclose(space);
    add_text_attribute(file, name, "units", units);
}

static const made_dataset cube = {4, {3, 4, 5, 6}, {1, 1, 5, 6}, PS_U16, AS_BSLZ4, 0, 0, 0};

static hid_t create_cube(const char *path, const char *group, const char *mark) {
    char name[100];
    hid_t file = create_file(path);
    snprintf(name, sizeof name, "%s/data", group);
    add_dataset(file, name, &cube);
    if (mark) add_text_attribute(file, group, "emd_group_type", mark);
    return file;
}

static void test_py4dstem(void **unused) {
    (void)unused;
    hid_t file = create_cube(in_folder("p.h5"), "/root/cube", "array");
    add_axis(file, "/root/cube/dim0", 0.5, "nm");
    add_axis(file, "/root/cube/dim1", 0.5, "nm");
    add_number(file, "/root/metadatabundle/calibration/R_pixel_size", 0.6);
    add_text(file, "/root/metadatabundle/calibration/R_pixel_units", "nm");
    add_number(file, "/root/metadatabundle/calibration/Q_pixel_size", 0.05);
    add_text(file, "/root/metadatabundle/calibration/Q_pixel_units", "A^-1");
    add_number(file, "/root/metadatabundle/microscope/accelerating_voltage", 300000);
    H5Fclose(file);
    expect_recording(in_folder("p.h5"), 12, 5, 6, PS_U16);
    ps_reader *reader = open_good(in_folder("p.h5"));
    assert_string_equal(reader->info.format, "EMD");
    assert_int_equal(reader->info.scan_rows, 3);
    assert_true(fabs(reader->info.scan_step_A[0] - 6) <= 1e-12); /* the calibration before the axes */
    assert_true(reader->info.voltage_V == 300000);
    assert_true(fabs(reader->info.detector_pitch_mrad[0] - 0.05 * 0.0196874890 * 1e3) <= 1e-7);
    assert_string_equal(reader->info.step_place, "/root/metadatabundle/calibration/R_pixel_size");
    ps_reader_close(reader);
}

static void test_axes(void **unused) {
    (void)unused;
    for (int first = 0; first < 2; first++) { /* dim0 ... dim3 and dim1 ... dim4 */
        static const char *const units[] = {"[nm]", "[nm]", "mrad", "mrad"};
        static const double steps[] = {0.2, 0.3, 0.7, 0.8};
        hid_t file = create_cube(in_folder("d.h5"), "/g", "1");
        for (int i = 0; i < 4; i++) {
            char name[32];
            snprintf(name, sizeof name, "/g/dim%d", i + first);
            add_axis(file, name, steps[i], units[i]);
        }
        H5Fclose(file);
        ps_reader *reader = open_good(in_folder("d.h5"));
        assert_true(fabs(reader->info.scan_step_A[0] - 2) <= 1e-12 && fabs(reader->info.scan_step_A[1] - 3) <= 1e-12);
        assert_true(fabs(reader->info.detector_pitch_mrad[0] - 0.7) <= 1e-12 && fabs(reader->info.detector_pitch_mrad[1] - 0.8) <= 1e-12);
        ps_reader_close(reader);
    }
}

static void test_misleading_units(void **unused) {
    (void)unused;
    hid_t file = create_cube(in_folder("u.h5"), "/g", "array");
    add_axis(file, "/g/dim0", 31.25, "nm");
    add_axis(file, "/g/dim1", 31.25, "nm");
    add_number(file, "/meta/beam_energy", 300);
    H5Fclose(file);
    ps_reader *reader = open_good(in_folder("u.h5"));
    assert_true(strstr(ps_reader_notes(reader), "a scan step of 31.25 nm; was 31.25 Angstrom meant?") != NULL);
    assert_true(reader->info.voltage_V == 300000);
    assert_true(strstr(ps_reader_notes(reader), "/meta/beam_energy says 300, taken as kV") != NULL);
    ps_reader_close(reader);
}

static void test_detector_first(void **unused) {
    (void)unused;
    hid_t file = create_cube(in_folder("t.h5"), "/g", "array");
    static const char *const units[] = {"A^-1", "A^-1", "A", "A"};
    for (int i = 0; i < 4; i++) add_axis(file, (const char *[]){"/g/dim0", "/g/dim1", "/g/dim2", "/g/dim3"}[i], 1, units[i]);
    H5Fclose(file);
    expect_refusal(in_folder("t.h5"), "expected the scan's axes first");
}

static void test_which_cube(void **unused) {
    (void)unused;
    char source[600];
    hid_t file = create_cube(in_folder("w.h5"), "/top/datacubes/one", NULL); /* a bare one, found by its place */
    add_dataset(file, "/other/stack", &(made_dataset){3, {2, 3, 3}, {1, 3, 3}, PS_U8, AS_CHUNKS, 0, 0, 0});
    H5Fclose(file);
    expect_recording(in_folder("w.h5"), 12, 5, 6, PS_U16);
    file = H5Fopen(in_folder("w.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    add_dataset(file, "/top/datacubes/two/data", &cube);
    H5Fclose(file);
    expect_refusal(in_folder("w.h5"), "holds 2 data cubes; name one as");
    snprintf(source, sizeof source, "%s:/top/datacubes/two/data", in_folder("w.h5"));
    expect_recording(source, 12, 5, 6, PS_U16);
    snprintf(source, sizeof source, "%s:/other/stack", in_folder("w.h5"));
    expect_recording(source, 2, 3, 3, PS_U8);
}

static void test_units(void **unused) {
    (void)unused;
    assert_true(ps_unit_length_A("nm") == 10 && ps_unit_length_A("[nm]") == 10 && ps_unit_length_A("Å") == 1 &&
                ps_unit_length_A("pm") == 0.01);
    assert_true(isnan(ps_unit_length_A("pixels")) && isnan(ps_unit_length_A("")) && isnan(ps_unit_length_A("nm^-1")));
    assert_true(ps_unit_reciprocal_inv_A("A^-1") == 1 && ps_unit_reciprocal_inv_A("1/A") == 1 && ps_unit_reciprocal_inv_A("Å⁻¹") == 1);
    assert_true(ps_unit_reciprocal_inv_A("1/nm") == 0.1 && ps_unit_reciprocal_inv_A("[1/nm]") == 0.1 &&
                ps_unit_reciprocal_inv_A("nm^-1") == 0.1);
    assert_true(isnan(ps_unit_reciprocal_inv_A("nm")) && isnan(ps_unit_reciprocal_inv_A("^-1")) && isnan(ps_unit_reciprocal_inv_A("")));
    assert_true(ps_unit_angle_mrad("rad") == 1000 && ps_unit_angle_mrad("mrad") == 1 && isnan(ps_unit_angle_mrad("A")));
}

static void test_more_units(void **unused) {
    (void)unused;
    assert_true(ps_unit_reciprocal_inv_A("1 / nm") == 0.1 && ps_unit_reciprocal_inv_A("1/ nm") == 0.1 &&
                ps_unit_reciprocal_inv_A("1/Angstrom") == 1);
    assert_true(ps_unit_length_A("Nanometers") == 10 && ps_unit_length_A("ANGSTROM") == 1 && ps_unit_length_A("mm") == 1e7);
    assert_true(isnan(ps_unit_length_A("NM")) && isnan(ps_unit_length_A("M")) && isnan(ps_unit_reciprocal_inv_A("1")) &&
                isnan(ps_unit_reciprocal_inv_A("1nm")) && isnan(ps_unit_length_A("mrad")));
    assert_true(ps_unit_reciprocal_inv_A("$A^{-1}$") == 1 && ps_unit_reciprocal_inv_A("$nm^{-1}$") == 0.1 &&
                ps_unit_reciprocal_inv_A("$\\AA^{-1}$") == 1);
    assert_true(ps_unit_angle_mrad("Radians") == 1000 && ps_unit_angle_mrad("milliradian") == 1);
}

static void test_names_of_axes(void **unused) {
    (void)unused;
    static const char *const detector[] = {
        "Qx", "Q_Nx", "q_y", "kx", "K_Y", "q0", "det_row", "detector column", "Signal-1", "diffraction_x", "scattering angle"};
    static const char *const scan[] = {"Rx", "R_y", "scan_x", "Scan row", "nav_1", "probe position", "r0"};
    static const char *const neither[] = {"",  "x", "y",     "row",   "column", "time", "q",
                                          "k", "r", "dim_0", "queue", "kind",   "rows", "scan_detector"};
    for (size_t i = 0; i < sizeof detector / sizeof *detector; i++)
        if (ps_axis_name_kind(detector[i]) != PS_AXIS_DETECTOR) fail_msg("%s", detector[i]);
    for (size_t i = 0; i < sizeof scan / sizeof *scan; i++)
        if (ps_axis_name_kind(scan[i]) != PS_AXIS_SCAN) fail_msg("%s", scan[i]);
    for (size_t i = 0; i < sizeof neither / sizeof *neither; i++)
        if (ps_axis_name_kind(neither[i]) != PS_AXIS_UNKNOWN) fail_msg("%s", neither[i]);
}

/* A frequency stays one until a voltage is known, the optics' before the file's. */
static void test_pitch_as_frequency(void **unused) {
    (void)unused;
    double pitch[2];
    hid_t file = create_cube(in_folder("f.h5"), "/root/cube", "array");
    add_number(file, "/root/metadatabundle/calibration/Q_pixel_size", 0.05);
    add_text(file, "/root/metadatabundle/calibration/Q_pixel_units", "A^-1");
    H5Fclose(file);
    ps_reader *reader = open_good(in_folder("f.h5"));
    assert_true(isnan(reader->info.detector_pitch_mrad[0]) && reader->info.detector_pitch_inv_A[1] == 0.05);
    assert_string_equal(reader->info.pitch_place, "/root/metadatabundle/calibration/Q_pixel_size");
    ps_recording_pitch(&reader->info, NAN, pitch);
    assert_true(isnan(pitch[0]) && isnan(pitch[1]));
    ps_recording_pitch(&reader->info, 300000, pitch);
    assert_true(fabs(pitch[0] - 0.05 * 0.0196874890 * 1e3) <= 1e-7 && pitch[1] == pitch[0]);
    reader->info.detector_pitch_mrad[0] = reader->info.detector_pitch_mrad[1] = 1.25; /* at the file's own voltage */
    ps_recording_pitch(&reader->info, NAN, pitch);
    assert_true(pitch[0] == 1.25 && pitch[1] == 1.25);
    ps_recording_pitch(&reader->info, 300000, pitch);
    assert_true(fabs(pitch[0] - 0.05 * 0.0196874890 * 1e3) <= 1e-7);
    ps_reader_close(reader);
}

static void test_real_files(void **unused) {
    (void)unused;
    skip_without(FORMATS "/emd");
    ps_reader *reader = open_good(FORMATS "/emd/py4DSTEM_size2x3x4x5.h5");
    assert_string_equal(reader->info.format, "EMD");
    assert_true(fabs(reader->info.scan_step_A[0] - 1.26796875) <= 1e-9);
    ps_reader_close(reader);
    expect_sums(FORMATS "/emd/py4DSTEM_size2x3x4x5.h5", 6, 28255.876245498657, 1941123.206629753);
    expect_sums(FORMATS "/emd/smoke_test.emd", 16, 587520.0, 301556320.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_py4dstem),           cmocka_unit_test(test_axes),       cmocka_unit_test(test_misleading_units),
        cmocka_unit_test(test_detector_first),     cmocka_unit_test(test_which_cube), cmocka_unit_test(test_units),
        cmocka_unit_test(test_real_files),         cmocka_unit_test(test_more_units), cmocka_unit_test(test_names_of_axes),
        cmocka_unit_test(test_pitch_as_frequency),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
