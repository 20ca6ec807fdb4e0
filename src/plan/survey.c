/* The inspection of every recording of a series: where its disc lies, which of its pixels are hot or dead, which patterns are odd. */
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/stop.h"
#include "cluster/wait_ranks.h"
#include "cluster/watchdog.h"
#include "core/log.h"
#include "input/adapters/bad_pixels.h"
#include "plan/parts.h"
#include "plan/recorded.h"
#include "plan/sample_pattern.h"

static const size_t usual_bytes = (size_t)4 << 20, most_bytes = (size_t)64 << 20; /* read of each recording */
static const double clear_hot_sigma = 12.0, clear_hot_factor = 2.0;               /* as for the first recordings: hot though nobody asked */
static const double dead_level = 0.02;                                            /* of the disc's level */
static const double least_expected = 20.0; /* counts that pixels should have before their having none says anything */
static const double darkest = 0.25;        /* of the disc's level, that a specimen may leave of it */
static const double rim_px = 1.5;          /* a pixel so far outside may see some of the disc */

/* What ranks tell each other of a recording, as numbers: the members of ps_run_seen in their order, then how many pixels are its own. */
enum { LOOKED, HAS_DISC, ROW, COLUMN, RADIUS, PLATEAU, N_POSITIONS, N_EMPTY, N_MARKED, N_HOT, N_DEAD, N_PIXELS, N_TOLD };

/* Dead pixels as they are, hot ones as -1 - pixel. */
typedef struct {
    int64_t n;
    int32_t *pixels;
} pixel_list;

/* ---- one recording -------------------------------------------------------------------------------------------------------------- */

/* bad: pixels that are masked, or count at no position; the disc is measured without them. */
static void measure_disc(const ps_pattern_sample *sample, const ps_run_group *group, const uint8_t *bad, ps_run_seen *seen) {
    ps_disc disc;
    ps_error reason = {0};
    const double *pitch = group->optics.detector_pitch_mrad;
    seen->has_disc = ps_disc_measure(sample->mean, bad, sample->detector_rows, sample->detector_columns, pitch, &disc, &reason) == PS_OK;
    if (!seen->has_disc) return;
    memcpy(seen->center_px, disc.center_px, sizeof seen->center_px);
    seen->radius_px = disc.radius / sqrt(pitch[0] * pitch[1]);
    seen->plateau = disc.plateau;
}

/* Distance of a pixel's centre from the disc's rim in pixels, negative inside. */
static double outside_px(const ps_run_seen *seen, const double *pitch, int64_t row, int64_t column) {
    double a = ((double)row - seen->center_px[0]) * pitch[0], b = ((double)column - seen->center_px[1]) * pitch[1];
    return hypot(a, b) / sqrt(pitch[0] * pitch[1]) - seen->radius_px;
}

/* A pixel inside the disc that shows none of its light. */
static bool is_dark(const ps_pattern_sample *sample, const ps_run_seen *seen, int64_t pixel) {
    return sample->n_marked[pixel] == sample->n_positions || !(sample->mean[pixel] > dead_level * seen->plateau);
}

/* Pixels of a row or column, `step` apart, that lie in runs of dark ones which should have had too many counts together for chance.
 * distance: [pixels], from the rim. */
static void mark_runs(const ps_pattern_sample *sample, const ps_run_group *group, const ps_run_seen *seen, const double *distance,
                      int64_t begin, int64_t step, int64_t length, uint8_t *dead) {
    double each = darkest * seen->plateau * (double)sample->n_positions;
    for (int64_t i = 0, end; i < length; i = end + 1) {
        double expected = 0.0;
        for (end = i; end < length && distance[begin + end * step] < 0.0; end++) {
            int64_t pixel = begin + end * step;
            if (!group->bad[pixel] && !is_dark(sample, seen, pixel)) break;
            expected += group->bad[pixel] ? 0.0 : each * fmin(-distance[pixel], 1.0);
        }
        for (int64_t k = i; expected > least_expected && k < end; k++)
            if (!group->bad[begin + k * step]) dead[begin + k * step] = 1;
    }
}

