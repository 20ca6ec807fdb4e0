/* What the inspection of every recording means: discs that moved, pixels, patterns; what recordings say of themselves against each other.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "plan/parts.h"

enum { MOST_NAMED = 4, NAMES_TEXT = 400 };
static const double moved_px = 0.5;     /* worth saying; a measured disc is good to 0.1 */
static const double moved_far = 0.25;   /* of the radius: another experiment, not a drift */
static const double moved_far_px = 1.5; /* and at least so much */
static const double resized = 0.04;     /* of the radius, worth saying */
static const double resized_far = 0.25;

/* Names of some recordings as "a, b, c and 7 more". */
typedef struct {
    int64_t n;
    char text[NAMES_TEXT];
} name_list;

static void add_name(name_list *names, const char *stem, const char *detail) {
    size_t used = strlen(names->text);
    if (names->n++ < MOST_NAMED) snprintf(names->text + used, NAMES_TEXT - used, "%s%.60s%s", used ? ", " : "", stem, detail);
}

static void end_names(name_list *names) {
    size_t used = strlen(names->text);
    if (names->n > MOST_NAMED) snprintf(names->text + used, NAMES_TEXT - used, " and %" PRId64 " more", names->n - MOST_NAMED);
}

/* ---- discs ---------------------------------------------------------------------------------------------------------------------- */

static double distance_px(const ps_run_seen *a, const ps_run_seen *b) {
    return hypot(a->center_px[0] - b->center_px[0], a->center_px[1] - b->center_px[1]);
}

/* Noise of a measured centre: each pixel of the rim places it to about half a pixel over the root of its counts. */
static double center_noise_px(const ps_run_seen *seen) {
    double rim_counts = 2.0 * M_PI * seen->radius_px * seen->plateau * (double)seen->n_positions;
    return rim_counts > 0.0 ? 1.0 / sqrt(rim_counts) : INFINITY;
}

static ps_code refuse(const ps_run_plan *plan, int64_t index, int64_t first, ps_error *error) {
    const ps_run_seen *here = &plan->frames[index].seen, *there = &plan->frames[first].seen;
    plan->frames[index].refused = ps_text_format(
        "its bright-field disc lies at (%.1f, %.1f) px with a radius of %.1f px, that of %s at (%.1f, %.1f) px with %.1f px: too far "
        "off for the same optics; give it optics of its own (optics.per_frame)",
        here->center_px[0], here->center_px[1], here->radius_px, plan->series.items[first].stem, there->center_px[0], there->center_px[1],
        there->radius_px);
    return plan->frames[index].refused ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a message");
}

static bool is_far_off(const ps_run_seen *here, const ps_run_seen *there) {
    double ratio = here->radius_px / there->radius_px, distance = distance_px(here, there);
    bool moved = distance > moved_far_px && distance > moved_far * there->radius_px;
    bool changed = fabs(here->radius_px - there->radius_px) > moved_far_px && (ratio > 1.0 + resized_far || ratio < 1.0 - resized_far);
    return moved || changed;
}

static bool has_moved(const ps_run_seen *here, const ps_run_seen *there) {
    double noise = 3.0 * hypot(center_noise_px(here), center_noise_px(there));
    bool moved = distance_px(here, there) > moved_px + noise;
    double change = fabs(here->radius_px - there->radius_px);
    return moved || (change > moved_px + noise && change > resized * there->radius_px);
}

/* The disc that the group's optics say. */
static ps_run_seen disc_of_optics(const ps_optics *optics) {
    return (ps_run_seen){.center_px = {optics->detector_center_px[0], optics->detector_center_px[1]},
                         .radius_px = optics->semiangle_mrad / sqrt(optics->detector_pitch_mrad[0] * optics->detector_pitch_mrad[1])};
}

/* The first recording, from the group's own on, that shows the disc that the optics say; else the first that shows any; -1: none does. */
static int64_t find_reference(const ps_run_plan *plan, const ps_run_group *group) {
    const ps_run_seen said = disc_of_optics(&group->optics);
    int64_t any = -1;
    for (int64_t k = 0; k < group->n_frames; k++) {
        const ps_run_seen *seen = &plan->frames[group->frames[k]].seen;
        if (group->frames[k] < group->first || !seen->has_disc) continue;
        if (!is_far_off(seen, &said)) return group->frames[k];
        if (any < 0) any = group->frames[k];
    }
    return any;
}

/* Too few counts to show a disc as bright as that one. */
static bool is_too_faint(const ps_run_seen *here, const ps_run_seen *there) {
    static const double least_counts = 1e4;
    return !(M_PI * there->radius_px * there->radius_px * there->plateau * (double)here->n_positions >= least_counts);
}

static ps_code warn_of_no_disc(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    name_list names = {0};
    int64_t first = find_reference(plan, group);
    for (int64_t k = 0; k < group->n_frames && first >= 0; k++) {
        const ps_run_frame *frame = &plan->frames[group->frames[k]];
        bool should_show = frame->seen.looked && !frame->unreadable && !is_too_faint(&frame->seen, &plan->frames[first].seen);
        if (should_show && !frame->seen.has_disc) add_name(&names, plan->series.items[group->frames[k]].stem, "");
    }
    if (names.n == 0) return PS_OK;
    end_names(&names);
    return ps_run_plan_add_warning(plan, error, "%s: no bright-field disc is seen in these recordings, though %s shows one: %s",
                                   ps_run_plan_group_name(group), plan->series.items[first].stem, names.text);
}

