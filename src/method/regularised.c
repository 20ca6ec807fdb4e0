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

/* Strengths that are solved together: backends share work among those of one ratio of amplitude to phase. */
enum { MOST_TOGETHER = 4, PHASE = 0, LOG_AMPLITUDE = 1 };

typedef struct {
    const ps_method_settings *settings;
    ps_frame *frame;
    ps_image_sink *sink;
    const ps_strength *strengths; /* [n] */
    int64_t n;
    bool *is_done;                    /* [n] */
    double *residual, *effective_dof; /* [n]; NULL: not wanted */
} sweep;

typedef struct {
    int64_t n, index[MOST_TOGETHER]; /* of the sweep's strengths */
    ps_strength strengths[MOST_TOGETHER];
    float *phase[MOST_TOGETHER], *log_amplitude[MOST_TOGETHER];
    double residual[MOST_TOGETHER], effective_dof[MOST_TOGETHER];
} group;

static double ratio_of(const ps_strength *strength) {
    return strength->amplitude / strength->phase;
}

/* The next strengths that are not done, as many as there is room for at a time. */
static void choose_group(const sweep *s, group *g) {
    int64_t images = s->settings->method->has_amplitudes ? 2 : 1, most = s->sink->n_rooms / images;
    if (most > MOST_TOGETHER) most = MOST_TOGETHER;
    if (most < 1) most = 1;
    *g = (group){0};
    for (int64_t i = 0; i < s->n && g->n < most; i++) {
        bool fits = g->n == 0 || !s->settings->method->has_amplitudes || ratio_of(&s->strengths[i]) == ratio_of(&g->strengths[0]);
        if (s->is_done[i] || !fits) continue;
        s->is_done[i] = true;
        g->strengths[g->n] = s->strengths[i];
        g->index[g->n++] = i;
    }
}

static ps_code find_rooms(const sweep *s, group *g, ps_error *error) {
    for (int64_t i = 0; i < g->n; i++) {
        PS_TRY(s->sink->room(s->sink, PHASE, g->index[i], &g->phase[i], error));
        if (s->settings->method->has_amplitudes) PS_TRY(s->sink->room(s->sink, LOG_AMPLITUDE, g->index[i], &g->log_amplitude[i], error));
    }
    return PS_OK;
}

static ps_code send_one(const sweep *s, const group *g, int64_t i, int result, float **image, ps_error *error) {
    float *made = *image;
    *image = NULL;
    return made ? s->sink->send(s->sink, result, g->index[i], made, error) : PS_OK;
}

static ps_code send_group(const sweep *s, group *g, ps_error *error) {
    for (int64_t i = 0; i < g->n; i++) {
        if (s->residual) s->residual[g->index[i]] = g->residual[i];
        if (s->effective_dof) s->effective_dof[g->index[i]] = g->effective_dof[i];
        PS_TRY(send_one(s, g, i, PHASE, &g->phase[i], error));
        PS_TRY(send_one(s, g, i, LOG_AMPLITUDE, &g->log_amplitude[i], error));
    }
    return PS_OK;
}

static void drop_group(const sweep *s, const group *g) {
    for (int64_t i = 0; i < g->n; i++) {
        if (g->phase[i]) s->sink->drop(s->sink, g->phase[i]);
        if (g->log_amplitude[i]) s->sink->drop(s->sink, g->log_amplitude[i]);
    }
}

/* Images of all strengths, and what else of the sweep is wanted. */
static ps_code solve_sweep(const sweep *s, ps_error *error) {
    group g;
    for (choose_group(s, &g); g.n > 0; choose_group(s, &g)) {
        const ps_solution solution = {.phases_f32 = g.phase,
                                      .log_amplitudes_f32 = s->settings->method->has_amplitudes ? g.log_amplitude : NULL,
                                      .residual = s->residual ? g.residual : NULL,
                                      .effective_dof = s->effective_dof ? g.effective_dof : NULL};
        ps_code code = find_rooms(s, &g, error);
        if (code == PS_OK) code = ps_system_solve(s->frame, s->settings->method->bits, g.n, g.strengths, &solution, error);
        if (code == PS_OK) code = send_group(s, &g, error);
        if (code != PS_OK) {
            drop_group(s, &g);
            return code;
        }
    }
    return PS_OK;
}

/* Curves first, when the strength is to be chosen from them; then the images. */
ps_code ps_regularised_solve(const ps_method_settings *settings, ps_frame *frame, double n_data, ps_image_sink *sink, void *const *values,
                             ps_error *error) {
    ps_code code = PS_OK;
    void *const *shared = values + (settings->method->has_amplitudes ? 2 : 1);
    int64_t n = ps_method_curve_points(settings), least;
    double *residual = shared[PS_REGULARISED_RESIDUAL], *effective_dof = shared[PS_REGULARISED_EFFECTIVE_DOF];
    const ps_solution curves = {.residual = residual, .effective_dof = effective_dof};
    ps_strength *strengths = malloc((size_t)n * sizeof *strengths);
    bool *is_done = calloc((size_t)n, sizeof *is_done);
    PS_GO_ALLOC(error, strengths);
    PS_GO_ALLOC(error, is_done);
    ps_method_curve_strengths(settings, strengths);
    sweep s = {.settings = settings, .frame = frame, .sink = sink, .strengths = strengths, .n = n, .is_done = is_done};
    if (settings->automatic) {
        PS_GO(ps_system_solve(frame, settings->method->bits, n, strengths, &curves, error));
    } else {
        s.residual = residual;
        s.effective_dof = effective_dof;
        PS_GO(solve_sweep(&s, error));
    }
    least = ps_curve_gcv(n, residual, effective_dof, n_data, shared[PS_REGULARISED_GCV]);
    *(double *)shared[PS_REGULARISED_CHOSEN] = strengths[least].phase;
    if (settings->automatic) {
        s.strengths = &strengths[least];
        s.n = 1;
        PS_GO(solve_sweep(&s, error));
    }
done:
    free(strengths);
    free(is_done);
    return code;
}
