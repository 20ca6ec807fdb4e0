/* The sample's drift, once every frame is dealt with: neighbours' images against each other, over all ranks; then, where the job asks for
 * it, every image moved back by it. docs/drift.md. */
#include <math.h>
#include <stdlib.h>

#include "cluster/stop.h"
#include "cluster/watchdog.h"
#include "core/log.h"
#include "drift/chain.h"
#include "drift/move.h"
#include "drift/trust.h"
#include "store/drift.h"
#include "tasks/reconstruct/session.h"

typedef struct {
    const ps_session *s;
    ps_image_place place;
    int64_t n, *frames;            /* [n] that are done */
    int64_t factor, rows, columns; /* of the images that are correlated */
    float *whole, *small[2];       /* [image], [rows, columns] */
    ps_drift_peaks *steps;         /* [n]; 0 is empty */
    int *chosen;                   /* [n], then room for twice as many */
    double *trust;                 /* [n] */
} measurement;

static void release(measurement *m) {
    void *arrays[] = {m->frames, m->whole, m->small[0], m->small[1], m->steps, m->chosen, m->trust};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

static ps_code begin(const ps_session *s, const uint8_t *states, measurement *m, ps_error *error) {
    const ps_run_plan *run = &s->run;
    size_t n = (size_t)run->series.n_items;
    *m = (measurement){.s = s, .place = ps_drift_image(&s->job->methods), .frames = malloc(n * sizeof *m->frames)};
    m->factor = ps_drift_binning(run->image_rows, run->image_columns);
    m->rows = run->image_rows / m->factor;
    m->columns = run->image_columns / m->factor;
    m->whole = malloc((size_t)(run->image_rows * run->image_columns) * sizeof *m->whole);
    for (int i = 0; i < 2; i++) m->small[i] = malloc((size_t)(m->rows * m->columns + 1) * sizeof *m->small[i]);
    m->steps = calloc(n, sizeof *m->steps);
    m->chosen = calloc(3 * n, sizeof *m->chosen);
    m->trust = calloc(n, sizeof *m->trust);
    if (!m->frames || !m->whole || !m->small[0] || !m->small[1] || !m->steps || !m->chosen || !m->trust)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to measure the drift of %zu frames", n);
    for (size_t i = 0; i < n; i++)
        if (states[i] == PS_FRAME_DONE) m->frames[m->n++] = (int64_t)i;
    return PS_OK;
}

static ps_code load(measurement *m, int64_t i, float *small, ps_error *error) {
    ps_watchdog_beat("drift", (long)m->frames[i]);
    if (ps_stop_wanted()) return PS_FAIL(error, PS_E_INTERRUPTED, "%s", ps_stop_reason());
    PS_TRY(ps_output_read_image(m->s->output, m->frames[i], &m->place, m->whole, error));
    ps_drift_bin(m->s->run.image_rows, m->s->run.image_columns, m->whole, m->factor, small);
    return PS_OK;
}

/* This rank's part of the done frames, a stretch, so that each image is read once. */
static void stretch(const measurement *m, int64_t *first, int64_t *end) {
    *first = m->n * m->s->cluster->rank / m->s->cluster->n_ranks;
    *end = m->n * (m->s->cluster->rank + 1) / m->s->cluster->n_ranks;
}

static ps_code correlate(measurement *m, ps_error *error) {
    int64_t first, end;
    stretch(m, &first, &end);
    if (first < 1) first = 1;
    if (first < end) PS_TRY(load(m, first - 1, m->small[(first - 1) % 2], error));
    for (int64_t i = first; i < end; i++) {
        PS_TRY(load(m, i, m->small[i % 2], error));
        PS_TRY(ps_drift_find_peaks(m->rows, m->columns, m->small[(i - 1) % 2], m->small[i % 2], true, &m->steps[i], error));
    }
    return PS_OK;
}

/* The noise of about two scan positions is independent: nothing beyond the aperture's resolution is in the images. */
static double n_independent(const measurement *m) {
    double positions = (double)(m->s->run.scan_rows * m->s->run.scan_columns), pixels = (double)(m->rows * m->columns);
    return 0.5 * fmin(positions, pixels);
}

static ps_code refine(measurement *m, ps_error *error) {
    int64_t first, end;
    stretch(m, &first, &end);
    if (first < 1) first = 1;
    if (first < end) PS_TRY(load(m, first - 1, m->small[(first - 1) % 2], error));
    for (int64_t i = first; i < end; i++) {
        PS_TRY(load(m, i, m->small[i % 2], error));
        ps_drift_peak *peak = m->chosen[i] < 0 ? NULL : &m->steps[i].peaks[m->chosen[i]];
        if (!peak) continue;
        PS_TRY(ps_drift_refine(m->rows, m->columns, m->small[(i - 1) % 2], m->small[i % 2], peak, error));
        PS_TRY(ps_drift_find_trust(m->rows, m->columns, m->small[(i - 1) % 2], m->small[i % 2], n_independent(m), peak->shift, &m->trust[i],
                                   error));
    }
    return PS_OK;
}

/* Collective: every rank's steps to all. The others' are zeros here. */
static ps_code share(measurement *m, ps_error *error) {
    int64_t n_ranks = m->s->cluster->n_ranks;
    for (int64_t rank = 0; rank < n_ranks; rank++) {
        int64_t from = m->n * rank / n_ranks, to = m->n * (rank + 1) / n_ranks;
        for (int64_t i = from; i < to; i++) /* some hundred bytes each: no message is too long */
            PS_TRY(PS_MPI(error, MPI_Bcast(&m->steps[i], (int)sizeof m->steps[i], MPI_BYTE, (int)rank, m->s->cluster->communicator)));
    }
    return PS_OK;
}

/* The steps added up from the first done frame on; frames behind a step that was not found are not known. */
static void add_up(const measurement *m, ps_drift_table *table) {
    double at[2] = {0.0, 0.0}, least = 1.0;
    bool known = true;
    for (int64_t i = 0; i < table->n_frames; i++) table->reference[i] = -1;
    for (int64_t i = 0; i < m->n; i++) {
        int64_t frame = m->frames[i];
        known = known && (i == 0 || m->chosen[i] >= 0);
        table->trust[frame] = i == 0 ? 1.0 : m->trust[i];
        least = fmin(least, table->trust[frame]);
        table->least_trust[frame] = least;
        table->known[frame] = known;
        if (i > 0) table->reference[frame] = m->frames[i - 1];
        if (i > 0 && m->chosen[i] >= 0)
            for (int axis = 0; axis < 2; axis++)
                at[axis] += table->step_px[2 * frame + axis] = (double)m->factor * m->steps[i].peaks[m->chosen[i]].shift[axis];
        for (int axis = 0; axis < 2; axis++) table->shift_px[2 * frame + axis] = known ? at[axis] : 0.0;
    }
}

/* Collective. */
static ps_code measure(measurement *m, ps_drift_table *table, ps_error *error) {
    const ps_cluster *cluster = m->s->cluster;
    PS_TRY(ps_cluster_agree(cluster, correlate(m, error), error));
    PS_TRY(share(m, error));
    if (m->n > 1) ps_drift_choose(m->n - 1, m->steps + 1, m->chosen + m->s->run.series.n_items);
    for (int64_t i = 1; i < m->n; i++) m->chosen[i] = m->chosen[m->s->run.series.n_items + i - 1];
    PS_TRY(ps_cluster_agree(cluster, refine(m, error), error));
    PS_TRY(share(m, error));
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, m->trust, (int)m->n, MPI_DOUBLE, MPI_MAX, cluster->communicator)));
    add_up(m, table);
    return PS_OK;
}

