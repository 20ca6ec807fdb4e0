/* Every histogram backend against NumPy's algorithm, written out plainly here: counts of each bin and outside it, moments, totals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/backend_list.h"
#include "kernels/histogram.h"

__extension__ typedef __int128 int128;

enum { MOST_BACKENDS = 8 };
static const ps_histogram_ops *backends[MOST_BACKENDS];
static int n_backends;

/* What one case asks for. */
typedef struct {
    ps_dtype dtype;
    int64_t n_pixels, n_frames, n_bins;
    double range[2];
    bool centred;
    double saturation;
    int64_t frames_per_batch, spill_frames;
    int64_t frames_per_put; /* 0: all at once */
    ps_histogram_kernel kernel;
    uint64_t seed;
} histogram_case;

typedef struct {
    uint64_t *counts, *outside; /* [n_pixels, n_bins], [n_pixels, PS_EXTRA_SLOTS] */
    ps_histogram_moments moments;
    int128 totals[2];
} result;

static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state) {
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

static const double type_limits[PS_N_DTYPES][2] = {
    [PS_U8] = {0, UINT8_MAX},          [PS_U16] = {0, UINT16_MAX},        [PS_U32] = {0, UINT32_MAX},   [PS_I8] = {INT8_MIN, INT8_MAX},
    [PS_I16] = {INT16_MIN, INT16_MAX}, [PS_I32] = {INT32_MIN, INT32_MAX}, [PS_F32] = {-3.4e38, 3.4e38}, [PS_F64] = {-1.7e308, 1.7e308},
};

static bool is_float(ps_dtype dtype) {
    return dtype == PS_F32 || dtype == PS_F64;
}

static void store(ps_dtype dtype, void *frames, size_t at, double value) {
    if (!is_float(dtype)) value = fmax(type_limits[dtype][0], fmin(type_limits[dtype][1], rint(value)));
    switch (dtype) {
    case PS_U8: ((uint8_t *)frames)[at] = (uint8_t)value; break;
    case PS_U16: ((uint16_t *)frames)[at] = (uint16_t)value; break;
    case PS_U32: ((uint32_t *)frames)[at] = (uint32_t)value; break;
    case PS_I8: ((int8_t *)frames)[at] = (int8_t)value; break;
    case PS_I16: ((int16_t *)frames)[at] = (int16_t)value; break;
    case PS_I32: ((int32_t *)frames)[at] = (int32_t)value; break;
    case PS_F32: ((float *)frames)[at] = (float)value; break;
    default: ((double *)frames)[at] = value;
    }
}

static double load(ps_dtype dtype, const void *frames, size_t at) {
    switch (dtype) {
    case PS_U8: return ((const uint8_t *)frames)[at];
    case PS_U16: return ((const uint16_t *)frames)[at];
    case PS_U32: return ((const uint32_t *)frames)[at];
    case PS_I8: return ((const int8_t *)frames)[at];
    case PS_I16: return ((const int16_t *)frames)[at];
    case PS_I32: return ((const int32_t *)frames)[at];
    case PS_F32: return ((const float *)frames)[at];
    default: return ((const double *)frames)[at];
    }
}

/* Values of every kind: inside the range, on edges and one step beside them, outside, extremes, and for floats what is not finite. */
static double draw(const histogram_case *c, double centre, uint64_t *state) {
    double low = c->range[0], high = c->range[1], width = (high - low) / (double)c->n_bins;
    uint64_t kind = next_random(state) % 16;
    if (kind < 8) return centre + low + uniform(state) * (high - low);
    if (kind < 11) {
        double edge = centre + low + width * (double)(next_random(state) % (uint64_t)(c->n_bins + 1));
        if (c->dtype == PS_F32) edge = (double)(kind == 8 ? (float)edge : nextafterf((float)edge, kind == 9 ? -1e30f : 1e30f));
        return edge;
    }
    if (kind == 11) return centre + high;
    if (kind == 12) return centre + low;
    if (kind == 13) return centre + low - 3 * uniform(state) * (high - low) - 1;
    if (kind == 14) return centre + high + 3 * uniform(state) * (high - low) + 1;
    static const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-42, 3e38, -3e38, 0};
    if (is_float(c->dtype)) return special[next_random(state) % 8];
    return type_limits[c->dtype][next_random(state) % 2];
}

