/* Both forms in which g is held (docs/physics.md section 8): how far the compact one is from the exact one, on every backend, scans of
 * every kind and data that are hard on a row's scale; and that keeping g, chunks, batches and budgets change no bit of either. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract/compare.h"
#include "contract/problem.h"
#include "kernels/cpu/memory.h"
#include "kernels/trials.h"

/* Half a step of a row whose largest part is 1, and the rounding of floats. */
static const double half_step = 0.5 / 32767.0 + 2.5e-7;

static void open_as(const contract_backend *b, problem *p, ps_g_storage storage, bool keeps, const ps_backend_options *options,
                    problem_run *run) {
    p->plan.desc.g_storage = storage;
    p->plan.desc.keeps_g = keeps;
    problem_open(b, p, options, NULL, run);
}

/* g and the data norms of every frequency, b of the complex method. */
typedef struct {
    double *spectra;    /* [n_frequencies, n_active] complex */
    double *data_norms; /* [n_frequencies] */
    double *right;      /* [n_aliases, 2] complex, frequency by frequency amplitudes first */
} looked;

static looked look(const problem_run *run, ps_frame *frame, double dose) {
    const ps_system_desc *desc = &run->problem->plan.desc;
    int64_t n = desc->n_frequencies, *all = malloc((size_t)n * sizeof *all);
    looked l = {.spectra = malloc((size_t)(2 * n * desc->n_active) * sizeof *l.spectra),
                .data_norms = calloc((size_t)n, sizeof *l.data_norms),
                .right = calloc((size_t)(4 * desc->n_aliases + 1), sizeof *l.right)};
    for (int64_t i = 0; i < n; i++) all[i] = i;
    REQUIRE_OK(ps_frame_get_spectra(frame, n, all, dose, l.spectra, &error));
    for (int64_t i = 1; i < n; i++)
        REQUIRE_OK(
            ps_frame_get_right_side(frame, PS_METHOD_COMPLEX, i, l.right + 4 * desc->frequencies[i].first_alias, &l.data_norms[i], &error));
    free(all);
    return l;
}

static void looked_free(looked *l) {
    free(l->spectra);
    free(l->data_norms);
    free(l->right);
}

/* Which row of the stored half-plane a frequency is in. */
static int64_t stored_row(const ps_system_desc *desc, const ps_frequency *f) {
    return f->column < desc->scan_columns / 2 + 1 ? f->row : (desc->scan_rows - f->row) % desc->scan_rows;
}

static double largest_part(const double *value) {
    return fmax(fabs(value[0]), fabs(value[1]));
}

/* The largest part of each row and pixel, [scan_rows, n_active], from exact spectra. Frequencies that are listed for their partner too
 * stand in the row of that as well, where the half-plane has both: in its first and its Nyquist column. */
static double *find_rows(const ps_system_desc *desc, const double *spectra) {
    double *rows = calloc((size_t)(desc->scan_rows * desc->n_active), sizeof *rows);
    for (int64_t i = 1; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        int64_t row = stored_row(desc, f), partner = f->column == 0 || 2 * f->column == desc->scan_columns ? desc->scan_rows - row : row;
        for (int64_t k = 0; k < desc->n_active; k++) {
            double part = largest_part(spectra + 2 * (i * desc->n_active + k));
            double *here = &rows[row * desc->n_active + k], *there = &rows[partner % desc->scan_rows * desc->n_active + k];
            *here = fmax(*here, part);
            *there = fmax(*there, part);
        }
    }
    return rows;
}

/* How far each value of g may be from the exact one: each part by half a step. [n_frequencies, n_active] */
static double *find_bounds(const ps_system_desc *desc, const double *spectra) {
    double *rows = find_rows(desc, spectra), *bounds = malloc((size_t)(desc->n_frequencies * desc->n_active) * sizeof *bounds);
    for (int64_t i = 0; i < desc->n_frequencies; i++)
        for (int64_t k = 0; k < desc->n_active; k++)
            bounds[i * desc->n_active + k] =
                i == 0 ? 2.5e-7 * fabs(spectra[2 * k]) : half_step * rows[stored_row(desc, &desc->frequencies[i]) * desc->n_active + k];
    free(rows);
    return bounds;
}

