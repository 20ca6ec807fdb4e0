/* The map from values to slots: NumPy's edges, a slot table of small integer types, and a proved multiply-and-shift for devices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/histogram.h"

#define LARGEST_MULTIPLIER (1ll << 31) /* one cell per value */

enum { UNIT_BITS = 26, CLIP_BITS = 38 }; /* of the fixed-point numbers that moments of floating types sum up */

const char *ps_histogram_kernel_name(ps_histogram_kernel kernel) {
    static const char *const names[] = {"shared", "pixel-major", "bin-major"};
    return names[kernel];
}

static bool is_float(ps_dtype dtype) {
    return dtype == PS_F32 || dtype == PS_F64;
}

/* numpy.linspace(low, high, n + 1): each product and sum rounded to double on its own, whatever the compiler may contract. */
static void fill_edges(ps_dtype dtype, int64_t n_bins, const double range[2], double *edges) {
    double step = (range[1] - range[0]) / (double)n_bins;
    for (int64_t i = 0; i < n_bins; i++) {
        volatile double product = (double)i * step;
        edges[i] = product + range[0];
    }
    edges[n_bins] = range[1];
    if (dtype == PS_F32)
        for (int64_t i = 0; i <= n_bins; i++) edges[i] = (double)(float)edges[i];
}

static ps_code check_arguments(int64_t n_bins, const double range[2], ps_error *error) {
    if (n_bins < 1 || n_bins > PS_HISTOGRAM_MAX_BINS)
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: %lld bins, expected 1 to %d", (long long)n_bins, PS_HISTOGRAM_MAX_BINS);
    if (!isfinite(range[0]) || !isfinite(range[1]) || !isfinite(range[1] - range[0]) || !(range[0] < range[1]))
        return PS_FAIL(error, PS_E_ARGUMENT, "histogram: range [%g, %g], expected two finite numbers, the first below the second", range[0],
                       range[1]);
    return PS_OK;
}

static ps_code check_edges(const ps_histogram_map *map, ps_error *error) {
    for (int64_t i = 0; i < map->n_bins; i++)
        if (!isfinite(map->edges[i]) || !isfinite(map->edges[i + 1]) || !(map->edges[i] < map->edges[i + 1]))
            return PS_FAIL(error, PS_E_ARGUMENT,
                           "histogram: %lld bins over [%.9g, %.9g] are narrower than %s can tell apart (edges %lld and "
                           "%lld are both %.9g); use fewer bins or a wider range",
                           (long long)map->n_bins, map->edges[0], map->edges[map->n_bins], map->dtype == PS_F32 ? "float32" : "float64",
                           (long long)i, (long long)i + 1, map->edges[i]);
    return PS_OK;
}

