#include "tasks/fit/item.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/watchdog.h"
#include "core/log.h"
#include "fit/bands.h"
#include "tasks/reconstruct/blame.h"

void ps_fit_pictures_free(ps_fit_pictures *pictures) {
    free(pictures->before);
    free(pictures->after);
    free(pictures->residual);
    *pictures = (ps_fit_pictures){0};
}

/* ---- which of the twins ---- */

static void find_skewness(const float *image, int64_t n, double *skewness, double *deviation) {
    double mean = 0.0, second = 0.0, third = 0.0;
    for (int64_t i = 0; i < n; i++) mean += image[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double away = image[i] - mean;
        second += away * away / (double)n;
        third += away * away * away / (double)n;
    }
    *skewness = second > 0.0 ? third / pow(second, 1.5) : 0.0;
    *deviation = sqrt(6.0 / fmax(1.0, 0.25 * (double)n)); /* about four positions to what the aperture resolves */
}

/* Whether the job leaves both twins open. */
static bool is_open(const ps_fit_options *options) {
    int rotation = ps_fit_find_name("rotation_deg");
    return options->free[rotation] && options->free[0] && !options->given[rotation] && !options->given[0] && !options->bounded[rotation] &&
           !options->bounded[0];
}

static void say(ps_fit_item *item, const char *text) {
    ps_fit_result *r = &item->result;
    if (r->n_notes < PS_FIT_MOST_NOTES) snprintf(r->notes[r->n_notes++], PS_FIT_NOTE, "%s", text);
}

static void name_twin(ps_fit_item *item, const char *why) {
    char text[PS_FIT_NOTE];
    ps_optics twin;
    ps_fit_twin(&item->result.optics, &twin);
    snprintf(text, sizeof text,
             "twin: rotation %.2f deg and C10 %.1f A (all even terms negated) explain as much with the phase's sign turned; %s",
             twin.rotation_deg, twin.C_A[0], why);
    say(item, text);
}

/* image: at the fitted optics; turned with them. */
static void choose_twin(const ps_job_fit *fit, const ps_fit_options *options, const double step_A[2], int64_t n, float *image,
                        ps_fit_item *item) {
    static const double clear = 3.0, least = 0.1; /* standard deviations, and beyond them */
    char why[128];
    find_skewness(image, n, &item->skewness, &item->skewness_error);
    bool told = fabs(item->skewness) > clear * item->skewness_error + least, wanted = fit->sign != PS_SIGN_NEGATIVE;
    bool turn = told ? (item->skewness > 0.0) != wanted : item->result.optics.C_A[0] > 0.0;
    item->rule = !is_open(options) ? PS_TWIN_GIVEN : told ? PS_TWIN_SKEWNESS : PS_TWIN_CONVENTION;
    if (item->rule != PS_TWIN_GIVEN && turn) {
        ps_fit_turn(&item->result, step_A);
        for (int64_t i = 0; i < n; i++) image[i] = -image[i];
        item->skewness = -item->skewness;
    }
    if (item->rule == PS_TWIN_SKEWNESS)
        snprintf(why, sizeof why, "told by the phase's skewness %.2f +- %.2f (atoms are %s)", item->skewness, item->skewness_error,
                 wanted ? "bright" : "dark, as phase_sign says");
    else if (item->rule == PS_TWIN_GIVEN)
        snprintf(why, sizeof why, "told by the values or bounds that are given");
    else
        snprintf(why, sizeof why, "NOT told (skewness %.2f +- %.2f): C10 < 0 was taken; give rotation_deg, or bounds of C10",
                 item->skewness, item->skewness_error);
    name_twin(item, why);
    if (item->rule == PS_TWIN_GIVEN && fit->sign != PS_SIGN_AUTO && told && (item->skewness > 0.0) != wanted)
        say(item, "the phase's skewness is not what phase_sign says: the twin may be the truth");
}

/* ---- one fit ---- */

/* How far pixels may come into the aperture while the fit moves it. */
static double margin_mrad(const ps_fit_options *options, const ps_optics *start) {
    double pitch = fmax(start->detector_pitch_mrad[0], start->detector_pitch_mrad[1]), margin = 0.0;
    if (options->free[ps_fit_find_name("detector_center_px")]) margin += 3.0 * pitch;
    if (options->free[ps_fit_find_name("semiangle_mrad")]) margin += 0.25 * start->semiangle_mrad;
    return margin;
}

