#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/log.h"
#include "tasks/fit/session.h"
#include "tasks/series.h"

ps_code ps_fit_item_options(const ps_fit_session *s, int64_t i, ps_fit_options *options, ps_error *error) {
    *options = ps_fit_entry(s->job)->options;
    return ps_cluster_agree(s->cluster, ps_fit_find_given(&s->run.groups[s->items[i].group], options, error), error);
}

static ps_fit_source source_of(const ps_fit_session *s) {
    return (ps_fit_source){.job = s->job, .run = &s->run, .backend = s->backend, .loader = s->loader};
}

static const char *recording_of(const ps_fit_session *s, int64_t i) {
    return s->run.series.items[s->items[i].frame].source;
}

/* ---- begun and ended ---- */

typedef enum { BEGUN, ENDED, GIVEN_UP } step;

/* Rank 0 writes down that these are begun, or what became of them. */
static ps_code count(ps_fit_session *s, int64_t n, const int64_t *which, step what, ps_error *error) {
    const char **sources = s->cluster->rank == 0 ? malloc((size_t)n * sizeof *sources) : NULL;
    ps_code code = PS_OK;
    if (s->cluster->rank == 0 && !sources) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a list of fits");
    for (int64_t i = 0; sources && i < n; i++) sources[i] = recording_of(s, which[i]);
    if (sources && what == BEGUN) code = ps_fit_tries_begin(&s->tries, n, sources, error);
    if (sources && what != BEGUN) code = ps_fit_tries_end(&s->tries, n, sources, what == ENDED, error);
    free(sources);
    return ps_cluster_agree(s->cluster, code, error);
}

/* What came of fits that were begun. A lost device may have been lost by one of them: then they stay counted. */
static ps_code end(ps_fit_session *s, int64_t n, const int64_t *which, ps_code code, ps_error *error) {
    if (code == PS_E_DEVICE || code == PS_E_BACKEND) return code;
    ps_code counted = count(s, n, which, code == PS_OK ? ENDED : GIVEN_UP, code == PS_OK ? error : NULL);
    return code != PS_OK ? code : counted;
}

/* A fit that never ended may have ended its process, and would again. */
static bool is_given_up(ps_fit_session *s, int64_t i) {
    ps_fit_item *item = &s->items[i];
    if (s->n_tries[i] < PS_FIT_MOST_TRIES) return false;
    item->code = PS_E_INPUT;
    snprintf(item->reason, sizeof item->reason,
             "its fit was begun %d times and never ended: it killed its process or device, or found no memory; --retry-failed tries it "
             "again",
             PS_FIT_MOST_TRIES);
    return true;
}

static void forget(ps_fit_item *item) {
    *item = (ps_fit_item){.group = item->group, .frame = item->frame};
}

/* ---- fits ---- */

/* Rank `root`'s item to all. */
static ps_code share(ps_fit_session *s, int64_t i, int root, ps_error *error) {
    return PS_MPI(error, MPI_Bcast(&s->items[i], (int)sizeof s->items[i], MPI_BYTE, root, s->cluster->communicator));
}

ps_code ps_fit_step(ps_fit_session *s, const ps_fit_options *options, const ps_optics *start, int64_t i, bool draws, ps_error *error) {
    const ps_fit_source source = source_of(s);
    forget(&s->items[i]);
    if (is_given_up(s, i)) return PS_OK;
    PS_TRY(count(s, 1, &i, BEGUN, error));
    ps_code code =
        ps_fit_item_run(s->cluster, &source, ps_fit_entry(s->job), options, start, &s->items[i], draws ? &s->pictures[i] : NULL, error);
    PS_TRY(end(s, 1, &i, code, error));
    return share(s, i, 0, error);
}

/* Ranks [n_ranks] make n_teams of neighbours; the first rank of each leads. */
static int team_of(int rank, int n_ranks, int n_teams) {
    return (int)((int64_t)rank * n_teams / n_ranks);
}

static int leader_of(int team, int n_ranks, int n_teams) {
    return (int)(((int64_t)team * n_ranks + n_teams - 1) / n_teams);
}