static void require_spectra(const contract_backend *b, const char *where, const ps_system_desc *desc, const double *bounds,
                            const looked *exact, const looked *compact) {
    for (int64_t i = 0; i < desc->n_frequencies * desc->n_active; i++) {
        double difference[2] = {compact->spectra[2 * i] - exact->spectra[2 * i], compact->spectra[2 * i + 1] - exact->spectra[2 * i + 1]};
        if (!(largest_part(difference) <= bounds[i]))
            fail_msg("%s, %s: g %lld of pixel %lld is %g + %g i and %g + %g i, allowed %g", b->ops->name, where,
                     (long long)(i / desc->n_active), (long long)(i % desc->n_active), exact->spectra[2 * i], exact->spectra[2 * i + 1],
                     compact->spectra[2 * i], compact->spectra[2 * i + 1], bounds[i]);
    }
}

/* b of a frequency is sum conj(T) g: it is off by sum |T| |g's error| at most, the size of an error being sqrt(2) of a part's; and what
 * either sum rounds off. The same of the data norm. */
static void require_sums(const contract_backend *b, const char *where, const problem_run *run, const double *bounds, const looked *exact,
                         const looked *compact) {
    const ps_system_desc *desc = &run->problem->plan.desc;
    double rounding = b->tolerance.right_side, *transfer = malloc((size_t)(PS_MAX_ALIASES * desc->n_active * 4) * sizeof *transfer);
    for (int64_t i = 1; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        const double *g = exact->spectra + 2 * i * desc->n_active, *bound = bounds + i * desc->n_active;
        double norm = 0.0;
        for (int64_t k = 0; k < desc->n_active; k++) {
            double error = sqrt(2.0) * bound[k], size = hypot(g[2 * k], g[2 * k + 1]);
            norm += error * (2.0 * size + error) + rounding * size * size;
        }
        if (!(fabs(compact->data_norms[i] - exact->data_norms[i]) <= norm))
            fail_msg("%s, %s: data norm %lld is %g and %g, allowed %g", b->ops->name, where, (long long)i, exact->data_norms[i],
                     compact->data_norms[i], norm);
        if (f->n_aliases == 0) continue;
        REQUIRE_OK(ps_system_get_transfer(run->system, i, transfer, &error));
        for (int64_t a = 0; a < 2 * f->n_aliases; a++) {
            double allowed = 0.0;
            for (int64_t k = 0; k < desc->n_active; k++) {
                const double *t = transfer + ((a % f->n_aliases * desc->n_active + k) * 2 + a / f->n_aliases) * 2;
                allowed += hypot(t[0], t[1]) * (sqrt(2.0) * bound[k] + 2.0 * rounding * hypot(g[2 * k], g[2 * k + 1]));
            }
            const double *from = exact->right + 4 * f->first_alias + 2 * a, *found = compact->right + 4 * f->first_alias + 2 * a;
            if (!(hypot(found[0] - from[0], found[1] - from[1]) <= allowed))
                fail_msg("%s, %s: b %lld of frequency %lld is off by %g, allowed %g", b->ops->name, where, (long long)a, (long long)i,
                         hypot(found[0] - from[0], found[1] - from[1]), allowed);
        }
    }
    free(transfer);
}

/* counts: of dtype, at a dose. */
static looked look_at(const contract_backend *b, problem *p, ps_g_storage storage, ps_dtype dtype, const void *counts, double dose) {
    problem_run run;
    open_as(b, p, storage, false, NULL, &run);
    ps_frame *frame = problem_frame(&run, dtype, counts);
    REQUIRE_OK(ps_frame_reduce(&frame, 1, &dose, &error));
    looked l = look(&run, frame, dose);
    ps_frame_destroy(frame);
    problem_close(&run);
    return l;
}

