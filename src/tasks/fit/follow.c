/* Every recording of a series has optics of its own, which are near those of its neighbours. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/log.h"
#include "tasks/fit/session.h"

/* Recordings that start from the same one, the last good one before them, so that they can be fitted side by side. Their number does not
 * depend on the ranks, hence no answer does. */
enum { WAVE = 16 };

typedef struct {
    ps_fit_session *s;
    ps_fit_options tracking; /* from a neighbour: what the first fit found worth fitting, near where it starts */
    int64_t last;            /* the last good one; -1: none yet */
} series;

/* ---- what is wrong with a fit ---- */

/* Whether it explains so much less than a good one nearby that it may have lost its way. */
static bool is_lost(const ps_fit_item *item, const ps_fit_item *good) {
    static const double much_less = 0.7;
    return item->code != PS_OK || item->result.after - item->result.floor < much_less * (good->result.after - good->result.floor);
}

/* Whether it ended about where its search ends: 15 degrees and five units of defocus from its start. */
static bool is_far(const ps_fit_result *r) {
    static const double farthest_deg = 12.0, farthest_units = 4.0;
    return fabs(remainder(r->optics.rotation_deg - r->start.rotation_deg, 360.0)) > farthest_deg ||
           fabs(r->optics.C_A[0] - r->start.C_A[0]) > farthest_units * ps_fit_defocus_unit_A(&r->start);
}

static bool explains_more(const ps_fit_item *item, const ps_fit_item *than) {
    return item->code == PS_OK && (than->code != PS_OK || item->result.after > than->result.after);
}

/* To the log when it is settled, and to the output. NULL: there is no room. */
static const char *note(ps_fit_item *item, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *note(ps_fit_item *item, const char *format, ...) {
    ps_fit_result *r = &item->result;
    if (r->n_notes == PS_FIT_MOST_NOTES) return NULL;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->notes[r->n_notes], PS_FIT_NOTE, format, arguments);
    va_end(arguments);
    return r->notes[r->n_notes++];
}

/* ---- one wave ---- */

/* Item i, which was fitted from the anchor, once more: from the last good one, if that is another, then blindly. The best stays. */
static ps_code fit_again(series *f, int64_t i, int64_t anchor, ps_error *error) {
    ps_fit_session *s = f->s;
    ps_fit_item *item = &s->items[i], best = *item;
    const ps_fit_item *good = &s->items[f->last];
    ps_fit_options blind;
    if (f->last != anchor) {
        PS_TRY(ps_fit_step(s, &f->tracking, &good->result.optics, i, false, error));
        if (explains_more(item, &best)) best = *item;
    }
    if (is_lost(&best, good)) {
        PS_TRY(ps_fit_item_options(s, i, &blind, error));
        PS_TRY(ps_fit_step(s, &blind, &s->run.groups[item->group].optics, i, false, error));
        if (item->code == PS_OK && fabs(remainder(item->result.optics.rotation_deg - good->result.optics.rotation_deg, 360.0)) > 90.0)
            ps_fit_turn(&item->result, good->result.optics.scan_step_A);
        if (explains_more(item, &best)) best = *item;
    }
    *item = best;
    item->was_refitted = true;
    item->is_outlier = item->code == PS_OK && is_lost(item, good);
    if (item->is_outlier)
        note(item, "outlier: explains much less than frame %" PRId64 ", also when fitted blindly", good->frame);
    else if (item->code == PS_OK)
        note(item, "fitted again: the first fit, from frame %" PRId64 ", explained much less or ended far from it", s->items[anchor].frame);
    return PS_OK;
}

/* In their order: what was fitted from the wave's start is held against the last good one. */
static ps_code look_again(series *f, int64_t i, int64_t anchor, ps_error *error) {
    ps_fit_item *item = &f->s->items[i];
    if (!f->s->settled[i]) {
        bool given_up = f->s->n_tries[i] >= PS_FIT_MOST_TRIES;
        if (!given_up && (is_lost(item, &f->s->items[f->last]) || is_far(&item->result))) PS_TRY(fit_again(f, i, anchor, error));
        PS_TRY(ps_fit_settle(f->s, i, error));
    }
    if (item->code == PS_OK && !item->is_outlier) f->last = i;
    return PS_OK;
}

/* Those that were begun before and never ended are fitted one by one, so that only the one that ends its process is blamed. */
static ps_code fit_wave(series *f, int64_t first, int64_t end, ps_error *error) {
    ps_fit_session *s = f->s;
    const ps_optics start = s->items[f->last].result.optics;
    int64_t side[WAVE], n_side = 0, anchor = f->last;
    for (int64_t i = first; i < end; i++)
        if (!s->settled[i] && s->n_tries[i] == 0) side[n_side++] = i;
    PS_TRY(ps_fit_side_by_side(s, &f->tracking, &start, n_side, side, error));
    for (int64_t i = first; i < end; i++)
        if (!s->settled[i] && s->n_tries[i] > 0) PS_TRY(ps_fit_step(s, &f->tracking, &start, i, false, error));
    for (int64_t i = first; i < end; i++) PS_TRY(look_again(f, i, anchor, error));
    return PS_OK;
}

