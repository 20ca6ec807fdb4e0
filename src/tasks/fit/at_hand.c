#include "tasks/fit/at_hand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/watchdog.h"

typedef struct {
    double score;
    double q[2];
    int64_t frequency;
} candidate;

static int compare(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->frequency < y->frequency ? -1 : x->frequency > y->frequency;
}

/* A method whose reduction leaves each frequency's power; 0: none does. */
static ps_methods with_power(ps_methods methods) {
    return methods & PS_METHOD_PHASE ? PS_METHOD_PHASE : methods & PS_METHOD_COMPLEX ? PS_METHOD_COMPLEX : methods & PS_METHOD_MF;
}

static double scan_frequency(int64_t index, int64_t n, double step_A) {
    return (double)(2 * index > n ? index - n : index) / ((double)n * step_A);
}

/* The power of a frequency above that of the noise, times |q|; without powers the lowest come first. */
static ps_code score(ps_frame *frame, const ps_plan *plan, ps_methods method, double noise_power, int64_t frequency, candidate *c,
                     ps_error *error) {
    const ps_system_desc *desc = &plan->desc;
    const ps_frequency *f = &desc->frequencies[frequency];
    double right_side[4 * PS_MAX_ALIASES], power = 0.0;
    c->frequency = frequency;
    c->q[0] = scan_frequency(f->row, desc->scan_rows, desc->scan_step_A[0]);
    c->q[1] = scan_frequency(f->column, desc->scan_columns, desc->scan_step_A[1]);
    double q = hypot(c->q[0], c->q[1]);
    if (method && f->n_aliases > 0) PS_TRY(ps_frame_get_right_side(frame, method, frequency, right_side, &power, error));
    c->score = method ? (power - noise_power) * q : -q;
    return PS_OK;
}

/* candidates: [n_frequencies]; the best first. */
static ps_code rank(ps_frame *frame, const ps_plan *plan, ps_methods method, double noise_power, candidate *candidates, int64_t *n,
                    ps_error *error) {
    *n = 0;
    for (int64_t i = 1; i < plan->desc.n_frequencies; i++) {
        if (plan->desc.frequencies[i].multiplicity != 2) continue;
        PS_TRY(score(frame, plan, method, noise_power, i, &candidates[*n], error));
        *n += !method || candidates[*n].score > 0.0;
    }
    qsort(candidates, (size_t)*n, sizeof *candidates, compare);
    return PS_OK;
}

static ps_code allocate(int64_t n_frequencies, int64_t n_pixels, ps_fit_data *data, ps_error *error) {
    size_t n = (size_t)n_frequencies, pixels = (size_t)n_pixels;
    data->row = malloc(pixels * sizeof *data->row);
    data->column = malloc(pixels * sizeof *data->column);
    data->q_row = malloc(n * sizeof *data->q_row);
    data->q_column = malloc(n * sizeof *data->q_column);
    data->power = malloc(n * sizeof *data->power);
    data->spectra = malloc(2 * n * pixels * sizeof *data->spectra);
    if (data->row && data->column && data->q_row && data->q_column && data->power && data->spectra) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu frequencies of %zu pixels", n, pixels);
}

/* Every stride-th pixel, rows shifted against each other. */
static bool is_kept(const ps_system_desc *desc, int64_t active, int64_t stride) {
    return (desc->active[active] / desc->detector_columns * 7 + desc->active[active] % desc->detector_columns) % stride == 0;
}

static void list_pixels(const ps_system_desc *desc, int64_t stride, ps_fit_data *data) {
    data->n_pixels = 0;
    for (int64_t i = 0; i < desc->n_active; i++) {
        if (!is_kept(desc, i, stride)) continue;
        data->row[data->n_pixels] = (int32_t)(desc->active[i] / desc->detector_columns);
        data->column[data->n_pixels++] = (int32_t)(desc->active[i] % desc->detector_columns);
    }
}

