#include "kernels/cuda/layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    double re, im;
} complex_pair;

static double square_length(const double e[2]) {
    return e[0] * e[0] + e[1] * e[1];
}

/* product of two homogeneous polynomials, coefficients by the power of s. */
static void multiply(const complex_pair *a, int degree_a, const complex_pair *b, int degree_b, complex_pair *product) {
    memset(product, 0, sizeof *product * (size_t)(degree_a + degree_b + 1));
    for (int i = 0; i <= degree_a; i++)
        for (int j = 0; j <= degree_b; j++) {
            product[i + j].re += a[i].re * b[j].re - a[i].im * b[j].im;
            product[i + j].im += a[i].re * b[j].im + a[i].im * b[j].re;
        }
}

/* One aberration: |kappa|^(n+1-m) Re[(kappa_row + i kappa_column)^m exp(-i m phi)], kappa = p e_u + s e_v. */
static void add_aberration(const ps_probe *probe, int index, const double eu[2], const double ev[2], double *chi) {
    int n = ps_aberration_orders[index][0], m = ps_aberration_orders[index][1];
    if (probe->C_A[index] == 0.0) return;
    const complex_pair step[2] = {{eu[0], eu[1]}, {ev[0], ev[1]}};
    const complex_pair square[3] = {{square_length(eu), 0.0}, {2.0 * (eu[0] * ev[0] + eu[1] * ev[1]), 0.0}, {square_length(ev), 0.0}};
    complex_pair power[8] = {{cos(m * probe->angle_rad[index]), -sin(m * probe->angle_rad[index])}}, next[8];
    int degree = 0;
    for (int i = 0; i < m; i++, degree++) {
        multiply(power, degree, step, 1, next);
        memcpy(power, next, sizeof power);
    }
    for (; degree < n + 1; degree += 2) {
        multiply(power, degree, square, 2, next);
        memcpy(power, next, sizeof power);
    }
    double quarter_turns = 4.0 * pow(probe->wavelength_A, n) / (n + 1) * probe->C_A[index];
    for (int j = 0; j <= degree; j++) chi[ps_cuda_chi_index(degree - j, j)] += quarter_turns * power[j].re;
}

void ps_cuda_geometry_build(const ps_probe *probe, const double direction_u[2], const double direction_v[2], ps_cuda_geometry *g) {
    memset(g, 0, sizeof *g);
    for (int i = 0; i < 2; i++) {
        g->direction_u[i] = direction_u[i];
        g->direction_v[i] = direction_v[i];
        g->pitch_rad[i] = probe->pitch_rad[i];
        g->tilt_u += probe->thickness_A * direction_u[i] * probe->tilt_rad[i];
        g->tilt_v += probe->thickness_A * direction_v[i] * probe->tilt_rad[i];
    }
    for (int i = 0; i < PS_N_ABERRATIONS; i++) add_aberration(probe, i, direction_u, direction_v, g->chi);
    double ratio = probe->wavelength_A / probe->semiangle_rad;
    g->edge_u = ratio * ratio * square_length(direction_u);
    g->edge_v = ratio * ratio * square_length(direction_v);
    g->edge_u_f32 = (float)g->edge_u;
    g->edge_v_f32 = (float)g->edge_v;
    g->inverse_edge_v = (float)(1.0 / g->edge_v);
    g->semiangle_rad = probe->semiangle_rad;
    g->width = probe->semiangle_rad / probe->pitch_rad[0];
    g->width_f32 = (float)g->width;
    g->thick_u = probe->wavelength_A * probe->thickness_A * square_length(direction_u);
    g->thick_v = probe->wavelength_A * probe->thickness_A * square_length(direction_v);
    double pixel = fmax(probe->pitch_rad[0], probe->pitch_rad[1]);
    double reach = 1.0 + 0.5 * pixel / probe->semiangle_rad, inner = 1.0 - 0.5 * pixel / probe->semiangle_rad;
    g->reach2 = (float)(reach * reach * (1.0 + 1e-5));
    g->inner2 = inner > 0.0 ? (float)(inner * inner * (1.0 - 1e-5)) : -1.0f;
    g->equal_pitch = probe->pitch_rad[0] == probe->pitch_rad[1];
    g->is_thick = probe->thickness_A != 0.0;
    g->mirrored = probe->mirrored_probe;
}