static ps_code compare_discs(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    name_list moved = {0};
    int64_t first = find_reference(plan, group);
    for (int64_t k = 0; k < group->n_frames; k++) {
        int64_t i = group->frames[k];
        const ps_run_seen *here = &plan->frames[i].seen;
        if (!here->has_disc || first < 0 || plan->frames[i].unreadable) continue;
        const ps_run_seen *there = &plan->frames[first].seen;
        char detail[96];
        snprintf(detail, sizeof detail, " (at (%.2f, %.2f) px, radius %.2f px)", here->center_px[0], here->center_px[1], here->radius_px);
        if (is_far_off(here, there))
            PS_TRY(refuse(plan, i, first, error));
        else if (has_moved(here, there))
            add_name(&moved, plan->series.items[i].stem, detail);
    }
    if (moved.n == 0) return PS_OK;
    const ps_run_seen *there = &plan->frames[first].seen;
    end_names(&moved);
    return ps_run_plan_add_warning(
        plan, error,
        "%s: the bright-field disc moves within the series: that of %s is at (%.2f, %.2f) px with a radius of %.2f px, but %s; "
        "optics.per_frame gives each recording its own",
        ps_run_plan_group_name(group), plan->series.items[first].stem, there->center_px[0], there->center_px[1], there->radius_px,
        moved.text);
}

/* ---- pixels and patterns -------------------------------------------------------------------------------------------------------- */

static ps_code warn_of_dead(ps_run_plan *plan, const ps_run_group *group, ps_error *error) {
    if (group->n_bad_dead > 0 && group->first >= 0)
        PS_TRY(ps_run_plan_add_warning(
            plan, error,
            "%s: %" PRId64 " pixels inside the bright-field disc of %s count nothing (dead pixels, a gap between modules, a beam "
            "stop) and are left out of all frames; a mask (series.bad_pixels.mask) would say which",
            ps_run_plan_group_name(group), group->n_bad_dead, plan->series.items[group->first].stem));
    return PS_OK;
}

typedef int64_t (*seen_number)(const ps_run_frame *frame);
static int64_t own_pixels(const ps_run_frame *frame) {
    return frame->n_own;
}
static int64_t odd_patterns(const ps_run_frame *frame) {
    return frame->seen.n_empty + frame->seen.n_marked_patterns;
}
static int64_t hot_pixels(const ps_run_frame *frame) {
    return frame->seen.n_hot;
}

/* Recordings of which a number is not 0, with the number; passed over: how many of each group's first. */
static name_list name_those(const ps_run_plan *plan, seen_number number, bool but_first) {
    name_list names = {0};
    for (int64_t i = 0; i < plan->series.n_items; i++) {
        char detail[32];
        const ps_run_frame *frame = &plan->frames[i];
        if (frame->unreadable || number(frame) == 0) continue;
        if (but_first && i == plan->groups[frame->group].first) continue;
        snprintf(detail, sizeof detail, " (%" PRId64 ")", number(frame));
        add_name(&names, plan->series.items[i].stem, detail);
    }
    end_names(&names);
    return names;
}

static ps_code warn_of_pixels(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    name_list own = name_those(plan, own_pixels, true);
    if (own.n > 0)
        PS_TRY(
            ps_run_plan_add_warning(plan, error,
                                    "series: pixels that are dead%s in these recordings, but not in the first of their group, are left out "
                                    "of them: %s",
                                    job->series.hot_sigma > 0.0 ? " or hot" : "", own.text));
    name_list hot = name_those(plan, hot_pixels, true);
    if (hot.n > 0 && !(job->series.hot_sigma > 0.0))
        PS_TRY(ps_run_plan_add_warning(
            plan, error, "series: pixels look hot in these recordings: %s; series.bad_pixels.hot_sigma (8, say) leaves such out",
            hot.text));
    return PS_OK;
}

static ps_code warn_of_patterns(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    name_list odd = name_those(plan, odd_patterns, false);
    if (odd.n == 0) return PS_OK;
    return ps_run_plan_add_warning(
        plan, error,
        "series: among some patterns of each recording are ones that are empty or hold no counts (all-ones or not "
        "finite): %s; %s",
        odd.text,
        job->series.allow_partial ? "they are filled from their neighbours"
                                  : "such frames fail, series.allow_partial fills the patterns from their neighbours");
}

ps_code ps_run_plan_compare_seen(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    for (int64_t g = 0; g < plan->n_groups; g++) {
        PS_TRY(compare_discs(plan, &plan->groups[g], error));
        PS_TRY(warn_of_no_disc(plan, &plan->groups[g], error));
        PS_TRY(warn_of_dead(plan, &plan->groups[g], error));
    }
    PS_TRY(warn_of_pixels(job, plan, error));
    return warn_of_patterns(job, plan, error);
}