/* One frequency's g becomes the data's next one. spectrum: [n_active] complex. */
static void append(const ps_system_desc *desc, int64_t stride, const candidate *c, const double *spectrum, ps_fit_data *data) {
    double *to = data->spectra + 2 * data->n_frequencies * data->n_pixels, power = 0.0;
    int64_t at = 0;
    for (int64_t i = 0; i < desc->n_active; i++) {
        if (!is_kept(desc, i, stride)) continue;
        memcpy(to + 2 * at++, spectrum + 2 * i, 2 * sizeof *to);
        power += spectrum[2 * i] * spectrum[2 * i] + spectrum[2 * i + 1] * spectrum[2 * i + 1];
    }
    data->q_row[data->n_frequencies] = c->q[0];
    data->q_column[data->n_frequencies] = c->q[1];
    data->power[data->n_frequencies++] = power;
}

/* The first `most` candidates whose power, at the pixels that are kept, stands out of the noise. */
static ps_code fill(ps_frame *frame, const ps_plan *plan, int64_t stride, int64_t n, const candidate *candidates, int64_t most,
                    ps_fit_data *data, ps_error *error) {
    enum { AT_A_TIME = 16 };
    const ps_system_desc *desc = &plan->desc;
    int64_t chosen[AT_A_TIME], most_tried = 4 * most < n ? 4 * most : n;
    ps_code code = PS_OK;
    double kept = (double)data->n_pixels / (double)desc->n_active;
    double *spectra = malloc(2 * AT_A_TIME * (size_t)desc->n_active * sizeof *spectra);
    PS_GO_ALLOC(error, spectra);
    for (int64_t first = 0; first < most_tried && data->n_frequencies < most; first += AT_A_TIME) {
        int64_t count = most_tried - first < AT_A_TIME ? most_tried - first : AT_A_TIME;
        ps_watchdog_beat("optics", -1);
        for (int64_t i = 0; i < count; i++) chosen[i] = candidates[first + i].frequency;
        PS_GO(ps_frame_get_spectra(frame, count, chosen, data->dose, spectra, error));
        for (int64_t i = 0; i < count && data->n_frequencies < most; i++) {
            append(desc, stride, &candidates[first + i], spectra + 2 * i * desc->n_active, data);
            data->n_frequencies -= data->power[data->n_frequencies - 1] <= kept * data->noise_power;
        }
    }
done:
    free(spectra);
    return code;
}

ps_code ps_fit_data_at_hand(ps_frame *frame, const ps_plan *plan, ps_methods methods, double dose, int64_t most, int64_t most_pixels,
                            ps_fit_data *data, ps_error *error) {
    const ps_system_desc *desc = &plan->desc;
    double positions = (double)desc->scan_rows * (double)desc->scan_columns;
    int64_t n = 0, stride = (desc->n_active + most_pixels - 1) / most_pixels;
    ps_code code = PS_OK;
    *data = (ps_fit_data){.dose = dose,
                          .step_A = {desc->scan_step_A[0], desc->scan_step_A[1]},
                          .scan_rows = desc->scan_rows,
                          .scan_columns = desc->scan_columns,
                          .detector_rows = desc->detector_rows,
                          .detector_columns = desc->detector_columns};
    double *mean = malloc((size_t)desc->n_active * sizeof *mean);
    candidate *candidates = malloc((size_t)desc->n_frequencies * sizeof *candidates);
    PS_GO_ALLOC(error, mean);
    PS_GO_ALLOC(error, candidates);
    PS_GO(ps_frame_mean_counts(frame, mean, NULL, error));
    for (int64_t i = 0; i < desc->n_active; i++) data->noise_power += mean[i] / (dose * dose * positions);
    PS_GO(rank(frame, plan, with_power(methods), data->noise_power, candidates, &n, error));
    PS_GO(allocate(most, desc->n_active, data, error));
    list_pixels(desc, stride, data);
    PS_GO(fill(frame, plan, stride, n, candidates, most, data, error));
done:
    free(mean);
    free(candidates);
    if (code != PS_OK) ps_fit_data_free(data);
    return code;
}