/* This rank's team fits every n_teams-th. */
static ps_code fit_share(ps_fit_session *s, const ps_cluster *team, int at, int n_teams, const ps_fit_options *options,
                         const ps_optics *start, int64_t n_side, const int64_t *side, ps_error *error) {
    const ps_fit_source source = source_of(s);
    for (int64_t k = at; k < n_side; k += n_teams)
        PS_TRY(ps_fit_item_run(team, &source, ps_fit_entry(s->job), options, start, &s->items[side[k]], NULL, error));
    return PS_OK;
}

/* Collective, but for errors: what this rank's team came to. */
static ps_code fit_in_teams(ps_fit_session *s, int n_teams, const ps_fit_options *options, const ps_optics *start, int64_t n_side,
                            const int64_t *side, ps_error *error) {
    ps_cluster team = *s->cluster;
    int at = team_of(s->cluster->rank, s->cluster->n_ranks, n_teams);
    PS_TRY(PS_MPI(error, MPI_Comm_split(s->cluster->communicator, at, s->cluster->rank, &team.communicator)));
    team.rank = s->cluster->rank - leader_of(at, s->cluster->n_ranks, n_teams);
    team.n_ranks = leader_of(at + 1, s->cluster->n_ranks, n_teams) - leader_of(at, s->cluster->n_ranks, n_teams);
    ps_code code = PS_MPI(error, MPI_Comm_set_errhandler(team.communicator, MPI_ERRORS_RETURN));
    if (code == PS_OK) code = fit_share(s, &team, at, n_teams, options, start, n_side, side, error);
    MPI_Comm_free(&team.communicator);
    return code;
}

ps_code ps_fit_side_by_side(ps_fit_session *s, const ps_fit_options *options, const ps_optics *start, int64_t n_side, const int64_t *side,
                            ps_error *error) {
    int n_ranks = s->cluster->n_ranks, n_teams = n_side < n_ranks ? (int)n_side : n_ranks;
    if (n_side == 0) return PS_OK;
    for (int64_t k = 0; k < n_side; k++) forget(&s->items[side[k]]);
    PS_TRY(count(s, n_side, side, BEGUN, error));
    ps_code code = ps_cluster_agree(s->cluster, fit_in_teams(s, n_teams, options, start, n_side, side, error), error);
    PS_TRY(end(s, n_side, side, code, error));
    for (int64_t k = 0; k < n_side; k++) PS_TRY(share(s, side[k], leader_of((int)(k % n_teams), n_ranks, n_teams), error));
    return PS_OK;
}

/* ---- settled ---- */

static void say(const ps_fit_session *s, const ps_fit_item *item) {
    const ps_fit_result *r = &item->result;
    if (item->code != PS_OK) {
        ps_series_log_failure(&s->run, item->frame, item->reason);
        return;
    }
    ps_log(PS_LOG_INFO, "frame %" PRId64 ": explained power %.4g before, %.4g after; %" PRId64 " trials, %.2f s", item->frame, r->before,
           r->after, r->n_evaluations, item->seconds);
    if (r->optics.detector_transpose) ps_log(PS_LOG_INFO, "frame %" PRId64 ": the detector is transposed", item->frame);
    for (int i = 0; i < r->parameters.n; i++)
        ps_log(PS_LOG_INFO, "frame %" PRId64 ": %-16s %12.6g +- %.3g", item->frame, r->parameters.items[i].name, r->values[i],
               r->curvature.error[i]);
    for (int i = 0; i < r->n_notes; i++) ps_log(PS_LOG_WARNING, "frame %" PRId64 ": %s", item->frame, r->notes[i]);
}

ps_code ps_fit_settle(ps_fit_session *s, int64_t i, ps_error *error) {
    const ps_fit_file_spec spec = {
        .job = s->job, .run = &s->run, .signature = s->signature, .n_items = s->n, .items = s->items, .pictures = s->pictures};
    ps_code code = s->cluster->rank == 0 ? ps_fit_journal_add(&s->journal, &spec, i, error) : PS_OK;
    if (s->cluster->rank == 0) say(s, &s->items[i]);
    s->settled[i] = true;
    return ps_cluster_agree(s->cluster, code, error);
}