/* Both forms of the same counts, held against each other. */
static void require_forms(const contract_backend *b, const char *where, problem *p, ps_dtype dtype, const void *counts, double dose) {
    looked exact = look_at(b, p, PS_G_EXACT, dtype, counts, dose), compact = look_at(b, p, PS_G_COMPACT, dtype, counts, dose);
    double *bounds = find_bounds(&p->plan.desc, exact.spectra);
    problem_run run;
    open_as(b, p, PS_G_EXACT, false, NULL, &run);
    require_spectra(b, where, &p->plan.desc, bounds, &exact, &compact);
    require_sums(b, where, &run, bounds, &exact, &compact);
    problem_close(&run);
    looked_free(&exact);
    looked_free(&compact);
    free(bounds);
}

/* Backends that form g anew for each frequency that is looked at, and float64 ones, for which the forms are the same, take few sizes. */
static bool takes_few(const contract_backend *b) {
    return !b->ops->get_spectra || b->tolerance.transfer < 1e-9;
}

static void compact_g_is_within_half_a_step_of_its_row(void **state) {
    const contract_backend *b = *state;
    for (int i = 0; i < PROBLEM_SIZES; i++) {
        if (takes_few(b) && i != PROBLEM_USUAL) continue;
        problem p;
        problem_create(&problem_sizes[i], 60u + (unsigned)i, &p);
        require_forms(b, problem_sizes[i].name, &p, PS_U16, p.counts, 100.0);
        problem_free(&p);
    }
}

/* --- data that are hard on scales --- */

typedef struct {
    double (*value)(const problem *p, int64_t row, int64_t column, int64_t pixel);
    const char *name;
    double dose;
} hard_data;

/* Some pixels count the same everywhere, others in every second row alone: rows of zeros beside rows that are none. */
static double flat(const problem *p, int64_t row, int64_t column, int64_t pixel) {
    (void)p;
    return pixel % 3 == 0 ? 7.0 : pixel % 3 == 1 ? 5.0 + (double)(row % 2) : 100.0 + (double)((pixel * 7 + row * 3 + column * 5) % 11);
}

/* One frequency that is a hundred thousand times what is beside it. */
static double outlier(const problem *p, int64_t row, int64_t column, int64_t pixel) {
    const ps_system_desc *desc = &p->plan.desc;
    double turns = (double)row / (double)desc->scan_rows + 2.0 * (double)column / (double)desc->scan_columns;
    return 2e6 + 1e6 * cos(2.0 * M_PI * turns + (double)pixel) +
           10.0 * sin(0.7 * (double)(row * desc->scan_columns + column) + (double)pixel);
}

/* Near the ends of what float can hold: a device sums squares of counts in it. */
static double tiny(const problem *p, int64_t row, int64_t column, int64_t pixel) {
    return 1e-27 * outlier(p, row, column, pixel);
}
static double huge(const problem *p, int64_t row, int64_t column, int64_t pixel) {
    return 1e10 * outlier(p, row, column, pixel);
}

static void hard_data_keep_to_the_same_bound(void **state) {
    static const hard_data cases[] = {
        {flat, "rows of zeros", 50.0}, {outlier, "an outlier", 2e6}, {tiny, "tiny counts", 2e-21}, {huge, "huge counts", 2e16}};
    static const int sizes[] = {0, PROBLEM_USUAL, 2, 3, PROBLEM_NO_UPSAMPLING, 9, 11}; /* one row and one column among them */
    const contract_backend *b = *state;
    for (size_t s = 0; s < (takes_few(b) ? 1 : sizeof sizes / sizeof *sizes); s++) {
        problem p;
        problem_create(&problem_sizes[sizes[s]], 80, &p);
        float *counts = malloc((size_t)(p.n_positions * p.n_pixels) * sizeof *counts);
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            for (int64_t i = 0; i < p.n_positions * p.n_pixels; i++) {
                int64_t position = i / p.n_pixels, columns = p.plan.desc.scan_columns;
                counts[i] = (float)cases[c].value(&p, position / columns, position % columns, i % p.n_pixels);
            }
            require_forms(b, cases[c].name, &p, PS_F32, counts, cases[c].dose);
        }
        free(counts);
        problem_free(&p);
    }
}