/* A gap goes on through the rim: a pixel there without any count beside a dead one is dead too. */
static bool continues_gap(const ps_pattern_sample *sample, const uint8_t *dead, int64_t pixel) {
    int64_t row = pixel / sample->detector_columns, column = pixel % sample->detector_columns;
    static const int steps[4][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    if (sample->mean[pixel] != 0.0) return false;
    for (int k = 0; k < 4; k++) {
        int64_t r = row + steps[k][0], c = column + steps[k][1];
        bool inside = r >= 0 && c >= 0 && r < sample->detector_rows && c < sample->detector_columns;
        if (inside && dead[r * sample->detector_columns + c] == 1) return true;
    }
    return false;
}

static void mark_dead(const ps_pattern_sample *sample, const ps_run_group *group, const double *distance, ps_run_seen *seen,
                      uint8_t *dead) {
    int64_t rows = sample->detector_rows, columns = sample->detector_columns;
    for (int64_t i = 0; i < rows * columns; i++)
        dead[i] = distance[i] < rim_px && !group->bad[i] && sample->n_marked[i] == sample->n_positions;
    for (int64_t row = 0; row < rows; row++) mark_runs(sample, group, seen, distance, row * columns, 1, columns, dead);
    for (int64_t column = 0; column < columns; column++) mark_runs(sample, group, seen, distance, column, columns, rows, dead);
    for (int64_t i = 0; i < rows * columns; i++) {
        if (fabs(distance[i]) < rim_px && !group->bad[i] && !dead[i] && continues_gap(sample, dead, i)) dead[i] = 2;
        seen->n_dead += dead[i] != 0;
    }
}

/* dead: [pixels], 1 dead, 2 at the rim and dead because its neighbour is. */
static ps_code find_dead(const ps_pattern_sample *sample, const ps_run_group *group, ps_run_seen *seen, uint8_t *dead, ps_error *error) {
    int64_t n_pixels = sample->detector_rows * sample->detector_columns;
    memset(dead, 0, (size_t)n_pixels);
    if (!seen->has_disc) return PS_OK;
    double *distance = malloc((size_t)n_pixels * sizeof *distance);
    if (!distance) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to look for dead pixels");
    for (int64_t i = 0; i < n_pixels; i++)
        distance[i] = outside_px(seen, group->optics.detector_pitch_mrad, i / sample->detector_columns, i % sample->detector_columns);
    mark_dead(sample, group, distance, seen, dead);
    free(distance);
    return PS_OK;
}

/* A dead pixel is no hot one's neighbour. hot: [pixels], filled. */
static ps_code find_hot(const ps_job *job, const ps_pattern_sample *sample, const uint8_t *bad, ps_run_seen *seen, uint8_t *hot,
                        ps_error *error) {
    bool asked = job->series.hot_sigma > 0.0;
    double sigma = asked ? job->series.hot_sigma : clear_hot_sigma, least = asked ? 0.0 : clear_hot_factor * seen->plateau;
    int64_t ignored;
    PS_TRY(ps_hot_pixels(sample->mean, sample->n_positions, sample->detector_rows, sample->detector_columns, sigma, bad, hot, &ignored,
                         error));
    for (int64_t i = 0; i < sample->detector_rows * sample->detector_columns; i++) {
        hot[i] = hot[i] && sample->mean[i] > least;
        seen->n_hot += hot[i];
    }
    return PS_OK;
}

/* Hot ones only where the job leaves them out. */
static ps_code list_pixels(const ps_job *job, int64_t n_pixels, const uint8_t *hot, const uint8_t *dead, pixel_list *list,
                           ps_error *error) {
    list->pixels = malloc((size_t)(n_pixels + 1) * sizeof *list->pixels);
    if (!list->pixels) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a list of pixels");
    for (int32_t i = 0; i < n_pixels; i++) {
        if (dead[i])
            list->pixels[list->n++] = i;
        else if (hot[i] && job->series.hot_sigma > 0.0)
            list->pixels[list->n++] = -1 - i;
    }
    int32_t *shorter = realloc(list->pixels, (size_t)(list->n + 1) * sizeof *shorter);
    if (shorter) list->pixels = shorter;
    return PS_OK;
}

static ps_code examine(const ps_job *job, const ps_pattern_sample *sample, const ps_run_group *group, ps_run_seen *seen, pixel_list *list,
                       ps_error *error) {
    ps_code code = PS_OK;
    int64_t n_pixels = sample->detector_rows * sample->detector_columns;
    uint8_t *bad = malloc((size_t)n_pixels), *dead = malloc((size_t)n_pixels), *hot = malloc((size_t)n_pixels);
    PS_GO_ALLOC(error, bad && dead && hot);
    *seen = (ps_run_seen){
        .looked = true, .n_positions = sample->n_positions, .n_empty = sample->n_empty, .n_marked_patterns = sample->n_marked_patterns};
    for (int64_t i = 0; i < n_pixels; i++) bad[i] = group->bad[i] || sample->n_marked[i] == sample->n_positions;
    measure_disc(sample, group, bad, seen);
    PS_GO(find_dead(sample, group, seen, dead, error));
    for (int64_t i = 0; i < n_pixels; i++) bad[i] = bad[i] || dead[i];
    PS_GO(find_hot(job, sample, bad, seen, hot, error));
    PS_GO(list_pixels(job, n_pixels, hot, dead, list, error));
done:
    free(bad);
    free(dead);
    free(hot);
    return code;
}

/* A recording that cannot be read is left as it is: the run meets it again, and says why. */
static ps_code look(const ps_job *job, const ps_run_plan *plan, int64_t index, ps_run_seen *seen, pixel_list *list, ps_error *error) {
    const ps_run_group *group = &plan->groups[plan->frames[index].group];
    ps_reader_options options = ps_job_reader_options(job);
    ps_pattern_sample sample;
    ps_error reason = {0};
    bool is_first = index == group->first; /* what all others are compared with */
    size_t bytes = is_first || job->series.hot_sigma > 0.0 ? most_bytes : usual_bytes;
    ps_code code = ps_sample_pattern_of(plan->series.items[index].source, &options, bytes, group->bad, &sample, &reason);
    bool fits = code == PS_OK && sample.detector_rows == plan->detector_rows && sample.detector_columns == plan->detector_columns;
    if (code == PS_E_MEMORY)
        PS_FAIL(error, code, "%s", reason.text);
    else
        code = fits ? examine(job, &sample, group, seen, list, error) : PS_OK;
    ps_pattern_sample_free(&sample);
    return code;
}

/* ---- all of them ---------------------------------------------------------------------------------------------------------------- */

static bool is_chosen(const ps_run_plan *plan, int64_t index, int64_t most) {
    const ps_run_frame *frame = &plan->frames[index];
    int64_t n = plan->series.n_items;
    if (frame->unreadable) return false;
    if (most <= 0 || n <= most) return true;
    bool is_spread = index * most / n != (index - 1) * most / n || index == 0;
    return is_spread || index == plan->groups[frame->group].first;
}

static ps_code look_at_share(const ps_cluster *cluster, const ps_job *job, ps_run_plan *plan, int64_t most, pixel_list *lists,
                             ps_error *error) {
    enum { QUIET_S = 5, REPORT_S = 10 };
    int64_t rank = cluster ? cluster->rank : 0, n_ranks = cluster ? cluster->n_ranks : 1, n_seen = 0;
    ps_code code = PS_OK;
    ps_progress *progress = NULL;
    double begin_s = ps_seconds();
    for (int64_t i = 0; code == PS_OK && i < plan->series.n_items; i++) {
        if (!is_chosen(plan, i, most) || n_seen++ % n_ranks != rank) continue;
        ps_watchdog_beat("look", (long)i);
        code = ps_stop_wanted() ? PS_FAIL(error, PS_E_INTERRUPTED, "stopped (%s) while the recordings were looked at; run again to go on",
                                          ps_stop_reason())
                                : look(job, plan, i, &plan->frames[i].seen, &lists[i], error);
        if (rank == 0 && !progress && ps_seconds() > begin_s + QUIET_S)
            progress = ps_progress_begin("looking at recordings", plan->series.n_items, REPORT_S);
        ps_progress_update(progress, i + 1, NULL);
    }
    ps_progress_end(progress);
    return code;
}

static void tell(const ps_run_seen *seen, const pixel_list *list, double told[N_TOLD]) {
    const double values[N_TOLD] = {seen->looked,
                                   seen->has_disc,
                                   seen->center_px[0],
                                   seen->center_px[1],
                                   seen->radius_px,
                                   seen->plateau,
                                   (double)seen->n_positions,
                                   (double)seen->n_empty,
                                   (double)seen->n_marked_patterns,
                                   (double)seen->n_hot,
                                   (double)seen->n_dead,
                                   (double)list->n};
    memcpy(told, values, sizeof values);
}

static void hear(const double told[N_TOLD], ps_run_seen *seen, pixel_list *list) {
    *seen = (ps_run_seen){.looked = told[LOOKED] != 0.0,
                          .has_disc = told[HAS_DISC] != 0.0,
                          .center_px = {told[ROW], told[COLUMN]},
                          .radius_px = told[RADIUS],
                          .plateau = told[PLATEAU],
                          .n_positions = (int64_t)told[N_POSITIONS],
                          .n_empty = (int64_t)told[N_EMPTY],
                          .n_marked_patterns = (int64_t)told[N_MARKED],
                          .n_hot = (int64_t)told[N_HOT],
                          .n_dead = (int64_t)told[N_DEAD]};
    list->n = (int64_t)told[N_PIXELS];
}

/* Each recording was looked at by one rank, so that sums over ranks are what that one found. */
static ps_code share_numbers(const ps_cluster *cluster, ps_run_plan *plan, pixel_list *lists, ps_error *error) {
    ps_code code = PS_OK;
    int64_t n = plan->series.n_items;
    double *told = n <= INT32_MAX / N_TOLD ? calloc((size_t)n, N_TOLD * sizeof *told) : NULL;
    code = told ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for what ranks tell each other");
    PS_GO(ps_cluster_agree(cluster, code, error));
    for (int64_t i = 0; i < n; i++)
        if (plan->frames[i].seen.looked) tell(&plan->frames[i].seen, &lists[i], told + i * N_TOLD);
    PS_GO(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, told, (int)(n * N_TOLD), MPI_DOUBLE, MPI_SUM, cluster->communicator)));
    for (int64_t i = 0; i < n; i++) hear(told + i * N_TOLD, &plan->frames[i].seen, &lists[i]);