static void make_input(const histogram_case *c, void *frames, double *centre) {
    uint64_t state = c->seed;
    for (int64_t p = 0; p < c->n_pixels; p++) {
        double value = c->centred ? type_limits[c->dtype][0] / 4 + uniform(&state) * 100 : 0;
        if (is_float(c->dtype))
            value = c->centred ? (double)(float)(uniform(&state) * 100 - 50) : 0;
        else
            value = rint(value);
        centre[p] = value;
    }
    for (int64_t f = 0; f < c->n_frames; f++)
        for (int64_t p = 0; p < c->n_pixels; p++) store(c->dtype, frames, (size_t)(f * c->n_pixels + p), draw(c, centre[p], &state));
}

/* numpy.histogram, uniform bins, for one value: linspace's edges, the scaled index, and the two corrections by one. */
static int64_t numpy_slot(const histogram_case *c, const double *edges, double value) {
    int64_t n = c->n_bins;
    if (!isfinite(value)) return n + PS_SLOT_NONFINITE;
    if (value < edges[0]) return n + PS_SLOT_UNDERFLOW;
    if (value > edges[n]) return n + PS_SLOT_OVERFLOW;
    int64_t index = (int64_t)((value - edges[0]) / (edges[n] - edges[0]) * (double)n);
    if (index == n) index--;
    if (value < edges[index])
        index--;
    else if (index != n - 1 && value >= edges[index + 1])
        index++;
    return index;
}

static double *numpy_edges(const histogram_case *c) {
    double *edges = malloc(((size_t)c->n_bins + 1) * sizeof *edges);
    double step = (c->range[1] - c->range[0]) / (double)c->n_bins;
    for (int64_t i = 0; i <= c->n_bins; i++) {
        volatile double product = (double)i * step;
        edges[i] = i == c->n_bins ? c->range[1] : product + c->range[0];
        if (c->dtype == PS_F32) edges[i] = (double)(float)edges[i];
    }
    return edges;
}

static void allocate_result(const histogram_case *c, result *r) {
    ps_error error = {0};
    size_t n = (size_t)c->n_pixels;
    r->counts = calloc(n * (size_t)c->n_bins, sizeof *r->counts);
    r->outside = calloc(n * PS_EXTRA_SLOTS, sizeof *r->outside);
    r->totals[0] = r->totals[1] = 0;
    assert_int_equal(ps_histogram_moments_allocate(c->n_pixels, &r->moments, &error), PS_OK);
}

static void free_result(result *r) {
    free(r->counts);
    free(r->outside);
    ps_histogram_moments_free(&r->moments);
}

static int64_t segment_of(const histogram_case *c, int64_t frame) {
    return frame >= c->n_frames / 3;
}

/* The 128-bit sums of a pixel back into the limbs of ps_histogram_moments. */
static void store_sums(ps_histogram_moments *moments, int64_t p, int128 sum, unsigned __int128 square) {
    moments->sum_low[p] = (uint32_t)sum;
    moments->sum_high[p] = (int64_t)(sum >> 32);
    moments->square[0][p] = (uint32_t)square;
    moments->square[1][p] = (uint32_t)(square >> 32);
    moments->square[2][p] = (uint64_t)(square >> 64);
}

static double subtract(const histogram_case *c, double raw, double centre) {
    return c->dtype == PS_F32 ? (double)(float)((float)raw - (float)centre) : raw - centre;
}

