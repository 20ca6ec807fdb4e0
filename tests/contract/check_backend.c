#include "contract/check_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/memory.h"

typedef struct {
    ps_backend base;
    ps_backend *inner;
} check_backend;

typedef struct {
    ps_system base;
    ps_system *inner;
    ps_system_desc sizes; /* only its numbers */
} check_system;

typedef struct {
    ps_frame base;
    ps_frame *inner;
    const check_system *system;
    ps_dtype dtype;
} check_frame;

static int n_open;

/* --- walls: buffers that end where a page nobody may touch begins --- */

enum { MOST_WALLS = 16, MOST_LISTED = 4 }; /* listed: images of a solution with an array each */

typedef struct {
    char *map, *data;
    size_t map_bytes, bytes;
    void *host;     /* where an output goes; NULL: input */
    size_t element; /* of an output: sizeof(float) or sizeof(double) */
} wall;

typedef struct {
    wall walls[MOST_WALLS];
    int n;
} walls;

static void *wall_add(walls *w, size_t bytes, void *host, size_t element) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
    wall *new = &w->walls[w->n++];
    *new = (wall){.map_bytes = body + page, .bytes = bytes, .host = host, .element = element};
    new->map = mmap(NULL, new->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (new->map == MAP_FAILED || mprotect(new->map + body, page, PROT_NONE) != 0) abort();
    new->data = new->map + body - bytes;
    memset(new->map, 0xff, body);
    return new->data;
}

static void *wall_in(walls *w, const void *host, size_t bytes) {
    if (!host) return NULL;
    void *data = wall_add(w, bytes, NULL, 0);
    memcpy(data, host, bytes);
    return data;
}

static void *wall_out(walls *w, void *host, size_t n, size_t element) {
    return host ? wall_add(w, n * element, host, element) : NULL;
}

static bool is_written(const wall *w) {
    for (size_t i = 0; i < w->bytes; i += w->element) {
        float f;
        double d;
        memcpy(&f, w->data + i, sizeof f);
        if (w->element == sizeof f && !isfinite(f)) return false;
        if (w->element == sizeof d && (memcpy(&d, w->data + i, sizeof d), !isfinite(d))) return false;
    }
    return true;
}

/* Copies the outputs to the caller after a good call and takes every wall down. */
static ps_code walls_leave(walls *w, ps_code code, const char *operation, ps_error *error) {
    for (int i = 0; i < w->n; i++) {
        wall *one = &w->walls[i];
        if (code == PS_OK && one->host && !is_written(one))
            code = PS_FAIL(error, PS_E_DEVICE, "%s left an output of %zu bytes unwritten or not finite", operation, one->bytes);
        if (code == PS_OK && one->host) memcpy(one->host, one->data, one->bytes);
        munmap(one->map, one->map_bytes);
    }
    w->n = 0;
    return code;
}

/* --- operations --- */

static void close_backend(ps_backend *handle) {
    check_backend *check = (check_backend *)handle;
    ps_backend_close(check->inner);
    free(check);
    if (--n_open == 0) ps_cpu_memory_poison(false);
}

static ps_code open_inner(const ps_backend_ops *inner, const ps_backend_options *options, ps_backend **backend, ps_error *error) {
    check_backend *check = calloc(1, sizeof *check);
    if (!check) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the check backend");
    ps_cpu_memory_poison(true);
    n_open++;
    ps_code code = ps_backend_open(inner, options, &check->inner, error);
    if (code == PS_OK)
        *backend = &check->base;
    else
        close_backend(&check->base);
    return code;
}

static void device_info(const ps_backend *handle, ps_device_info *info) {
    const check_backend *check = (const check_backend *)handle;
    ps_backend_info(check->inner, info);
}

static ps_code check_owned(const void *pointer, size_t bytes, const char *name, ps_error *error) {
    if (ps_cpu_memory_owns(pointer, bytes)) return PS_OK;
    return PS_FAIL(error, PS_E_DEVICE, "%s is a host pointer, expected the backend's own memory", name);
}