done:
    free(told);
    return code;
}

static ps_code share_pixels(const ps_cluster *cluster, int64_t n, pixel_list *lists, ps_error *error) {
    ps_code code = PS_OK;
    for (int64_t i = 0; code == PS_OK && i < n; i++) {
        if (lists[i].n == 0 || lists[i].pixels) continue;
        lists[i].pixels = calloc((size_t)lists[i].n, sizeof *lists[i].pixels);
        if (!lists[i].pixels) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a list of pixels");
    }
    PS_TRY(ps_cluster_agree(cluster, code, error));
    for (int64_t i = 0; i < n; i++)
        if (lists[i].n > 0)
            PS_TRY(
                PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, lists[i].pixels, (int)lists[i].n, MPI_INT32_T, MPI_SUM, cluster->communicator)));
    return PS_OK;
}

/* ---- what follows --------------------------------------------------------------------------------------------------------------- */

static int32_t pixel_of(int32_t entry) {
    return entry < 0 ? -1 - entry : entry;
}

static ps_code enter_dead(const ps_job *job, ps_run_plan *plan, int64_t group, const pixel_list *list, ps_error *error) {
    ps_code code = PS_OK;
    int64_t n = 0;
    int32_t *dead = malloc((size_t)(list->n + 1) * sizeof *dead);
    PS_GO_ALLOC(error, dead);
    for (int64_t i = 0; i < list->n; i++)
        if (list->pixels[i] >= 0) dead[n++] = list->pixels[i];
    if (n == 0) goto done;
    PS_GO(ps_run_group_set_dead(job, plan, group, dead, n, error));
done:
    free(dead);
    return code;
}

