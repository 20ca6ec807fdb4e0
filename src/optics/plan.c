#include "optics/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"

enum { ALWAYS_ENOUGH = 8 };              /* no frequency has more than U*U aliases, and 8*8 is PS_MAX_ALIASES */
static const double weight_floor = 0.05; /* of dose, section 5 */

/* The fine grid's frequencies inside the radius of section 4. */
typedef struct {
    int64_t rows, columns, upsampling; /* of the scan; the fine grid is `upsampling` times larger */
    double limit;                      /* 1/Angstrom, exclusive */
    double *q_row, *q_column;          /* [rows*U], [columns*U] 1/Angstrom, FFT order; owned */
} alias_grid;

/* What a walk over the full plane finds. */
typedef struct {
    int64_t n_frequencies, n_aliases; /* in the list */
    int64_t full_plane_aliases;       /* of all frequencies but zero */
    int64_t most;                     /* aliases of one frequency, zero included */
} alias_totals;

static double *fine_frequencies(int64_t n_fine, double extent_A) {
    double *q = malloc((size_t)n_fine * sizeof *q);
    for (int64_t i = 0; q && i < n_fine; i++) q[i] = (double)(2 * i >= n_fine ? i - n_fine : i) / extent_A;
    return q;
}

static void grid_free(alias_grid *grid) {
    free(grid->q_row);
    free(grid->q_column);
    *grid = (alias_grid){0};
}

static ps_code grid_create(const ps_optics *optics, const ps_plan_options *options, int64_t upsampling, alias_grid *grid, ps_error *error) {
    double pitch = fmax(optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1]);
    *grid = (alias_grid){.rows = options->scan_rows, .columns = options->scan_columns, .upsampling = upsampling};
    grid->limit = 2e-3 * (optics->semiangle_mrad + 0.5 * pitch) / ps_wavelength_A(optics->voltage_V);
    grid->q_row = fine_frequencies(grid->rows * upsampling, (double)grid->rows * optics->scan_step_A[0]);
    grid->q_column = fine_frequencies(grid->columns * upsampling, (double)grid->columns * optics->scan_step_A[1]);
    if (grid->q_row && grid->q_column) return PS_OK;
    grid_free(grid);
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the spatial frequencies");
}

static bool is_nyquist(int64_t index, int64_t n_fine) {
    return 2 * index == n_fine;
}

/* Aliases of one scan frequency in ascending (fine row, fine column) order; fine: [count, 2] or NULL. Returns their number. */
static int64_t list_aliases(const alias_grid *grid, int64_t row, int64_t column, int32_t *fine, bool *has_nyquist) {
    int64_t n = 0, fine_rows = grid->rows * grid->upsampling, fine_columns = grid->columns * grid->upsampling;
    *has_nyquist = false;
    for (int64_t r = row; r < fine_rows; r += grid->rows) {
        if (!(fabs(grid->q_row[r]) < grid->limit)) continue;
        for (int64_t c = column; c < fine_columns; c += grid->columns) {
            if (!(hypot(grid->q_row[r], grid->q_column[c]) < grid->limit)) continue;
            if (is_nyquist(r, fine_rows) || is_nyquist(c, fine_columns)) *has_nyquist = true;
            if (fine) {
                fine[2 * n] = (int32_t)r;
                fine[2 * n + 1] = (int32_t)c;
            }
            n++;
        }
    }
    return n;
}

/* 0: the conjugate partner stands for this frequency. */
static int32_t multiplicity(const alias_grid *grid, int64_t row, int64_t column, bool has_nyquist) {
    int64_t partner_row = (grid->rows - row) % grid->rows, partner_column = (grid->columns - column) % grid->columns;
    if (has_nyquist || (partner_row == row && partner_column == column)) return 1;
    return column < partner_column || (column == partner_column && row < partner_row) ? 2 : 0;
}

