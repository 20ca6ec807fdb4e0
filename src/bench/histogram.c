/* Measures the histogram kernels: the published report's four configurations, its table over bins, large batches, patterns from pinned
 * memory end to end, and a whole recording. No kernel is timed before its counts agreed with another backend's. */
#include "bench/histogram.h"

#include <cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_frames.h"
#include "core/log.h"
#include "core/options.h"
#include "kernels/backend_list.h"
#include "kernels/histogram.h"

enum { DETECTOR = 400, RECORDING_DETECTOR = 192, RECORDING_SCAN = 512, MOST_REPEATS = 101, CHECKED_PIXELS = 1024, CHECKED_FRAMES = 64 };
enum { END_TO_END_FACTOR = 4 }; /* so many times the patterns, so that filling the pipeline and emptying it do not count for much */

typedef struct {
    const char *backend, *json_path;
    int64_t device, n_threads, repeats, pool;
    const char *rows; /* NULL: all */
    const ps_histogram_ops *ops;
} settings;

/* One line of the table. */
typedef struct {
    const ps_histogram_ops *ops;
    ps_histogram_kernel kernel;
    const ps_bench_frames *frames;
    int64_t n_bins;
    bool centred;
    double range[2];
    int64_t batch;    /* 0: the backend's choice */
    int64_t n_frames; /* per repeat */
    bool readout;
    bool from_stages; /* fill is timed with the patterns that lie in the stages, without copying into them */
} bench_case;

typedef struct {
    double median, least, most;
} spread;

typedef struct {
    spread fill_us, end_to_end_us;
    double moments_us, copy_us, readout_kernel_ms, readout_copy_ms;
} figures;

typedef struct {
    const settings *given;
    cJSON *list;
    char device[128];
} session;

/* ---- one case ----------------------------------------------------------------------------------------------------------------- */

static const double raw_range[2] = {4171, 5744}, centred_range[2] = {-63, 1127};

static ps_code open_case(const session *s, const bench_case *c, const ps_histogram_ops *ops, const ps_histogram_map *map,
                         ps_histogram **histogram, ps_error *error) {
    ps_histogram_desc desc = {.n_pixels = c->frames->n_pixels,
                              .centre = c->centred ? c->frames->centre : NULL,
                              .saturation = INFINITY,
                              .n_segments = 1,
                              .frames_per_batch = c->batch,
                              .kernel = c->kernel,
                              .device = (int)s->given->device,
                              .n_threads = (int)s->given->n_threads};
    return ps_histogram_create(ops, &desc, map, histogram, error);
}

static ps_code put_frames(const bench_case *c, ps_histogram *histogram, int64_t n_frames, ps_error *error) {
    for (int64_t done = 0; done < n_frames;) {
        int64_t n = n_frames - done < c->frames->n_frames ? n_frames - done : c->frames->n_frames;
        PS_TRY(ps_histogram_put(histogram, c->frames->n_pixels, c->frames->dtype, n, c->frames->frames, 0, error));
        done += n;
    }
    return ps_histogram_finish(histogram, error);
}

static ps_code compare_pixels(const bench_case *c, ps_histogram *a, ps_histogram *b, int64_t first, int64_t n, ps_error *error) {
    ps_code code = PS_OK;
    size_t n_counts = (size_t)(n * c->n_bins), n_outside = (size_t)n * PS_EXTRA_SLOTS;
    uint64_t *counts = calloc(2 * n_counts, sizeof *counts), *outside = calloc(2 * n_outside, sizeof *outside);
    PS_GO_ALLOC(error, counts);
    PS_GO_ALLOC(error, outside);
    PS_GO(ps_histogram_read(a, first, n, counts, outside, error));
    PS_GO(ps_histogram_read(b, first, n, counts + n_counts, outside + n_outside, error));
    if (memcmp(counts, counts + n_counts, n_counts * sizeof *counts) || memcmp(outside, outside + n_outside, n_outside * sizeof *outside))
        code = PS_FAIL(error, PS_E_NUMERIC, "%s (%s kernel), %s, %lld bins: counts differ from %s; not timed", a->ops->name,
                       ps_histogram_kernel_name(c->kernel), ps_dtype_name(c->frames->dtype), (long long)c->n_bins, b->ops->name);
done:
    free(counts);
    free(outside);
    return code;
}

