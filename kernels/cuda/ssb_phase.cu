/* The SSB estimator `phase`, physics section 6: every pixel's own image, the mean of their phases, and the loss, the image mean of the
 * phases' variance over pixels. The images are formed in ssb_phase_sheets.cu, or in ssb_phase_batches.cu where the fine grid does not suit
 * it; here are the fine geometry, the chunks of g, and what is made of the sums. */
#include "kernels/cuda/ssb_grid.cuh"

#include <stdlib.h>

#include "kernels/cuda/layout.h"
#include "kernels/cuda/sum.cuh"

enum { THREADS = 256 };

/* The sum over pixels of the phases at a point of the image, and of their squares. */
struct point_sums {
    const ps_ssb_sum *sums, *others; /* others: NULL: none */
    __device__ ps_ssb_sum at(int64_t i) const {
        ps_ssb_sum sum = sums[i], other = others ? others[i] : make_double2(0.0, 0.0);
        return make_double2(sum.x + other.x, sum.y + other.y);
    }
};

/* sums -> the mean, padded rows of floats. */
static __global__ void __launch_bounds__(THREADS) mean_kernel(point_sums sums, int64_t columns, double scale, float *image) {
    int64_t column = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = blockIdx.y;
    if (column < columns) image[row * 2 * (columns / 2 + 1) + column] = (float)(scale * sums.at(row * columns + column).x);
}

struct variance_value {
    point_sums sums;
    double scale;
    __device__ double operator()(int64_t i) const {
        ps_ssb_sum sum = sums.at(i);
        double mean = scale * sum.x;
        return scale * sum.y - mean * mean;
    }
};

/* --- memory --- */

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static bool by_sheets(const ps_cuda_system *system) {
    return ps_ssb_phase_sheets_scratch(system) > 0;
}

/* Arrays of sums. */
static int n_sums(const ps_cuda_system *system) {
    return by_sheets(system) ? 2 : 1;
}

static void take_buffers(const ps_cuda_system *system, ps_cuda_arena *arena, ps_ssb_phase *phase) {
    int64_t points = ps_cuda_fine_rows(&system->desc) * ps_cuda_fine_columns(&system->desc);
    int64_t transform = by_sheets(system) ? ps_ssb_phase_sheets_scratch(system) : ps_ssb_phase_batches_scratch(system);
    phase->sums = ps_cuda_take<ps_ssb_sum>(arena, n_sums(system) * points);
    phase->slot_u = ps_cuda_take<double>(arena, system->layout.n_slots);
    phase->slot_v = ps_cuda_take<double>(arena, system->layout.n_slots);
    phase->transform = ps_cuda_take<unsigned char>(arena, larger(transform, ps_cuda_image_floats(system) * (int64_t)sizeof(float)));
}

size_t ps_cuda_ssb_phase_scratch(const ps_cuda_system *system) {
    ps_cuda_arena arena = {NULL, 0};
    ps_ssb_phase phase;
    take_buffers(system, &arena, &phase);
    return arena.used;
}

/* --- the fine grid --- */

/* Every slot's k in steps of the fine grid's frequencies. */
static ps_code send_places(const ps_ssb_phase *phase, const double step[2], ps_error *error) {
    const ps_cuda_system *system = phase->frame->system;
    const ps_cuda_layout *layout = &system->layout;
    const ps_cuda_geometry *g = &system->geometry;
    ps_code code = PS_OK;
    int64_t n = layout->n_slots;
    double *u = (double *)calloc((size_t)n, sizeof *u), *v = (double *)calloc((size_t)n, sizeof *v);
    PS_GO_ALLOC(error, u && v);
    for (int64_t slot = 0; slot < n; slot++) {
        if (layout->slot_pixel[slot] < 0) continue;
        int64_t detector = layout->slot_detector[slot];
        double p = (double)(detector / system->desc.detector_columns) - layout->origin_u;
        double s = (double)(detector % system->desc.detector_columns) - layout->origin_v;
        u[slot] = (p * g->direction_u[0] + s * g->direction_v[0]) / step[0];
        v[slot] = (p * g->direction_u[1] + s * g->direction_v[1]) / step[1];
    }
    PS_GO(ps_cuda_send(phase->slot_u, u, n, error));
    PS_GO(ps_cuda_send(phase->slot_v, v, n, error));
done:
    free(u);
    free(v);
    return code;
}

