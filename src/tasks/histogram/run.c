#include "tasks/histogram/run.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/text.h"
#include "hdf5/write.h"
#include "store/provenance.h"
#include "tasks/histogram/counting.h"
#include "tasks/histogram/file.h"
#include "tasks/histogram/masks.h"
#include "tasks/histogram/memory.h"
#include "tasks/histogram/reduce.h"
#include "tasks/histogram/resume.h"
#include "tasks/series.h"

static const double progress_interval_s = 10;

/* Everything a run holds; one cleanup for all. */
typedef struct {
    const ps_cluster *cluster;
    const ps_job *job;
    const ps_run_options *options;
    bool overwrite;
    ps_memory_share share; /* of the host */
    ps_histogram_plan plan;
    uint8_t *given; /* [detector_rows, detector_columns] */
    ps_sample sample;
    ps_histogram_map map;
    ps_counting counting;
    char device[128];
    ps_notes notes;
    ps_histogram_file_spec spec;
    ps_histogram_file file;
    ps_histogram_maps maps;
    ps_tally tally;
    uint32_t *mask; /* [detector_rows, detector_columns] */
    int64_t n_masked[PS_MASK_KINDS];
    uint8_t *states; /* [n_frames] */
    double *totals;  /* [n_frames] */
} session;

/* ---- before counting
 * --------------------------------------------------------------------------------------------------------------------- */

/* A job that does not fit is refused before counting or a file is begun; what a device has shows when counting begins. */
static ps_code check_memory(const session *s, ps_error *error) {
    ps_histogram_memory memory;
    char bytes[PS_BYTES_TEXT];
    if (s->counting.budget_bytes == 0) return PS_OK;
    ps_code code = ps_histogram_memory_plan(&s->plan, s->counting.ops, s->counting.budget_bytes, &memory, error);
    if (code == PS_OK || s->job->memory_budget_GiB > 0) return code;
    ps_error_prefix(error, "%s left for %d rank%s (%s)", ps_text_bytes((double)s->share.free_bytes, bytes), s->share.n_sharing,
                    s->share.n_sharing == 1 ? "" : "s", s->share.text);
    return code;
}

static ps_code prepare_rank(session *s, ps_error *error) {
    PS_TRY(ps_counting_choose(s->job, s->cluster, &s->share, &s->counting, error));
    PS_TRY(check_memory(s, error));
    int64_t n_frames = s->plan.run.series.n_items, n_detector = s->plan.run.detector_rows * s->plan.run.detector_columns;
    s->given = malloc((size_t)n_detector);
    s->mask = calloc((size_t)n_detector, sizeof *s->mask);
    s->states = calloc((size_t)n_frames, sizeof *s->states);
    s->totals = calloc((size_t)n_frames, sizeof *s->totals);
    if (!s->given || !s->mask || !s->states || !s->totals)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate masks of %lld pixels", (long long)n_detector);
    PS_TRY(ps_tally_create(n_frames, &s->tally, error));
    return ps_histogram_maps_allocate(s->plan.n_pixels, s->plan.wanted->n_bins, &s->maps, error);
}

/* Range and centres, then the map from values to bins. Collective. */
static ps_code prepare_map(session *s, ps_error *error) {
    const ps_job_histogram *job = s->plan.wanted;
    PS_TRY(ps_histogram_given_mask(s->cluster, &s->plan, s->given, error));
    PS_TRY(ps_sample_take(s->cluster, &s->plan, s->given, s->counting.budget_bytes / 2, &s->sample, error));
    ps_code code = ps_histogram_map_build(s->plan.run.dtype, s->sample.centre != NULL, job->n_bins, s->sample.range, &s->map, error);
    if (code == PS_E_ARGUMENT) code = PS_E_JOB;
    return ps_cluster_agree(s->cluster, code, error);
}

/* A first histogram of one row says what will run, before the output is begun. Collective. */
static ps_code find_device(session *s, ps_error *error) {
    ps_histogram *histogram = NULL;
    int64_t n_rows;
    PS_TRY(ps_counting_open_band(&s->counting, 0, 1, &n_rows, &histogram, error));
    ps_histogram_device(histogram, s->device, sizeof s->device);
    ps_histogram_destroy(histogram);
    return PS_OK;
}