/* The same patterns through this backend and through another one; histogram is new. */
static ps_code check_case(const session *s, const bench_case *c, const ps_histogram_map *map, ps_histogram *histogram, ps_error *error) {
    ps_code code = PS_OK;
    ps_histogram *other = NULL;
    bench_case plain = *c;
    int64_t n = c->frames->n_pixels, n_checked = n < CHECKED_PIXELS ? n : CHECKED_PIXELS;
    plain.batch = 0;
    PS_GO(
        open_case(s, &plain, c->ops == &ps_histogram_cpu_fast ? &ps_histogram_cpu_reference : &ps_histogram_cpu_fast, map, &other, error));
    PS_GO(put_frames(c, histogram, CHECKED_FRAMES, error));
    PS_GO(put_frames(&plain, other, CHECKED_FRAMES, error));
    PS_GO(compare_pixels(c, histogram, other, 0, n_checked, error));
    PS_GO(compare_pixels(c, histogram, other, n - n_checked, n_checked, error));
done:
    ps_histogram_destroy(other);
    return code;
}

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static spread spread_of(double *values, int64_t n) {
    qsort(values, (size_t)n, sizeof *values, compare_numbers);
    return (spread){n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]), values[0], values[n - 1]};
}

/* Commits what lies in the stages again and again: patterns in pinned memory, nothing written by the host. */
static ps_code commit_frames(ps_histogram *histogram, int64_t n_frames, ps_error *error) {
    for (int64_t done = 0; done < n_frames;) {
        void *buffer;
        int64_t capacity;
        PS_TRY(ps_histogram_stage(histogram, &buffer, &capacity, error));
        int64_t n = n_frames - done < capacity ? n_frames - done : capacity;
        PS_TRY(ps_histogram_commit(histogram, n, 0, error));
        done += n;
    }
    return ps_histogram_finish(histogram, error);
}

static ps_code time_fill(const session *s, const bench_case *c, ps_histogram *histogram, figures *found, ps_error *error) {
    double fill[MOST_REPEATS];
    ps_histogram_times before, after, begin;
    PS_TRY(put_frames(c, histogram, c->from_stages ? c->frames->n_frames : c->n_frames, error));
    ps_histogram_read_times(histogram, &begin);
    for (int64_t r = 0; r < s->given->repeats; r++) {
        ps_histogram_read_times(histogram, &before);
        PS_TRY(c->from_stages ? commit_frames(histogram, c->n_frames, error) : put_frames(c, histogram, c->n_frames, error));
        ps_histogram_read_times(histogram, &after);
        fill[r] = 1e6 * (after.fill_s - before.fill_s) / (double)c->n_frames;
    }
    found->fill_us = spread_of(fill, s->given->repeats);
    found->moments_us = 1e6 * (after.moments_s - begin.moments_s) / (double)(s->given->repeats * c->n_frames);
    return PS_OK;
}

static ps_code time_end_to_end(const session *s, const bench_case *c, ps_histogram *histogram, figures *found, ps_error *error) {
    double seconds[MOST_REPEATS];
    ps_histogram_times before, after;
    int64_t n_frames = c->from_stages ? c->n_frames : END_TO_END_FACTOR * c->n_frames;
    PS_TRY(commit_frames(histogram, c->n_frames, error));
    ps_histogram_read_times(histogram, &before);
    for (int64_t r = 0; r < s->given->repeats; r++) {
        double begin = ps_seconds();
        PS_TRY(commit_frames(histogram, n_frames, error));
        seconds[r] = 1e6 * (ps_seconds() - begin) / (double)n_frames;
    }
    ps_histogram_read_times(histogram, &after);
    found->end_to_end_us = spread_of(seconds, s->given->repeats);
    found->copy_us = 1e6 * (after.copy_s - before.copy_s) / (double)(s->given->repeats * n_frames);
    return PS_OK;
}

