#include "optics/optics_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/text.h"
#include "optics/quantem_fit.h"

/* A quantity that may be given under either of two keys. value = number * factor. */
typedef struct {
    const char *keys[2]; /* the second may be NULL */
    double factors[2];
    double minimum, maximum; /* plausible, of the value */
    const char *unit;        /* of the value */
    const char *slip;        /* unit people give by mistake; NULL: none known */
    double slip_factor;      /* from it to `unit` */
    bool may_be_null;        /* null is as good as absent */
} quantity;

static const quantity voltage = {{"voltage_V", "voltage_kV"}, {1.0, 1e3}, 1e4, 3e6, "V", "kV", 1e3, true};
static const quantity semiangle = {{"semiangle_mrad", NULL}, {1.0, 0.0}, 0.1, 200.0, "mrad", "rad", 1e3, true};
static const quantity scan_step = {{"scan_step_A", "scan_step_nm"}, {1.0, 10.0}, 0.05, 1e5, "A", "nm", 10.0, true};
static const quantity pitch = {{"detector_pitch_mrad", NULL}, {1.0, 0.0}, 1e-3, 100.0, "mrad", "rad", 1e3, true};
static const quantity center = {{"detector_center_px", NULL}, {1.0, 0.0}, -1e5, 1e5, "px", NULL, 0.0, true};
static const quantity rotation = {{"rotation_deg", NULL}, {1.0, 0.0}, -720.0, 720.0, "deg", NULL, 0.0, false};
static const quantity tilt = {{"tilt_mrad", NULL}, {1.0, 0.0}, -500.0, 500.0, "mrad", NULL, 0.0, false};
static const quantity thickness = {{"thickness_A", "thickness_nm"}, {1.0, 10.0}, 0.0, 1e5, "A", NULL, 0.0, false};
static const quantity defocus = {{"defocus_A", "defocus_nm"}, {1.0, 10.0}, -1e8, 1e8, "A", NULL, 0.0, false};

static const char *const optics_keys[] = {
    "voltage_V",          "voltage_kV",   "semiangle_mrad",     "scan_step_A",   "scan_step_nm", "detector_pitch_mrad",
    "detector_center_px", "rotation_deg", "aberrations",        "defocus_A",     "defocus_nm",   "tilt_mrad",
    "thickness_A",        "thickness_nm", "detector_transpose", "detector_flip", "vacuum_probe", "comment"};

enum { MOST_PIXELS_IN_RADIUS = 4000, KEY_TEXT = 12, N_ABERRATION_KEYS = 4 * PS_N_ABERRATIONS + 2 };

static ps_code implausible(const ps_json *place, const quantity *kind, double factor, ps_error *error) {
    double number = place->value->valuedouble, meant = number * kind->slip_factor;
    if (kind->slip && meant >= kind->minimum && meant <= kind->maximum)
        return ps_json_fail(place, error, "%g to %g; %g %s would be %g %s: is the value in %s?", kind->minimum / factor,
                            kind->maximum / factor, number, kind->slip, meant, kind->unit, kind->slip);
    if (factor != 1.0 && number >= kind->minimum && number <= kind->maximum)
        return ps_json_fail(place, error, "%g to %g; is the value in %s? then its key is \"%s\"", kind->minimum / factor,
                            kind->maximum / factor, kind->unit, kind->keys[0]);
    return ps_json_fail(place, error, "%g to %g", kind->minimum / factor, kind->maximum / factor);
}

static ps_code read_value(const ps_json *place, const quantity *kind, double factor, double *value, ps_error *error) {
    double number = 0.0;
    PS_TRY(ps_json_number(place, -INFINITY, INFINITY, &number, error));
    if (!(number * factor >= kind->minimum && number * factor <= kind->maximum)) return implausible(place, kind, factor, error);
    *value = number * factor;
    return PS_OK;
}

/* Finds which of its keys gives the quantity; place->value is NULL when none does, or null where that may be. */
static ps_code find_quantity(const ps_json *object, const quantity *kind, ps_json *place, double *factor, ps_error *error) {
    *place = ps_json_member(object, kind->keys[0]);
    *factor = kind->factors[0];
    ps_json other = kind->keys[1] ? ps_json_member(object, kind->keys[1]) : (ps_json){0};
    if (place->value && other.value)
        return ps_json_refuse(&other, error, "given although \"%s\" is there too; give one of them", kind->keys[0]);
    if (other.value) {
        *place = other;
        *factor = kind->factors[1];
    }
    if (kind->may_be_null && ps_json_is_null(place)) place->value = NULL;
    return PS_OK;
}