static void say_plan(const session *s) {
    const ps_histogram_plan *plan = &s->plan;
    if (s->cluster->rank != 0) return;
    ps_log(PS_LOG_INFO, "histograms of %lld x %lld pixels, %lld bins from %.9g to %.9g%s, over %lld patterns of %lld recording%s; %s on %s",
           (long long)plan->rows, (long long)plan->columns, (long long)s->map.n_bins, s->sample.range[0], s->sample.range[1],
           s->plan.wanted->automatic_range ? " (automatic)" : "", (long long)plan->n_positions, (long long)plan->n_usable,
           plan->n_usable == 1 ? "" : "s", s->counting.ops->name, s->device);
    if (s->sample.n_sampled > 0)
        ps_log(PS_LOG_INFO, "sampled %lld of %lld patterns for %s", (long long)s->sample.n_sampled, (long long)plan->n_positions,
               s->plan.wanted->automatic_range ? s->sample.centre ? "range and centres" : "the range" : "medians");
}

/* ---- counting
 * ------------------------------------------------------------------------------------------------------------------------------ */

/* One band: count, bring together, write. Collective. */
static ps_code do_band(session *s, int64_t first_row, int64_t *n_rows, ps_error *error) {
    ps_histogram *histogram = NULL;
    ps_code code = PS_OK;
    PS_TRY(ps_counting_open_band(&s->counting, first_row, s->plan.rows - first_row, n_rows, &histogram, error));
    if (s->cluster->rank == 0 && *n_rows < s->plan.rows)
        ps_log(PS_LOG_INFO, "rows %lld to %lld of the region: more do not fit the memory at once", (long long)first_row,
               (long long)(first_row + *n_rows - 1));
    ps_reduction reduction = {.cluster = s->cluster,
                              .map = &s->map,
                              .n_pixels = *n_rows * s->plan.columns,
                              .first_pixel = first_row * s->plan.columns,
                              .block_bytes = PS_REDUCE_BLOCK_BYTES,
                              .sink = ps_histogram_file_write_counts,
                              .context = &s->file};
    PS_GO(ps_cluster_agree(s->cluster, ps_counting_run(&s->counting, histogram, first_row, *n_rows, &s->tally, error), error));
    code = ps_histogram_reduce(&reduction, histogram, &s->maps, error);
done:
    ps_histogram_destroy(histogram);
    return code;
}

static ps_code do_bands(session *s, ps_error *error) {
    int64_t begin, end, n_rows;
    ps_share(s->plan.n_positions, s->cluster->rank, s->cluster->n_ranks, &begin, &end);
    for (int64_t row = 0; row < s->plan.rows; row += n_rows) {
        if (s->cluster->rank == 0)
            s->counting.progress =
                ps_progress_begin(s->cluster->n_ranks > 1 ? "patterns of rank 0" : "patterns", end - begin, progress_interval_s);
        ps_code code = do_band(s, row, &n_rows, error);
        ps_progress_end(s->counting.progress);
        s->counting.progress = NULL;
        PS_TRY(code);
    }
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, s->maps.total, (int)s->map.n_bins, MPI_UINT64_T, MPI_SUM, s->cluster->communicator)));
    return ps_tally_combine(s->cluster, &s->tally, error);
}

/* ---- after counting
 * --------------------------------------------------------------------------------------------------------------------------- */

/* States and totals of frames; how many failed. */
static int64_t judge_frames(session *s) {
    int64_t n_failed = 0;
    for (int64_t i = 0; i < s->tally.n_frames; i++) {
        const ps_run_frame *frame = &s->plan.run.frames[i];
        if (frame->unreadable) ps_h5_pad_text(s->tally.errors[i], PS_FRAME_ERROR_BYTES - 1, frame->unreadable);
        s->states[i] = s->tally.errors[i][0] ? PS_FRAME_FAILED : PS_FRAME_DONE;
        s->totals[i] = ldexp((double)s->tally.total_low[i] + 4294967296.0 * (double)s->tally.total_high[i], s->map.unit_exponent);
        n_failed += s->states[i] == PS_FRAME_FAILED;
    }
    return n_failed;
}

