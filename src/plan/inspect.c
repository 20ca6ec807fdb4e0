/* What a few patterns of a recording show, held against the optics: discs elsewhere or of another size, pixels that count what is not
 * there. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/adapters/bad_pixels.h"
#include "plan/parts.h"
#include "plan/sample_pattern.h"

enum { MOST_GROUPS_LOOKED_AT = 8 };
static const double center_tolerance_px = 1.5, center_tolerance = 0.08; /* of the radius; the larger counts */
static const double radius_tolerance = 0.1;
static const double clear_hot_sigma = 12.0, clear_hot_factor = 2.0; /* so many times the disc's plateau: hot though nobody asked */

int64_t ps_run_plan_first_readable(const ps_run_plan *plan, const ps_run_group *group) {
    for (int64_t i = 0; i < group->n_frames; i++)
        if (!plan->frames[group->frames[i]].unreadable) return group->frames[i];
    return -1;
}

/* --- looking --- */

/* Pixels without a count at any position say as little as masked ones. */
static uint8_t *blind_pixels(const ps_pattern_sample *sample, const ps_run_group *group) {
    size_t n_pixels = (size_t)(sample->detector_rows * sample->detector_columns);
    uint8_t *blind = malloc(n_pixels);
    for (size_t i = 0; blind && i < n_pixels; i++) blind[i] = group->bad[i] || sample->n_marked[i] == sample->n_positions;
    return blind;
}

static ps_code measure_disc(const ps_pattern_sample *sample, ps_run_group *group, ps_error *error) {
    uint8_t *blind = blind_pixels(sample, group);
    if (!blind) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a pixel mask");
    bool has_pitch = !isnan(group->optics.detector_pitch_mrad[0]);
    const double pixels[2] = {1.0, 1.0};
    ps_error reason = {0};
    ps_code code = ps_disc_measure(sample->mean, blind, sample->detector_rows, sample->detector_columns,
                                   has_pitch ? group->optics.detector_pitch_mrad : pixels, &group->look.disc, &reason);
    free(blind);
    group->look.has_disc = code == PS_OK;
    if (code == PS_OK) return PS_OK;
    if (code != PS_E_INPUT) return PS_FAIL(error, code, "%s", reason.text);
    group->look.no_disc = strdup(reason.text);
    return group->look.no_disc ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a message");
}

static ps_code count_hot(const ps_job *job, const ps_pattern_sample *sample, ps_run_group *group, ps_error *error) {
    int64_t n_pixels = sample->detector_rows * sample->detector_columns, n_hot;
    double sigma = job->series.hot_sigma > 0.0 ? job->series.hot_sigma : clear_hot_sigma;
    double least = job->series.hot_sigma > 0.0 ? 0.0 : clear_hot_factor * group->look.disc.plateau;
    uint8_t *hot = malloc((size_t)n_pixels);
    if (!hot) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a pixel mask");
    ps_code code = ps_hot_pixels(sample->mean, sample->n_positions, sample->detector_rows, sample->detector_columns, sigma, group->bad, hot,
                                 &n_hot, error);
    for (int64_t i = 0; code == PS_OK && i < n_pixels; i++) group->look.n_hot += hot[i] && sample->mean[i] > least;
    free(hot);
    return code;
}

static ps_code look(const ps_job *job, const ps_pattern_sample *sample, int64_t frame, ps_run_group *group, ps_error *error) {
    group->look.frame = frame;
    group->look.n_positions = sample->n_positions;
    for (int64_t i = 0; i < sample->detector_rows * sample->detector_columns; i++)
        group->look.n_marked += !group->bad[i] && sample->n_marked[i] > 0 && sample->n_marked[i] < sample->n_positions;
    PS_TRY(measure_disc(sample, group, error));
    return count_hot(job, sample, group, error);
}

ps_code ps_run_plan_inspect_group(const ps_job *job, const ps_run_plan *plan, ps_run_group *group, ps_error *error) {
    int64_t frame = ps_run_plan_first_readable(plan, group);
    if (frame < 0 || group->look.frame >= 0 || group->look.no_disc) return PS_OK;
    ps_reader_options options = ps_job_reader_options(job);
    ps_pattern_sample sample;
    ps_error reason = {0};
    ps_code code = ps_sample_pattern(plan->series.items[frame].source, &options, &sample, &reason);
    if (code == PS_OK) {
        code = look(job, &sample, frame, group, error);
    } else if (code == PS_E_MEMORY) {
        PS_FAIL(error, code, "%s", reason.text);
    } else { /* the run will say so again, with this frame */
        group->look.no_disc = strdup(reason.text);
        code = group->look.no_disc ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a message");
    }
    ps_pattern_sample_free(&sample);
    return code;
}

static bool center_fits(const ps_run_group *group) {
    const double *given = group->optics.detector_center_px, *found = group->look.disc.center_px, *pitch = group->optics.detector_pitch_mrad;
    double radius_px = group->look.disc.radius / sqrt(pitch[0] * pitch[1]);
    return hypot(found[0] - given[0], found[1] - given[1]) <= fmax(center_tolerance_px, center_tolerance * radius_px);
}