/* Reads everything once, piece by piece as the histogram task does. */
static ps_code time_readout(const bench_case *c, ps_histogram *histogram, figures *found, ps_error *error) {
    ps_code code = PS_OK;
    ps_histogram_times times;
    int64_t n = c->frames->n_pixels, step = 4096;
    uint64_t *counts = malloc((size_t)(step * c->n_bins) * sizeof *counts);
    PS_GO_ALLOC(error, counts);
    for (int64_t first = 0; first < n; first += step)
        PS_GO(ps_histogram_read(histogram, first, first + step < n ? step : n - first, counts, NULL, error));
    ps_histogram_read_times(histogram, &times);
    found->readout_kernel_ms = 1e3 * times.readout_kernel_s;
    found->readout_copy_ms = 1e3 * times.readout_copy_s;
done:
    free(counts);
    return code;
}

/* ---- the table ---------------------------------------------------------------------------------------------------------------- */

static void print_heading(void) {
    printf("%-13s %-11s %-7s %5s %-7s %6s  %-26s %8s %8s %-6s %9s %10s  %s\n", "backend", "kernel", "dtype", "bins", "patterns", "batch",
           "fill us/pattern (range)", "moments", "copy", "bound", "end2end", "patterns/s", "readout ms (kernel + copy)");
}

static void report(session *s, const bench_case *c, const figures *found, const char *group) {
    bool device = found->copy_us > 0;
    const char *bound = !device ? "cpu" : found->fill_us.median + found->moments_us > found->copy_us ? "kernel" : "copy";
    char range[64];
    snprintf(range, sizeof range, "%.3f (%.3f - %.3f)", found->fill_us.median, found->fill_us.least, found->fill_us.most);
    printf("%-13s %-11s %-7s %5lld %-7s %6lld  %-26s %8.3f %8.3f %-6s %9.3f %10.0f", c->ops->name,
           device ? ps_histogram_kernel_name(c->kernel) : "-", ps_dtype_name(c->frames->dtype), (long long)c->n_bins,
           c->centred ? "centred" : "raw", (long long)c->batch, range, found->moments_us, found->copy_us, bound,
           found->end_to_end_us.median, 1e6 / found->end_to_end_us.median);
    if (c->readout) printf("  %.1f + %.1f", found->readout_kernel_ms, found->readout_copy_ms);
    printf("\n");
    fflush(stdout);
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "group", group);
    cJSON_AddStringToObject(row, "backend", c->ops->name);
    cJSON_AddStringToObject(row, "device", s->device);
    cJSON_AddStringToObject(row, "kernel", device ? ps_histogram_kernel_name(c->kernel) : "-");
    cJSON_AddStringToObject(row, "dtype", ps_dtype_name(c->frames->dtype));
    cJSON_AddNumberToObject(row, "pixels", (double)c->frames->n_pixels);
    cJSON_AddNumberToObject(row, "bins", (double)c->n_bins);
    cJSON_AddBoolToObject(row, "centred", c->centred);
    cJSON_AddNumberToObject(row, "batch", (double)c->batch);
    cJSON_AddNumberToObject(row, "frames_per_repeat", (double)c->n_frames);
    cJSON_AddNumberToObject(row, "repeats", (double)s->given->repeats);
    cJSON_AddNumberToObject(row, "fill_us", found->fill_us.median);
    cJSON_AddNumberToObject(row, "fill_us_least", found->fill_us.least);
    cJSON_AddNumberToObject(row, "fill_us_most", found->fill_us.most);
    cJSON_AddNumberToObject(row, "moments_us", found->moments_us);
    cJSON_AddNumberToObject(row, "copy_us", found->copy_us);
    cJSON_AddStringToObject(row, "bound", bound);
    cJSON_AddNumberToObject(row, "end_to_end_us", found->end_to_end_us.median);
    cJSON_AddNumberToObject(row, "end_to_end_us_least", found->end_to_end_us.least);
    cJSON_AddNumberToObject(row, "end_to_end_us_most", found->end_to_end_us.most);
    cJSON_AddNumberToObject(row, "frames_per_second", 1e6 / found->end_to_end_us.median);
    if (c->readout) cJSON_AddNumberToObject(row, "readout_kernel_ms", found->readout_kernel_ms);
    if (c->readout) cJSON_AddNumberToObject(row, "readout_copy_ms", found->readout_copy_ms);
    cJSON_AddItemToArray(s->list, row);
}