static alias_totals count_aliases(const alias_grid *grid) {
    alias_totals totals = {0};
    for (int64_t row = 0; row < grid->rows; row++)
        for (int64_t column = 0; column < grid->columns; column++) {
            bool has_nyquist, is_zero = row == 0 && column == 0;
            int64_t n = list_aliases(grid, row, column, NULL, &has_nyquist);
            if (!is_zero) totals.full_plane_aliases += n;
            if (n > totals.most) totals.most = n;
            if (!is_zero && multiplicity(grid, row, column, has_nyquist) == 0) continue;
            totals.n_frequencies++;
            totals.n_aliases += n;
        }
    return totals;
}

/* Largest upsampling below `upsampling` at which no frequency has more than PS_MAX_ALIASES; alias sets grow with upsampling. */
static ps_code largest_workable(const ps_optics *optics, const ps_plan_options *options, int64_t upsampling, int64_t *workable,
                                ps_error *error) {
    int64_t good = ALWAYS_ENOUGH, bad = upsampling;
    while (bad - good > 1) {
        alias_grid grid;
        int64_t middle = good + (bad - good) / 2;
        PS_TRY(grid_create(optics, options, middle, &grid, error));
        *(count_aliases(&grid).most > PS_MAX_ALIASES ? &bad : &good) = middle;
        grid_free(&grid);
    }
    *workable = good;
    return PS_OK;
}

static ps_code check_totals(const ps_optics *optics, const ps_plan_options *options, const alias_grid *grid, const alias_totals *totals,
                            ps_error *error) {
    if (totals->full_plane_aliases == 0)
        return PS_FAIL(error, PS_E_JOB,
                       "no spatial frequency of the %" PRId64 " x %" PRId64 " scan with step %g x %g A lies inside the aperture's %g 1/A: "
                       "nothing can be reconstructed; check scan_shape, scan_step_A and semiangle_mrad",
                       grid->rows, grid->columns, optics->scan_step_A[0], optics->scan_step_A[1], grid->limit);
    if (totals->most <= PS_MAX_ALIASES) return PS_OK;
    int64_t workable;
    PS_TRY(largest_workable(optics, options, grid->upsampling, &workable, error));
    return PS_FAIL(error, PS_E_JOB,
                   "upsampling %" PRId64 " gives a scan frequency %" PRId64 " aliases, at most %d are possible; upsampling %" PRId64
                   " or less works (scan step %g x %g A, semiangle %g mrad)",
                   grid->upsampling, totals->most, PS_MAX_ALIASES, workable, optics->scan_step_A[0], optics->scan_step_A[1],
                   optics->semiangle_mrad);
}

static double prior(double q_row, double q_column, double smoothness_inv_A) {
    double ratio = hypot(q_row, q_column) / smoothness_inv_A;
    return (1.0 + ratio * ratio) * (1.0 + ratio * ratio);
}

static ps_code allocate_frequencies(const alias_totals *totals, ps_plan *plan, ps_error *error) {
    size_t n_frequencies = (size_t)totals->n_frequencies, n_aliases = (size_t)totals->n_aliases;
    ps_system_desc *desc = &plan->desc;
    desc->frequencies = calloc(n_frequencies, sizeof *desc->frequencies);
    desc->fine_row = malloc(n_aliases * sizeof *desc->fine_row);
    desc->fine_column = malloc(n_aliases * sizeof *desc->fine_column);
    desc->q_row = malloc(n_aliases * sizeof *desc->q_row);
    desc->q_column = malloc(n_aliases * sizeof *desc->q_column);
    desc->prior_phase = malloc(n_aliases * sizeof *desc->prior_phase);
    desc->prior_complex = malloc(n_aliases * sizeof *desc->prior_complex);
    if (desc->frequencies && desc->fine_row && desc->fine_column && desc->q_row && desc->q_column && desc->prior_phase &&
        desc->prior_complex)
        return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu frequencies and %zu aliases", n_frequencies, n_aliases);
}

