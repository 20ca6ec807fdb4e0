/* A system's arrays on the device: where each lies in the one block, and how it is filled. */
#include <math.h>
#include <stdlib.h>

#include "kernels/cuda/layout.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/reduce_kernels.cuh"
#include "kernels/cuda/tasks.h"
#include "kernels/g_packing.h"

void ps_cuda_system_carve(ps_cuda_system *system, ps_cuda_arena *arena) {
    const ps_cuda_layout *layout = &system->layout;
    const ps_system_desc *desc = &system->desc;
    int64_t fine_half = ps_cuda_fine_rows(desc) * ps_cuda_fine_half(desc);
    system->d_pixels = ps_cuda_take<ps_cuda_pixel>(arena, layout->n_slots);
    system->d_root = ps_cuda_take<double>(arena, layout->n_slots);
    system->d_tiles = ps_cuda_take<ps_cuda_tile>(arena, layout->n_tiles);
    system->d_slot_pixel = ps_cuda_take<int32_t>(arena, layout->n_slots);
    system->d_slot_detector = ps_cuda_take<int32_t>(arena, layout->n_slots);
    system->d_ordered_slot = ps_cuda_take<int32_t>(arena, desc->n_active);
    system->d_bands = ps_cuda_take<ps_cuda_band>(arena, layout->n_bands);
    system->d_frequencies = ps_cuda_take<ps_cuda_frequency>(arena, desc->n_frequencies);
    system->d_alias_u = ps_cuda_take<double>(arena, desc->n_aliases);
    system->d_alias_v = ps_cuda_take<double>(arena, desc->n_aliases);
    system->d_prior_phase = ps_cuda_take<double>(arena, desc->n_aliases);
    system->d_prior_complex = ps_cuda_take<double>(arena, desc->n_aliases);
    system->d_alias_frequency = ps_cuda_take<int32_t>(arena, desc->n_aliases);
    system->d_image_source = ps_cuda_take<int32_t>(arena, fine_half);
    system->d_image_partner = ps_cuda_take<int32_t>(arena, fine_half);
    system->d_by_count = ps_cuda_take<int32_t>(arena, desc->n_frequencies);
    system->d_exact = ps_cuda_take<int32_t>(arena, system->n_exact);
    system->d_tasks = ps_cuda_take<ps_cuda_task>(arena, system->n_tasks);
    system->d_normal = ps_cuda_take<double2>(arena, system->n_normal);
    system->d_basis = ps_cuda_take<double2>(arena, system->n_basis);
    system->d_eigenvalues = ps_cuda_take<double>(arena, system->n_basis > 0 ? desc->n_aliases : 0);
    system->d_partial = ps_cuda_take<double>(arena, PS_CUDA_PARTIALS);
    system->d_flag = ps_cuda_take<int32_t>(arena, 1);
    ps_cuda_scan_fft_carve(system, arena);
    ps_cuda_unpack_carve_system(system, arena);
}

static double chi_at(const ps_cuda_geometry *g, double p, double s) {
    double sum = 0.0;
    for (int j = 6; j >= 0; j--) {
        double d = 0.0;
        for (int i = 6 - j; i >= 0; i--) d = d * p + g->chi[ps_cuda_chi_index(i, j)];
        sum = sum * s + d;
    }
    return sum;
}

/* weights: [n_active] or NULL: 1. */
static void fill_pixels(const ps_cuda_system *system, const double *weights, ps_cuda_pixel *pixels, double *root, ps_cuda_tile *tiles) {
    const ps_cuda_layout *layout = &system->layout;
    for (int64_t slot = 0; slot < layout->n_slots; slot++) {
        int32_t pixel = layout->slot_pixel[slot], detector = layout->slot_detector[slot];
        if (pixel < 0) continue;
        double u = detector / system->desc.detector_columns - layout->origin_u,
               v = detector % system->desc.detector_columns - layout->origin_v;
        double weight = weights ? weights[pixel] : 1.0;
        pixels[slot].chi = chi_at(&system->geometry, u, v);
        pixels[slot].aperture = (float)system->apertures[pixel];
        pixels[slot].weight = (float)weight;
        root[slot] = system->apertures[pixel] * sqrt(weight);
        ps_cuda_tile *tile = &tiles[slot / PS_CUDA_LANES];
        tile->aperture[slot % PS_CUDA_LANES] = pixels[slot].aperture;
        tile->weight[slot % PS_CUDA_LANES] = pixels[slot].weight;
        tile->weighted_aperture[slot % PS_CUDA_LANES] = (float)(system->apertures[pixel] * weight);
    }
}