static void expect(const histogram_case *c, const ps_histogram_map *map, const void *frames, const double *centre, result *r) {
    double *edges = numpy_edges(c);
    allocate_result(c, r);
    for (int64_t p = 0; p < c->n_pixels; p++) {
        int128 sum = 0;
        unsigned __int128 square = 0;
        for (int64_t f = 0; f < c->n_frames; f++) {
            double raw = load(c->dtype, frames, (size_t)(f * c->n_pixels + p)), value = subtract(c, raw, centre[p]);
            int64_t slot = numpy_slot(c, edges, value);
            if (slot < c->n_bins)
                r->counts[p * c->n_bins + slot]++;
            else
                r->outside[p * PS_EXTRA_SLOTS + slot - c->n_bins]++;
            if (!isfinite(value)) continue;
            double scaled = is_float(c->dtype) ? rint(fmax(-0x1p38, fmin(0x1p38, ldexp(value, -map->unit_exponent)))) : value;
            sum += (int128)scaled;
            square += (unsigned __int128)((int128)scaled * (int128)scaled);
            r->totals[segment_of(c, f)] += (int128)scaled;
            r->moments.n_saturated[p] += raw >= c->saturation;
            if (value < r->moments.minimum[p]) r->moments.minimum[p] = value;
            if (value > r->moments.maximum[p]) r->moments.maximum[p] = value;
        }
        store_sums(&r->moments, p, sum, square);
    }
    free(edges);
}

static int128 joined(uint64_t low, int64_t high) {
    return (int128)low + (int128)high * ((int128)1 << 32);
}

static void check_sums(const histogram_case *c, const ps_histogram_moments *a, const ps_histogram_moments *b) {
    for (int64_t p = 0; p < c->n_pixels; p++) {
        assert_true(joined(a->sum_low[p], a->sum_high[p]) == joined(b->sum_low[p], b->sum_high[p]));
        unsigned __int128 square[2] = {0};
        for (int limb = 0; limb < 3; limb++) {
            square[0] += (unsigned __int128)a->square[limb][p] << (32 * limb);
            square[1] += (unsigned __int128)b->square[limb][p] << (32 * limb);
        }
        assert_true(square[0] == square[1]);
        assert_int_equal(a->n_saturated[p], b->n_saturated[p]);
        assert_true(a->minimum[p] == b->minimum[p] && a->maximum[p] == b->maximum[p]);
    }
}

static void check(const histogram_case *c, const result *found, const result *expected) {
    for (int64_t i = 0; i < c->n_pixels * c->n_bins; i++) assert_int_equal(found->counts[i], expected->counts[i]);
    for (int64_t i = 0; i < c->n_pixels * PS_EXTRA_SLOTS; i++) assert_int_equal(found->outside[i], expected->outside[i]);
    check_sums(c, &found->moments, &expected->moments);
    assert_true(found->totals[0] == expected->totals[0] && found->totals[1] == expected->totals[1]);
}

static void put_all(const histogram_case *c, ps_histogram *histogram, const void *frames) {
    ps_error error = {0};
    size_t frame_bytes = (size_t)c->n_pixels * ps_dtype_bytes(c->dtype);
    int64_t step = c->frames_per_put ? c->frames_per_put : c->n_frames;
    for (int64_t f = 0; f < c->n_frames;) {
        int64_t n = f + step <= c->n_frames ? step : c->n_frames - f;
        int64_t change = c->n_frames / 3; /* a put does not cross segments */
        if (f < change && f + n > change) n = change - f;
        ps_code code =
            ps_histogram_put(histogram, c->n_pixels, c->dtype, n, (const char *)frames + (size_t)f * frame_bytes, segment_of(c, f), &error);
        if (code != PS_OK) print_error("%s\n", error.text);
        assert_int_equal(code, PS_OK);
        f += n;
    }
}

/* Reads in two uneven pieces, so that first_pixel matters. */
static void read_all(const histogram_case *c, ps_histogram *histogram, result *r) {
    ps_error error = {0};
    int64_t head = c->n_pixels / 3;
    uint64_t low[2];
    int64_t high[2];
    allocate_result(c, r);
    assert_int_equal(ps_histogram_finish(histogram, &error), PS_OK);
    assert_int_equal(ps_histogram_read(histogram, 0, head, r->counts, r->outside, &error), PS_OK);
    assert_int_equal(
        ps_histogram_read(histogram, head, c->n_pixels - head, r->counts + head * c->n_bins, r->outside + head * PS_EXTRA_SLOTS, &error),
        PS_OK);
    assert_int_equal(ps_histogram_read_moments(histogram, &r->moments, &error), PS_OK);
    assert_int_equal(ps_histogram_read_totals(histogram, low, high, &error), PS_OK);
    for (int s = 0; s < 2; s++) r->totals[s] = joined(low[s], high[s]);
}