/* Appends the aliases of one frequency (fine: [n, 2]) to the plan's arrays. */
static void append_aliases(const alias_grid *grid, const ps_plan_options *options, const int32_t *fine, int64_t n, ps_plan *plan) {
    ps_system_desc *desc = &plan->desc;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = desc->n_aliases++;
        double q_row = grid->q_row[fine[2 * i]], q_column = grid->q_column[fine[2 * i + 1]];
        ((int32_t *)desc->fine_row)[at] = fine[2 * i];
        ((int32_t *)desc->fine_column)[at] = fine[2 * i + 1];
        ((double *)desc->q_row)[at] = q_row;
        ((double *)desc->q_column)[at] = q_column;
        ((double *)desc->prior_phase)[at] = prior(q_row, q_column, options->smoothness_phase_inv_A);
        ((double *)desc->prior_complex)[at] = prior(q_row, q_column, options->smoothness_complex_inv_A);
    }
}

/* The zero frequency comes first because the walk starts there. */
static void fill_frequencies(const alias_grid *grid, const ps_plan_options *options, ps_plan *plan) {
    int32_t fine[2 * PS_MAX_ALIASES];
    ps_system_desc *desc = &plan->desc;
    for (int64_t row = 0; row < grid->rows; row++)
        for (int64_t column = 0; column < grid->columns; column++) {
            bool has_nyquist, is_zero = row == 0 && column == 0;
            int64_t n = list_aliases(grid, row, column, fine, &has_nyquist);
            int32_t stands_for = multiplicity(grid, row, column, has_nyquist);
            if (!is_zero && stands_for == 0) continue;
            ((ps_frequency *)desc->frequencies)[desc->n_frequencies++] = (ps_frequency){.row = (int32_t)row,
                                                                                        .column = (int32_t)column,
                                                                                        .n_aliases = (int32_t)n,
                                                                                        .multiplicity = is_zero ? 1 : stands_for,
                                                                                        .first_alias = desc->n_aliases};
            append_aliases(grid, options, fine, n, plan);
            if (!is_zero) plan->alias_histogram[n]++;
        }
}

static ps_code build_frequencies(const ps_optics *optics, const ps_plan_options *options, ps_plan *plan, ps_error *error) {
    ps_code code = PS_OK;
    alias_grid grid = {0};
    PS_GO(grid_create(optics, options, plan->desc.upsampling, &grid, error));
    alias_totals totals = count_aliases(&grid);
    PS_GO(check_totals(optics, options, &grid, &totals, error));
    PS_GO(allocate_frequencies(&totals, plan, error));
    plan->full_plane_aliases = totals.full_plane_aliases;
    fill_frequencies(&grid, options, plan);
done:
    grid_free(&grid);
    return code;
}

static ps_code check_pixels(const ps_optics *optics, const ps_plan *plan, ps_error *error) {
    const ps_system_desc *desc = &plan->desc;
    if (desc->n_active == 0)
        return PS_FAIL(error, PS_E_JOB,
                       "no usable pixel of the %" PRId64 " x %" PRId64
                       " detector lies inside the aperture of %g mrad centred at (%g, %g) px "
                       "(%" PRId64 " are masked); check detector_center_px, detector_pitch_mrad and semiangle_mrad",
                       desc->detector_rows, desc->detector_columns, optics->semiangle_mrad, optics->detector_center_px[0],
                       optics->detector_center_px[1], plan->n_left_out);
    if (desc->n_active + plan->n_left_out == desc->detector_rows * desc->detector_columns)
        return PS_FAIL(error, PS_E_JOB,
                       "the bright-field disc (%g mrad, %.1f x %.1f pixels in radius, centred at (%g, %g) px) covers all of the %" PRId64
                       " x %" PRId64 " detector, so its edge was not recorded; check semiangle_mrad, detector_pitch_mrad and "
                       "detector_center_px",
                       optics->semiangle_mrad, optics->semiangle_mrad / optics->detector_pitch_mrad[0],
                       optics->semiangle_mrad / optics->detector_pitch_mrad[1], optics->detector_center_px[0],
                       optics->detector_center_px[1], desc->detector_rows, desc->detector_columns);
    if (plan->n_bright == 0)
        return PS_FAIL(error, PS_E_JOB,
                       "no usable pixel lies wholly inside the aperture (%" PRId64
                       " lie on its edge), so the dose cannot be measured: semiangle "
                       "%g mrad, pitch %g x %g mrad",
                       desc->n_active, optics->semiangle_mrad, optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1]);
    return PS_OK;
}