static ps_code check_system_owned(const ps_system *inner, ps_error *error) {
    const ps_cpu_system *system = (const ps_cpu_system *)inner;
    const ps_system_desc *desc = &system->desc;
    size_t active = (size_t)desc->n_active, aliases = (size_t)desc->n_aliases;
    PS_TRY(check_owned(desc->active, active * sizeof *desc->active, "active", error));
    PS_TRY(check_owned(desc->k_row, active * sizeof *desc->k_row, "k_row", error));
    PS_TRY(check_owned(desc->k_column, active * sizeof *desc->k_column, "k_column", error));
    PS_TRY(check_owned(system->weights, active * sizeof *system->weights, "weights", error));
    PS_TRY(check_owned(desc->frequencies, (size_t)desc->n_frequencies * sizeof *desc->frequencies, "frequencies", error));
    PS_TRY(check_owned(desc->fine_row, aliases * sizeof *desc->fine_row, "fine_row", error));
    PS_TRY(check_owned(desc->fine_column, aliases * sizeof *desc->fine_column, "fine_column", error));
    PS_TRY(check_owned(desc->q_row, aliases * sizeof *desc->q_row, "q_row", error));
    PS_TRY(check_owned(desc->q_column, aliases * sizeof *desc->q_column, "q_column", error));
    PS_TRY(check_owned(desc->prior_phase, aliases * sizeof *desc->prior_phase, "prior_phase", error));
    return check_owned(desc->prior_complex, aliases * sizeof *desc->prior_complex, "prior_complex", error);
}

static ps_system_desc wall_desc(walls *w, const ps_system_desc *desc) {
    ps_system_desc copy = *desc;
    size_t active = (size_t)desc->n_active, aliases = (size_t)desc->n_aliases;
    copy.active = wall_in(w, desc->active, active * sizeof *desc->active);
    copy.k_row = wall_in(w, desc->k_row, active * sizeof *desc->k_row);
    copy.k_column = wall_in(w, desc->k_column, active * sizeof *desc->k_column);
    copy.frequencies = wall_in(w, desc->frequencies, (size_t)desc->n_frequencies * sizeof *desc->frequencies);
    copy.fine_row = wall_in(w, desc->fine_row, aliases * sizeof *desc->fine_row);
    copy.fine_column = wall_in(w, desc->fine_column, aliases * sizeof *desc->fine_column);
    copy.q_row = wall_in(w, desc->q_row, aliases * sizeof *desc->q_row);
    copy.q_column = wall_in(w, desc->q_column, aliases * sizeof *desc->q_column);
    copy.prior_phase = wall_in(w, desc->prior_phase, aliases * sizeof *desc->prior_phase);
    copy.prior_complex = wall_in(w, desc->prior_complex, aliases * sizeof *desc->prior_complex);
    return copy;
}

static void system_destroy(ps_system *handle) {
    check_system *system = (check_system *)handle;
    ps_system_destroy(system->inner);
    free(system);
}

static ps_code system_create(ps_backend *handle, const ps_system_desc *desc, ps_methods methods, ps_system **system_handle,
                             ps_error *error) {
    check_backend *check = (check_backend *)handle;
    check_system *system = calloc(1, sizeof *system);
    if (!system) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a check system");
    walls w = {0};
    ps_system_desc copy = wall_desc(&w, desc);
    system->sizes = *desc;
    ps_code code = walls_leave(&w, ps_system_create(check->inner, &copy, methods, &system->inner, error), "system_create", error);
    if (code == PS_OK) code = check_system_owned(system->inner, error);
    if (code == PS_OK)
        *system_handle = &system->base;
    else
        system_destroy(&system->base);
    return code;
}

static ps_code system_set_weights(ps_system *handle, const double *weights, ps_error *error) {
    check_system *system = (check_system *)handle;
    walls w = {0};
    double *in = wall_in(&w, weights, (size_t)system->sizes.n_active * sizeof *weights);
    return walls_leave(&w, ps_system_set_weights(system->inner, in, error), "system_set_weights", error);
}

