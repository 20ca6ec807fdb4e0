#include "optics/quantem_fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NEWEST_SCHEMA = 5, KEY_TEXT = 8, LARGEST_ROTATION = 720 };

bool ps_quantem_fit_recognise(const ps_json *root) {
    ps_json schema = ps_json_member(root, "schema"), result = ps_json_member(root, "result");
    return schema.value && result.value && cJSON_IsObject(result.value);
}

/* A member that must be there as a number; null counts as absent. */
static ps_code read_number(const ps_json *result, const char *key, double minimum, double maximum, double *number, ps_error *error) {
    ps_json member = ps_json_member(result, key);
    if (!member.value || ps_json_is_null(&member))
        return ps_json_refuse(&member, error, "missing in this fit; write an optics file with the fit's values and the missing ones");
    return ps_json_number(&member, minimum, maximum, number, error);
}

/* The spacing of the fit's output pixels, one number or [row, column]; the scan step is `upsample` times that. */
static ps_code read_scan_step(const ps_json *result, ps_optics *optics, ps_error *error) {
    ps_json member = ps_json_member(result, "scan_sampling_A"), factor = ps_json_member(result, "upsample");
    int64_t upsample = 1;
    if (!ps_json_is_null(&factor)) PS_TRY(ps_json_integer(&factor, 1, 64, &upsample, error));
    if (member.value && cJSON_IsArray(member.value)) {
        PS_TRY(ps_json_pair(&member, 1e-3, 1e5, optics->scan_step_A, error));
    } else {
        PS_TRY(read_number(result, "scan_sampling_A", 1e-3, 1e5, &optics->scan_step_A[0], error));
        optics->scan_step_A[1] = optics->scan_step_A[0];
    }
    for (int axis = 0; axis < 2; axis++) optics->scan_step_A[axis] *= (double)upsample;
    return PS_OK;
}

/* The disc's edge is at the semiangle, so its radius in pixels gives the pitch. */
static ps_code read_detector(const ps_json *result, ps_optics *optics, ps_error *error) {
    double radius_px;
    ps_json detected = ps_json_member(result, "detected_bf_radius"), center = ps_json_member(result, "bf_center");
    const char *key = detected.value && !ps_json_is_null(&detected) ? "detected_bf_radius" : "bf_radius";
    PS_TRY(read_number(result, key, 1.0, 1e5, &radius_px, error));
    optics->detector_pitch_mrad[0] = optics->detector_pitch_mrad[1] = optics->semiangle_mrad / radius_px;
    if (!center.value || ps_json_is_null(&center))
        return ps_json_refuse(&center, error, "missing in this fit; write an optics file with the fit's values and the missing ones");
    return ps_json_pair(&center, -1e5, 1e5, optics->detector_center_px, error);
}

static ps_code read_aberrations(const ps_json *result, double A_per_length, ps_optics *optics, ps_error *error) {
    char names[2 * PS_N_ABERRATIONS][KEY_TEXT];
    const char *keys[2 * PS_N_ABERRATIONS];
    ps_json aberrations = ps_json_member(result, "aberrations");
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        int n = ps_aberration_orders[i][0], m = ps_aberration_orders[i][1];
        snprintf(names[2 * i], KEY_TEXT, "C%d%d", n, m);
        snprintf(names[2 * i + 1], KEY_TEXT, "phi%d%d", n, m);
        keys[2 * i] = names[2 * i];
        keys[2 * i + 1] = names[2 * i + 1];
    }
    PS_TRY(ps_json_require(&aberrations, error));
    PS_TRY(ps_json_object(&aberrations, keys, 2 * PS_N_ABERRATIONS, error));
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        ps_json C = ps_json_member(&aberrations, names[2 * i]), angle = ps_json_member(&aberrations, names[2 * i + 1]);
        PS_TRY(ps_json_number(&C, -1e12 / A_per_length, 1e12 / A_per_length, &optics->C_A[i], error));
        PS_TRY(ps_json_number(&angle, -4.0 * M_PI, 4.0 * M_PI, &optics->angle_rad[i], error));
        optics->C_A[i] *= A_per_length;
        if (ps_aberration_orders[i][1] == 0) optics->angle_rad[i] = 0.0;
    }
    return PS_OK;
}

/* Rotation is kept below 180 degrees beside a flag that turns it by 180; backwards where an optics file could not say the sum. */
static ps_code read_rotation(const ps_json *result, ps_optics *optics, ps_error *error) {
    bool reversed = false;
    ps_json flag = ps_json_member(result, "com_reversed");
    if (!ps_json_is_null(&flag)) PS_TRY(ps_json_bool(&flag, &reversed, error));
    PS_TRY(read_number(result, "rotation_angle_deg", -LARGEST_ROTATION, LARGEST_ROTATION, &optics->rotation_deg, error));
    if (reversed) optics->rotation_deg += optics->rotation_deg > LARGEST_ROTATION - 180 ? -180.0 : 180.0;
    return PS_OK;
}

static ps_code read_sample(const ps_json *result, double A_per_length, ps_optics *optics, ps_error *error) {
    ps_json tilt = ps_json_member(result, "tilt_mrad"), depth = ps_json_member(result, "depth_spread_nm");
    if (!ps_json_is_null(&tilt)) PS_TRY(ps_json_pair(&tilt, -500.0, 500.0, optics->tilt_mrad, error));
    if (!ps_json_is_null(&depth)) PS_TRY(ps_json_number(&depth, 0.0, 1e5, &optics->thickness_A, error));
    optics->thickness_A *= A_per_length;
    return PS_OK;
}

ps_code ps_quantem_fit_read(const ps_json *root, ps_optics *optics, ps_error *error) {
    int64_t schema = 0;
    ps_json version = ps_json_member(root, "schema"), result = ps_json_member(root, "result");
    memset(optics, 0, sizeof *optics);
    PS_TRY(ps_json_integer(&version, 1, NEWEST_SCHEMA, &schema, error));
    double A_per_length = schema == 1 ? 1.0 : 10.0; /* schema 1 wrote Angstrom under names that say nm */
    PS_TRY(read_number(&result, "voltage_kV", 10.0, 3000.0, &optics->voltage_V, error));
    optics->voltage_V *= 1e3;
    PS_TRY(read_number(&result, "semiangle_mrad", 0.1, 200.0, &optics->semiangle_mrad, error));
    PS_TRY(read_scan_step(&result, optics, error));
    PS_TRY(read_detector(&result, optics, error));
    PS_TRY(read_rotation(&result, optics, error));
    PS_TRY(read_aberrations(&result, A_per_length, optics, error));
    return read_sample(&result, A_per_length, optics, error);
}