/* k_row, k_column: [detector_rows, detector_columns]. The plan's pixel arrays have room for every pixel. */
static void choose_pixels(const ps_plan_options *options, const double *k_row, const double *k_column, ps_plan *plan) {
    ps_system_desc *desc = &plan->desc;
    for (int64_t pixel = 0; pixel < desc->detector_rows * desc->detector_columns; pixel++) {
        double aperture = ps_probe_aperture(&desc->probe, k_row[pixel], k_column[pixel]);
        if (aperture == 0.0) continue;
        if (options->bad && options->bad[pixel]) {
            plan->n_left_out++;
            continue;
        }
        int64_t at = desc->n_active++;
        ((int32_t *)desc->active)[at] = (int32_t)pixel;
        ((double *)desc->k_row)[at] = k_row[pixel];
        ((double *)desc->k_column)[at] = k_column[pixel];
        plan->is_bright[at] = aperture == 1.0;
        plan->n_bright += aperture == 1.0;
    }
}

static ps_code build_pixels(const ps_optics *optics, const ps_plan_options *options, ps_plan *plan, ps_error *error) {
    ps_code code = PS_OK;
    ps_system_desc *desc = &plan->desc;
    size_t n_pixels = (size_t)(options->detector_rows * options->detector_columns);
    double *k_row = malloc(n_pixels * sizeof *k_row), *k_column = malloc(n_pixels * sizeof *k_column);
    desc->active = malloc(n_pixels * sizeof *desc->active);
    desc->k_row = malloc(n_pixels * sizeof *desc->k_row);
    desc->k_column = malloc(n_pixels * sizeof *desc->k_column);
    plan->is_bright = malloc(n_pixels);
    PS_GO_ALLOC(error, k_row && k_column && desc->active && desc->k_row && desc->k_column && plan->is_bright);
    ps_optics_k(optics, options->detector_rows, options->detector_columns, k_row, k_column);
    choose_pixels(options, k_row, k_column, plan);
    PS_GO(check_pixels(optics, plan, error));
done:
    free(k_row);
    free(k_column);
    return code;
}

static ps_code check_shapes(const ps_plan_options *options, int64_t upsampling, ps_error *error) {
    if (options->scan_rows < 1 || options->scan_columns < 1 || options->detector_rows < 1 || options->detector_columns < 1)
        return PS_FAIL(error, PS_E_JOB, "empty recording: scan %" PRId64 " x %" PRId64 ", detector %" PRId64 " x %" PRId64,
                       options->scan_rows, options->scan_columns, options->detector_rows, options->detector_columns);
    if (upsampling > PS_MAX_UPSAMPLING)
        return PS_FAIL(error, PS_E_JOB,
                       "upsampling %" PRId64 ", at most %d is possible; when it was chosen automatically, scan_step_A is far too large for "
                       "semiangle_mrad: is one of them in another unit?",
                       upsampling, PS_MAX_UPSAMPLING);
    int64_t largest_scan = INT32_MAX / upsampling;
    if (options->scan_rows > largest_scan || options->scan_columns > largest_scan ||
        options->detector_rows > INT32_MAX / options->detector_columns)
        return PS_FAIL(error, PS_E_JOB,
                       "shapes too large: scan %" PRId64 " x %" PRId64 " at upsampling %" PRId64 ", detector %" PRId64 " x %" PRId64,
                       options->scan_rows, options->scan_columns, upsampling, options->detector_rows, options->detector_columns);
    return PS_OK;
}