int64_t ps_histogram_slot(const ps_histogram_map *map, double value) {
    const double *edges = map->edges;
    int64_t n = map->n_bins;
    if (!isfinite(value)) return n + PS_SLOT_NONFINITE;
    if (value < edges[0]) return n + PS_SLOT_UNDERFLOW;
    if (value > edges[n]) return n + PS_SLOT_OVERFLOW;
    int64_t low = 0, high = n; /* edges[low] <= value, and value < edges[high] or high == n */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (edges[middle] <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int64_t ps_histogram_quantum(const ps_histogram_map *map, double value) {
    if (!is_float(map->dtype)) return (int64_t)value;
    double limit = ldexp(1.0, CLIP_BITS);
    return llrint(fmax(-limit, fmin(limit, value * map->units)));
}

/* Smallest and largest value an 8- or 16-bit type takes, after centring if any; false for other types. */
static bool small_domain(ps_dtype dtype, bool centred, int64_t *first, int64_t *last) {
    switch (dtype) {
    case PS_U8: *first = 0, *last = UINT8_MAX; break;
    case PS_U16: *first = 0, *last = UINT16_MAX; break;
    case PS_I8: *first = INT8_MIN, *last = INT8_MAX; break;
    case PS_I16: *first = INT16_MIN, *last = INT16_MAX; break;
    default: return false;
    }
    int64_t span = *last - *first;
    if (centred) *first = -span, *last = span;
    return true;
}

static ps_code build_table(ps_histogram_map *map, ps_error *error) {
    int64_t first, last;
    if (!small_domain(map->dtype, map->centred, &first, &last)) return PS_OK;
    map->first_value = first;
    map->n_values = last - first + 1;
    map->slots = malloc((size_t)map->n_values * sizeof *map->slots);
    if (!map->slots) return PS_FAIL(error, PS_E_MEMORY, "histogram: cannot allocate the slot table");
    for (int64_t i = 0; i < map->n_values; i++) map->slots[i] = (uint32_t)ps_histogram_slot(map, (double)(first + i));
    return PS_OK;
}

/* e of ps_histogram_cells for a value whose distance from the cell of all lower ones is `position`. */
static int64_t closed_position(const ps_histogram_map *map, int64_t position) {
    return position - (position >= map->cell_closed);
}

static int64_t slot_cell(const ps_histogram_map *map, uint32_t slot) {
    if (slot == map->n_bins + PS_SLOT_UNDERFLOW) return 0;
    return slot == map->n_bins + PS_SLOT_OVERFLOW ? map->n_bins + 1 : (int64_t)slot + 1;
}

/* Looks for an addend that gives the right cell at every position: each of them bounds it from both sides. */
static bool prove_slots(ps_histogram_map *map, int64_t first, int64_t multiplier) {
    int64_t low = 0, high = UINT32_MAX;
    for (int64_t position = 0; position <= map->cell_last; position++) {
        int64_t product = closed_position(map, position) * multiplier;
        uint32_t slot = (uint32_t)ps_histogram_slot(map, (double)(first - 1 + position));
        int64_t floor = slot_cell(map, slot) << 31;
        if (floor - product > low) low = floor - product;
        if (floor + (1ll << 31) - 1 - product < high) high = floor + (1ll << 31) - 1 - product;
    }
    if (low > high) return false;
    map->multiplier = (uint32_t)multiplier;
    map->addend = (uint32_t)(low + (high - low) / 2);
    return true;
}

/* One cell per slot where bins are at least a value wide and the formula can be proved, else one per value where they are few. */
static void find_cells(ps_histogram_map *map) {
    enum { FEW_VALUES = 3000, TRIES = 4 };
    double range_first = ceil(map->edges[0]), range_last = floor(map->edges[map->n_bins]);
    int64_t first = (int64_t)fmax(range_first, (double)map->first_value);
    int64_t last = (int64_t)fmin(range_last, (double)(map->first_value + map->n_values - 1));
    if (range_first > range_last || first > last) return;
    map->cell_bias = (int32_t)(1 - first);
    map->cell_last = (uint32_t)(last - first + 2);
    map->cell_closed = range_last == map->edges[map->n_bins] && (double)last == range_last ? map->cell_last - 1 : UINT32_MAX;
    int64_t multiplier = (int64_t)rint(ldexp((double)map->n_bins / (map->edges[map->n_bins] - map->edges[0]), 31));
    for (int64_t m = multiplier - TRIES; m <= multiplier + TRIES; m++)
        if (m > 0 && m <= LARGEST_MULTIPLIER && prove_slots(map, first, m)) {
            map->cells = PS_CELLS_SLOTS;
            map->n_cells = map->n_bins + 2;
            return;
        }
    if (map->cell_last > FEW_VALUES && map->cell_last > 2 * map->n_bins) return;
    map->cells = PS_CELLS_VALUES;
    map->n_cells = (int64_t)map->cell_last + 1;
    map->cell_closed = UINT32_MAX;
    map->multiplier = (uint32_t)LARGEST_MULTIPLIER;
    map->addend = 0;
}

/* How far, in bins, (v - edges[0]) * scale can be off in the working precision, edges' own rounding included. */
static void set_guess(ps_histogram_map *map) {
    double n = (double)map->n_bins, low = map->edges[0], high = map->edges[map->n_bins];
    double epsilon = map->dtype == PS_F32 ? ldexp(1, -24) : ldexp(1, -53);
    map->scale = n / (high - low);
    map->guess_error = 4 * epsilon * (n + map->scale * fmax(fabs(low), fabs(high))) + ldexp(1, -20);
}

static void set_unit(ps_histogram_map *map) {
    int exponent = UNIT_BITS;
    if (is_float(map->dtype)) frexp(fmax(fabs(map->edges[0]), fabs(map->edges[map->n_bins])), &exponent);
    map->unit_exponent = exponent - UNIT_BITS > -1000 ? exponent - UNIT_BITS : -1000;
    map->units = ldexp(1, -map->unit_exponent);
}

ps_code ps_histogram_map_build(ps_dtype dtype, bool centred, int64_t n_bins, const double range[2], ps_histogram_map *map,
                               ps_error *error) {
    ps_code code = PS_OK;
    *map = (ps_histogram_map){.dtype = dtype, .centred = centred, .n_bins = n_bins};
    PS_GO(check_arguments(n_bins, range, error));
    map->edges = malloc(((size_t)n_bins + 1) * sizeof *map->edges);
    PS_GO_ALLOC(error, map->edges);
    fill_edges(dtype, n_bins, range, map->edges);
    PS_GO(check_edges(map, error));
    set_guess(map);
    set_unit(map);
    PS_GO(build_table(map, error));
    if (map->slots) find_cells(map);
done:
    if (code != PS_OK) ps_histogram_map_free(map);
    return code;
}

void ps_histogram_map_free(ps_histogram_map *map) {
    free(map->edges);
    free(map->slots);
    *map = (ps_histogram_map){0};
}