void ps_cuda_to_pixels(const ps_cuda_geometry *g, double q_row, double q_column, double *u, double *v) {
    *u = (q_row * g->direction_u[0] + q_column * g->direction_u[1]) / square_length(g->direction_u);
    *v = (q_row * g->direction_v[0] + q_column * g->direction_v[1]) / square_length(g->direction_v);
}

static void pixel_place(const ps_system_desc *desc, int64_t i, double place[2]) {
    place[0] = (double)(desc->active[i] / desc->detector_columns);
    place[1] = (double)(desc->active[i] % desc->detector_columns);
}

/* Least squares of k over detector row and column around their means. Where all pixels lie in one row, one column or one point, the
 * missing step is perpendicular to the other, one pitch long. */
static void fit_steps(const ps_system_desc *desc, double mean_place[2], double mean_k[2], double eu[2], double ev[2]) {
    double uu = 0.0, uv = 0.0, vv = 0.0, ku[2] = {0.0, 0.0}, kv[2] = {0.0, 0.0}, place[2];
    mean_place[0] = mean_place[1] = mean_k[0] = mean_k[1] = 0.0;
    for (int64_t i = 0; i < desc->n_active; i++) {
        pixel_place(desc, i, place);
        mean_place[0] += place[0] / (double)desc->n_active;
        mean_place[1] += place[1] / (double)desc->n_active;
        mean_k[0] += desc->k_row[i] / (double)desc->n_active;
        mean_k[1] += desc->k_column[i] / (double)desc->n_active;
    }
    for (int64_t i = 0; i < desc->n_active; i++) {
        pixel_place(desc, i, place);
        double u = place[0] - mean_place[0], v = place[1] - mean_place[1];
        const double k[2] = {desc->k_row[i] - mean_k[0], desc->k_column[i] - mean_k[1]};
        uu += u * u;
        uv += u * v;
        vv += v * v;
        for (int c = 0; c < 2; c++) {
            ku[c] += k[c] * u;
            kv[c] += k[c] * v;
        }
    }
    double determinant = uu * vv - uv * uv,
           pitch[2] = {desc->probe.pitch_rad[0] / desc->probe.wavelength_A, desc->probe.pitch_rad[1] / desc->probe.wavelength_A};
    if (determinant > 1e-6 * uu * vv) {
        for (int c = 0; c < 2; c++) {
            eu[c] = (ku[c] * vv - kv[c] * uv) / determinant;
            ev[c] = (kv[c] * uu - ku[c] * uv) / determinant;
        }
        return;
    }
    bool has_u = uu > 0.0, has_v = vv > 0.0;
    for (int c = 0; c < 2; c++) {
        eu[c] = has_u ? ku[c] / uu : (c == 0 ? pitch[0] : 0.0);
        ev[c] = has_v ? kv[c] / vv : (c == 1 ? pitch[1] : 0.0);
    }
    if (has_v && !has_u) {
        double scale = pitch[0] / sqrt(square_length(ev));
        eu[0] = ev[1] * scale;
        eu[1] = -ev[0] * scale;
    }
    if (has_u && !has_v) {
        double scale = pitch[1] / sqrt(square_length(eu));
        ev[0] = -eu[1] * scale;
        ev[1] = eu[0] * scale;
    }
}

static ps_code check_steps(const ps_system_desc *desc, const double mean_place[2], const double mean_k[2], const double eu[2],
                           const double ev[2], ps_error *error) {
    double lu2 = square_length(eu), lv2 = square_length(ev), tolerance = 1e-9 * (sqrt(lu2) + sqrt(lv2)), place[2];
    if (!(lu2 > 0.0) || !(lv2 > 0.0) || !(fabs(eu[0] * ev[0] + eu[1] * ev[1]) <= 1e-9 * sqrt(lu2 * lv2)))
        return PS_FAIL(error, PS_E_ARGUMENT,
                       "cuda: a detector row steps k by (%g, %g), a column by (%g, %g) 1/A; expected perpendicular steps", eu[0], eu[1],
                       ev[0], ev[1]);
    for (int64_t i = 0; i < desc->n_active; i++) {
        pixel_place(desc, i, place);
        double u = place[0] - mean_place[0], v = place[1] - mean_place[1];
        double row = mean_k[0] + u * eu[0] + v * ev[0] - desc->k_row[i], column = mean_k[1] + u * eu[1] + v * ev[1] - desc->k_column[i];
        if (!(fabs(row) <= tolerance * (1.0 + fabs(u) + fabs(v))) || !(fabs(column) <= tolerance * (1.0 + fabs(u) + fabs(v))))
            return PS_FAIL(error, PS_E_ARGUMENT, "cuda: k of active pixel %lld is (%g, %g) 1/A, off the detector's grid by (%g, %g)",
                           (long long)i, desc->k_row[i], desc->k_column[i], row, column);
    }
    return PS_OK;
}