/* --- what must not change a bit --- */

static void answer_as(const contract_backend *b, problem *p, ps_g_storage storage, bool keeps, const ps_backend_options *options,
                      problem_answer *answer) {
    problem_run run;
    open_as(b, p, storage, keeps, options, &run);
    ps_frame *frame = problem_frame(&run, PS_U16, p->counts);
    problem_reduce(&run, frame);
    problem_ask(&run, frame, answer);
    ps_frame_destroy(frame);
    problem_close(&run);
}

/* The smallest budget that one frame fits into, to a part in 64. */
static size_t least_budget(const contract_backend *b, const problem *p) {
    ps_memory_plan plan;
    REQUIRE_OK(ps_backend_memory_plan(b->ops, &p->plan.desc, PROBLEM_ALL, PS_U16, 0, 1, &plan, &error));
    size_t budget = plan.peak_bytes;
    while (ps_backend_memory_plan(b->ops, &p->plan.desc, PROBLEM_ALL, PS_U16, budget - budget / 64, 1, &plan, NULL) == PS_OK)
        budget -= budget / 64;
    return budget;
}

static void keeping_and_budgets_change_no_bit(void **state) {
    const contract_backend *b = *state;
    static const int sizes[] = {PROBLEM_USUAL, PROBLEM_MANY_PIXELS, 9};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int storage = PS_G_EXACT; storage <= PS_G_COMPACT; storage++) {
            problem p;
            problem_answer dropped, found;
            problem_create(&problem_sizes[sizes[s]], 90, &p);
            answer_as(b, &p, (ps_g_storage)storage, false, NULL, &dropped);
            answer_as(b, &p, (ps_g_storage)storage, true, NULL, &found);
            problem_require_same(b, "kept", &found, &dropped, true);
            problem_answer_free(&found);
            const ps_backend_options tight = {.memory_budget_bytes = least_budget(b, &p)};
            size_t before = ps_cpu_memory_in_use();
            ps_cpu_memory_reset_peak();
            answer_as(b, &p, (ps_g_storage)storage, true, &tight, &found);
            size_t used = ps_cpu_memory_peak() - before; /* sums of strengths, which are not planned for, show in smaller problems */
            if (sizes[s] == PROBLEM_MANY_PIXELS && used > tight.memory_budget_bytes)
                fail_msg("%zu bytes used, %zu allowed", used, tight.memory_budget_bytes);
            problem_require_same(b, "tight budget", &found, &dropped, b->tolerance.exact_chunks);
            problem_answer_free(&found);
            problem_answer_free(&dropped);
            problem_free(&p);
        }
}

