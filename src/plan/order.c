/* Before the recordings are opened for good: the order of the series, and what its numbers and times say. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "input/iso_time.h"
#include "input/name_list.h"
#include "plan/parts.h"

static int compare_names(const void *a, const void *b) {
    const ps_series_item *x = *(const ps_series_item *const *)a, *y = *(const ps_series_item *const *)b;
    int order = ps_natural_compare(x->stem, y->stem);
    return order ? order : strcmp(x->source, y->source);
}

/* Datasets of one file share its name. */
static bool same_file(const char *a, const char *b) {
    const char *end_a = strstr(a, ":/"), *end_b = strstr(b, ":/");
    return end_a && end_b && end_a - a == end_b - b && memcmp(a, b, (size_t)(end_a - a)) == 0;
}

/* Names of the same text and numbers, such as scan_7 and scan_007, or the same name in two folders. */
static ps_code warn_of_duplicates(ps_run_plan *plan, ps_error *error) {
    int64_t n = plan->series.n_items, n_duplicates = 0, first = 0;
    const ps_series_item **sorted = malloc((size_t)n * sizeof *sorted);
    if (!sorted) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the names of the series");
    for (int64_t i = 0; i < n; i++) sorted[i] = &plan->series.items[i];
    qsort(sorted, (size_t)n, sizeof *sorted, compare_names);
    for (int64_t i = 1; i < n; i++) {
        if (ps_natural_compare(sorted[i - 1]->stem, sorted[i]->stem) != 0 || same_file(sorted[i - 1]->source, sorted[i]->source)) continue;
        if (n_duplicates++ == 0) first = i;
    }
    ps_code code = PS_OK;
    if (n_duplicates > 0)
        code = ps_run_plan_add_warning(
            plan, error, "series.files: %" PRId64 " recording%s the name and number of another, the first: %s and %s", n_duplicates,
            n_duplicates == 1 ? " has" : "s have", sorted[first - 1]->source, sorted[first]->source);
    free(sorted);
    return code;
}

/* Puts the same recordings into the order that the output has; leaves the list alone when they are not the same. */
static ps_code restore_order(const ps_measured *measured, ps_series *series, ps_error *error) {
    int64_t n = series->n_items, found = 0;
    if (n != measured->n_frames) return PS_OK;
    ps_series_item *ordered = calloc((size_t)n, sizeof *ordered);
    if (!ordered) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the order of the series");
    for (int64_t i = 0; i < n && found == i; i++)
        for (int64_t k = i, looked = 0; looked < n && found == i; k = (k + 1) % n, looked++)
            if (strcmp(series->items[k].source, measured->sources[i]) == 0) ordered[found++] = series->items[k];
    if (found == n) memcpy(series->items, ordered, (size_t)n * sizeof *ordered);
    free(ordered);
    return PS_OK;
}

ps_code ps_run_plan_list_series(const ps_job *job, const ps_measured *measured, ps_run_plan *plan, ps_error *error) {
    const ps_job_series *series = &job->series;
    ps_reader_options options = ps_job_reader_options(job);
    PS_TRY(ps_series_build_ordered(job->base_directory, (const char *const *)series->files, series->n_files,
                                   series->by_time ? PS_SERIES_BY_TIME : PS_SERIES_BY_NAME, &options, series->first, series->count,
                                   series->stride, &plan->series, error));
    bool all = series->first == 0 && series->count < 0 && series->stride == 1; /* what is selected depends on the order */
    if (measured && series->by_time && all) PS_TRY(restore_order(measured, &plan->series, error));
    if (plan->series.gaps)
        PS_TRY(ps_run_plan_add_warning(plan, error, "series.files: there is no %s, though the numbers go on", plan->series.gaps));
    return warn_of_duplicates(plan, error);
}

ps_code ps_run_plan_warn_of_times(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    int64_t n_equal = 0, n_backwards = 0, equal = 0, backwards = 0;
    double before = NAN;
    for (int64_t i = 0; i < plan->series.n_items; i++) {
        double time = plan->frames[i].unreadable ? NAN : ps_time_parse(plan->frames[i].info.acquisition_time);
        if (isnan(time)) continue;
        if (time == before && n_equal++ == 0) equal = i;
        if (time < before && n_backwards++ == 0) backwards = i;
        before = time;
    }
    if (n_equal > 0)
        PS_TRY(ps_run_plan_add_warning(
            plan, error, "series.files: %" PRId64 " recording%s the acquisition time of the one before, the first: %s; is it a copy?",
            n_equal, n_equal == 1 ? " has" : "s have", plan->series.items[equal].stem));
    if (n_backwards > 0 && !job->series.by_time)
        PS_TRY(ps_run_plan_add_warning(plan, error,
                                       "series.files: %" PRId64
                                       " recording%s acquired before the one before in the order of names, the first: %s; "
                                       "series.order \"time\" follows the acquisition times",
                                       n_backwards, n_backwards == 1 ? " was" : "s were", plan->series.items[backwards].stem));
    return PS_OK;
}