static ps_code run_case(session *s, const bench_case *c, const char *group, ps_error *error) {
    ps_code code = PS_OK;
    ps_histogram_map map = {0};
    ps_histogram *histogram = NULL;
    figures found = {0};
    PS_GO(ps_histogram_map_build(c->frames->dtype, c->centred, c->n_bins, c->range, &map, error));
    PS_GO(open_case(s, c, c->ops, &map, &histogram, error));
    ps_histogram_device(histogram, s->device, sizeof s->device);
    PS_GO(check_case(s, c, &map, histogram, error));
    PS_GO(time_fill(s, c, histogram, &found, error));
    PS_GO(time_end_to_end(s, c, histogram, &found, error));
    if (c->readout) PS_GO(time_readout(c, histogram, &found, error));
    report(s, c, &found, group);
done:
    ps_histogram_destroy(histogram);
    ps_histogram_map_free(&map);
    return code;
}

static bench_case detector_case(const ps_histogram_ops *ops, ps_histogram_kernel kernel, const ps_bench_frames *frames, int64_t n_bins,
                                bool centred, int64_t batch, int64_t n_frames) {
    const double *range = centred ? centred_range : raw_range;
    return (bench_case){.ops = ops,
                        .kernel = kernel,
                        .frames = frames,
                        .n_bins = n_bins,
                        .centred = centred,
                        .range = {range[0], range[1]},
                        .batch = batch,
                        .n_frames = n_frames};
}

/* The published configurations, with every kernel. */
static ps_code bench_published(session *s, const ps_bench_frames *u16, const ps_bench_frames *f32, ps_error *error) {
    const struct {
        const ps_bench_frames *frames;
        int64_t n_bins, batch;
    } published[] = {{u16, 1000, 64}, {f32, 1000, 64}, {u16, 100, 64}, {u16, 1000, 512}};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            bench_case c = detector_case(s->given->ops, (ps_histogram_kernel)k, published[i].frames, published[i].n_bins, false,
                                         published[i].batch, 2048);
            c.readout = true;
            PS_TRY(run_case(s, &c, "published", error));
        }
    return PS_OK;
}

/* The shared-memory kernel with batches as large as it is made for. */
static ps_code bench_large(session *s, const ps_bench_frames *u16, const ps_bench_frames *f32, ps_error *error) {
    const struct {
        const ps_bench_frames *frames;
        int64_t batch;
    } large[] = {{u16, 2048}, {u16, 8192}, {f32, 8192}};
    for (int i = 0; i < 3; i++) {
        bench_case c = detector_case(s->given->ops, PS_HISTOGRAM_SHARED, large[i].frames, 1000, false, large[i].batch, 8192);
        c.readout = true;
        PS_TRY(run_case(s, &c, "large", error));
    }
    return PS_OK;
}

