/* What a system and its frames will take on the device, by the functions that lay the memory out, run without a device. */
#include <string.h>

#include "kernels/cuda/operations.h"

static size_t system_bytes(ps_cuda_system *system) {
    ps_cuda_arena arena = {NULL, 0};
    ps_cuda_system_carve(system, &arena);
    return arena.used;
}

static size_t frame_bytes(ps_cuda_system *system, ps_dtype dtype) {
    ps_cuda_frame frame;
    ps_cuda_arena arena = {NULL, 0};
    memset(&frame, 0, sizeof frame);
    frame.system = system;
    frame.dtype = dtype;
    ps_cuda_frame_carve(&frame, &arena);
    return arena.used;
}

/* Tiles of each frame when n_frames share the budget; 0: they do not fit. */
static int64_t tiles_with(const ps_cuda_system *system, const ps_memory_plan *plan, size_t fixed, size_t budget, int64_t n_frames) {
    if (budget == 0) return system->layout.n_tiles;
    size_t taken = plan->system_bytes + fixed + (size_t)n_frames * plan->frame_bytes;
    return taken < budget ? ps_cuda_chunk_tiles(system, n_frames, budget - taken) : 0;
}

static ps_code plan_batch(ps_cuda_system *system, ps_dtype dtype, size_t budget, int64_t max_frames, ps_memory_plan *plan,
                          ps_error *error) {
    size_t tile = ps_cuda_tile_bytes(system);
    size_t fixed = system->scratch_bytes + 256 + 2 * ps_cuda_aside_bytes(system) + 256 +
                   PS_CUDA_UPLOAD_BUFFERS * ps_cuda_upload_bytes(&system->desc, dtype) + ps_cuda_ring_bytes(&system->desc, dtype);
    int64_t segment = system->layout.largest_segment;
    int64_t n = max_frames > 1 ? max_frames : 1, tiles = 0;
    while (n >= 1 && (tiles = tiles_with(system, plan, fixed, budget, n)) == 0) n--;
    if (n < 1)
        return PS_FAIL(
            error, PS_E_MEMORY,
            "cuda: one frame needs %.3f GiB of device memory (system %.3f, frame %.3f, workspace %.3f, one chunk of spectra %.3f), the "
            "budget is %.3f GiB",
            (double)(plan->system_bytes + plan->frame_bytes + fixed + (size_t)segment * tile) / (1 << 30),
            (double)plan->system_bytes / (1 << 30), (double)plan->frame_bytes / (1 << 30), (double)fixed / (1 << 30),
            (double)((size_t)segment * tile) / (1 << 30), (double)budget / (1 << 30));
    int64_t pixels = tiles * PS_CUDA_LANES;
    plan->frames_per_batch = n;
    plan->g_bytes = (size_t)system->layout.n_tiles * tile;
    plan->holds_g = tiles == system->layout.n_tiles;
    plan->pixels_per_chunk = pixels < system->desc.n_active ? pixels : system->desc.n_active;
    plan->workspace_bytes = fixed + (size_t)(n * tiles) * tile;
    plan->peak_bytes = plan->system_bytes + (size_t)n * plan->frame_bytes + plan->workspace_bytes;
    return PS_OK;
}

ps_code ps_cuda_memory_plan(const ps_system_desc *desc, ps_methods methods, ps_dtype dtype, size_t budget_bytes, int64_t max_frames,
                            ps_memory_plan *plan, ps_error *error) {
    ps_cuda_system system;
    memset(&system, 0, sizeof system);
    memset(plan, 0, sizeof *plan);
    ps_code code = PS_OK;
    PS_GO(ps_cuda_system_describe(desc, methods, &system, error));
    plan->system_bytes = system_bytes(&system);
    plan->frame_bytes = frame_bytes(&system, dtype);
    PS_GO(plan_batch(&system, dtype, budget_bytes, max_frames, plan, error));
done:
    ps_cuda_system_undescribe(&system);
    return code;
}