static ps_code set_geometry(ps_ssb_phase *phase, ps_error *error) {
    const ps_system_desc *desc = &phase->frame->system->desc;
    const double step[2] = {1.0 / ((double)desc->scan_rows * desc->scan_step_A[0]),
                            1.0 / ((double)desc->scan_columns * desc->scan_step_A[1])};
    const double row_step[2] = {step[0], 0.0}, column_step[2] = {0.0, step[1]};
    ps_cuda_geometry_build(&desc->probe, row_step, column_step, &phase->along_row);
    ps_cuda_geometry_build(&desc->probe, column_step, row_step, &phase->along_column);
    return send_places(phase, step, error);
}

/* --- g, chunk by chunk --- */

static ps_code add_tiles(const ps_ssb_phase *phase, int64_t first_tile, int64_t n_tiles, const ps_cuda_g &g, ps_error *error) {
    const ps_cuda_backend *backend = phase->frame->system->backend;
    PS_TRY(ps_cuda_stream_join(backend->side, backend->compute, backend->compute_done, error));
    if (by_sheets(phase->frame->system))
        PS_TRY(ps_ssb_phase_add_sheets(phase, first_tile, n_tiles, &g, error));
    else
        PS_TRY(ps_ssb_phase_add_batches(phase, first_tile, n_tiles, &g, error));
    return ps_cuda_stream_join(backend->compute, backend->side, backend->side_done, error);
}

static ps_code add_all(const ps_ssb_phase *phase, int64_t tiles, ps_error *error) {
    ps_cuda_frame *frame = phase->frame;
    ps_cuda_workspace *workspace = &frame->system->workspace;
    int64_t all = frame->system->layout.n_tiles;
    for (int64_t place = 0; place < workspace->n_owners; place++)
        if (workspace->owner[place] == frame->serial)
            return add_tiles(phase, 0, all, ps_cuda_g_from(frame->system, workspace->g, place * all), error);
    for (int64_t place = 0; place < workspace->n_owners; place++) workspace->owner[place] = 0;
    for (int64_t first = 0; first < all; first += tiles) {
        int64_t n = all - first < tiles ? all - first : tiles;
        PS_TRY(ps_cuda_spectra(frame, first, n, workspace->g, error));
        PS_TRY(add_tiles(phase, first, n, workspace->g, error));
    }
    return PS_OK;
}

/* --- what is made of the sums --- */

static ps_code finish(const ps_ssb_phase *phase, float *phase_f32, double *phase_f64, double *loss, ps_error *error) {
    ps_cuda_system *system = phase->frame->system;
    int64_t rows = ps_cuda_fine_rows(&system->desc), columns = ps_cuda_fine_columns(&system->desc);
    double scale = 1.0 / (double)system->desc.n_active, sum = 0.0;
    float *image = (float *)phase->transform;
    point_sums sums = {phase->sums, n_sums(system) == 2 ? phase->sums + rows * columns : NULL};
    variance_value value = {sums, scale};
    if (loss) PS_TRY(ps_cuda_sum(system, value, rows * columns, &sum, error));
    if (loss) *loss = sum / (double)(rows * columns);
    dim3 grid((unsigned)ps_cuda_blocks(columns, THREADS), (unsigned)rows);
    PS_CUDA_LAUNCH(error, mean_kernel, grid, THREADS, 0, system->backend->compute, sums, columns, scale, image);
    PS_TRY(ps_cuda_download_begin(system, image, 0, error));
    return ps_cuda_download_end(system, 0, phase_f32, phase_f64, error);
}

ps_code ps_cuda_ssb_phase(ps_cuda_frame *frame, float *phase_f32, double *phase_f64, double *loss, ps_error *error) {
    ps_cuda_system *system = frame->system;
    int64_t tiles, points = ps_cuda_fine_rows(&system->desc) * ps_cuda_fine_columns(&system->desc);
    ps_ssb_phase phase = {};
    PS_TRY(ps_cuda_workspace_ensure(system, 1, &tiles, error));
    ps_cuda_arena scratch = ps_cuda_scratch(system);
    phase.frame = frame;
    take_buffers(system, &scratch, &phase);
    PS_TRY(set_geometry(&phase, error));
    for (int64_t i = 0; i < system->desc.n_active; i++) phase.mean += frame->mean[i] / (double)system->desc.n_active;
    PS_TRY(
        PS_CUDA(error, cudaMemsetAsync(phase.sums, 0, (size_t)(n_sums(system) * points) * sizeof *phase.sums, system->backend->compute)));
    PS_TRY(add_all(&phase, tiles, error));
    return finish(&phase, phase_f32, phase_f64, loss, error);
}
