#include "tasks/histogram/maps.h"

#include <stdlib.h>

ps_code ps_histogram_maps_allocate(int64_t n_pixels, int64_t n_bins, ps_histogram_maps *maps, ps_error *error) {
    *maps = (ps_histogram_maps){0};
    uint64_t **counts[] = {&maps->n_values, &maps->underflow, &maps->overflow, &maps->nonfinite, &maps->n_saturated};
    double **numbers[] = {&maps->mean, &maps->variance, &maps->median, &maps->mode, &maps->minimum, &maps->maximum};
    bool complete = (maps->total = calloc((size_t)n_bins, sizeof *maps->total)) != NULL;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        complete &= (*counts[i] = calloc((size_t)n_pixels, sizeof **counts[i])) != NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        complete &= (*numbers[i] = calloc((size_t)n_pixels, sizeof **numbers[i])) != NULL;
    if (complete) return PS_OK;
    ps_histogram_maps_free(maps);
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate the maps of %lld pixels", (long long)n_pixels);
}

void ps_histogram_maps_free(ps_histogram_maps *maps) {
    free(maps->n_values);
    free(maps->underflow);
    free(maps->overflow);
    free(maps->nonfinite);
    free(maps->n_saturated);
    free(maps->mean);
    free(maps->variance);
    free(maps->median);
    free(maps->mode);
    free(maps->minimum);
    free(maps->maximum);
    free(maps->total);
    *maps = (ps_histogram_maps){0};
}