ps_code ps_plan_build(const ps_optics *optics, const ps_plan_options *options, ps_plan *plan, ps_error *error) {
    PS_ASSERT(!ps_optics_missing(optics));
    PS_ASSERT(options->scan_rows > 0 && options->scan_columns > 0 && options->upsampling >= 0);
    ps_code code = PS_OK;
    int64_t upsampling = options->upsampling > 0 ? options->upsampling : ps_plan_auto_upsampling(optics);
    memset(plan, 0, sizeof *plan);
    PS_TRY(check_shapes(options, upsampling, error));
    ps_system_desc *desc = &plan->desc;
    ps_optics_probe(optics, &desc->probe);
    desc->probe.mirrored_probe = options->mirrored_probe;
    desc->g_storage = options->g_storage;
    desc->keeps_g = options->keeps_g;
    desc->scan_rows = options->scan_rows;
    desc->scan_columns = options->scan_columns;
    desc->detector_rows = options->detector_rows;
    desc->detector_columns = options->detector_columns;
    desc->upsampling = upsampling;
    desc->scan_step_A[0] = optics->scan_step_A[0];
    desc->scan_step_A[1] = optics->scan_step_A[1];
    PS_GO(build_pixels(optics, options, plan, error));
    PS_GO(build_frequencies(optics, options, plan, error));
done:
    if (code != PS_OK) ps_plan_free(plan);
    return code;
}

void ps_plan_drop_frequencies(ps_plan *plan) {
    ps_system_desc *desc = &plan->desc;
    free((void *)desc->frequencies);
    free((void *)desc->fine_row);
    free((void *)desc->fine_column);
    free((void *)desc->q_row);
    free((void *)desc->q_column);
    free((void *)desc->prior_phase);
    free((void *)desc->prior_complex);
    desc->frequencies = NULL;
    desc->fine_row = desc->fine_column = NULL;
    desc->q_row = desc->q_column = desc->prior_phase = desc->prior_complex = NULL;
}

void ps_plan_free(ps_plan *plan) {
    ps_plan_drop_frequencies(plan);
    free((void *)plan->desc.active);
    free((void *)plan->desc.k_row);
    free((void *)plan->desc.k_column);
    free(plan->is_bright);
    memset(plan, 0, sizeof *plan);
}

int64_t ps_plan_auto_upsampling(const ps_optics *optics) {
    double step = fmax(optics->scan_step_A[0], optics->scan_step_A[1]);
    double needed = 4e-3 * step * optics->semiangle_mrad / ps_wavelength_A(optics->voltage_V);
    double rounded = ceil(needed * (1.0 - 1e-12)); /* an exact fit must not be lost to rounding */
    return rounded < 1.0 ? 1 : rounded < 1e9 ? (int64_t)rounded : 1000000000;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

ps_code ps_plan_dose(const ps_plan *plan, const double *mean, const int64_t *n_marked, double *dose, ps_error *error) {
    int64_t n = 0;
    double *values = malloc((size_t)plan->n_bright * sizeof *values);
    if (!values) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the dose");
    for (int64_t i = 0; i < plan->desc.n_active; i++)
        if (plan->is_bright[i] && !(n_marked && n_marked[i] > 0)) values[n++] = mean[i];
    qsort(values, (size_t)n, sizeof *values, compare_doubles);
    *dose = n > 0 ? 0.5 * (values[(n - 1) / 2] + values[n / 2]) : 0.0;
    free(values);
    if (n == 0) return PS_FAIL(error, PS_E_INPUT, "every pixel inside the bright-field disc holds positions without a count");
    if (!(*dose > 0.0) || !isfinite(*dose))
        return PS_FAIL(error, PS_E_INPUT,
                       "the median of the scan-mean counts inside the bright-field disc (%" PRId64 " pixels) is %g, expected > 0", n,
                       *dose);
    return PS_OK;
}

void ps_plan_poisson_weights(const ps_plan *plan, const double *mean, double dose, double *weights) {
    PS_ASSERT(dose > 0);
    for (int64_t i = 0; i < plan->desc.n_active; i++) weights[i] = 1.0 / fmax(mean[i] / dose, weight_floor);
}