static ps_code system_prepare(ps_system *handle, ps_error *error) {
    check_system *system = (check_system *)handle;
    return ps_system_prepare(system->inner, error);
}

static void frame_destroy(ps_frame *handle) {
    check_frame *frame = (check_frame *)handle;
    ps_frame_destroy(frame->inner);
    free(frame);
}

static ps_code frame_create(ps_system *handle, ps_dtype dtype, ps_frame **frame_handle, ps_error *error) {
    check_system *system = (check_system *)handle;
    check_frame *frame = calloc(1, sizeof *frame);
    if (!frame) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a check frame");
    *frame = (check_frame){.system = system, .dtype = dtype};
    ps_code code = ps_frame_create(system->inner, dtype, &frame->inner, error);
    if (code == PS_OK)
        *frame_handle = &frame->base;
    else
        frame_destroy(&frame->base);
    return code;
}

static ps_code frame_upload(ps_frame *handle, int64_t first_position, int64_t n_positions, const void *counts, ps_error *error) {
    check_frame *frame = (check_frame *)handle;
    const ps_system_desc *sizes = &frame->system->sizes;
    walls w = {0};
    size_t pixels = (size_t)(sizes->detector_rows * sizes->detector_columns), n = (size_t)n_positions;
    void *in = wall_in(&w, counts, n * pixels * ps_dtype_bytes(frame->dtype));
    return walls_leave(&w, ps_frame_upload(frame->inner, first_position, n_positions, in, error), "frame_put", error);
}

static ps_code frame_mean_counts(ps_frame *handle, double *mean, int64_t *n_marked, ps_error *error) {
    check_frame *frame = (check_frame *)handle;
    size_t n = (size_t)frame->system->sizes.n_active;
    walls w = {0};
    double *out = wall_out(&w, mean, n, sizeof *mean);
    return walls_leave(&w, ps_frame_mean_counts(frame->inner, out, n_marked, error), "frame_means", error);
}

static ps_code frame_reduce(ps_frame *const *handles, int64_t n_frames, const double *dose, ps_error *error) {
    ps_frame **inner = calloc((size_t)n_frames, sizeof(ps_frame *));
    if (!inner) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld frames", (long long)n_frames);
    for (int64_t i = 0; i < n_frames; i++) inner[i] = ((check_frame *)handles[i])->inner;
    walls w = {0};
    double *in = wall_in(&w, dose, (size_t)n_frames * sizeof *dose);
    ps_code code = ps_frame_reduce(inner, n_frames, in, error);
    free(inner);
    return walls_leave(&w, code, "frame_reduce", error);
}

static size_t fine_size(const check_frame *frame) {
    const ps_system_desc *sizes = &frame->system->sizes;
    return (size_t)(sizes->scan_rows * sizes->scan_columns * sizes->upsampling * sizes->upsampling);
}

static ps_code solve(ps_frame *handle, ps_methods method, int64_t n_strengths, const ps_strength *strengths, const ps_solution *solution,
                     ps_error *error) {
    check_frame *frame = (check_frame *)handle;
    size_t n = (size_t)n_strengths, image = n * fine_size(frame);
    walls w = {0};
    ps_solution out = {.phase_f32 = wall_out(&w, solution->phase_f32, image, sizeof(float)),
                       .log_amplitude_f32 = wall_out(&w, solution->log_amplitude_f32, image, sizeof(float)),
                       .phase_f64 = wall_out(&w, solution->phase_f64, image, sizeof(double)),
                       .log_amplitude_f64 = wall_out(&w, solution->log_amplitude_f64, image, sizeof(double)),
                       .residual = wall_out(&w, solution->residual, n, sizeof(double)),
                       .effective_dof = wall_out(&w, solution->effective_dof, n, sizeof(double))};
    const ps_strength *in = wall_in(&w, strengths, n * sizeof *strengths);
    float *phases[MOST_LISTED], *log_amplitudes[MOST_LISTED];
    bool lists = solution->phases_f32 || solution->log_amplitudes_f32;
    if (lists && n > MOST_LISTED) return PS_FAIL(error, PS_E_INTERNAL, "%zu strengths with an array each, expected %d", n, MOST_LISTED);
    for (size_t i = 0; lists && i < n; i++) {
        phases[i] = solution->phases_f32 ? wall_out(&w, solution->phases_f32[i], fine_size(frame), sizeof(float)) : NULL;
        log_amplitudes[i] =
            solution->log_amplitudes_f32 ? wall_out(&w, solution->log_amplitudes_f32[i], fine_size(frame), sizeof(float)) : NULL;
    }
    if (solution->phases_f32) out.phases_f32 = phases;
    if (solution->log_amplitudes_f32) out.log_amplitudes_f32 = log_amplitudes;
    return walls_leave(&w, ps_system_solve(frame->inner, method, n_strengths, in, &out, error), "solve", error);
}

