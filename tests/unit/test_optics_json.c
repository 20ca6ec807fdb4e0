/* Optics files: every key, both unit forms, refusals with place and hint, and quantem.gpu fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "optics/optics_json.h"
#include "reference_case.h"

#define BASE \
    "\"voltage_V\":300000,\"semiangle_mrad\":30,\"scan_step_A\":[0.4,0.5],\"detector_pitch_mrad\":[1,2],\"detector_center_px\":[3,4]"

static ps_code parse(const char *text, ps_optics *optics, ps_error *error) {
    cJSON *json = NULL;
    ps_code code = ps_json_parse(text, strlen(text), "optics.json", &json, error);
    if (code == PS_OK) code = ps_optics_from_json(json, "optics.json", optics, error);
    cJSON_Delete(json);
    return code;
}

static ps_optics accepted(const char *text) {
    ps_optics optics;
    ps_error error = {0};
    if (parse(text, &optics, &error) != PS_OK) fail_msg("%s", error.text);
    return optics;
}

static void assert_refused(const char *text, const char *first, const char *second) {
    ps_optics optics;
    ps_error error = {0};
    if (parse(text, &optics, &error) != PS_E_JOB) fail_msg("accepted: %s", text);
    if (!strstr(error.text, first) || !strstr(error.text, second)) fail_msg("'%s' lacks '%s' or '%s'", error.text, first, second);
}

static void assert_close(double found, double expected) {
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected))) fail_msg("found %.17g, expected %.17g", found, expected);
}

static void every_key_is_read(void **state) {
    (void)state;
    ps_optics optics = accepted("{" BASE ",\"rotation_deg\":-12.5,\"detector_transpose\":true,\"detector_flip\":[false,true],"
                                "\"tilt_mrad\":[1,-2],\"thickness_A\":120,\"comment\":\"x\",\"vacuum_probe\":null,"
                                "\"aberrations\":{\"C10_A\":-80,\"C12_A\":30,\"phi12_rad\":0.7,\"C56_A\":1e7,\"phi56_rad\":-1}}");
    assert_close(optics.voltage_V, 300000);
    assert_close(optics.scan_step_A[1], 0.5);
    assert_close(optics.detector_pitch_mrad[1], 2);
    assert_close(optics.detector_center_px[0], 3);
    assert_close(optics.rotation_deg, -12.5);
    assert_true(optics.detector_transpose && !optics.detector_flip[0] && optics.detector_flip[1]);
    assert_close(optics.tilt_mrad[1], -2);
    assert_close(optics.thickness_A, 120);
    assert_close(optics.C_A[0], -80);
    assert_close(optics.C_A[1], 30);
    assert_close(optics.angle_rad[1], 0.7);
    assert_close(optics.C_A[13], 1e7);
    assert_close(optics.angle_rad[13], -1);
}

static void other_units_are_converted(void **state) {
    (void)state;
    ps_optics optics = accepted("{\"voltage_kV\":300,\"semiangle_mrad\":30,\"scan_step_nm\":[0.04,0.05],\"detector_pitch_mrad\":[1,2],"
                                "\"detector_center_px\":[3,4],\"thickness_nm\":12,"
                                "\"aberrations\":{\"C10_nm\":-8,\"C12_nm\":3,\"phi12_deg\":90}}");
    assert_close(optics.voltage_V, 300000);
    assert_close(optics.scan_step_A[0], 0.4);
    assert_close(optics.thickness_A, 120);
    assert_close(optics.C_A[0], -80);
    assert_close(optics.C_A[1], 30);
    assert_close(optics.angle_rad[1], M_PI / 2);
    assert_close(accepted("{" BASE ",\"defocus_A\":70}").C_A[0], -70);
    assert_close(accepted("{" BASE ",\"aberrations\":{\"defocus_nm\":7}}").C_A[0], -70);
}

static void both_forms_at_once_are_refused(void **state) {
    (void)state;
    assert_refused("{" BASE ",\"aberrations\":{\"C10_A\":1,\"C10_nm\":1}}", "/aberrations/C10_nm", "C10_A");
    assert_refused("{" BASE ",\"aberrations\":{\"phi12_rad\":1,\"phi12_deg\":1}}", "/aberrations/phi12_deg", "phi12_rad");
    assert_refused("{" BASE ",\"aberrations\":{\"C10_A\":1,\"defocus_A\":1}}", "/aberrations/C10_A", "defocus");
    assert_refused("{" BASE ",\"defocus_A\":1,\"aberrations\":{\"C10_nm\":1}}", "/aberrations/C10_nm", "defocus");
    assert_refused("{" BASE ",\"defocus_A\":1,\"aberrations\":{\"defocus_A\":1}}", "/aberrations", "once");
    assert_refused("{" BASE ",\"voltage_kV\":300}", "/voltage_kV", "voltage_V");
}

static void unit_slips_are_named(void **state) {
    (void)state;
    assert_refused(
        "{\"voltage_V\":300,\"semiangle_mrad\":30,\"scan_step_A\":[1,1],\"detector_pitch_mrad\":[1,1],\"detector_center_px\":[3,4]}",
        "/voltage_V: found 300", "300 kV would be 300000 V");
    assert_refused(
        "{\"voltage_V\":3e5,\"semiangle_mrad\":0.03,\"scan_step_A\":[1,1],\"detector_pitch_mrad\":[1,1],\"detector_center_px\":[3,4]}",
        "/semiangle_mrad: found 0.03", "0.03 rad would be 30 mrad");
    assert_refused(
        "{\"voltage_V\":3e5,\"semiangle_mrad\":30,\"scan_step_A\":[0.0373,1],\"detector_pitch_mrad\":[1,1],\"detector_center_px\":[3,4]}",
        "/scan_step_A/0: found 0.0373", "is the value in nm?");
    assert_refused("{\"voltage_V\":3e5,\"semiangle_mrad\":30,\"scan_step_A\":[1,1],\"detector_pitch_mrad\":[0.0019,0.0019],"
                   "\"detector_center_px\":[3,4]}",
                   "/detector_pitch_mrad", "in rad?");
    assert_refused("{\"voltage_kV\":300000}", "/voltage_kV: found 300000", "is the value in V? then its key is \"voltage_V\"");
    assert_refused("{" BASE ",\"thickness_nm\":20000}", "/thickness_nm: found 20000", "its key is \"thickness_A\"");
    assert_refused("{" BASE ",\"aberrations\":{\"phi12_rad\":40}}", "/aberrations/phi12_rad: found 40", "is the value in deg?");
    assert_refused(
        "{\"voltage_V\":3e5,\"semiangle_mrad\":3,\"scan_step_A\":[1,1],\"detector_pitch_mrad\":[4,4],\"detector_center_px\":[3,4]}",
        "/detector_pitch_mrad", "smaller than a detector pixel");
}

static void what_is_not_given_stays_open(void **state) {
    (void)state;
    ps_optics optics = accepted("{\"rotation_deg\":3,\"detector_center_px\":null,\"scan_step_nm\":null}");
    assert_string_equal(ps_optics_missing(&optics), "voltage_V");
    assert_true(isnan(optics.semiangle_mrad) && isnan(optics.scan_step_A[1]) && isnan(optics.detector_center_px[0]));
    cJSON *json = ps_optics_to_json(&optics);
    char *text = cJSON_PrintUnformatted(json);
    ps_optics again = accepted(text);
    assert_true(isnan(again.voltage_V) && isnan(again.detector_pitch_mrad[1]) && again.rotation_deg == 3);
    cJSON_free(text);
    cJSON_Delete(json);
    optics = accepted("{" BASE "}");
    assert_null(ps_optics_missing(&optics));
    optics.detector_center_px[0] = NAN;
    assert_string_equal(ps_optics_missing(&optics), "detector_center_px");
    assert_refused("{\"voltage_V\":null,\"voltage_kV\":300}", "/voltage_kV", "voltage_V");
    assert_refused("{" BASE ",\"rotation_deg\":null}", "/rotation_deg", "number");
}

static void wrong_files_are_refused_with_a_place(void **state) {
    (void)state;
    assert_refused("{" BASE ",\"rotation_degrees\":3}", "/rotation_degrees: unknown key", "\"rotation_deg\"");
    assert_refused("{" BASE ",\"aberrations\":{\"C10\":3}}", "/aberrations/C10: unknown key", "C10_");
    assert_refused("{" BASE ",\"rotation_deg\":\"3\"}", "/rotation_deg: found \"3\"", "a number");
    assert_refused("{" BASE ",\"detector_flip\":true}", "/detector_flip: found true", "[row, column]");
    assert_refused("{" BASE ",\"vacuum_probe\":\"probe.npy\"}", "/vacuum_probe", "cannot be used");
    assert_refused("{" BASE ",\"rotation_deg\":1,\"rotation_deg\":2}", "/rotation_deg", "twice");
    assert_refused("{" BASE ",\"rotation_deg\":1e999}", "/rotation_deg", "too large");
    assert_refused("[1]", "found [1]", "an object");
    assert_refused("{" BASE "} x", "line 1", "after the end");
    assert_refused("{\n// note\n" BASE "}", "line 2, near column 1", "no comments");
    assert_refused("{" BASE, "ends too early", "");
    assert_refused("{'voltage_V': 3}", "line 1, near column", "not JSON");
}

static void canonical_form_reads_back(void **state) {
    (void)state;
    ps_optics optics = reference_optics_b(), again;
    optics.detector_transpose = optics.detector_flip[1] = true;
    cJSON *json = ps_optics_to_json(&optics);
    ps_error error = {0};
    assert_int_equal(ps_optics_from_json(json, "canonical", &again, &error), PS_OK);
    assert_memory_equal(&optics, &again, sizeof optics);
    cJSON_Delete(json);
}

static void stored_cases_are_read(void **state) {
    (void)state;
    hid_t file = reference_open("case_b");
    if (file < 0) skip();
    char *text = reference_text(file, "optics_json");
    ps_optics found = accepted(text), expected = reference_optics_b();
    assert_memory_equal(&found, &expected, sizeof found);
    free(text);
    H5Fclose(file);
}

#define FIT(schema, extra)                                                                                                           \
    "{\"schema\":" schema ",\"git\":null,\"result\":{\"backend\":\"cuda\",\"aberrations\":{\"C10\":-12.5,\"C12\":3,\"phi12\":0.25}," \
    "\"rotation_angle_deg\":165.5,\"voltage_kV\":300,\"semiangle_mrad\":21.4,\"scan_sampling_A\":0.25,\"bf_center\":[31.5,32.5],"    \
    "\"bf_radius\":20,\"detected_bf_radius\":10.7,\"tilt_mrad\":[1,2],\"depth_spread_nm\":8" extra "}}"

static void quantem_fits_are_read(void **state) {
    (void)state;
    ps_optics first = accepted(FIT("1", "")), second = accepted(FIT("2", ",\"com_reversed\":true,\"upsample\":2"));
    assert_close(first.C_A[0], -12.5);
    assert_close(first.thickness_A, 8);
    assert_close(first.rotation_deg, 165.5);
    assert_close(first.voltage_V, 300000);
    assert_close(first.scan_step_A[1], 0.25);
    assert_close(first.detector_pitch_mrad[0], 2);
    assert_close(first.detector_center_px[1], 32.5);
    assert_close(second.C_A[0], -125);
    assert_close(second.C_A[1], 30);
    assert_close(second.angle_rad[1], 0.25);
    assert_close(second.thickness_A, 80);
    assert_close(second.tilt_mrad[1], 2);
    assert_close(second.rotation_deg, 345.5);
    assert_close(second.scan_step_A[0], 0.5);
    assert_refused(FIT("99", ""), "/schema", "99");
    assert_refused("{\"schema\":2,\"result\":{\"voltage_kV\":null}}", "/result/voltage_kV", "missing in this fit");
}

#define SMALL_FIT(rotation, step, radius, depth)                                                                                          \
    "{\"schema\":2,\"result\":{\"aberrations\":{},\"voltage_kV\":300,\"semiangle_mrad\":20,\"bf_center\":[3,4],\"com_reversed\":true,"    \
    "\"upsample\":2,\"rotation_angle_deg\":" rotation ",\"scan_sampling_A\":" step ",\"bf_radius\":" radius ",\"depth_spread_nm\":" depth \
    "}}"

/* As plausible as an optics file must be, so that what provenance keeps of a fit can be read again. */
static void quantem_fits_are_plausible(void **state) {
    (void)state;
    ps_optics again, turned = accepted(SMALL_FIT("585", "0.5", "10", "1"));
    cJSON *kept = ps_optics_to_json(&turned);
    assert_close(turned.rotation_deg, 405);
    assert_int_equal(ps_optics_from_json(kept, "kept", &again, NULL), PS_OK);
    cJSON_Delete(kept);
    assert_refused(SMALL_FIT("1", "6e4", "10", "1"), "/result: the fit gives a scan_step_A of 120000", "0.05 to 100000");
    assert_refused(SMALL_FIT("1", "0.02", "10", "1"), "/result: the fit gives a scan_step_A of 0.04", "0.05 to 100000");
    assert_refused(SMALL_FIT("1", "0.5", "5000", "1"), "/result", "radius of 5000 pixels");
    assert_refused(SMALL_FIT("1", "0.5", "10", "2e4"), "/result: the fit gives a thickness_A of 200000", "0 to 100000");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(other_units_are_converted),
        cmocka_unit_test(both_forms_at_once_are_refused),
        cmocka_unit_test(unit_slips_are_named),
        cmocka_unit_test(what_is_not_given_stays_open),
        cmocka_unit_test(wrong_files_are_refused_with_a_place),
        cmocka_unit_test(canonical_form_reads_back),
        cmocka_unit_test(stored_cases_are_read),
        cmocka_unit_test(quantem_fits_are_read),
        cmocka_unit_test(quantem_fits_are_plausible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