/* The group's first recording is what the group's own hot pixels are searched in. */
static ps_code keep_own(const ps_run_plan *plan, int64_t index, const pixel_list *list, ps_run_frame *frame, ps_error *error) {
    const ps_run_group *group = &plan->groups[frame->group];
    if (list->n == 0 || index == group->first) return PS_OK;
    frame->own = malloc((size_t)list->n * sizeof *frame->own);
    if (!frame->own) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a list of pixels");
    for (int64_t i = 0; i < list->n; i++)
        if (!group->bad[pixel_of(list->pixels[i])]) frame->own[frame->n_own++] = pixel_of(list->pixels[i]);
    return PS_OK;
}

static ps_code conclude(const ps_job *job, const ps_measured *measured, ps_run_plan *plan, const pixel_list *lists, ps_error *error) {
    for (int64_t g = 0; g < plan->n_groups; g++) {
        bool recorded = false;
        int64_t first = plan->groups[g].first;
        PS_TRY(ps_recorded_dead(job, measured, plan, g, &recorded, error));
        if (!recorded && first >= 0) PS_TRY(enter_dead(job, plan, g, &lists[first], error));
    }
    ps_recorded_seen(measured, plan);
    for (int64_t i = 0; i < plan->series.n_items; i++)
        if (!plan->frames[i].unreadable) PS_TRY(keep_own(plan, i, &lists[i], &plan->frames[i], error));
    return ps_run_plan_compare_seen(job, plan, error);
}

ps_code ps_run_plan_survey(const ps_cluster *cluster, const ps_job *job, const ps_measured *measured, ps_run_plan *plan, int64_t most,
                           ps_error *error) {
    int64_t n = plan->series.n_items;
    pixel_list *lists = calloc((size_t)n, sizeof *lists);
    ps_code code = lists ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to look at %lld recordings", (long long)n);
    ps_recorded_firsts(measured, plan);
    if (code == PS_OK) code = look_at_share(cluster, job, plan, most, lists, error);
    if (cluster) {
        PS_GO(ps_wait_for_ranks(cluster, code, "look", error));
        PS_GO(share_numbers(cluster, plan, lists, error));
        PS_GO(share_pixels(cluster, n, lists, error));
    }
    if (code == PS_OK) code = conclude(job, measured, plan, lists, error);
    if (cluster) code = ps_cluster_agree(cluster, code, error);
done:
    for (int64_t i = 0; lists && i < n; i++) free(lists[i].pixels);
    free(lists);
    return code;
}

ps_frame_seen ps_run_seen_frame(const ps_run_seen *seen) {
    return (ps_frame_seen){.n_hot = seen->n_hot,
                           .n_dead = seen->n_dead,
                           .disc_center_px = {seen->center_px[0], seen->center_px[1]},
                           .disc_radius_px = seen->radius_px};
}