/* ---- aligned images ---- */

static ps_code align_images(const ps_session *s, int64_t frame, const ps_image_place *of, const ps_drift_table *table, float *const room[3],
                            ps_error *error) {
    ps_image_place place = *of;
    const ps_run_plan *run = &s->run;
    for (place.part = 0; place.part < ps_output_image_parts(s->output, of); place.part++) {
        ps_watchdog_beat("align", (long)frame);
        if (ps_stop_wanted()) return PS_FAIL(error, PS_E_INTERRUPTED, "%s", ps_stop_reason());
        PS_TRY(ps_output_read_image(s->output, frame, &place, room[0], error));
        ps_drift_move_back(run->image_rows, run->image_columns, room[0], table->shift_px + 2 * frame, room[1], table->inside + 4 * frame,
                           room[2]);
        PS_TRY(ps_output_write_aligned(s->output, frame, &place, room[1], error));
    }
    return PS_OK;
}

static ps_code align_frame(const ps_session *s, int64_t frame, const ps_drift_table *table, float *const room[3], ps_error *error) {
    for (int64_t i = 0; i < s->job->methods.n; i++) {
        const ps_method *method = s->job->methods.items[i].method;
        for (int r = 0; r < method->n_results; r++) {
            const ps_image_place place = {.method = method, .result = r};
            if (ps_result_is_image(&method->results[r]) && ps_method_leaves(&s->job->methods.items[i], r))
                PS_TRY(align_images(s, frame, &place, table, room, error));
        }
    }
    return PS_OK;
}