/* The mask of the region, put in its place on the detector. */
static ps_code find_masks(session *s, ps_error *error) {
    ps_code code = PS_OK;
    const ps_histogram_plan *plan = &s->plan;
    const ps_job_histogram *job = s->plan.wanted;
    int64_t columns = plan->run.detector_columns;
    uint8_t *given = malloc((size_t)plan->n_pixels);
    uint32_t *mask = malloc((size_t)plan->n_pixels * sizeof *mask);
    PS_GO_ALLOC(error, given);
    PS_GO_ALLOC(error, mask);
    for (int64_t p = 0; p < plan->n_pixels; p++)
        given[p] = s->given[(plan->first_row + p / plan->columns) * columns + plan->first_column + p % plan->columns];
    ps_mask_input input = {.rows = plan->rows,
                           .columns = plan->columns,
                           .n_values = s->maps.n_values,
                           .n_saturated = s->maps.n_saturated,
                           .mean = s->maps.mean,
                           .variance = s->maps.variance,
                           .minimum = s->maps.minimum,
                           .given = given};
    double hot_sigma = s->job->series.hot_sigma > 0 ? s->job->series.hot_sigma : job->hot_sigma;
    ps_mask_rules rules = {hot_sigma, job->dead_fraction, job->noisy_ratio, job->saturated_fraction};
    PS_GO(ps_masks_find(&input, &rules, mask, s->n_masked, error));
    for (int64_t p = 0; p < plan->n_pixels; p++)
        s->mask[(plan->first_row + p / plan->columns) * columns + plan->first_column + p % plan->columns] = mask[p];
done:
    free(given);
    free(mask);
    return code;
}

/* Nothing but one value everywhere, or recordings without a count, are said: they look like success otherwise. */
static void say_results(const session *s) {
    bool constant = true;
    uint64_t outside = 0;
    for (int64_t p = 0; p < s->plan.n_pixels; p++) {
        constant &= s->maps.minimum[p] == s->maps.maximum[p] && s->maps.minimum[p] == s->maps.minimum[0];
        outside += s->maps.underflow[p] + s->maps.overflow[p];
    }
    ps_log(PS_LOG_INFO, "pixels: %lld hot, %lld dead, %lld noisy, %lld saturated, %lld given as bad; %llu values outside the range",
           (long long)s->n_masked[0], (long long)s->n_masked[1], (long long)s->n_masked[2], (long long)s->n_masked[3],
           (long long)s->n_masked[4], (unsigned long long)outside);
    for (int64_t i = 0; i < s->tally.n_frames; i++)
        if (s->states[i] == PS_FRAME_DONE && s->totals[i] == 0 && !s->sample.centre)
            ps_log(PS_LOG_WARNING, "frame %lld (%s) is empty: the sum of its counts is 0", (long long)i,
                   s->plan.run.series.items[i].source);
    if (constant)
        ps_log(PS_LOG_WARNING, "every value of every pixel is %.9g: there is nothing to tell pixels apart by", s->maps.minimum[0]);
}

static ps_code write_results(session *s, ps_error *error) {
    ps_histogram_results results = {.maps = &s->maps,
                                    .mask = s->mask,
                                    .n_masked = s->n_masked,
                                    .states = s->states,
                                    .errors = s->tally.errors,
                                    .n_positions = s->tally.n_positions,
                                    .total = s->totals,
                                    .device = s->device};
    return ps_histogram_file_finish(&s->file, &results, error);
}