static void run_on(const ps_histogram_ops *ops, const histogram_case *c, const ps_histogram_map *map, const void *frames,
                   const double *centre, const result *expected) {
    ps_error error = {0};
    ps_histogram *histogram;
    result found;
    ps_histogram_desc desc = {.n_pixels = c->n_pixels,
                              .centre = c->centred ? centre : NULL,
                              .saturation = c->saturation,
                              .n_segments = 2,
                              .frames_per_batch = c->frames_per_batch,
                              .kernel = c->kernel,
                              .spill_frames = c->spill_frames};
    ps_code code = ps_histogram_create(ops, &desc, map, &histogram, &error);
    if (code != PS_OK) print_error("%s: %s\n", ops->name, error.text);
    assert_int_equal(code, PS_OK);
    put_all(c, histogram, frames);
    read_all(c, histogram, &found);
    check(c, &found, expected);
    free_result(&found);
    ps_histogram_destroy(histogram);
}

/* Runs a case on every backend; on a device with each of its kernels. */
static void run_case(histogram_case c) {
    ps_error error = {0};
    ps_histogram_map map;
    result expected;
    double *centre = malloc((size_t)c.n_pixels * sizeof *centre);
    void *frames = malloc((size_t)(c.n_pixels * c.n_frames) * ps_dtype_bytes(c.dtype));
    if (c.saturation == 0) c.saturation = INFINITY;
    make_input(&c, frames, centre);
    ps_code code = ps_histogram_map_build(c.dtype, c.centred, c.n_bins, c.range, &map, &error);
    if (code != PS_OK) print_error("%s\n", error.text);
    assert_int_equal(code, PS_OK);
    expect(&c, &map, frames, centre, &expected);
    for (int b = 0; b < n_backends; b++) {
        int n_kernels = backends[b]->on_device ? 3 : 1;
        for (int k = 0; k < n_kernels; k++) {
            c.kernel = (ps_histogram_kernel)k;
            run_on(backends[b], &c, &map, frames, centre, &expected);
        }
    }
    free_result(&expected);
    ps_histogram_map_free(&map);
    free(frames);
    free(centre);
}

/* A range inside each type's, wide enough for 300 bins. */
static void range_of(ps_dtype dtype, double range[2]) {
    static const double ranges[PS_N_DTYPES][2] = {
        [PS_U8] = {3, 200},        [PS_U16] = {4171, 5744},  [PS_U32] = {1e5, 3e9},    [PS_I8] = {-100, 90},
        [PS_I16] = {-3000, 20000}, [PS_I32] = {-1e6, 1.5e9}, [PS_F32] = {-7.25, 31.5}, [PS_F64] = {0.1, 0.7}};
    memcpy(range, ranges[dtype], sizeof ranges[dtype]);
}

static void test_every_dtype(void **state) {
    (void)state;
    static const int64_t bins[] = {1, 2, 7, 300};
    for (int d = 0; d < PS_N_DTYPES; d++)
        for (int b = 0; b < 4; b++)
            for (int centred = 0; centred < 2; centred++) {
                histogram_case c = {
                    .dtype = (ps_dtype)d, .n_pixels = 101, .n_frames = 211, .n_bins = bins[b], .centred = centred, .seed = 7};
                range_of(c.dtype, c.range);
                c.saturation = (c.range[0] + c.range[1]) / 2;
                run_case(c);
            }
}

static void test_odd_sizes(void **state) {
    (void)state;
    static const int64_t pixels[] = {1, 2, 31, 32, 33, 63, 64, 65, 1520}, frames[] = {1, 3, 17, 257};
    for (int p = 0; p < 9; p++)
        for (int f = 0; f < 4; f++) {
            run_case((histogram_case){
                .dtype = PS_U16, .n_pixels = pixels[p], .n_frames = frames[f], .n_bins = 97, .range = {4171, 5744}, .seed = 11});
            run_case((histogram_case){
                .dtype = PS_U8, .n_pixels = pixels[p], .n_frames = frames[f], .n_bins = 13, .range = {0, 255}, .seed = 12});
            run_case((histogram_case){
                .dtype = PS_F32, .n_pixels = pixels[p], .n_frames = frames[f], .n_bins = 50, .range = {0.1, 0.7}, .seed = 13});
        }
}