static ps_code read_scalar(const ps_json *object, const quantity *kind, bool *given, double *value, ps_error *error) {
    ps_json place;
    double factor;
    PS_TRY(find_quantity(object, kind, &place, &factor, error));
    *given = place.value != NULL;
    return *given ? read_value(&place, kind, factor, value, error) : PS_OK;
}

static ps_code read_pair(const ps_json *object, const quantity *kind, bool *given, double *pair, ps_error *error) {
    ps_json place;
    double factor, plain[2];
    PS_TRY(find_quantity(object, kind, &place, &factor, error));
    *given = place.value != NULL;
    PS_TRY(ps_json_pair(&place, -INFINITY, INFINITY, plain, error));
    for (int i = 0; *given && i < 2; i++) {
        ps_json element = ps_json_element(&place, i);
        PS_TRY(read_value(&element, kind, factor, &pair[i], error));
    }
    return PS_OK;
}

/* Fills names and keys with every key the aberrations object may have. */
static void list_aberration_keys(char names[][KEY_TEXT], const char *keys[]) {
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        int n = ps_aberration_orders[i][0], m = ps_aberration_orders[i][1];
        snprintf(names[4 * i], KEY_TEXT, "C%d%d_A", n, m);
        snprintf(names[4 * i + 1], KEY_TEXT, "C%d%d_nm", n, m);
        snprintf(names[4 * i + 2], KEY_TEXT, m ? "phi%d%d_rad" : "C%d%d_A", n, m);
        snprintf(names[4 * i + 3], KEY_TEXT, m ? "phi%d%d_deg" : "C%d%d_nm", n, m);
    }
    snprintf(names[N_ABERRATION_KEYS - 2], KEY_TEXT, "defocus_A");
    snprintf(names[N_ABERRATION_KEYS - 1], KEY_TEXT, "defocus_nm");
    for (int i = 0; i < N_ABERRATION_KEYS; i++) keys[i] = names[i];
}

/* names: the term's four keys. */
static ps_code read_term(const ps_json *object, int term, char names[][KEY_TEXT], ps_optics *optics, ps_error *error) {
    bool given;
    const quantity coefficient = {{names[0], names[1]}, {1.0, 10.0}, -1e12, 1e12, "A", NULL, 0.0, false};
    const quantity angle = {{names[2], names[3]}, {1.0, M_PI / 180.0}, -4.0 * M_PI, 4.0 * M_PI, "rad", "deg", M_PI / 180.0, false};
    PS_TRY(read_scalar(object, &coefficient, &given, &optics->C_A[term], error));
    if (ps_aberration_orders[term][1] == 0) return PS_OK;
    return read_scalar(object, &angle, &given, &optics->angle_rad[term], error);
}

/* Defocus may stand for C10, among the aberrations or beside them, once. */
static ps_code read_defocus(const ps_json *object, const ps_json *aberrations, ps_optics *optics, ps_error *error) {
    bool inside, beside;
    double value = 0.0;
    PS_TRY(read_scalar(object, &defocus, &beside, &value, error));
    PS_TRY(read_scalar(aberrations, &defocus, &inside, &value, error));
    if (!inside && !beside) return PS_OK;
    ps_json in_A = ps_json_member(aberrations, "C10_A"), in_nm = ps_json_member(aberrations, "C10_nm");
    const ps_json *C10 = in_A.value ? &in_A : &in_nm;
    if (inside && beside) return ps_json_refuse(aberrations, error, "defocus is given here and beside the aberrations; give it once");
    if (C10->value) return ps_json_refuse(C10, error, "given although defocus is there too (defocus is -C10); give one of them");
    optics->C_A[0] = -value;
    return PS_OK;
}

static ps_code read_aberrations(const ps_json *object, ps_optics *optics, ps_error *error) {
    char names[N_ABERRATION_KEYS][KEY_TEXT];
    const char *keys[N_ABERRATION_KEYS];
    ps_json aberrations = ps_json_member(object, "aberrations");
    list_aberration_keys(names, keys);
    PS_TRY(ps_json_object(&aberrations, keys, N_ABERRATION_KEYS, error));
    for (int i = 0; i < PS_N_ABERRATIONS; i++) PS_TRY(read_term(&aberrations, i, names + 4 * i, optics, error));
    return read_defocus(object, &aberrations, optics, error);
}