/* chi in quarter turns must leave the fixed-point fraction 32 bits. */
static ps_code check_turns(const ps_probe *probe, ps_error *error) {
    double alpha = probe->semiangle_rad + 0.5 * fmax(probe->pitch_rad[0], probe->pitch_rad[1]), turns = 0.0;
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        int n = ps_aberration_orders[i][0];
        turns += fabs(probe->C_A[i]) * pow(alpha, n + 1) / ((n + 1) * probe->wavelength_A);
    }
    if (!(turns < 1e5))
        return PS_FAIL(error, PS_E_ARGUMENT,
                       "cuda: the aberrations turn the probe's phase %g times between centre and edge, at most 1e5 are possible", turns);
    return PS_OK;
}

/* Rows and columns that active pixels span. */
typedef struct {
    int32_t first_row, last_row;
    int32_t *first_column, *last_column; /* [bands]; none: first > last */
    int32_t n_bands;
} extents;

static ps_code find_extents(const ps_system_desc *desc, extents *e, ps_error *error) {
    e->first_row = (int32_t)(desc->active[0] / desc->detector_columns); /* active pixels are in ascending order */
    e->last_row = (int32_t)(desc->active[desc->n_active - 1] / desc->detector_columns);
    e->n_bands = (e->last_row - e->first_row) / PS_CUDA_BAND_ROWS + 1;
    e->first_column = (int32_t *)malloc((size_t)e->n_bands * sizeof *e->first_column);
    e->last_column = (int32_t *)malloc((size_t)e->n_bands * sizeof *e->last_column);
    if (!e->first_column || !e->last_column)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %d bands of pixels", e->n_bands);
    for (int32_t band = 0; band < e->n_bands; band++) {
        e->first_column[band] = INT32_MAX;
        e->last_column[band] = -1;
    }
    for (int64_t i = 0; i < desc->n_active; i++) {
        int32_t row = (int32_t)(desc->active[i] / desc->detector_columns), column = (int32_t)(desc->active[i] % desc->detector_columns);
        int32_t band = (row - e->first_row) / PS_CUDA_BAND_ROWS;
        if (column < e->first_column[band]) e->first_column[band] = column;
        if (column > e->last_column[band]) e->last_column[band] = column;
    }
    return PS_OK;
}

static int32_t tiles_of(const extents *e, int32_t band) {
    int32_t columns = e->last_column[band] - e->first_column[band] + 1;
    return columns > 0 ? (columns + PS_CUDA_TILE_COLUMNS - 1) / PS_CUDA_TILE_COLUMNS : 0;
}

/* Bands without an active pixel are left out; band_index: [e->n_bands] place of each band, -1: none. */
static void place_bands(const extents *e, ps_cuda_layout *layout, int32_t *band_index) {
    int64_t segment = 0;
    for (int32_t i = 0; i < e->n_bands; i++) {
        int32_t n_tiles = tiles_of(e, i);
        band_index[i] = n_tiles > 0 ? (int32_t)layout->n_bands : -1;
        if (n_tiles == 0) continue;
        int32_t row = e->first_row + PS_CUDA_BAND_ROWS * i, rows = e->last_row - row + 1;
        if (rows > PS_CUDA_BAND_ROWS) rows = PS_CUDA_BAND_ROWS;
        ps_cuda_band *band = &layout->bands[layout->n_bands++];
        band->u = row - layout->origin_u;
        band->v = e->first_column[i] - layout->origin_v;
        band->middle_u = (float)(band->u + 0.5 * (rows - 1));
        band->half_u = 0.5f * (float)(rows - 1) + 1e-4f;
        band->first_tile = (int32_t)layout->n_tiles;
        band->n_tiles = n_tiles;
        layout->n_tiles += n_tiles;
        segment += n_tiles;
        band->ends_segment = segment >= PS_CUDA_SEGMENT_TILES || i + 1 == e->n_bands;
        if (segment > layout->largest_segment) layout->largest_segment = segment;
        if (band->ends_segment) segment = 0;
    }
    layout->n_slots = layout->n_tiles * PS_CUDA_LANES;
}