void ps_run_plan_explain(const ps_job *job, const ps_run_plan *plan, ps_run_group *group, ps_error *error) {
    ps_error ignored = {0};
    const ps_disc *disc = &group->look.disc;
    if (!error || ps_run_plan_inspect_group(job, plan, group, &ignored) != PS_OK || !group->look.has_disc) return;
    if (center_fits(group) && fabs(disc->radius / group->optics.semiangle_mrad - 1.0) <= radius_tolerance) return;
    double pixel_mrad = sqrt(group->optics.detector_pitch_mrad[0] * group->optics.detector_pitch_mrad[1]);
    size_t used = strlen(error->text);
    snprintf(error->text + used, sizeof error->text - used,
             " (the disc in %s has a radius of %.1f px about (%.1f, %.1f) px, which fits a pitch of %.4g mrad with this semiangle)",
             plan->series.items[group->look.frame].stem, disc->radius / pixel_mrad, disc->center_px[0], disc->center_px[1],
             pixel_mrad * group->optics.semiangle_mrad / disc->radius);
}

/* --- comparing --- */

static ps_code compare_center(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    const double *given = group->optics.detector_center_px, *found = group->look.disc.center_px;
    if (center_fits(group)) return PS_OK;
    bool turned = hypot(found[0] - given[1], found[1] - given[0]) <= center_tolerance_px;
    return ps_run_plan_add_warning(plan, error,
                                   "%s: detector_center_px is (%g, %g), but the bright-field disc of %s lies at (%.1f, %.1f)%s",
                                   ps_run_plan_group_name(group), given[0], given[1], plan->series.items[group->look.frame].stem, found[0],
                                   found[1], turned ? ": are row and column interchanged?" : "");
}

static ps_code compare_radius(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    const ps_optics *optics = &group->optics;
    double pixel_mrad = sqrt(optics->detector_pitch_mrad[0] * optics->detector_pitch_mrad[1]), radius = group->look.disc.radius;
    double ratio = radius / optics->semiangle_mrad, nearest = ratio > 1.0 ? round(ratio) : 1.0 / round(1.0 / ratio);
    if (fabs(ratio - 1.0) <= radius_tolerance) return PS_OK;
    bool is_binning = nearest != 1.0 && fabs(ratio / nearest - 1.0) <= radius_tolerance;
    char guess[96] = "";
    if (is_binning)
        snprintf(guess, sizeof guess, ", %g times %s (was the detector binned, or the angle meant as a diameter?)",
                 nearest > 1.0 ? nearest : 1.0 / nearest, nearest > 1.0 ? "larger" : "smaller");
    return ps_run_plan_add_warning(
        plan, error,
        "%s: semiangle_mrad %g and detector_pitch_mrad %g x %g make a bright-field disc of radius %.1f px, but that of "
        "%s has %.1f px%s; a pitch of %.4g mrad or a semiangle of %.4g mrad would fit",
        ps_run_plan_group_name(group), optics->semiangle_mrad, optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1],
        optics->semiangle_mrad / pixel_mrad, plan->series.items[group->look.frame].stem, radius / pixel_mrad, guess, pixel_mrad / ratio,
        radius);
}

static ps_code warn_of_pixels(const ps_job *job, ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    const ps_run_inspection *seen = &group->look;
    const char *stem = plan->series.items[seen->frame].stem;
    if (seen->n_marked > 0)
        PS_TRY(ps_run_plan_add_warning(
            plan, error,
            "%s: %" PRId64 " pixels that no mask names hold no count at some of %" PRId64
            " positions; a frame in which that happens within the disc gets a system of its own, which takes longer",
            stem, seen->n_marked, seen->n_positions));
    if (seen->n_hot > 0 && !(job->series.hot_sigma > 0.0))
        PS_TRY(ps_run_plan_add_warning(plan, error,
                                       "%s: %" PRId64 " pixels count more than %g times the bright-field disc does and look hot; "
                                       "series.bad_pixels.hot_sigma (8, say) leaves such out",
                                       stem, seen->n_hot, clear_hot_factor));
    return PS_OK;
}

static ps_code compare_with_optics(const ps_job *job, ps_run_plan *plan, int64_t at, ps_error *error) {
    ps_run_group *group = &plan->groups[at];
    PS_TRY(ps_run_plan_inspect_group(job, plan, group, error));
    if (group->look.frame >= 0) PS_TRY(warn_of_pixels(job, plan, group, error));
    if (group->look.no_disc)
        return ps_run_plan_add_warning(plan, error, "%s: the bright-field disc cannot be compared with %s: %s",
                                       ps_run_plan_group_name(group), plan->series.items[group->frames[0]].stem, group->look.no_disc);
    if (!group->look.has_disc) return PS_OK;
    PS_TRY(compare_center(plan, group, error));
    return compare_radius(plan, group, error);
}

ps_code ps_run_plan_inspect(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    for (int64_t i = 0; i < plan->n_groups && i < MOST_GROUPS_LOOKED_AT; i++) PS_TRY(compare_with_optics(job, plan, i, error));
    return PS_OK;
}