ps_code ps_cuda_system_send_pixels(ps_cuda_system *system, const double *weights, ps_error *error) {
    int64_t n = system->layout.n_slots;
    ps_code code = PS_OK;
    ps_cuda_pixel *pixels = (ps_cuda_pixel *)calloc((size_t)n, sizeof *pixels);
    double *root = (double *)calloc((size_t)n, sizeof *root);
    ps_cuda_tile *tiles = (ps_cuda_tile *)calloc((size_t)system->layout.n_tiles, sizeof *tiles);
    PS_GO_ALLOC(error, pixels && root && tiles);
    fill_pixels(system, weights, pixels, root, tiles);
    PS_GO(ps_cuda_send(system->d_tiles, tiles, system->layout.n_tiles, error));
    PS_GO(ps_cuda_send(system->d_pixels, pixels, n, error));
    PS_GO(ps_cuda_send(system->d_root, root, n, error));
done:
    free(pixels);
    free(root);
    free(tiles);
    return code;
}

static ps_code send_layout(ps_cuda_system *system, ps_error *error) {
    const ps_cuda_layout *layout = &system->layout;
    PS_TRY(ps_cuda_send(system->d_slot_pixel, layout->slot_pixel, layout->n_slots, error));
    PS_TRY(ps_cuda_send(system->d_slot_detector, layout->slot_detector, layout->n_slots, error));
    PS_TRY(ps_cuda_send(system->d_ordered_slot, layout->ordered_slot, system->desc.n_active, error));
    PS_TRY(ps_cuda_send(system->d_bands, layout->bands, layout->n_bands, error));
    return ps_cuda_system_send_pixels(system, NULL, error);
}

static void fill_frequencies(const ps_cuda_system *system, ps_cuda_frequency *device, int32_t *alias_frequency) {
    const ps_system_desc *desc = &system->desc;
    int64_t half = desc->scan_columns / 2 + 1, normal = 0, basis = 0;
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &system->frequencies[i];
        bool conjugate = f->column >= half;
        int64_t row = conjugate ? (desc->scan_rows - f->row) % desc->scan_rows : f->row;
        device[i].spectrum = row * half + (conjugate ? desc->scan_columns - f->column : f->column);
        device[i].scale_row = (int32_t)ps_g_scale_row(device[i].spectrum, half, desc->scan_rows);
        device[i].conjugate = conjugate ? -1.0f : 1.0f;
        device[i].first_alias = f->first_alias;
        device[i].n_aliases = f->n_aliases;
        device[i].multiplicity = i == 0 ? 0.0 : (double)f->multiplicity;
        device[i].normal = normal;
        device[i].basis = basis;
        for (int32_t a = 0; a < f->n_aliases; a++) alias_frequency[f->first_alias + a] = (int32_t)i;
        if (i == 0) continue;
        normal += ps_cuda_normal_elements(system, f->n_aliases);
        if (system->methods & PS_METHOD_PHASE) basis += (int64_t)f->n_aliases * f->n_aliases;
    }
}

static void fill_classes(const ps_cuda_system *system, int32_t *by_count) {
    int64_t at[PS_CUDA_CLASSES];
    for (int c = 0; c < PS_CUDA_CLASSES; c++) at[c] = system->classes[c].first;
    for (int64_t i = 1; i < system->desc.n_frequencies; i++)
        if (system->frequencies[i].n_aliases > 0) by_count[at[ps_cuda_class_of(system->frequencies[i].n_aliases)]++] = (int32_t)i;
}

static void fill_tasks(const ps_cuda_system *system, ps_cuda_task *tasks) {
    int64_t small = 0, large = system->n_small_tasks;
    ps_cuda_walk_tasks(system, [&](ps_cuda_task task, bool is_small) { tasks[is_small ? small++ : large++] = task; });
}

int64_t ps_cuda_system_exact(const ps_cuda_system *system, const ps_system_desc *desc, int32_t *exact) {
    int64_t n = 0;
    for (int64_t i = 1; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &system->frequencies[i];
        for (int64_t alias = f->first_alias; alias < f->first_alias + f->n_aliases; alias++) {
            double u, v;
            ps_cuda_to_pixels(&system->geometry, desc->q_row[alias], desc->q_column[alias], &u, &v);
            if (!ps_reduce_is_exact(system->geometry, u, v)) continue;
            if (exact) exact[n] = (int32_t)alias;
            n++;
        }
    }
    return n;
}