static void place_pixels(const ps_system_desc *desc, const extents *e, const int32_t *band_index, ps_cuda_layout *layout) {
    for (int64_t slot = 0; slot < layout->n_slots; slot++) {
        layout->slot_pixel[slot] = -1;
        layout->slot_detector[slot] = desc->active[0];
    }
    for (int64_t i = 0; i < desc->n_active; i++) {
        int32_t row = (int32_t)(desc->active[i] / desc->detector_columns) - e->first_row, band = row / PS_CUDA_BAND_ROWS;
        int32_t column = (int32_t)(desc->active[i] % desc->detector_columns) - e->first_column[band];
        int64_t tile = layout->bands[band_index[band]].first_tile + column / PS_CUDA_TILE_COLUMNS;
        int64_t slot = tile * PS_CUDA_LANES + column % PS_CUDA_TILE_COLUMNS * PS_CUDA_BAND_ROWS + row % PS_CUDA_BAND_ROWS;
        layout->slot_pixel[slot] = (int32_t)i;
        layout->slot_detector[slot] = desc->active[i];
    }
}

static void order_slots(ps_cuda_layout *layout) {
    int32_t n = 0;
    for (int64_t slot = 0; slot < layout->n_slots; slot++) {
        if (slot % PS_CUDA_LANES == 0) layout->first_ordered[slot / PS_CUDA_LANES] = n;
        if (layout->slot_pixel[slot] >= 0) layout->ordered_slot[n++] = (int32_t)slot;
    }
    layout->first_ordered[layout->n_tiles] = n;
}

static ps_code build_tiles(const ps_system_desc *desc, ps_cuda_layout *layout, ps_error *error) {
    extents e = {};
    int32_t *band_index = NULL;
    ps_code code = PS_OK;
    PS_GO(find_extents(desc, &e, error));
    band_index = (int32_t *)malloc((size_t)e.n_bands * sizeof *band_index);
    layout->bands = (ps_cuda_band *)calloc((size_t)e.n_bands, sizeof *layout->bands);
    PS_GO_ALLOC(error, band_index && layout->bands);
    place_bands(&e, layout, band_index);
    layout->slot_pixel = (int32_t *)malloc((size_t)layout->n_slots * sizeof *layout->slot_pixel);
    layout->slot_detector = (int32_t *)malloc((size_t)layout->n_slots * sizeof *layout->slot_detector);
    layout->ordered_slot = (int32_t *)malloc((size_t)desc->n_active * sizeof *layout->ordered_slot);
    layout->first_ordered = (int32_t *)malloc((size_t)(layout->n_tiles + 1) * sizeof *layout->first_ordered);
    PS_GO_ALLOC(error, layout->slot_pixel && layout->slot_detector && layout->ordered_slot && layout->first_ordered);
    place_pixels(desc, &e, band_index, layout);
    order_slots(layout);
done:
    free(e.first_column);
    free(e.last_column);
    free(band_index);
    return code;
}

ps_code ps_cuda_layout_build(const ps_system_desc *desc, ps_cuda_layout *layout, ps_cuda_geometry *geometry, ps_error *error) {
    double mean_place[2], mean_k[2], eu[2], ev[2], u, v;
    memset(layout, 0, sizeof *layout);
    PS_TRY(check_turns(&desc->probe, error));
    fit_steps(desc, mean_place, mean_k, eu, ev);
    PS_TRY(check_steps(desc, mean_place, mean_k, eu, ev, error));
    ps_cuda_geometry_build(&desc->probe, eu, ev, geometry);
    ps_cuda_to_pixels(geometry, mean_k[0], mean_k[1], &u, &v);
    layout->origin_u = mean_place[0] - u;
    layout->origin_v = mean_place[1] - v;
    ps_code code = build_tiles(desc, layout, error);
    if (code != PS_OK) ps_cuda_layout_free(layout);
    return code;
}

void ps_cuda_layout_free(ps_cuda_layout *layout) {
    free(layout->slot_pixel);
    free(layout->slot_detector);
    free(layout->ordered_slot);
    free(layout->first_ordered);
    free(layout->bands);
    memset(layout, 0, sizeof *layout);
}