static ps_code read_orientation(const ps_json *object, ps_optics *optics, ps_error *error) {
    ps_json transpose = ps_json_member(object, "detector_transpose"), flip = ps_json_member(object, "detector_flip");
    PS_TRY(ps_json_bool(&transpose, &optics->detector_transpose, error));
    if (!flip.value) return PS_OK;
    if (!cJSON_IsArray(flip.value) || cJSON_GetArraySize(flip.value) != 2)
        return ps_json_fail(&flip, error, "two of true or false [row, column]");
    for (int axis = 0; axis < 2; axis++) {
        ps_json element = ps_json_element(&flip, axis);
        PS_TRY(ps_json_bool(&element, &optics->detector_flip[axis], error));
    }
    return PS_OK;
}

/* What only two values together can show, where both are given. */
static ps_code check_together(const ps_json *object, const ps_optics *optics, ps_error *error) {
    ps_json place = ps_json_member(object, "detector_pitch_mrad");
    double largest = fmax(optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1]);
    double smallest = fmin(optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1]);
    if (optics->semiangle_mrad < largest)
        return ps_json_refuse(&place, error, "the bright-field disc (%g mrad) would be smaller than a detector pixel (%g mrad)",
                              optics->semiangle_mrad, largest);
    if (optics->semiangle_mrad > MOST_PIXELS_IN_RADIUS * smallest)
        return ps_json_refuse(
            &place, error,
            "the bright-field disc would have a radius of %g pixels (semiangle %g mrad, pitch %g mrad); is the pitch in rad? "
            "%g rad would be %g mrad",
            optics->semiangle_mrad / smallest, optics->semiangle_mrad, smallest, smallest, 1e3 * smallest);
    return PS_OK;
}

static ps_code read_lens(const ps_json *object, ps_optics *optics, ps_error *error) {
    bool given;
    PS_TRY(read_scalar(object, &voltage, &given, &optics->voltage_V, error));
    PS_TRY(read_scalar(object, &semiangle, &given, &optics->semiangle_mrad, error));
    return read_aberrations(object, optics, error);
}

static ps_code read_geometry(const ps_json *object, ps_optics *optics, ps_error *error) {
    bool given;
    PS_TRY(read_pair(object, &scan_step, &given, optics->scan_step_A, error));
    PS_TRY(read_pair(object, &pitch, &given, optics->detector_pitch_mrad, error));
    PS_TRY(read_pair(object, &center, &given, optics->detector_center_px, error));
    PS_TRY(read_scalar(object, &rotation, &given, &optics->rotation_deg, error));
    PS_TRY(read_orientation(object, optics, error));
    return check_together(object, optics, error);
}

static ps_code read_sample(const ps_json *object, ps_optics *optics, ps_error *error) {
    bool given;
    PS_TRY(read_pair(object, &tilt, &given, optics->tilt_mrad, error));
    return read_scalar(object, &thickness, &given, &optics->thickness_A, error);
}

/* A fit's values must be as plausible as those of an optics file. */
static ps_code read_fit(const ps_json *place, ps_optics *optics, ps_error *error) {
    ps_json result = ps_json_member(place, "result");
    PS_TRY(ps_quantem_fit_read(place, optics, error));
    const struct {
        const quantity *kind;
        double value;
    } values[] = {{&voltage, optics->voltage_V},
                  {&semiangle, optics->semiangle_mrad},
                  {&scan_step, fmin(optics->scan_step_A[0], optics->scan_step_A[1])},
                  {&scan_step, fmax(optics->scan_step_A[0], optics->scan_step_A[1])},
                  {&pitch, optics->detector_pitch_mrad[0]},
                  {&thickness, optics->thickness_A}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const quantity *kind = values[i].kind;
        if (!(values[i].value >= kind->minimum && values[i].value <= kind->maximum))
            return ps_json_refuse(&result, error, "the fit gives a %s of %g, expected %g to %g", kind->keys[0], values[i].value,
                                  kind->minimum, kind->maximum);
    }
    return check_together(&result, optics, error);
}