static ps_code ssb(ps_frame *handle, ps_ssb_estimator estimator, float *phase_f32, double *phase_f64, double *loss, ps_error *error) {
    check_frame *frame = (check_frame *)handle;
    walls w = {0};
    float *f32 = wall_out(&w, phase_f32, fine_size(frame), sizeof *f32);
    double *f64 = wall_out(&w, phase_f64, fine_size(frame), sizeof *f64);
    double *one = wall_out(&w, loss, 1, sizeof *one);
    return walls_leave(&w, ps_frame_ssb(frame->inner, estimator, f32, f64, one, error), "ssb", error);
}

static ps_code right_side_image(ps_frame *handle, float *image_f32, double *image_f64, ps_error *error) {
    check_frame *frame = (check_frame *)handle;
    walls w = {0};
    float *f32 = wall_out(&w, image_f32, fine_size(frame), sizeof *f32);
    double *f64 = wall_out(&w, image_f64, fine_size(frame), sizeof *f64);
    return walls_leave(&w, ps_frame_right_side_image(frame->inner, f32, f64, error), "right_side_image", error);
}

static ps_code frame_data_norm(ps_frame *handle, double *data_norm, ps_error *error) {
    check_frame *frame = (check_frame *)handle;
    walls w = {0};
    double *out = wall_out(&w, data_norm, 1, sizeof *out);
    return walls_leave(&w, ps_frame_data_norm(frame->inner, out, error), "frame_power", error);
}

static ps_code system_scales(ps_system *handle, ps_methods method, double *amplitude, double *phase, ps_error *error) {
    check_system *system = (check_system *)handle;
    walls w = {0};
    double *a = wall_out(&w, amplitude, 1, sizeof *a), *p = wall_out(&w, phase, 1, sizeof *p);
    return walls_leave(&w, ps_system_scales(system->inner, method, a, p, error), "system_scales", error);
}

/* --- inspection --- */

static size_t aliases_of(const ps_system *inner, int64_t frequency) {
    const ps_system_desc *desc = &((const ps_cpu_system *)inner)->desc;
    return frequency >= 0 && frequency < desc->n_frequencies ? (size_t)desc->frequencies[frequency].n_aliases : 0;
}

static size_t dim_of(const ps_system *inner, ps_methods method, int64_t frequency) {
    return aliases_of(inner, frequency) * (method == PS_METHOD_COMPLEX ? 2 : 1);
}

static ps_code get_transfer(ps_system *handle, int64_t frequency, double *transfer, ps_error *error) {
    check_system *system = (check_system *)handle;
    walls w = {0};
    size_t n = aliases_of(system->inner, frequency) * (size_t)system->sizes.n_active * 4;
    double *out = wall_out(&w, transfer, n, sizeof *out);
    return walls_leave(&w, ps_system_get_transfer(system->inner, frequency, out, error), "get_transfer", error);
}

