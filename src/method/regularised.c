#include "method/regularised.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "method/curves.h"

enum { MOST_STRENGTHS = 1000 };
static const double smallest_strength = 1e-12, largest_strength = 1e12;

/* ---- the job ---- */

static ps_code read_plain_strength(const ps_json *place, double *strength, ps_error *error) {
    if (cJSON_IsNumber(place->value) && place->value->valuedouble <= 0.0) return ps_json_fail(place, error, "a strength above 0");
    return ps_json_number(place, smallest_strength, largest_strength, strength, error);
}

static ps_code read_strength(const ps_json *place, bool has_amplitudes, ps_strength *strength, ps_error *error) {
    static const char *const keys[] = {"amplitude", "phase"};
    if (!has_amplitudes || !cJSON_IsObject(place->value)) {
        if (!cJSON_IsNumber(place->value))
            return ps_json_fail(place, error, "a number above 0%s", has_amplitudes ? " or {\"amplitude\": ..., \"phase\": ...}" : "");
        PS_TRY(read_plain_strength(place, &strength->phase, error));
        strength->amplitude = strength->phase;
        return PS_OK;
    }
    ps_json amplitude = ps_json_member(place, "amplitude"), phase = ps_json_member(place, "phase");
    PS_TRY(ps_json_object(place, keys, 2, error));
    PS_TRY(ps_json_require(&amplitude, error));
    PS_TRY(ps_json_require(&phase, error));
    PS_TRY(read_plain_strength(&amplitude, &strength->amplitude, error));
    return read_plain_strength(&phase, &strength->phase, error);
}

static ps_code read_strengths(const ps_json *place, ps_method_settings *settings, ps_error *error) {
    PS_TRY(ps_json_require(place, error));
    bool is_list = cJSON_IsArray(place->value);
    int n = is_list ? cJSON_GetArraySize(place->value) : 1;
    settings->automatic = cJSON_IsString(place->value) && strcmp(place->value->valuestring, "auto") == 0;
    if (cJSON_IsString(place->value) && !settings->automatic)
        return ps_json_fail(place, error, "a number above 0, a list of them, or \"auto\"");
    if (n == 0 || n > MOST_STRENGTHS) return ps_json_fail(place, error, "1 to %d strengths", MOST_STRENGTHS);
    settings->strengths = calloc((size_t)n, sizeof *settings->strengths);
    if (!settings->strengths) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for strengths");
    settings->n_strengths = n;
    for (int i = 0; !settings->automatic && i < n; i++) {
        ps_json element = is_list ? ps_json_element(place, i) : *place;
        PS_TRY(read_strength(&element, settings->method->has_amplitudes, &settings->strengths[i], error));
    }
    return PS_OK;
}

ps_code ps_regularised_parse(const ps_json *place, ps_method_settings *settings, ps_error *error) {
    static const char *const keys[] = {"strength", "smoothness_inv_A"};
    ps_json strength = ps_json_member(place, "strength"), smoothness = ps_json_member(place, "smoothness_inv_A");
    settings->has_strengths = true;
    PS_TRY(ps_json_object(place, keys, 2, error));
    PS_TRY(read_strengths(&strength, settings, error));
    if (ps_json_is_null(&smoothness)) return PS_OK;
    return ps_json_number(&smoothness, 1e-6, 1e6, &settings->smoothness_inv_A, error);
}

/* ---- what is said of it ---- */

void ps_regularised_describe(const ps_method_settings *settings, FILE *out) {
    fprintf(out, "strength ");
    if (settings->automatic) fprintf(out, "chosen per frame by cross-validation");
    for (int64_t i = 0; !settings->automatic && i < settings->n_strengths; i++) {
        const ps_strength *strength = &settings->strengths[i];
        if (strength->amplitude == strength->phase)
            fprintf(out, "%s%g", i ? ", " : "", strength->phase);
        else
            fprintf(out, "%s(amplitude %g, phase %g)", i ? ", " : "", strength->amplitude, strength->phase);
    }
    if (isfinite(settings->smoothness_inv_A)) fprintf(out, "; smoothness %g 1/A", settings->smoothness_inv_A);
}

void ps_regularised_fingerprint(const ps_method_settings *settings, FILE *out) {
    const char *name = settings->method->name;
    fprintf(out, "method.%s.strength=", name);
    if (settings->automatic) {
        double grid[PS_N_CURVE_STRENGTHS];
        ps_curve_strengths(grid);
        fprintf(out, "auto (%d points, crc %08lx)", PS_N_CURVE_STRENGTHS, crc32_z(0, (const Bytef *)grid, sizeof grid));
    }
    for (int64_t i = 0; i < settings->n_strengths && !settings->automatic; i++) {
        fprintf(out, "%s%.17g", i ? "," : "", settings->strengths[i].phase);
        if (settings->method->has_amplitudes) fprintf(out, "/%.17g", settings->strengths[i].amplitude);
    }
    fprintf(out, "\nmethod.%s.smoothness_inv_A=", name);
    fprintf(out, isinf(settings->smoothness_inv_A) ? "none\n" : "%.17g\n", settings->smoothness_inv_A);
}

/* ---- a frame ---- */

/* Curves first, when the strength is to be chosen from them; then the images. */
ps_code ps_regularised_solve(const ps_method_settings *settings, ps_frame *frame, double n_data, float *phase, float *log_amplitude,
                             void *const *shared, ps_error *error) {
    ps_code code = PS_OK;
    ps_methods method = settings->method->bits;
    int64_t n = ps_method_curve_points(settings);
    double *residual = shared[PS_REGULARISED_RESIDUAL], *effective_dof = shared[PS_REGULARISED_EFFECTIVE_DOF];
    const ps_solution all = {.phase_f32 = phase, .log_amplitude_f32 = log_amplitude, .residual = residual, .effective_dof = effective_dof};
    const ps_solution curves = {.residual = residual, .effective_dof = effective_dof};
    const ps_solution images = {.phase_f32 = phase, .log_amplitude_f32 = log_amplitude};
    ps_strength *strengths = malloc((size_t)n * sizeof *strengths);
    PS_GO_ALLOC(error, strengths);
    ps_method_curve_strengths(settings, strengths);
    PS_GO(ps_system_solve(frame, method, n, strengths, settings->automatic ? &curves : &all, error));
    int64_t least = ps_curve_gcv(n, residual, effective_dof, n_data, shared[PS_REGULARISED_GCV]);
    if (settings->automatic) PS_GO(ps_system_solve(frame, method, 1, &strengths[least], &images, error));
    *(double *)shared[PS_REGULARISED_CHOSEN] = strengths[least].phase;
done:
    free(strengths);
    return code;
}