/* The report's table over bins: both global layouts as it ran them, and the shared-memory kernel. */
static ps_code bench_bins(session *s, const ps_bench_frames *u16, ps_error *error) {
    static const int64_t bins[] = {100, 200, 500, 1000, 2000};
    const struct {
        ps_histogram_kernel kernel;
        int64_t batch, n_frames;
    } ways[] = {{PS_HISTOGRAM_BIN_MAJOR, 64, 1024},
                {PS_HISTOGRAM_PIXEL_MAJOR, 64, 1024},
                {PS_HISTOGRAM_SHARED, 64, 1024},
                {PS_HISTOGRAM_SHARED, 2048, 4096},
                {PS_HISTOGRAM_SHARED, 8192, 8192}};
    for (int centred = 0; centred < 2; centred++)
        for (int b = 0; b < 5; b++)
            for (int w = 0; w < 5; w++) {
                bench_case c = detector_case(s->given->ops, ways[w].kernel, u16, bins[b], centred, ways[w].batch, ways[w].n_frames);
                PS_TRY(run_case(s, &c, "bins", error));
            }
    return PS_OK;
}

/* 192 x 192 x 512 x 512: a whole scan of a counting detector. */
static ps_code bench_recording(session *s, ps_error *error) {
    static const ps_dtype dtypes[] = {PS_U8, PS_U16};
    for (int d = 0; d < 2; d++) {
        ps_bench_frames frames = {0};
        ps_code code = ps_bench_frames_counts(s->given->pool, RECORDING_DETECTOR * RECORDING_DETECTOR, dtypes[d], &frames, error);
        bench_case c = {.ops = s->given->ops,
                        .frames = &frames,
                        .n_bins = 256,
                        .range = {0, 256},
                        .n_frames = RECORDING_SCAN * RECORDING_SCAN,
                        .readout = true,
                        .from_stages = true};
        if (code == PS_OK) code = run_case(s, &c, "recording 192 x 192 x 512 x 512", error);
        ps_bench_frames_free(&frames);
        PS_TRY(code);
    }
    return PS_OK;
}

static bool wanted(const session *s, const char *rows) {
    return !s->given->rows || strstr(s->given->rows, rows);
}

static ps_code bench_device(session *s, const ps_bench_frames *u16, const ps_bench_frames *f32, ps_error *error) {
    if (wanted(s, "published")) PS_TRY(bench_published(s, u16, f32, error));
    if (wanted(s, "large")) PS_TRY(bench_large(s, u16, f32, error));
    if (wanted(s, "bins")) PS_TRY(bench_bins(s, u16, error));
    return wanted(s, "recording") ? bench_recording(s, error) : PS_OK;
}

static ps_code bench_cpu(session *s, const ps_bench_frames *u16, const ps_bench_frames *f32, ps_error *error) {
    static const int64_t bins[] = {100, 1000, 2000};
    for (int b = 0; b < 3; b++)
        for (int centred = 0; centred < 2; centred++) {
            bench_case c = detector_case(s->given->ops, PS_HISTOGRAM_SHARED, u16, bins[b], centred, 0, u16->n_frames);
            PS_TRY(run_case(s, &c, "cpu", error));
        }
    bench_case floats = detector_case(s->given->ops, PS_HISTOGRAM_SHARED, f32, 1000, false, 0, f32->n_frames);
    PS_TRY(run_case(s, &floats, "cpu", error));
    bench_case plain = detector_case(&ps_histogram_cpu_reference, PS_HISTOGRAM_SHARED, u16, 1000, false, 0, 8);
    return run_case(s, &plain, "cpu", error);
}

/* ---- the command -------------------------------------------------------------------------------------------------------------- */

static ps_code choose_backend(settings *given, ps_error *error) {
    const ps_backend_request request = {
        .name = given->backend, .where_name = "ptyseries bench histogram: --backend", .needs_histograms = true};
    const ps_backend_ops *ops;
    ps_backend_options options;
    PS_TRY(ps_backend_select(&request, &ops, &options, error));
    given->ops = ops->histogram;
    given->device = options.device;
    return PS_OK;
}

