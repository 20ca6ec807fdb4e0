#include "tasks/histogram/masks.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "input/adapters/bad_pixels.h"

enum { REACH = 2, MOST_NEIGHBOURS = 24, FEWEST_NEIGHBOURS = 3, LEAST_ACTIVITY = 100, LEAST_VALUES = 30 };

const char *const ps_mask_names[PS_MASK_KINDS] = {"hot", "dead", "noisy", "saturated", "given"};

static int compare_numbers(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The values of map at the good neighbours of (row, column), ascending. */
static int sorted_neighbours(const ps_mask_input *input, const double *map, int64_t row, int64_t column, double *values) {
    int n = 0;
    for (int64_t r = row - REACH; r <= row + REACH; r++)
        for (int64_t c = column - REACH; c <= column + REACH; c++) {
            bool inside = r >= 0 && r < input->rows && c >= 0 && c < input->columns;
            if (!inside || (r == row && c == column) || input->given[r * input->columns + c]) continue;
            values[n++] = map[r * input->columns + c];
        }
    qsort(values, (size_t)n, sizeof *values, compare_numbers);
    return n;
}

/* Total counts above a pixel's own lowest value: nothing for a pixel that never changes. */
static double activity_of(const ps_mask_input *input, int64_t p) {
    return (double)input->n_values[p] * (input->mean[p] - input->minimum[p]);
}

static bool is_dead(const ps_mask_input *input, const ps_mask_rules *rules, const double *activity, int64_t row, int64_t column) {
    double neighbours[MOST_NEIGHBOURS];
    int n = sorted_neighbours(input, activity, row, column, neighbours);
    if (n < FEWEST_NEIGHBOURS) return false;
    double quartile = neighbours[n / 4];
    return quartile >= LEAST_ACTIVITY && activity[row * input->columns + column] < rules->dead_fraction * quartile;
}

static bool is_noisy(const ps_mask_input *input, const ps_mask_rules *rules, int64_t row, int64_t column) {
    double neighbours[MOST_NEIGHBOURS];
    int64_t p = row * input->columns + column;
    int n = sorted_neighbours(input, input->variance, row, column, neighbours);
    if (n < FEWEST_NEIGHBOURS || input->n_values[p] < LEAST_VALUES) return false;
    double quartile = neighbours[n - 1 - n / 4], counting = input->mean[p] - input->minimum[p];
    return input->variance[p] > rules->noisy_ratio * fmax(quartile, counting);
}

static bool is_saturated(const ps_mask_input *input, const ps_mask_rules *rules, int64_t p) {
    return (double)input->n_saturated[p] > rules->saturated_fraction * (double)input->n_values[p];
}

/* ps_hot_pixels wants counts: means above the lowest value of any pixel where there are negative ones. */
static ps_code find_hot(const ps_mask_input *input, const ps_mask_rules *rules, uint8_t *hot, ps_error *error) {
    ps_code code = PS_OK;
    int64_t n = input->rows * input->columns, n_values = 0, n_hot;
    double lowest = 0;
    double *mean = malloc((size_t)n * sizeof *mean);
    PS_GO_ALLOC(error, mean);
    for (int64_t p = 0; p < n; p++) {
        if ((int64_t)input->n_values[p] > n_values) n_values = (int64_t)input->n_values[p];
        if (input->minimum[p] < lowest && !input->given[p]) lowest = input->minimum[p];
    }
    for (int64_t p = 0; p < n; p++) mean[p] = input->mean[p] - lowest;
    if (n_values > 0) PS_GO(ps_hot_pixels(mean, n_values, input->rows, input->columns, rules->hot_sigma, input->given, hot, &n_hot, error));
done:
    free(mean);
    return code;
}

static uint32_t judge(const ps_mask_input *input, const ps_mask_rules *rules, const uint8_t *hot, const double *activity, int64_t p) {
    int64_t row = p / input->columns, column = p % input->columns;
    if (input->given[p]) return PS_MASK_GIVEN;
    uint32_t bits = hot[p] ? PS_MASK_HOT : 0;
    if (is_dead(input, rules, activity, row, column)) bits |= PS_MASK_DEAD;
    if (is_noisy(input, rules, row, column)) bits |= PS_MASK_NOISY;
    if (is_saturated(input, rules, p)) bits |= PS_MASK_SATURATED;
    return bits;
}

ps_code ps_masks_find(const ps_mask_input *input, const ps_mask_rules *rules, uint32_t *mask, int64_t *n_masked, ps_error *error) {
    ps_code code = PS_OK;
    int64_t n = input->rows * input->columns;
    uint8_t *hot = calloc((size_t)n, 1);
    double *activity = malloc((size_t)n * sizeof *activity);
    PS_GO_ALLOC(error, hot);
    PS_GO_ALLOC(error, activity);
    PS_GO(find_hot(input, rules, hot, error));
    for (int64_t p = 0; p < n; p++) activity[p] = activity_of(input, p);
    memset(n_masked, 0, PS_MASK_KINDS * sizeof *n_masked);
    for (int64_t p = 0; p < n; p++) {
        mask[p] = judge(input, rules, hot, activity, p);
        for (int kind = 0; kind < PS_MASK_KINDS; kind++) n_masked[kind] += mask[p] >> kind & 1;
    }
done:
    free(hot);
    free(activity);
    return code;
}