/* A batch of three, reduced together, alone, together again out of what is kept; then other counts and another dose. */
static void kept_g_is_the_frames_own(void **state) {
    enum { BATCH = 3 };
    const contract_backend *b = *state;
    for (int storage = PS_G_EXACT; storage <= PS_G_COMPACT; storage++) {
        problem p;
        problem_run run;
        ps_frame *frames[BATCH];
        problem_answer alone[BATCH], found;
        double doses[BATCH];
        problem_create(&problem_sizes[PROBLEM_MANY_PIXELS], 91, &p);
        open_as(b, &p, (ps_g_storage)storage, true, NULL, &run);
        for (int i = 0; i < BATCH; i++) {
            problem_counts(&p, 92u + (unsigned)i, p.counts);
            answer_as(b, &p, (ps_g_storage)storage, false, NULL, &alone[i]);
            frames[i] = problem_frame(&run, PS_U16, p.counts);
            doses[i] = problem_dose(&run, frames[i]);
        }
        for (int again = 0; again < 2; again++) {
            REQUIRE_OK(ps_frame_reduce(frames, BATCH, doses, &error));
            for (int i = BATCH - 1; i >= 0; i--) {
                problem_ask(&run, frames[i], &found);
                problem_require_same(b, again ? "kept batch" : "batch", &found, &alone[i], true);
                problem_answer_free(&found);
            }
        }
        double other = 2.0 * doses[0];
        int64_t frequency = p.plan.desc.n_frequencies / 2;
        double *spectra[2] = {malloc((size_t)(2 * p.plan.desc.n_active) * sizeof(double)),
                              malloc((size_t)(2 * p.plan.desc.n_active) * sizeof(double))};
        REQUIRE_OK(ps_frame_get_spectra(frames[0], 1, &frequency, doses[0], spectra[0], &error));
        REQUIRE_OK(ps_frame_reduce(&frames[0], 1, &other, &error));
        REQUIRE_OK(ps_frame_get_spectra(frames[0], 1, &frequency, other, spectra[1], &error));
        for (int64_t k = 0; k < 2 * p.plan.desc.n_active; k++) spectra[1][k] *= 2.0;
        require_within(b->ops->name, "another dose", "g", relative_difference(2 * p.plan.desc.n_active, spectra[1], spectra[0]), 1e-6);
        REQUIRE_OK(ps_frame_reduce(&frames[0], 1, &doses[0], &error));
        problem_ask(&run, frames[0], &found);
        problem_require_same(b, "the first dose again", &found, &alone[0], true);
        problem_answer_free(&found);
        for (int i = 0; i < BATCH; i++) {
            problem_answer_free(&alone[i]);
            ps_frame_destroy(frames[i]);
        }
        free(spectra[0]);
        free(spectra[1]);
        problem_close(&run);
        problem_free(&p);
    }
}

/* --- what the plan says of it --- */

static void the_plan_says_how_g_is_held(void **state) {
    const contract_backend *b = *state;
    problem p;
    ps_memory_plan exact, compact;
    problem_create(&problem_sizes[10], 95, &p); /* 48 columns, so that a row's scale is little beside it */
    p.plan.desc.keeps_g = true;
    REQUIRE_OK(ps_backend_memory_plan(b->ops, &p.plan.desc, PROBLEM_ALL, PS_U16, 0, 1, &exact, &error));
    p.plan.desc.g_storage = PS_G_COMPACT;
    REQUIRE_OK(ps_backend_memory_plan(b->ops, &p.plan.desc, PROBLEM_ALL, PS_U16, 0, 1, &compact, &error));
    size_t values = (size_t)(p.plan.desc.scan_rows * (p.plan.desc.scan_columns / 2 + 1) * p.plan.desc.n_active);
    if (b->tolerance.transfer < 1e-9) { /* float64: the forms are the same */
        assert_int_equal(compact.g_bytes, exact.g_bytes);
        assert_true(exact.g_bytes >= 16 * values);
    } else {
        assert_true(exact.holds_g && compact.holds_g);
        assert_true(exact.g_bytes >= 8 * values && exact.peak_bytes > exact.g_bytes);
        assert_true(compact.g_bytes >= 4 * values && (double)compact.g_bytes < 0.56 * (double)exact.g_bytes);
    }
    p.plan.desc.g_storage = (ps_g_storage)2;
    ps_error e = {0};
    problem_require_refused(ps_backend_memory_plan(b->ops, &p.plan.desc, PROBLEM_ALL, PS_U16, 0, 1, &compact, &e), &e, PS_E_ARGUMENT,
                            "storage of g");
    problem_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(compact_g_is_within_half_a_step_of_its_row),
                                       cmocka_unit_test(hard_data_keep_to_the_same_bound),
                                       cmocka_unit_test(keeping_and_budgets_change_no_bit), cmocka_unit_test(kept_g_is_the_frames_own),
                                       cmocka_unit_test(the_plan_says_how_g_is_held)};
    return contract_run(tests, sizeof tests / sizeof *tests);
}
