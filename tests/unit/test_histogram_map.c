/* The map from values to slots: the formula devices use agrees with the definition for every value, and bad arguments are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "kernels/histogram.h"

/* The slot behind a cell that a map's formula gives for value; as devices evaluate it. */
static int64_t slot_by_formula(const ps_histogram_map *map, int64_t value) {
    int64_t e = value + map->cell_bias, n = map->n_bins;
    e = e < 0 ? 0 : e > map->cell_last ? map->cell_last : e;
    if (e >= map->cell_closed) e--;
    int64_t cell = (int64_t)(((uint64_t)e * map->multiplier + map->addend) >> 31);
    assert_in_range(cell, 0, map->n_cells - 1);
    if (map->cells == PS_CELLS_VALUES && cell > 0 && cell < map->n_cells - 1)
        return ps_histogram_slot(map, (double)(cell - map->cell_bias));
    return cell == 0 ? n + PS_SLOT_UNDERFLOW : cell == map->n_cells - 1 ? n + PS_SLOT_OVERFLOW : cell - 1;
}

static void check_cells(ps_dtype dtype, bool centred, int64_t n_bins, double low, double high, ps_histogram_cells cells) {
    ps_error error = {0};
    ps_histogram_map map;
    assert_int_equal(ps_histogram_map_build(dtype, centred, n_bins, (double[2]){low, high}, &map, &error), PS_OK);
    assert_int_equal(map.cells, cells);
    for (int64_t v = map.first_value; map.cells != PS_CELLS_NONE && v < map.first_value + map.n_values; v++) {
        assert_int_equal(map.slots[v - map.first_value], ps_histogram_slot(&map, (double)v));
        assert_int_equal(slot_by_formula(&map, v), ps_histogram_slot(&map, (double)v));
    }
    ps_histogram_map_free(&map);
}

static void test_cells(void **state) {
    (void)state;
    static const int64_t bins[] = {100, 200, 500, 1000, 1573, 2000};
    for (int b = 0; b < 6; b++) {
        check_cells(PS_U16, false, bins[b], 4171, 5744, bins[b] == 2000 ? PS_CELLS_VALUES : PS_CELLS_SLOTS);
        check_cells(PS_U16, true, bins[b], 937 - 1000, 2127 - 1000, bins[b] > 1190 ? PS_CELLS_VALUES : PS_CELLS_SLOTS);
        check_cells(PS_U16, false, bins[b], 0, 65536, PS_CELLS_SLOTS);
    }
    check_cells(PS_U16, false, 65536, -0.5, 65535.5, PS_CELLS_SLOTS);
    check_cells(PS_I16, true, 1000, -5000, 5000, PS_CELLS_SLOTS);
    check_cells(PS_U16, false, 1000, 0, 1100, PS_CELLS_VALUES);
    check_cells(PS_U8, false, 256, 0, 256, PS_CELLS_SLOTS);
    check_cells(PS_U8, false, 255, 0, 255, PS_CELLS_SLOTS);
    check_cells(PS_U8, false, 1, -1, 300, PS_CELLS_SLOTS);
    check_cells(PS_I8, false, 3, -300, 0, PS_CELLS_VALUES);
    check_cells(PS_U8, false, 1, 6.5, 7, PS_CELLS_VALUES);
    check_cells(PS_U8, false, 1, 6.5, 6.75, PS_CELLS_NONE);
    check_cells(PS_F32, false, 10, 0, 1, PS_CELLS_NONE);
}

static void refuse(ps_dtype dtype, int64_t n_bins, double low, double high, const char *part) {
    ps_error error = {0};
    ps_histogram_map map;
    assert_int_equal(ps_histogram_map_build(dtype, false, n_bins, (double[2]){low, high}, &map, &error), PS_E_ARGUMENT);
    assert_non_null(strstr(error.text, part));
    assert_null(map.edges);
}

static void test_refusals(void **state) {
    (void)state;
    refuse(PS_U16, 0, 0, 1, "0 bins");
    refuse(PS_U16, 10, 1, 1, "range [1, 1]");
    refuse(PS_U16, 10, 0, NAN, "two finite numbers");
    refuse(PS_F32, 1000, 5000, 5000.01, "narrower than float32");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