/* Zeros where there is nothing to move back, also where an earlier run left something. */
static ps_code clear_frame(const ps_session *s, int64_t frame, float *const room[3], ps_error *error) {
    for (int64_t i = 0; i < s->run.image_rows * s->run.image_columns; i++) room[1][i] = 0.0f;
    for (int64_t i = 0; i < s->job->methods.n; i++) {
        const ps_method *method = s->job->methods.items[i].method;
        for (int r = 0; r < method->n_results; r++) {
            ps_image_place place = {.method = method, .result = r};
            if (!ps_result_is_image(&method->results[r]) || !ps_method_leaves(&s->job->methods.items[i], r)) continue;
            for (; place.part < ps_output_image_parts(s->output, &place); place.part++)
                PS_TRY(ps_output_write_aligned(s->output, frame, &place, room[1], error));
        }
    }
    return PS_OK;
}

static ps_code align_own(const ps_session *s, const ps_drift_table *table, ps_error *error) {
    size_t n = (size_t)(s->run.image_rows * s->run.image_columns);
    float *all = malloc(3 * n * sizeof *all), *const room[3] = {all, all + n, all + 2 * n};
    ps_code code = all ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to align images");
    for (int64_t frame = s->cluster->rank; code == PS_OK && frame < table->n_frames; frame += s->cluster->n_ranks)
        code = table->known[frame] ? align_frame(s, frame, table, room, error) : clear_frame(s, frame, room, error);
    free(all);
    return code;
}

/* Collective. */
static ps_code align(const ps_session *s, ps_drift_table *table, ps_error *error) {
    if (!s->job->aligns) return PS_OK;
    PS_TRY(ps_cluster_agree(s->cluster, align_own(s, table, error), error));
    return PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, table->inside, (int)(4 * table->n_frames), MPI_INT64_T, MPI_MAX,
                                       s->cluster->communicator)); /* the others' are 0 here */
}

/* ---- all of it ---- */

static void say(const ps_session *s, const ps_drift_table *table) {
    int64_t last = -1, n_low = 0, first_low = -1;
    for (int64_t i = 0; i < table->n_frames; i++) {
        if (table->reference[i] < 0) continue;
        if (table->known[i]) last = i;
        if (table->trust[i] >= PS_DRIFT_LOW_TRUST) continue;
        first_low = n_low++ == 0 ? i : first_low;
    }
    if (last >= 0)
        ps_log(PS_LOG_INFO, "drift of the sample up to frame %lld: %.4g rows, %.4g columns (%.4g, %.4g A)", (long long)last,
               table->shift_px[2 * last], table->shift_px[2 * last + 1], table->shift_px[2 * last] * s->run.image_step_A[0],
               table->shift_px[2 * last + 1] * s->run.image_step_A[1]);
    if (n_low > 0)
        ps_log(s->job->aligns ? PS_LOG_WARNING : PS_LOG_INFO, /* else nothing is made of it */
               "the drift of %lld frames, the first %lld, is told with little trust (below %g): another shift, as by a lattice vector, "
               "explains their images nearly as well",
               (long long)n_low, (long long)first_low, PS_DRIFT_LOW_TRUST);
}

/* Collective. states: [n_frames] what became of each. */
static ps_code measure_and_write(const ps_session *s, const uint8_t *states, ps_error *error) {
    measurement m = {0};
    ps_drift_table table = {0};
    ps_code code = begin(s, states, &m, error);
    if (code == PS_OK) code = ps_drift_table_create(s->run.series.n_items, &table, error);
    PS_GO(ps_cluster_agree(s->cluster, code, error));
    PS_GO(measure(&m, &table, error));
    PS_GO(align(s, &table, error));
    PS_GO(ps_cluster_agree(s->cluster, ps_output_bring_to_disk(s->output, error), error));
    if (s->cluster->rank == 0) {
        code = ps_output_write_drift(s->output, &table, s->run.image_step_A, error);
        if (code == PS_OK) code = ps_output_drift_set_complete(s->output, true, error);
        if (code == PS_OK) say(s, &table);
    }
    code = ps_cluster_agree(s->cluster, code, error);
done:
    ps_drift_table_free(&table);
    release(&m);
    return code;
}

ps_code ps_session_measure_drift(const ps_session *s, ps_error *error) {
    bool present = false, complete = false;
    uint8_t *states = NULL;
    ps_code code = ps_output_drift_state(s->output, &present, &complete, error);
    PS_GO(ps_cluster_agree(s->cluster, code, error));
    if (!present || complete) goto done;
    PS_GO(ps_output_gather_states(s->output, &states, error));
    PS_GO(measure_and_write(s, states, error));
done:
    free(states);
    return code;
}