/* ---- what stands out ---- */

/* Whether a value lies away from the line between its neighbours, while they agree. */
static bool stands_out(double away, double between, double error, double least) {
    return fabs(away) > fmax(least, fmax(2.0 * fabs(between), 5.0 * error));
}

static double error_of(const ps_fit_result *r, int quantity) {
    for (int i = 0; i < r->parameters.n; i++)
        if (ps_fit_quantity_of(&r->parameters.items[i]) == quantity) return r->curvature.error[i];
    return 0.0;
}

static bool is_outlier(const ps_fit_item *before, const ps_fit_item *item, const ps_fit_item *behind) {
    static const double least_deg = 3.0, least_units = 0.5;
    const ps_optics *a = &before->result.optics, *b = &item->result.optics, *c = &behind->result.optics;
    double part = (double)(item->frame - before->frame) / (double)(behind->frame - before->frame);
    double turn = remainder(c->rotation_deg - a->rotation_deg, 360.0), defocus = c->C_A[0] - a->C_A[0];
    return stands_out(remainder(b->rotation_deg - a->rotation_deg - part * turn, 360.0), turn,
                      error_of(&item->result, ps_fit_find_name("rotation_deg")), least_deg) ||
           stands_out(b->C_A[0] - a->C_A[0] - part * defocus, defocus, error_of(&item->result, ps_fit_find_name("C10")),
                      least_units * ps_fit_defocus_unit_A(b));
}

static bool is_good(const ps_fit_item *item) {
    return item->code == PS_OK && !item->is_outlier;
}

/* The next good one from i on, in steps of one; outside: there is none. */
static int64_t next_good(const ps_fit_session *s, int64_t i, int64_t step) {
    while (i >= 0 && i < s->n && !is_good(&s->items[i])) i += step;
    return i;
}

static ps_code look_between(series *f, int64_t i, const ps_fit_item *before, const ps_fit_item *behind, ps_error *error) {
    ps_fit_item *item = &f->s->items[i], best = *item;
    if (!is_outlier(before, item, behind)) return PS_OK;
    PS_TRY(ps_fit_step(f->s, &f->tracking, &before->result.optics, i, false, error));
    if (explains_more(item, &best)) best = *item;
    *item = best;
    item->was_refitted = true;
    item->is_outlier = is_outlier(before, item, behind);
    if (!item->is_outlier) return PS_OK;
    const char *said = note(item, "outlier: rotation %.4g deg and C10 %.6g A stand out of the frames around it (%.4g, %.6g and %.4g, %.6g)",
                            item->result.optics.rotation_deg, item->result.optics.C_A[0], before->result.optics.rotation_deg,
                            before->result.optics.C_A[0], behind->result.optics.rotation_deg, behind->result.optics.C_A[0]);
    if (said && f->s->cluster->rank == 0) ps_log(PS_LOG_WARNING, "frame %" PRId64 ": %s", item->frame, said);
    return PS_OK;
}

/* Once all are settled. A run that goes on does it again, from the same values. */
static ps_code look_at_all(series *f, ps_error *error) {
    const ps_fit_session *s = f->s;
    for (int64_t i = 0; i < s->n; i++) {
        int64_t before = next_good(s, i - 1, -1), behind = next_good(s, i + 1, 1);
        if (!is_good(&s->items[i]) || before < 0 || behind >= s->n) continue;
        PS_TRY(look_between(f, i, &s->items[before], &s->items[behind], error));
    }
    return PS_OK;
}

/* ---- all of it ---- */

/* Blindly, all ranks together. */
static ps_code fit_first(series *f, int64_t i, ps_error *error) {
    ps_fit_session *s = f->s;
    ps_fit_options blind;
    const ps_fit_item *item = &s->items[i];
    PS_TRY(ps_fit_item_options(s, i, &blind, error));
    if (!s->settled[i]) {
        PS_TRY(ps_fit_step(s, &blind, &s->run.groups[item->group].optics, i, true, error));
        PS_TRY(ps_fit_settle(s, i, error));
    }
    if (item->code != PS_OK) return PS_OK;
    f->last = i;
    f->tracking = blind;
    f->tracking.automatic = f->tracking.transpose = f->tracking.flips = false;
    for (int q = 0; q < PS_FIT_N_NAMES; q++) f->tracking.free[q] = ps_fit_has(&item->result.parameters, q), f->tracking.given[q] = true;
    return PS_OK;
}

ps_code ps_fit_follow(ps_fit_session *s, ps_error *error) {
    series f = {.s = s, .last = -1};
    int64_t i = 0;
    for (; i < s->n && f.last < 0; i++) PS_TRY(fit_first(&f, i, error));
    for (; i < s->n; i += WAVE) PS_TRY(fit_wave(&f, i, i + WAVE < s->n ? i + WAVE : s->n, error));
    return look_at_all(&f, error);
}