/* Edges that float arithmetic puts just above or below whole numbers, single values on a closed end, ranges wider than the type. */
static void test_range_edges(void **state) {
    (void)state;
    static const double ranges[][2] = {{0, 110},      {0, 3},      {0, 1}, {0, 255},      {0, 256},
                                       {-0.5, 255.5}, {4.5, 4.75}, {7, 8}, {-1000, 1000}, {0.1, 0.3}};
    static const int64_t bins[] = {1, 3, 10, 30, 100, 255, 256};
    static const ps_dtype dtypes[] = {PS_U8, PS_I8, PS_U16, PS_I16, PS_U32, PS_I32, PS_F32, PS_F64};
    for (int r = 0; r < 10; r++)
        for (int b = 0; b < 7; b++)
            for (int d = 0; d < 8; d++)
                run_case((histogram_case){.dtype = dtypes[d],
                                          .n_pixels = 5,
                                          .n_frames = 301,
                                          .n_bins = bins[b],
                                          .range = {ranges[r][0], ranges[r][1]},
                                          .seed = 17 + (uint64_t)r});
}

/* More bins than fit a multiprocessor's shared memory, and more bins than values. */
static void test_many_bins(void **state) {
    (void)state;
    run_case((histogram_case){.dtype = PS_U16, .n_pixels = 37, .n_frames = 500, .n_bins = 10007, .range = {0, 65535}, .seed = 19});
    run_case((histogram_case){.dtype = PS_U16, .n_pixels = 37, .n_frames = 500, .n_bins = 65536, .range = {-0.5, 65535.5}, .seed = 20});
    run_case((histogram_case){.dtype = PS_U8, .n_pixels = 37, .n_frames = 500, .n_bins = 5000, .range = {0, 100}, .seed = 21});
    run_case((histogram_case){.dtype = PS_F32, .n_pixels = 37, .n_frames = 500, .n_bins = 20011, .range = {-1, 1}, .seed = 22});
    run_case((histogram_case){.dtype = PS_U32, .n_pixels = 37, .n_frames = 500, .n_bins = 20011, .range = {0, 4294967295.0}, .seed = 23});
    run_case((histogram_case){.dtype = PS_F32, .n_pixels = 3, .n_frames = 500, .n_bins = 3000000, .range = {-1, 1}, .seed = 24});
}

/* Batches and puts of any size, counters added to 64-bit ones on the way. */
static void test_batches_and_spills(void **state) {
    (void)state;
    static const int64_t batch[] = {1, 7, 64, 300}, put[] = {1, 10, 64, 0};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            run_case((histogram_case){.dtype = PS_I16,
                                      .n_pixels = 41,
                                      .n_frames = 302,
                                      .n_bins = 60,
                                      .range = {-3000, 20000},
                                      .frames_per_batch = batch[i],
                                      .frames_per_put = put[j],
                                      .spill_frames = 100,
                                      .seed = 29});
}

/* One bin takes every value of a batch of the largest size: 16-bit counters are full to the brim. */
static void test_full_counters(void **state) {
    (void)state;
    run_case((histogram_case){.dtype = PS_U8,
                              .n_pixels = 3,
                              .n_frames = 140000,
                              .n_bins = 1,
                              .range = {-1, 300},
                              .frames_per_batch = PS_HISTOGRAM_MAX_BATCH,
                              .seed = 31});
    run_case((histogram_case){.dtype = PS_U16, .n_pixels = 3, .n_frames = 140000, .n_bins = 2, .range = {-70000, 70000}, .seed = 31});
}

/* A small histogram of a backend, and a call that is to be refused. */
static const ps_histogram_desc small = {.n_pixels = 2, .n_segments = 2, .saturation = INFINITY};

