#include "kernels/cpu/reference/reference.h"

/* Bytes of the matrices of all solved frequencies. */
static size_t matrix_bytes(const ps_system_desc *desc, ps_methods methods) {
    size_t entries = 0;
    for (int64_t i = 1; i < desc->n_frequencies; i++) {
        size_t n = (size_t)desc->frequencies[i].n_aliases;
        entries += methods & PS_METHOD_COMPLEX ? 4 * n * n : methods & PS_METHOD_PHASE ? n * n : 0;
        entries += methods & PS_METHOD_PHASE ? n * n : 0;
    }
    return entries * sizeof(double complex);
}

static size_t system_bytes(const ps_system_desc *desc, ps_methods methods) {
    return sizeof(ps_cpu_backend) + sizeof(ps_reference_system) + ps_cpu_system_bytes(desc) + matrix_bytes(desc, methods) +
           (size_t)desc->n_active * sizeof(double complex) + (size_t)desc->n_frequencies * 2 * sizeof(int64_t) +
           (size_t)desc->n_aliases * sizeof(double);
}

/* Workspace of preparing, solving and imaging: what does not grow with the chunk. */
static size_t fixed_bytes(const ps_system_desc *desc) {
    size_t threads = (size_t)ps_cpu_max_threads(), dim = 2 * (size_t)ps_cpu_max_aliases(desc, true);
    size_t fine = (size_t)(ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc)),
           half = (size_t)(desc->scan_rows * ps_cpu_half_columns(desc));
    size_t prepare = threads * dim * (size_t)desc->n_active * sizeof(double complex);
    size_t solve = threads * (2 * dim * dim + 2 * dim) * sizeof(double complex) + 2 * fine * sizeof(double complex) +
                   (size_t)desc->n_frequencies * 2 * sizeof(double);
    size_t ssb = fine * (sizeof(double complex) + 2 * sizeof(double)) + half * sizeof(double complex) +
                 (size_t)ps_cpu_positions(desc) * sizeof(double) * threads;
    size_t most = prepare > solve ? prepare : solve;
    return most > ssb ? most : ssb;
}

/* Workspace that one pixel of a chunk costs. */
static size_t pixel_bytes(const ps_system_desc *desc, size_t batch) {
    size_t half = (size_t)(desc->scan_rows * ps_cpu_half_columns(desc)), threads = (size_t)ps_cpu_max_threads();
    return (batch * half + threads * (2 + batch)) * sizeof(double complex);
}

static size_t scan_bytes(const ps_system_desc *desc) {
    return (size_t)ps_cpu_max_threads() * (size_t)ps_cpu_positions(desc) * sizeof(double);
}

ps_code ps_reference_memory_plan(const ps_system_desc *desc, ps_methods methods, ps_dtype dtype, size_t budget_bytes, int64_t max_frames,
                                 ps_memory_plan *plan, ps_error *error) {
    size_t system = system_bytes(desc, methods), frame = ps_cpu_frame_bytes(desc, methods, dtype), fixed = fixed_bytes(desc);
    size_t scans = scan_bytes(desc), budget = budget_bytes ? budget_bytes : SIZE_MAX;
    for (int64_t batch = max_frames > 1 ? max_frames : 1; batch >= 1; batch--) {
        size_t kept = system + (size_t)batch * frame, pixel = pixel_bytes(desc, (size_t)batch);
        size_t least = kept + (fixed > scans + pixel ? fixed : scans + pixel);
        if (least > budget && batch > 1) continue;
        if (least > budget)
            return PS_FAIL(error, PS_E_MEMORY, "one frame needs %.3f GiB, the memory budget is %.3f GiB", (double)least / (1 << 30),
                           (double)budget / (1 << 30));
        size_t pixels = (budget - kept - scans) / pixel;
        if (pixels > (size_t)desc->n_active) pixels = (size_t)desc->n_active;
        size_t chunk = scans + pixels * pixel;
        *plan =
            (ps_memory_plan){.system_bytes = system,
                             .frame_bytes = frame,
                             .workspace_bytes = fixed > chunk ? fixed : chunk,
                             .pixels_per_chunk = (int64_t)pixels,
                             .frames_per_batch = batch,
                             .g_bytes = (size_t)(desc->scan_rows * ps_cpu_half_columns(desc) * desc->n_active) * sizeof(double complex)};
        plan->peak_bytes = kept + plan->workspace_bytes;
        break;
    }
    return PS_OK;
}