static ps_code draw(const ps_fit_source *source, const ps_job_fit *fit, const ps_fit_data *data, const ps_fit_item *item,
                    ps_fit_pictures *pictures, ps_error *error) {
    ps_code code = PS_OK;
    const ps_run_plan *run = source->run;
    double *residual = malloc((size_t)data->n_pixels * sizeof *residual);
    pictures->before = malloc((size_t)(run->scan_rows * run->scan_columns) * sizeof *pictures->before);
    pictures->residual = calloc((size_t)(run->detector_rows * run->detector_columns), sizeof *pictures->residual);
    PS_GO_ALLOC(error, residual);
    PS_GO_ALLOC(error, pictures->before);
    PS_GO_ALLOC(error, pictures->residual);
    PS_GO(ps_fit_load_phase(source, item->frame, &item->result.start, pictures->before, error));
    PS_GO(ps_fit_find_residual(data, &item->result.optics, fit->strength, residual, error));
    for (int64_t i = 0; i < data->n_pixels; i++)
        pictures->residual[data->row[i] * run->detector_columns + data->column[i]] = (float)residual[i];
done:
    free(residual);
    return code;
}

/* Rank 0: the fit itself, while the others serve. */
static ps_code fit_data(const ps_fit_source *source, const ps_job_fit *fit, const ps_fit_options *options, const ps_optics *start,
                        const ps_fit_data *data, ps_fit_spread *spread, ps_fit_item *item, ps_fit_pictures *pictures, ps_error *error) {
    int64_t n = source->run->scan_rows * source->run->scan_columns;
    ps_watchdog_beat("fit", (long)item->frame);
    item->rule = PS_TWIN_GIVEN;
    PS_TRY(ps_fit_run(spread, data, start, options, &item->result, error));
    if (!pictures) return PS_OK;
    pictures->after = malloc((size_t)n * sizeof *pictures->after);
    if (!pictures->after) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a picture");
    PS_TRY(ps_fit_load_phase(source, item->frame, &item->result.optics, pictures->after, error));
    choose_twin(fit, options, data->step_A, n, pictures->after, item);
    return draw(source, fit, data, item, pictures, error);
}

/* Rank 0 keeps what fails the frame in item; the rest is an error. */
static ps_code settle(ps_code code, const ps_error *reason, ps_fit_item *item, ps_error *error) {
    item->code = code;
    if (code == PS_OK) return PS_OK;
    snprintf(item->reason, sizeof item->reason, "%s", reason->text);
    if (ps_blames_frame(code)) return PS_OK;
    if (error) *error = *reason;
    return code;
}

/* Collective: whether rank 0's frame goes on. */
static ps_code agree_to_go_on(const ps_cluster *cluster, ps_code code, bool *go_on, ps_error *error) {
    int failed = code != PS_OK;
    PS_TRY(PS_MPI(error, MPI_Bcast(&failed, 1, MPI_INT, 0, cluster->communicator)));
    *go_on = !failed;
    return PS_OK;
}

ps_code ps_fit_item_run(const ps_cluster *cluster, const ps_fit_source *source, const ps_job_fit *fit, const ps_fit_options *options,
                        const ps_optics *start, ps_fit_item *item, ps_fit_pictures *pictures, ps_error *error) {
    ps_fit_data data = {0};
    ps_fit_spread spread = {.cluster = cluster};
    ps_error reason = {0};
    bool is_first = cluster->rank == 0, go_on;
    double begin_s = ps_seconds();
    ps_code code = PS_OK, own = PS_OK;
    if (is_first) own = ps_fit_load_data(source, item->frame, start, margin_mrad(options, start), fit->n_frequencies, &data, &reason);
    item->load_seconds = ps_seconds() - begin_s;
    PS_GO(agree_to_go_on(cluster, own, &go_on, error));
    if (!go_on) goto settled;
    PS_GO(ps_fit_data_share(cluster, &data, error));
    PS_GO(
        ps_cluster_agree(cluster, ps_fit_bands_make(&data, source->backend, start, fit->upsampling, fit->strength, &spread, error), error));
    item->n_frequencies = data.n_frequencies;
    item->n_pixels = data.n_pixels;
    item->dose = data.dose;
    if (is_first) {
        own = fit_data(source, fit, options, start, &data, &spread, item, pictures, &reason);
        PS_GO(ps_fit_spread_release(&spread, error));
    } else {
        code = ps_fit_spread_serve(&spread, &reason);
        if (code == PS_E_MPI) PS_GO(PS_FAIL(error, code, "%s", reason.text));
        own = PS_OK; /* any other error is rank 0's as well, which says what comes of it */
    }
settled:
    item->seconds = ps_seconds() - begin_s;
    own = is_first ? settle(own, &reason, item, error) : PS_OK;
    code = ps_cluster_agree(cluster, own, error);
done:
    ps_fit_bands_free(&spread);
    ps_fit_data_free(&data);
    return code;
}