static void require_refused(ps_code found, ps_error *error, const char *text) {
    assert_int_equal(found, PS_E_ARGUMENT);
    if (!strstr(error->text, text)) fail_msg("'%s' does not say '%s'", error->text, text);
    ps_error_clear(error);
}

static void require_create_refused(const ps_histogram_ops *ops, ps_histogram_desc desc, const ps_histogram_map *map, const char *text) {
    ps_error error = {0};
    ps_histogram *histogram = (ps_histogram *)&desc;
    require_refused(ps_histogram_create(ops, &desc, map, &histogram, &error), &error, text);
    assert_null(histogram);
}

/* The small description with one member replaced. */
#define BAD(member, value, map, text)                     \
    do {                                                  \
        ps_histogram_desc desc = small;                   \
        desc.member = (value);                            \
        require_create_refused(ops, desc, (map), (text)); \
    } while (0)

static void test_bad_descriptions(void **state) {
    (void)state;
    ps_error error = {0};
    ps_histogram_map map, centred;
    ps_histogram *histogram;
    const double centre[2] = {0, 0.5}, range[2] = {0, 10};
    assert_int_equal(ps_histogram_map_build(PS_U16, false, 10, range, &map, &error), PS_OK);
    assert_int_equal(ps_histogram_map_build(PS_U16, true, 10, range, &centred, &error), PS_OK);
    for (int b = 0; b < n_backends; b++) {
        const ps_histogram_ops *ops = backends[b];
        BAD(n_pixels, 0, &map, "0 pixels, expected 1 to");
        BAD(n_pixels, PS_HISTOGRAM_MAX_PIXELS + 1, &map, "pixels, expected 1 to");
        BAD(n_segments, 0, &map, "0 segments");
        BAD(frames_per_batch, PS_HISTOGRAM_MAX_BATCH + 1, &map, "batches of 65536 patterns");
        BAD(saturation, NAN, &map, "saturation is not a number");
        BAD(kernel, (ps_histogram_kernel)3, &map, "unknown kernel 3");
        BAD(spill_frames, -1, &map, "-1 patterns to a spill");
        BAD(n_threads, -2, &map, "-2 threads");
        BAD(device, -1, &map, "device -1");
        BAD(centre, centre, &centred, "centre of pixel 1 is 0.5");
        require_create_refused(ops, small, NULL, "the map is NULL");
        ps_histogram_desc uncentred = small, poor = small;
        uncentred.centre = centre;
        poor.memory_budget_bytes = 64;
        assert_int_equal(ps_histogram_create(ops, &uncentred, &map, &histogram, &error), PS_E_INTERNAL);
        ps_error_clear(&error);
        assert_int_equal(ps_histogram_create(ops, &poor, &map, &histogram, &error), PS_E_MEMORY);
        ps_error_clear(&error);
    }
    require_create_refused(NULL, small, &map, "table is NULL");
    ps_histogram_map_free(&map);
    ps_histogram_map_free(&centred);
}

