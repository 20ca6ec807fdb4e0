/* Packed patterns to counts on a device: once they are there, on their way from pinned memory, and from files. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"
#include "bench/measure_packed_file.h"
#include "core/log.h"
#include "hdf5/bslz4.h"
#include "kernels/backend_bench.h"

enum { DIFFERENT = 256, MOST_ROOMS = 64 };
static const double mean_inside = 10.0, mean_outside = 0.015;

/* A room whose packed bytes are put again and again. */
typedef struct {
    uint8_t *room;
    size_t n_bytes;
    int64_t n;
    ps_packed_pattern *patterns; /* [n] */
} filled_room;

typedef struct {
    ps_plan plan;
    ps_system *system;
    ps_frame *frame;
    int64_t n_positions, n_pixels;
    uint16_t *counts;            /* [DIFFERENT, n_pixels]; position p holds pattern p % DIFFERENT */
    uint8_t *bytes;              /* their streams */
    ps_packed_pattern *patterns; /* [n_positions] */
    ps_packed packed;
    double packed_bytes; /* of all positions */
    uint8_t *refused;    /* [n_positions] */
    ps_unpack_tally *tally;
    uint8_t *looks; /* [n_pixels] */
    filled_room rooms[MOST_ROOMS];
    int n_rooms;
} unpack_case;