/* Collective. */
static ps_code finish(session *s, ps_error *error) {
    int64_t n_failed = judge_frames(s), n_counted = 0;
    for (int64_t i = 0; i < s->tally.n_frames; i++) n_counted += s->tally.n_positions[i];
    if (n_counted == 0)
        return PS_FAIL(error, PS_E_INPUT, "none of the %lld recordings could be read; the first, %s: %s", (long long)s->tally.n_frames,
                       s->plan.run.series.items[0].source, s->tally.errors[0]);
    PS_TRY(ps_cluster_agree(s->cluster, find_masks(s, error), error));
    if (s->cluster->rank == 0) say_results(s);
    PS_TRY(write_results(s, error));
    if (n_failed == 0) return PS_OK;
    return ps_series_fail(PS_E_PARTIAL, s->job, n_failed, s->tally.n_frames, ", wholly or in part", error);
}

/* ---- resume
 * ------------------------------------------------------------------------------------------------------------------------------------ */

/* Collective. With --retry-failed a file with failed frames is made again. */
static ps_code is_complete(session *s, bool *complete, ps_error *error) {
    ps_histogram_existing found = {0};
    PS_TRY(ps_cluster_agree(s->cluster, s->cluster->rank == 0 ? ps_histogram_look_at_existing(&s->plan, s->options, &found, error) : PS_OK,
                            error));
    PS_TRY(PS_MPI(error, MPI_Bcast(&found, (int)sizeof found, MPI_BYTE, 0, s->cluster->communicator)));
    *complete = found.complete != 0;
    s->overwrite = s->options->overwrite || (!found.complete && found.n_failed > 0);
    if (!*complete) return PS_OK;
    if (s->cluster->rank == 0) ps_log(PS_LOG_INFO, "%s is complete already", s->job->output_file);
    if (found.n_failed == 0) return PS_OK;
    return PS_FAIL(error, PS_E_PARTIAL,
                   "%lld frames of it failed, the first: frame %lld (%s); their reasons are in /entry/frames/error of %s; --retry-failed "
                   "does all of it again",
                   (long long)found.n_failed, (long long)found.first_failed, s->plan.run.series.items[found.first_failed].source,
                   s->job->output_file);
}

/* ---- the task
 * ------------------------------------------------------------------------------------------------------------------------------------ */

static ps_code begin_file(session *s, ps_error *error) {
    PS_TRY(ps_notes_gather(s->cluster, s->job, s->options->command_line, s->device, s->counting.ops->name, &s->notes, error));
    s->spec = (ps_histogram_file_spec){
        .plan = &s->plan, .map = &s->map, .sample = &s->sample, .n_notes = s->notes.n, .notes = s->notes.notes, .overwrite = s->overwrite};
    return ps_histogram_file_begin(s->cluster, &s->spec, &s->file, error);
}

static void free_session(session *s) {
    ps_histogram_file_discard(&s->file);
    ps_notes_free(&s->notes);
    ps_histogram_maps_free(&s->maps);
    ps_tally_free(&s->tally);
    ps_sample_free(&s->sample);
    ps_histogram_map_free(&s->map);
    free(s->given);
    free(s->mask);
    free(s->states);
    free(s->totals);
    ps_histogram_plan_free(&s->plan);
}

ps_code ps_histogram_run(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_error *error) {
    session s = {.cluster = cluster, .job = job, .options = options};
    bool complete = false;
    ps_code code = PS_OK;
    PS_GO(ps_series_begin(cluster, job, error));
    PS_GO(ps_memory_share_measure(cluster, &s.share, error));
    code = ps_histogram_plan_build(job, &s.plan, error);
    PS_GO(ps_series_agree(cluster, code, &s.plan.run, error));
    PS_GO(ps_cluster_agree(cluster, prepare_rank(&s, error), error));
    PS_GO(ps_file_checks_make(cluster, job, &s.plan.run, &s.plan.checks, error));
    PS_GO(is_complete(&s, &complete, error));
    if (complete) goto done;
    s.counting.cluster = cluster;
    s.counting.plan = &s.plan;
    s.counting.map = &s.map;
    s.counting.sample = &s.sample;
    PS_GO(prepare_map(&s, error));
    PS_GO(find_device(&s, error));
    PS_GO(begin_file(&s, error));
    say_plan(&s);
    PS_GO(do_bands(&s, error));
    code = finish(&s, error);
done:
    free_session(&s);
    return code;
}