static void test_bad_calls(void **state) {
    (void)state;
    for (int b = 0; b < n_backends; b++) {
        ps_error error = {0};
        ps_histogram_map map;
        ps_histogram *h;
        ps_histogram_moments moments = {0};
        void *frames;
        int64_t capacity, high[2];
        uint64_t counts[20];
        assert_int_equal(ps_histogram_map_build(PS_U16, false, 10, (double[2]){0, 10}, &map, &error), PS_OK);
        assert_int_equal(ps_histogram_create(backends[b], &small, &map, &h, &error), PS_OK);
        require_refused(ps_histogram_commit(h, 1, 0, &error), &error, "commit of 1 patterns of at most 0");
        assert_int_equal(ps_histogram_stage(h, &frames, &capacity, &error), PS_OK);
        require_refused(ps_histogram_commit(h, capacity + 1, 0, &error), &error, "commit of");
        require_refused(ps_histogram_commit(h, 0, 2, &error), &error, "to segment 2 of 2");
        require_refused(ps_histogram_commit(h, -1, 0, &error), &error, "commit of -1 patterns");
        assert_int_equal(ps_histogram_commit(h, 0, 1, &error), PS_OK);
        require_refused(ps_histogram_commit(h, 1, 1, &error), &error, "commit of 1 patterns of at most 0"); /* that buffer is given back */
        require_refused(ps_histogram_put(h, 3, PS_U16, 1, counts, 0, &error), &error, "1 patterns of 3 pixels uint16 uploaded");
        require_refused(ps_histogram_put(h, 2, PS_U8, 1, counts, 0, &error), &error, "pixels uint8 uploaded");
        require_refused(ps_histogram_put(h, 2, PS_U16, 1, NULL, 0, &error), &error, "array of patterns is NULL");
        require_refused(ps_histogram_stage(h, NULL, &capacity, &error), &error, "is NULL");
        require_refused(ps_histogram_read(h, 1, 2, counts, NULL, &error), &error, "read of pixels 1 + 2 of 2");
        require_refused(ps_histogram_read(h, -1, 1, counts, NULL, &error), &error, "read of pixels -1");
        require_refused(ps_histogram_read_moments(h, &moments, &error), &error, "array of the moments is NULL");
        require_refused(ps_histogram_read_totals(h, NULL, high, &error), &error, "array of totals is NULL");
        require_refused(ps_histogram_finish(NULL, &error), &error, "the histogram is NULL");
        ps_histogram_destroy(h);
        ps_histogram_map_free(&map);
    }
    ps_histogram_destroy(NULL);
}

/* Operations that a table may lack. */
static void test_defaults(void **state) {
    (void)state;
    ps_error error = {0};
    ps_histogram_map map;
    ps_histogram *h;
    ps_histogram_times times = {.fill_s = 1};
    char name[64];
    ps_histogram_ops bare = ps_histogram_cpu_fast;
    bare.finish = NULL, bare.times = NULL, bare.device = NULL, bare.frame_bytes = NULL;
    assert_int_equal(ps_histogram_map_build(PS_U16, false, 10, (double[2]){0, 10}, &map, &error), PS_OK);
    assert_int_equal(ps_histogram_create(&bare, &small, &map, &h, &error), PS_OK);
    assert_int_equal(ps_histogram_finish(h, &error), PS_OK);
    ps_histogram_read_times(h, &times);
    assert_true(times.fill_s == 0);
    ps_histogram_device(h, name, sizeof name);
    assert_string_equal(name, "cpu-fast");
    assert_int_equal(ps_histogram_frame_bytes(&bare, &small, &map), 0);
    assert_true(ps_histogram_frame_bytes(&ps_histogram_cpu_fast, &small, &map) > 0);
    ps_histogram_destroy(h);
    bare.stage = NULL;
    assert_int_equal(ps_histogram_create(&bare, &small, &map, &h, &error), PS_E_INTERNAL);
    assert_non_null(strstr(error.text, "cpu-fast lacks a required operation"));
    ps_histogram_map_free(&map);
}

/* Those of kernels/backend_list.h that this machine offers; ends the program when PS_REQUIRE_GPU asks for more. */
static void find_backends(void) {
    const ps_backend_entries *list = ps_backend_list();
    for (int i = 0; i < list->n; i++) {
        const ps_backend_entry *entry = &list->entries[i];
        ps_error error = {0};
        int count;
        if (ps_backend_entry_devices(entry, &count, &error) == PS_OK) {
            if (entry->ops->histogram) backends[n_backends++] = entry->ops->histogram;
            continue;
        }
        fprintf(stderr, "%s is left out: %s\n", entry->name, error.text);
        if (getenv("PS_REQUIRE_GPU")) exit(1);
    }
}

/* An argument selects tests by pattern, for slow tools around the program. */
int main(int n_arguments, char **arguments) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_dtype),      cmocka_unit_test(test_odd_sizes),          cmocka_unit_test(test_range_edges),
        cmocka_unit_test(test_many_bins),        cmocka_unit_test(test_batches_and_spills), cmocka_unit_test(test_full_counters),
        cmocka_unit_test(test_bad_descriptions), cmocka_unit_test(test_bad_calls),          cmocka_unit_test(test_defaults),
    };
    find_backends();
    if (n_arguments > 1) cmocka_set_test_filter(arguments[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