static ps_code get_normal(ps_system *handle, ps_methods method, int64_t frequency, double *normal, ps_error *error) {
    check_system *system = (check_system *)handle;
    size_t dim = dim_of(system->inner, method, frequency);
    walls w = {0};
    double *out = wall_out(&w, normal, 2 * dim * dim, sizeof *out);
    return walls_leave(&w, ps_system_get_normal(system->inner, method, frequency, out, error), "get_normal", error);
}

static ps_code get_eigenvalues(ps_system *handle, int64_t frequency, double *eigenvalues, ps_error *error) {
    check_system *system = (check_system *)handle;
    walls w = {0};
    double *out = wall_out(&w, eigenvalues, aliases_of(system->inner, frequency), sizeof *out);
    return walls_leave(&w, ps_system_get_eigenvalues(system->inner, frequency, out, error), "get_eigenvalues", error);
}

static ps_code get_right_side(ps_frame *handle, ps_methods method, int64_t frequency, double *right_side, double *data_norm,
                              ps_error *error) {
    check_frame *frame = (check_frame *)handle;
    walls w = {0};
    double *out = wall_out(&w, right_side, 2 * dim_of(frame->system->inner, method, frequency), sizeof *out);
    double *one = wall_out(&w, data_norm, 1, sizeof *one);
    return walls_leave(&w, ps_frame_get_right_side(frame->inner, method, frequency, out, one, error), "get_right_side", error);
}

static ps_code get_spectrum(ps_frame *handle, int64_t frequency, double dose, double *spectrum, ps_error *error) {
    check_frame *frame = (check_frame *)handle;
    walls w = {0};
    double *out = wall_out(&w, spectrum, 2 * (size_t)frame->system->sizes.n_active, sizeof *out);
    return walls_leave(&w, ps_frame_get_spectrum(frame->inner, frequency, dose, out, error), "get_spectrum", error);
}

/* The two tables differ in the backend behind the wall. */
#define CHECK_BACKEND(table, inner, text)                                                                                   \
    static ps_code open_##inner(const ps_backend_options *options, ps_backend **backend, ps_error *error) {                 \
        return open_inner(&inner, options, backend, error);                                                                 \
    }                                                                                                                       \
    static ps_code memory_plan_##inner(const ps_system_desc *desc, ps_methods methods, ps_dtype dtype, size_t budget_bytes, \
                                       int64_t max_frames, ps_memory_plan *plan, ps_error *error) {                         \
        return ps_backend_memory_plan(&inner, desc, methods, dtype, budget_bytes, max_frames, plan, error);                 \
    }                                                                                                                       \
    const ps_backend_ops table = {.name = text,                                                                             \
                                  .open = open_##inner,                                                                     \
                                  .close = close_backend,                                                                   \
                                  .device_info = device_info,                                                               \
                                  .memory_plan = memory_plan_##inner,                                                       \
                                  .system_create = system_create,                                                           \
                                  .system_destroy = system_destroy,                                                         \
                                  .system_set_weights = system_set_weights,                                                 \
                                  .system_prepare = system_prepare,                                                         \
                                  .frame_create = frame_create,                                                             \
                                  .frame_destroy = frame_destroy,                                                           \
                                  .frame_upload = frame_upload,                                                             \
                                  .frame_mean_counts = frame_mean_counts,                                                   \
                                  .frame_reduce = frame_reduce,                                                             \
                                  .solve = solve,                                                                           \
                                  .ssb = ssb,                                                                               \
                                  .right_side_image = right_side_image,                                                     \
                                  .frame_data_norm = frame_data_norm,                                                       \
                                  .system_scales = system_scales,                                                           \
                                  .get_transfer = get_transfer,                                                             \
                                  .get_normal = get_normal,                                                                 \
                                  .get_eigenvalues = get_eigenvalues,                                                       \
                                  .get_right_side = get_right_side,                                                         \
                                  .get_spectrum = get_spectrum,                                                             \
                                  .owns = ps_cpu_backend_owns}

CHECK_BACKEND(contract_check_reference, ps_backend_cpu_reference, "check-reference");
CHECK_BACKEND(contract_check_fast, ps_backend_cpu_fast, "check-fast");
