#include "tasks/fit/beside.h"

#include <math.h>
#include <stdio.h>

#include "core/log.h"
#include "fit/fit.h"
#include "tasks/fit/choose.h"

enum { FREQUENCIES = 120, FEWEST_FREQUENCIES = 40, MOST_PIXELS = 4000, WHOLE = 1 };

static const double strength = 0.01;
/* What is worth saying: defocus in wavelength/semiangle^2, rotation, and how much more is explained. */
static const double least_defocus = 0.3, least_rotation_deg = 3.0, least_part = 0.1;

static ps_code hold_against(ps_backend *backend, const ps_fit_data *data, const ps_optics *optics, ps_optics *better, double *gain,
                            double fractions[2], ps_error *error) {
    const ps_cluster alone = {.n_ranks = 1, .n_node_ranks = 1, .n_nodes = 1};
    ps_fit_spread spread = {.cluster = &alone};
    ps_trial trials[2];
    ps_code code = PS_OK;
    spread.n_frequencies[WHOLE] = data->n_frequencies;
    PS_GO(ps_fit_data_band(data, backend, optics, 1, data->n_frequencies, 0, strength, &spread.bands[WHOLE], &spread.power[WHOLE], error));
    PS_GO(ps_fit_look_beside(&spread, data, optics, better, gain, error));
    ps_fit_trial(optics, data->step_A, &trials[0]);
    ps_fit_trial(better, data->step_A, &trials[1]);
    code = ps_fit_spread_try(&spread, WHOLE, 2, trials, fractions, error);
done:
    ps_band_destroy(spread.bands[WHOLE]);
    return code;
}

static void describe(const ps_optics *given, const ps_optics *better, const double fractions[2], char text[PS_BESIDE_TEXT]) {
    double defocus_A = better->C_A[0] - given->C_A[0], turn_deg = remainder(better->rotation_deg - given->rotation_deg, 360.0);
    bool is_defocused = fabs(defocus_A) > least_defocus * ps_fit_defocus_unit_A(given), is_turned = fabs(turn_deg) > least_rotation_deg;
    char what[96] = "";
    if (is_defocused && is_turned)
        snprintf(what, sizeof what, "C10 looks %.3g A off and the rotation %.2g degrees", fabs(defocus_A), fabs(turn_deg));
    else if (is_defocused)
        snprintf(what, sizeof what, "C10 looks %.3g A off", fabs(defocus_A));
    else if (is_turned)
        snprintf(what, sizeof what, "the rotation looks %.2g degrees off", fabs(turn_deg));
    if (what[0])
        snprintf(
            text, PS_BESIDE_TEXT,
            "%s: %.6g A and %.4g degrees explain %.3g of the data's power, %.6g A and %.4g degrees, as given, %.3g; a fit job finds optics",
            what, better->C_A[0], better->rotation_deg, fractions[1], given->C_A[0], given->rotation_deg, fractions[0]);
}

static ps_code judge(ps_backend *backend, const ps_fit_data *data, const ps_optics *optics, char text[PS_BESIDE_TEXT], ps_error *error) {
    ps_optics better;
    double gain, fractions[2];
    if (data->n_frequencies < FEWEST_FREQUENCIES) return PS_OK;
    PS_TRY(hold_against(backend, data, optics, &better, &gain, fractions, error));
    double chance = 4.0 * pow((double)data->n_frequencies, 0.25); /* of gain, by noise among all that is tried */
    if (gain > chance && fractions[1] > (1.0 + least_part) * fractions[0]) describe(optics, &better, fractions, text);
    return PS_OK;
}

static ps_code look(const ps_fit_source *source, int64_t group, int64_t frame, char text[PS_BESIDE_TEXT], ps_error *error) {
    const ps_optics *optics = &source->run->groups[group].optics;
    ps_fit_data data;
    PS_TRY(ps_fit_load_data(source, frame, optics, 0.0, FREQUENCIES, &data, error));
    ps_code code = judge(source->backend, &data, optics, text, error);
    ps_fit_data_free(&data);
    return code;
}

ps_code ps_fit_look_at_optics(const ps_fit_source *source, int64_t group, char text[PS_BESIDE_TEXT], ps_error *error) {
    const ps_run_plan *run = source->run;
    int64_t frame;
    ps_error reason = {0};
    text[0] = '\0';
    if (ps_fit_choose_frame(run, group, 0, &frame, &reason) != PS_OK) return PS_OK;
    ps_code code = look(source, group, frame, text, &reason);
    if (code == PS_E_INTERRUPTED) return PS_FAIL(error, code, "%s", reason.text);
    if (code != PS_OK) ps_log(PS_LOG_DEBUG, "optics %lld are not held against the data: %s", (long long)group, reason.text);
    return PS_OK;
}

ps_code ps_fit_look_at_hand(const ps_fit_hand *hand, const ps_optics *optics, char text[PS_BESIDE_TEXT], ps_error *error) {
    ps_fit_data data;
    ps_error reason = {0};
    text[0] = '\0';
    ps_code code = ps_fit_data_at_hand(hand->frame, hand->plan, hand->methods, hand->dose, FREQUENCIES, MOST_PIXELS, &data, &reason);
    if (code == PS_OK) {
        code = judge(hand->backend, &data, optics, text, &reason);
        ps_fit_data_free(&data);
    }
    if (code == PS_E_INTERRUPTED || code == PS_E_DEVICE || code == PS_E_BACKEND) return PS_FAIL(error, code, "%s", reason.text);
    if (code != PS_OK) ps_log(PS_LOG_DEBUG, "optics are not held against the data: %s", reason.text);
    return PS_OK;
}