ps_code ps_optics_read(const ps_json *place, ps_optics *optics, ps_error *error) {
    const char *comment;
    *optics = (ps_optics){.voltage_V = NAN,
                          .semiangle_mrad = NAN,
                          .scan_step_A = {NAN, NAN},
                          .detector_pitch_mrad = {NAN, NAN},
                          .detector_center_px = {NAN, NAN}};
    if (ps_quantem_fit_recognise(place)) return read_fit(place, optics, error);
    PS_TRY(ps_json_object(place, optics_keys, sizeof optics_keys / sizeof *optics_keys, error));
    ps_json note = ps_json_member(place, "comment"), probe = ps_json_member(place, "vacuum_probe");
    PS_TRY(ps_json_text(&note, &comment, error));
    if (probe.value && !ps_json_is_null(&probe))
        return ps_json_refuse(
            &probe, error,
            "a measured probe cannot be used by this version; leave it out: the aperture is then the soft disc of semiangle_mrad");
    PS_TRY(read_lens(place, optics, error));
    PS_TRY(read_geometry(place, optics, error));
    return read_sample(place, optics, error);
}

ps_code ps_optics_from_json(const cJSON *json, const char *where, ps_optics *optics, ps_error *error) {
    ps_json root = ps_json_root(json, where);
    return ps_optics_read(&root, optics, error);
}

ps_code ps_optics_load(const char *path, ps_optics *optics, char **text, ps_error *error) {
    ps_code code = PS_OK;
    char *content = NULL;
    size_t bytes = 0;
    cJSON *json = NULL;
    if (text) *text = NULL;
    ps_error cause = {0};
    if (ps_text_read_file(path, &content, &bytes, &cause) != PS_OK) return PS_FAIL(error, PS_E_JOB, "optics file %s", cause.text);
    PS_GO(ps_json_parse(content, bytes, path, &json, error));
    PS_GO(ps_optics_from_json(json, path, optics, error));
    if (text) {
        *text = content;
        content = NULL;
    }
done:
    cJSON_Delete(json);
    free(content);
    return code;
}

/* null where it is not given, as NAN is for plain numbers */
static bool add_pair(cJSON *object, const char *key, const double pair[2]) {
    if (isnan(pair[0])) return cJSON_AddNullToObject(object, key);
    return cJSON_AddItemToObject(object, key, cJSON_CreateDoubleArray(pair, 2));
}

static bool add_aberrations(cJSON *object, const ps_optics *optics) {
    char key[KEY_TEXT];
    cJSON *aberrations = cJSON_AddObjectToObject(object, "aberrations");
    bool ok = aberrations != NULL;
    for (int i = 0; ok && i < PS_N_ABERRATIONS; i++) {
        int n = ps_aberration_orders[i][0], m = ps_aberration_orders[i][1];
        snprintf(key, sizeof key, "C%d%d_A", n, m);
        ok = cJSON_AddNumberToObject(aberrations, key, optics->C_A[i]);
        snprintf(key, sizeof key, "phi%d%d_rad", n, m);
        if (ok && m) ok = cJSON_AddNumberToObject(aberrations, key, optics->angle_rad[i]);
    }
    return ok;
}

static bool add_flips(cJSON *object, const ps_optics *optics) {
    cJSON *flips = cJSON_AddArrayToObject(object, "detector_flip");
    bool ok = cJSON_AddBoolToObject(object, "detector_transpose", optics->detector_transpose) && flips;
    for (int axis = 0; ok && axis < 2; axis++) ok = cJSON_AddItemToArray(flips, cJSON_CreateBool(optics->detector_flip[axis]));
    return ok;
}

cJSON *ps_optics_to_json(const ps_optics *optics) {
    cJSON *json = cJSON_CreateObject();
    if (json && cJSON_AddNumberToObject(json, "voltage_V", optics->voltage_V) &&
        cJSON_AddNumberToObject(json, "semiangle_mrad", optics->semiangle_mrad) && add_pair(json, "scan_step_A", optics->scan_step_A) &&
        add_pair(json, "detector_pitch_mrad", optics->detector_pitch_mrad) &&
        add_pair(json, "detector_center_px", optics->detector_center_px) &&
        cJSON_AddNumberToObject(json, "rotation_deg", optics->rotation_deg) && add_flips(json, optics) && add_aberrations(json, optics) &&
        add_pair(json, "tilt_mrad", optics->tilt_mrad) && cJSON_AddNumberToObject(json, "thickness_A", optics->thickness_A))
        return json;
    cJSON_Delete(json);
    return NULL;
}
