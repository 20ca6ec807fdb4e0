#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/fast/fast.h"
#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"

enum { PATCH = 4 }; /* PATCH * PATCH == PS_FAST_TILE */

typedef struct {
    int64_t key;
    int32_t pixel;
} keyed;

static int compare_keys(const void *a, const void *b) {
    const keyed *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Patch by patch along boustrophedon rows of patches, so that slots that follow each other lie together on the detector. */
void ps_fast_slot_order(const ps_system_desc *desc, int32_t *order) {
    int64_t patches = (desc->detector_columns + PATCH - 1) / PATCH;
    keyed *all = (keyed *)malloc((size_t)desc->n_active * sizeof *all);
    for (int64_t i = 0; i < desc->n_active; i++) {
        int64_t row = desc->active[i] / desc->detector_columns, column = desc->active[i] % desc->detector_columns;
        int64_t across = row / PATCH % 2 ? patches - 1 - column / PATCH : column / PATCH;
        int64_t patch = row / PATCH * patches + across;
        if (all) all[i] = (keyed){(patch * PATCH + row % PATCH) * PATCH + column % PATCH, (int32_t)i};
        order[i] = (int32_t)i;
    }
    if (!all) return; /* any order is right, this one is only slower */
    qsort(all, (size_t)desc->n_active, sizeof *all, compare_keys);
    for (int64_t i = 0; i < desc->n_active; i++) order[i] = all[i].pixel;
    free(all);
}

static void fill_pixels(ps_fast_system *system, double *x, double *y, double *inside) {
    const ps_system_desc *desc = &system->cpu.desc;
    for (int64_t i = 0; i < system->pixels.n_tiles * PS_FAST_TILE; i++) {
        int64_t slot = i < desc->n_active ? i : desc->n_active - 1; /* padding lies where the last pixel lies, but is dark */
        x[i] = desc->k_row[slot] / system->k_max;
        y[i] = desc->k_column[slot] / system->k_max;
        inside[i] = 1.0 - x[i] * x[i] - y[i] * y[i];
        system->aperture[i] =
            i < desc->n_active ? (float)ps_reference_aperture(&desc->probe, desc->k_row[slot], desc->k_column[slot]) : 0.0f;
        system->weights[i] = 1.0f;
    }
}

void ps_fast_fill_tiles(const ps_fast_pixels *pixels, float *tile_x, float *tile_y, float *tile_radius) {
    for (int64_t t = 0; t < pixels->n_tiles; t++) {
        const double *x = pixels->x + t * PS_FAST_TILE, *y = pixels->y + t * PS_FAST_TILE;
        double low[2] = {x[0], y[0]}, high[2] = {x[0], y[0]}, radius = 0.0;
        for (int i = 1; i < PS_FAST_TILE; i++) {
            low[0] = fmin(low[0], x[i]), high[0] = fmax(high[0], x[i]);
            low[1] = fmin(low[1], y[i]), high[1] = fmax(high[1], y[i]);
        }
        tile_x[t] = (float)(0.5 * (low[0] + high[0]));
        tile_y[t] = (float)(0.5 * (low[1] + high[1]));
        for (int i = 0; i < PS_FAST_TILE; i++) {
            double dx = x[i] - tile_x[t], dy = y[i] - tile_y[t];
            radius = fmax(radius, dx * dx + dy * dy);
        }
        tile_radius[t] = (float)(sqrt(radius) * (1.0 + 1e-6));
    }
}

ps_code ps_fast_pixels_init(ps_fast_system *system, ps_error *error) {
    const ps_system_desc *desc = &system->cpu.desc;
    ps_fast_pixels *pixels = &system->pixels;
    pixels->n_tiles = (desc->n_active + PS_FAST_TILE - 1) / PS_FAST_TILE;
    size_t tiles = (size_t)pixels->n_tiles, padded = tiles * PS_FAST_TILE;
    double *x = ps_cpu_allocate(padded, sizeof *x), *y = ps_cpu_allocate(padded, sizeof *y);
    double *inside = ps_cpu_allocate(padded, sizeof *inside);
    float *tile_x = ps_cpu_allocate(tiles, sizeof *tile_x), *tile_y = ps_cpu_allocate(tiles, sizeof *tile_y);
    float *tile_radius = ps_cpu_allocate(tiles, sizeof *tile_radius);
    system->aperture = ps_cpu_allocate(padded, sizeof *system->aperture);
    system->weights = ps_cpu_allocate(padded, sizeof *system->weights);
    pixels->x = x, pixels->y = y, pixels->inside = inside;
    pixels->tile_x = tile_x, pixels->tile_y = tile_y, pixels->tile_radius = tile_radius;
    if (!x || !y || !inside || !tile_x || !tile_y || !tile_radius || !system->aperture || !system->weights)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu active pixels", padded);
    for (int i = 0; i < 2; i++) pixels->pitch[i] = (float)(desc->probe.pitch_rad[i] / desc->probe.semiangle_rad);
    fill_pixels(system, x, y, inside);
    ps_fast_fill_tiles(pixels, tile_x, tile_y, tile_radius);
    return PS_OK;
}

void ps_fast_pixels_release(ps_fast_system *system) {
    const ps_fast_pixels *pixels = &system->pixels;
    const void *arrays[] = {pixels->x,      pixels->y,           pixels->inside,   pixels->tile_x,
                            pixels->tile_y, pixels->tile_radius, system->aperture, system->weights};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) ps_cpu_free((void *)arrays[i]);
}