static ps_code parse(settings *given, int n_arguments, char **arguments, bool *help, ps_error *error) {
    const ps_option options[] = {
        {"--backend", PS_OPTION_TEXT, &given->backend, "cpu, cuda or cuda:N (a device); without it cuda where there is a device, else cpu"},
        {"--threads", PS_OPTION_INTEGER, &given->n_threads, "CPU threads (default: all)"},
        {"--repeats", PS_OPTION_INTEGER, &given->repeats, "timed repeats of each line; the median is shown (default 5)"},
        {"--distinct", PS_OPTION_INTEGER, &given->pool, "different made-up patterns, used over and over (default 512)"},
        {"--rows", PS_OPTION_TEXT, &given->rows, "cuda: some of published,large,bins,recording; without it all"},
        {"--json", PS_OPTION_TEXT, &given->json_path, "also write the table to this file"},
    };
    ps_command_line line = {.command = "bench histogram",
                            .synopsis = "[OPTIONS]",
                            .description =
                                "Times per-pixel histograms of made-up 400 x 400 patterns, and of a 192 x 192 x 512 x 512 recording.\n"
                                "Times are microseconds per pattern; end2end starts from patterns in (pinned) host memory.",
                            .options = options,
                            .n_options = sizeof options / sizeof *options};
    PS_TRY(ps_options_parse(&line, n_arguments, arguments, help, error));
    if (*help) return PS_OK;
    PS_TRY(choose_backend(given, error));
    static const char *const groups[] = {"published", "large", "bins", "recording"};
    bool known = !given->rows;
    for (int i = 0; i < 4 && !known; i++) known = strstr(given->rows, groups[i]) != NULL;
    if (!known)
        return PS_FAIL(error, PS_E_ARGUMENT,
                       "ptyseries bench histogram: --rows: found '%s', expected some of published,large,bins,recording", given->rows);
    if (given->repeats < 1 || given->repeats > MOST_REPEATS || given->pool < CHECKED_FRAMES || given->n_threads < 0)
        return PS_FAIL(error, PS_E_ARGUMENT,
                       "ptyseries bench histogram: expected 1 to %d repeats, at least %d distinct patterns, 0 or more threads",
                       MOST_REPEATS, CHECKED_FRAMES);
    return PS_OK;
}

static ps_code write_json(const session *s, ps_error *error) {
    char *text = cJSON_Print(s->list);
    FILE *file = text ? fopen(s->given->json_path, "w") : NULL;
    bool written = file && fprintf(file, "%s\n", text) > 0;
    if (file && fclose(file) != 0) written = false;
    cJSON_free(text);
    return written ? PS_OK : PS_FAIL(error, PS_E_IO, "%s: cannot write", s->given->json_path);
}

static ps_code run(const settings *given, ps_error *error) {
    ps_code code = PS_OK;
    ps_bench_frames u16 = {0}, f32 = {0};
    session s = {.given = given, .list = cJSON_CreateArray()};
    PS_GO_ALLOC(error, s.list);
    PS_GO(ps_bench_frames_raw(given->pool, DETECTOR * DETECTOR, PS_U16, &u16, error));
    PS_GO(ps_bench_frames_raw(given->pool, DETECTOR * DETECTOR, PS_F32, &f32, error));
    print_heading();
    code = given->ops->on_device ? bench_device(&s, &u16, &f32, error) : bench_cpu(&s, &u16, &f32, error);
    if (given->json_path) {
        ps_code written = write_json(&s, error);
        if (code == PS_OK) code = written;
    }
done:
    ps_bench_frames_free(&u16);
    ps_bench_frames_free(&f32);
    cJSON_Delete(s.list);
    return code;
}

int ps_bench_histogram(int n_arguments, char **arguments) {
    settings given = {.repeats = 5, .pool = 512};
    ps_error error = {0};
    bool help = false;
    ps_code code = parse(&given, n_arguments, arguments, &help, &error);
    if (code == PS_OK && !help) code = run(&given, &error);
    if (code != PS_OK) ps_log(PS_LOG_ERROR, "%s", error.text);
    return ps_code_exit_status(code);
}