static ps_code send_exact(ps_cuda_system *system, const ps_system_desc *desc, ps_error *error) {
    int32_t *exact = (int32_t *)malloc((size_t)system->n_exact * sizeof *exact + 1);
    if (!exact) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld aliases", (long long)system->n_exact);
    ps_cuda_system_exact(system, desc, exact);
    ps_code code = ps_cuda_send(system->d_exact, exact, system->n_exact, error);
    free(exact);
    return code;
}

static ps_code send_frequencies(ps_cuda_system *system, const ps_system_desc *desc, ps_error *error) {
    size_t n = (size_t)desc->n_frequencies, n_aliases = (size_t)desc->n_aliases;
    ps_cuda_frequency *frequencies = (ps_cuda_frequency *)calloc(n, sizeof *frequencies);
    int32_t *alias_frequency = (int32_t *)calloc(n_aliases + 1, sizeof *alias_frequency),
            *by_count = (int32_t *)calloc(n, sizeof *by_count);
    ps_cuda_task *tasks = (ps_cuda_task *)calloc((size_t)system->n_tasks + 1, sizeof *tasks);
    double *u = (double *)calloc(n_aliases + 1, sizeof *u), *v = (double *)calloc(n_aliases + 1, sizeof *v);
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, frequencies && alias_frequency && by_count && tasks && u && v);
    fill_frequencies(system, frequencies, alias_frequency);
    fill_classes(system, by_count);
    fill_tasks(system, tasks);
    for (int64_t a = 0; a < desc->n_aliases; a++) ps_cuda_to_pixels(&system->geometry, desc->q_row[a], desc->q_column[a], &u[a], &v[a]);
    PS_GO(ps_cuda_send(system->d_frequencies, frequencies, desc->n_frequencies, error));
    PS_GO(ps_cuda_send(system->d_alias_frequency, alias_frequency, desc->n_aliases, error));
    PS_GO(ps_cuda_send(system->d_by_count, by_count, desc->n_frequencies, error));
    PS_GO(ps_cuda_send(system->d_tasks, tasks, system->n_tasks, error));
    PS_GO(ps_cuda_send(system->d_alias_u, u, desc->n_aliases, error));
    PS_GO(ps_cuda_send(system->d_alias_v, v, desc->n_aliases, error));
    PS_GO(ps_cuda_send(system->d_prior_phase, desc->prior_phase, desc->n_aliases, error));
    PS_GO(ps_cuda_send(system->d_prior_complex, desc->prior_complex, desc->n_aliases, error));
done:
    free(frequencies);
    free(alias_frequency);
    free(by_count);
    free(tasks);
    free(u);
    free(v);
    return code;
}

static ps_code send_image_maps(ps_cuda_system *system, const ps_system_desc *desc, ps_error *error) {
    int64_t n = ps_cuda_fine_rows(desc) * ps_cuda_fine_half(desc);
    int32_t *source = (int32_t *)malloc((size_t)n * sizeof *source), *partner = (int32_t *)malloc((size_t)n * sizeof *partner);
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, source && partner);
    PS_GO(ps_cuda_image_maps(desc, source, partner, error));
    PS_GO(ps_cuda_send(system->d_image_source, source, n, error));
    PS_GO(ps_cuda_send(system->d_image_partner, partner, n, error));
done:
    free(source);
    free(partner);
    return code;
}

ps_code ps_cuda_system_fill(ps_cuda_system *system, const ps_system_desc *desc, ps_error *error) {
    PS_TRY(send_layout(system, error));
    PS_TRY(send_frequencies(system, desc, error));
    PS_TRY(send_exact(system, desc, error));
    PS_TRY(ps_cuda_scan_fft_fill(system, error));
    return send_image_maps(system, desc, error);
}

ps_cuda_pixels ps_cuda_system_pixels(const ps_cuda_system *system) {
    ps_cuda_pixels pixels = {system->d_pixels,
                             system->d_tiles,
                             system->d_root,
                             system->d_bands,
                             (int32_t)system->layout.n_tiles,
                             (int32_t)system->layout.n_bands};
    return pixels;
}

ps_cuda_aliases ps_cuda_system_aliases(const ps_cuda_system *system) {
    ps_cuda_aliases aliases = {system->d_frequencies,     system->d_alias_u,          system->d_alias_v,
                               system->d_alias_frequency, system->desc.n_frequencies, system->desc.n_aliases};
    return aliases;
}