static uint64_t next_random(uint64_t *state) {
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A Poisson number with exp(-mean) given. */
static uint16_t poisson(double limit, uint64_t *state) {
    uint16_t k = 0;
    for (double p = (double)(next_random(state) >> 11) * 0x1p-53; p > limit; k++) p *= (double)(next_random(state) >> 11) * 0x1p-53;
    return k;
}

/* A disc of 10 counts a pixel, few around it. */
static ps_code make_patterns(unpack_case *c, const ps_bench_problem *problem, ps_error *error) {
    size_t room = ps_bslz4_bound(c->n_pixels, sizeof(uint16_t)), at = 0;
    uint64_t state = 20241024;
    double middle = 0.5 * (double)(problem->detector - 1), inside = exp(-mean_inside), outside = exp(-mean_outside);
    for (int64_t i = 0; i < DIFFERENT; i++) {
        uint16_t *counts = c->counts + i * c->n_pixels;
        for (int64_t pixel = 0; pixel < c->n_pixels; pixel++) {
            double u = (double)(pixel / problem->detector) - middle, v = (double)(pixel % problem->detector) - middle;
            counts[pixel] = poisson(hypot(u, v) < problem->disc_px ? inside : outside, &state);
        }
        size_t used = 0;
        PS_TRY(ps_bslz4_encode(counts, c->n_pixels, sizeof *counts, c->bytes + at, room, &used, error));
        c->patterns[i] = (ps_packed_pattern){(uint32_t)at, (uint32_t)used};
        at += used;
    }
    for (int64_t p = DIFFERENT; p < c->n_positions; p++) c->patterns[p] = c->patterns[p % DIFFERENT];
    for (int64_t p = 0; p < c->n_positions; p++) c->packed_bytes += c->patterns[p].bytes;
    c->packed = (ps_packed){PS_PACKED_BSLZ4, 0, c->n_positions, c->bytes, at, c->patterns};
    return PS_OK;
}

static ps_code build(unpack_case *c, ps_backend *backend, const ps_bench_problem *problem, ps_error *error) {
    PS_TRY(ps_bench_problem_plan(problem, &c->plan, error));
    const ps_system_desc *desc = &c->plan.desc;
    c->n_positions = desc->scan_rows * desc->scan_columns;
    c->n_pixels = desc->detector_rows * desc->detector_columns;
    c->counts = malloc((size_t)(DIFFERENT * c->n_pixels) * sizeof *c->counts);
    c->bytes = malloc(DIFFERENT * ps_bslz4_bound(c->n_pixels, sizeof(uint16_t)));
    c->patterns = malloc((size_t)(c->n_positions > DIFFERENT ? c->n_positions : DIFFERENT) * sizeof *c->patterns);
    c->refused = malloc((size_t)c->n_positions);
    c->tally = malloc((size_t)c->n_positions * sizeof *c->tally);
    c->looks = malloc((size_t)c->n_pixels);
    if (!c->counts || !c->bytes || !c->patterns || !c->refused || !c->tally || !c->looks)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for packed patterns");
    memset(c->looks, 3, (size_t)c->n_pixels);
    PS_TRY(make_patterns(c, problem, error));
    return ps_system_create(backend, desc, PS_METHOD_SSB, &c->system, error);
}

static ps_code renew_frame(unpack_case *c, const ps_unpack_rules *rules, ps_error *error) {
    ps_frame_destroy(c->frame);
    c->frame = NULL;
    PS_TRY(ps_frame_create(c->system, PS_U16, &c->frame, error));
    return ps_frame_unpack_begin(c->frame, rules, error);
}

static ps_code end_frame(unpack_case *c, ps_unpack_tally *tally, ps_error *error) {
    int64_t n_refused = 0;
    PS_TRY(ps_frame_unpack_end(c->frame, c->refused, &n_refused, tally, error));
    if (n_refused == 0) return PS_OK;
    return PS_FAIL(error, PS_E_NUMERIC, "%lld sound patterns were refused", (long long)n_refused);
}

/* Largest difference of a mean from what the patterns say. */
static ps_code worst_mean(const unpack_case *c, double *worst, ps_error *error) {
    const ps_system_desc *desc = &c->plan.desc;
    double *mean = malloc((size_t)desc->n_active * sizeof *mean);
    if (!mean) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for means");
    ps_code code = ps_frame_mean_counts(c->frame, mean, NULL, error);
    *worst = 0;
    for (int64_t i = 0; code == PS_OK && i < desc->n_active; i++) {
        double sum = 0;
        for (int64_t k = 0; k < DIFFERENT; k++) {
            int64_t times = c->n_positions / DIFFERENT + (k < c->n_positions % DIFFERENT);
            sum += (double)times * c->counts[k * c->n_pixels + desc->active[i]];
        }
        double difference = fabs(mean[i] - sum / (double)c->n_positions);
        *worst = difference <= *worst ? *worst : difference;
    }
    free(mean);
    return code;
}

/* Tallies that are not those of their patterns. */
static double wrong_tallies(const unpack_case *c) {
    double wrong = 0;
    for (int64_t p = 0; p < c->n_positions; p++) {
        const uint16_t *counts = c->counts + p % DIFFERENT * c->n_pixels;
        uint32_t lit = 0;
        for (int64_t i = 0; p < DIFFERENT && i < c->n_pixels; i++) lit += counts[i] != 0;
        if (p >= DIFFERENT) lit = c->tally[p % DIFFERENT].lit[1];
        wrong += c->tally[p].lit[0] != lit || c->tally[p].lit[1] != lit || c->tally[p].marked[1] != 0;
    }
    return wrong;
}

/* --- on the device --- */

static void add_row(unpack_case *c, ps_bench_report *report, const char *number, const char *name, const ps_bench_times *times,
                    double target_ms) {
    ps_bench_row *row = ps_bench_add_row(report, number, name, times, target_ms, 0.0);
    if (!row) return;
    snprintf(row->rate, sizeof row->rate, "%.0f GB/s unpacked, from %.1f GB/s, %.2f GB packed",
             (double)c->n_positions * (double)c->n_pixels * 2e-9 / row->median_s, c->packed_bytes * 1e-9 / row->median_s,
             c->packed_bytes * 1e-9);
    fprintf(stderr, "measured %s: %.3f ms\n", name, row->median_s * 1e3);
}

static ps_code measure_on_device(unpack_case *c, const ps_bench_options *options, bool tallies, ps_bench_report *report, ps_error *error) {
    ps_bench_times times = {0};
    ps_unpack_rules rules = {.looks = c->looks};
    double worst = 0;
    PS_TRY(renew_frame(c, tallies ? &rules : NULL, error));
    PS_TRY(ps_frame_unpack_put(c->frame, &c->packed, error));
    PS_TRY(end_frame(c, tallies ? c->tally : NULL, error));
    PS_TRY(worst_mean(c, &worst, error));
    PS_TRY(ps_bench_add_check(report, tallies ? "means of tallied packed patterns" : "means of packed patterns", worst, 0.0, error));
    if (tallies) PS_TRY(ps_bench_add_check(report, "wrong tallies of packed patterns", wrong_tallies(c), 0.0, error));
    PS_TRY(renew_frame(c, tallies ? &rules : NULL, error));
    for (int i = -1; i < options->repeats && i < PS_BENCH_MOST_REPEATS; i++) {
        double seconds = 0;
        PS_TRY(options->ops->bench->unpack(c->frame, &c->packed, &seconds, error));
        if (i >= 0) times.seconds[times.n++] = seconds;
    }
    PS_TRY(end_frame(c, NULL, error));
    add_row(c, report, tallies ? "" : "10", tallies ? "  the same, all blocks, with tallies" : "packed patterns on the device to counts",
            &times, 0.0);
    return PS_OK;
}

/* --- from pinned memory --- */

/* Fills a room from position `first` on. */
static ps_code fill_room(unpack_case *c, filled_room *f, size_t room_bytes, int64_t first, ps_error *error) {
    int64_t most = (int64_t)(room_bytes / 16) + 1;
    f->patterns = malloc((size_t)most * sizeof *f->patterns);
    if (!f->patterns) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a table of patterns");
    f->n = 0;
    f->n_bytes = 0;
    for (int64_t p = first; p < c->n_positions && c->patterns[p].bytes <= room_bytes - f->n_bytes; p++) {
        memcpy(f->room + f->n_bytes, c->bytes + c->patterns[p].offset, c->patterns[p].bytes);
        f->patterns[f->n++] = (ps_packed_pattern){(uint32_t)f->n_bytes, c->patterns[p].bytes};
        f->n_bytes += c->patterns[p].bytes;
    }
    return PS_OK;
}

/* The room with its bytes, filled when it is seen for the first time. */
static ps_code take_room(unpack_case *c, int64_t first, filled_room **taken, ps_error *error) {
    uint8_t *room;
    size_t bytes;
    PS_TRY(ps_frame_unpack_room(c->frame, &room, &bytes, error));
    for (int i = 0; i < c->n_rooms; i++)
        if (c->rooms[i].room == room) {
            *taken = &c->rooms[i];
            return PS_OK;
        }
    if (!room || c->n_rooms == MOST_ROOMS) return PS_FAIL(error, PS_E_INTERNAL, "no room for packed patterns");
    *taken = &c->rooms[c->n_rooms++];
    (*taken)->room = room;
    return fill_room(c, *taken, bytes, first, error);
}

static ps_code put_all(unpack_case *c, ps_error *error) {
    for (int64_t first = 0; first < c->n_positions;) {
        filled_room *f = NULL;
        PS_TRY(take_room(c, first, &f, error));
        int64_t n = c->n_positions - first < f->n ? c->n_positions - first : f->n;
        if (n == 0) return PS_FAIL(error, PS_E_INTERNAL, "a room holds no pattern");
        ps_packed packed = {PS_PACKED_BSLZ4, first, n, f->room, f->n_bytes, f->patterns};
        PS_TRY(ps_frame_unpack_put(c->frame, &packed, error));
        first += n;
    }
    return PS_OK;
}

static ps_code measure_from_host(unpack_case *c, const ps_bench_options *options, ps_bench_report *report, ps_error *error) {
    ps_bench_times times = {0};
    for (int i = -1; i < options->repeats && i < PS_BENCH_MOST_REPEATS; i++) {
        PS_TRY(renew_frame(c, NULL, error));
        double begin_s = ps_seconds();
        PS_TRY(put_all(c, error));
        PS_TRY(end_frame(c, NULL, error));
        if (i >= 0) times.seconds[times.n++] = ps_seconds() - begin_s;
    }
    add_row(c, report, "10", "packed patterns in pinned memory to counts on the device", &times, options->quick ? 0.0 : 100.0);
    return PS_OK;
}

/* --- from files --- */

static ps_code put_file(unpack_case *c, const ps_bench_master *master, int n_threads, ps_bench_times *all, ps_bench_times *open,
                        ps_error *error) {
    double open_s = 0;
    PS_TRY(renew_frame(c, NULL, error));
    double begin_s = ps_seconds();
    PS_TRY(ps_bench_master_put(master, c->frame, n_threads, &open_s, error));
    PS_TRY(end_frame(c, NULL, error));
    all->seconds[all->n++] = ps_seconds() - begin_s;
    open->seconds[open->n++] = open_s;
    return PS_OK;
}

static ps_code measure_file(unpack_case *c, const ps_bench_options *options, const ps_bench_master *master, int n_threads, bool counts_row,
                            ps_bench_report *report, ps_error *error) {
    ps_bench_times all = {0}, open = {0};
    char name[96];
    double worst = 0;
    PS_TRY(put_file(c, master, n_threads, &all, &open, error));
    PS_TRY(worst_mean(c, &worst, error));
    PS_TRY(ps_bench_add_check(report, "means of packed patterns from files", worst, 0.0, error));
    all.n = open.n = 0;
    for (int i = 0; i < options->repeats && i < PS_BENCH_MOST_REPEATS; i++) PS_TRY(put_file(c, master, n_threads, &all, &open, error));
    snprintf(name, sizeof name, "master in page cache to counts on the device, %d threads", n_threads);
    add_row(c, report, counts_row ? "10" : "", name, &all, counts_row && !options->quick ? 100.0 : 0.0);
    ps_bench_add_row(report, "", "  of that: opening, where chunks lie", &open, 0.0, 0.0);
    return PS_OK;
}

/* With 1, 4 and all threads. */
static ps_code measure_files(unpack_case *c, const ps_bench_options *options, ps_bench_report *report, ps_error *error) {
    ps_bench_master *master = NULL;
    int most = omp_get_max_threads() < 15 ? omp_get_max_threads() : 15; /* as ps_packed_put takes */
    ps_code code = PS_OK;
    PS_GO(ps_bench_master_write(&c->plan.desc, &c->packed, &master, error));
    for (int n = 1; n <= 4 && n < most; n *= 4) PS_GO(measure_file(c, options, master, n, false, report, error));
    PS_GO(measure_file(c, options, master, most, true, report, error));
done:
    ps_bench_master_remove(master);
    return code;
}

static ps_code measure_all(unpack_case *c, const ps_bench_options *options, ps_bench_report *report, ps_error *error) {
    PS_TRY(measure_on_device(c, options, false, report, error));
    PS_TRY(measure_on_device(c, options, true, report, error));
    PS_TRY(measure_from_host(c, options, report, error));
    return measure_files(c, options, report, error);
}

ps_code ps_bench_unpack(const ps_bench_options *options, ps_backend *backend, const ps_bench_problem *problem, ps_bench_report *report,
                        ps_error *error) {
    unpack_case c = {0};
    int64_t n_pixels = problem->detector * problem->detector;
    if (!ps_backend_unpacks(options->ops, PS_PACKED_BSLZ4, PS_U16, n_pixels) || !options->ops->bench->unpack) return PS_OK;
    ps_code code = build(&c, backend, problem, error);
    if (code == PS_OK) code = measure_all(&c, options, report, error);
    ps_frame_destroy(c.frame);
    ps_system_destroy(c.system);
    ps_plan_free(&c.plan);
    for (int i = 0; i < c.n_rooms; i++) free(c.rooms[i].patterns);
    void *arrays[] = {c.counts, c.bytes, c.patterns, c.refused, c.tally, c.looks};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    return code;
}
