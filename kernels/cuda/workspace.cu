/* The workspace of a system: scratch for transforms and images (scratch.cu says how much), images on their way to the host, and the store
 * of g. Its size is decided by arithmetic alone, so that a plan made without a device says what will be used. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/operations.h"

int64_t ps_cuda_chunk_tiles(const ps_cuda_system *system, int64_t n_frames, size_t available) {
    const ps_cuda_layout *layout = &system->layout;
    int64_t tiles = (int64_t)(available / ps_cuda_tile_bytes(system)) / n_frames;
    if (tiles >= layout->n_tiles) return layout->n_tiles;
    return tiles >= layout->largest_segment ? tiles : 0;
}

int64_t ps_cuda_chunk_end(const ps_cuda_layout *layout, int64_t first_band, int64_t tiles) {
    int64_t end = first_band, first_tile = layout->bands[first_band].first_tile;
    for (int64_t band = first_band; band < layout->n_bands; band++) {
        if (layout->bands[band].first_tile + layout->bands[band].n_tiles - first_tile > tiles) break;
        if (layout->bands[band].ends_segment) end = band + 1;
    }
    return end;
}

void ps_cuda_workspace_release(ps_cuda_system *system) {
    ps_cuda_workspace *workspace = &system->workspace;
    ps_cuda_free(system->backend, workspace->memory, workspace->bytes);
    free(workspace->owner);
    memset(workspace, 0, sizeof *workspace);
}

static ps_code allocate(ps_cuda_system *system, int64_t store_tiles, ps_error *error) {
    ps_cuda_workspace *workspace = &system->workspace;
    ps_cuda_arena arena = {NULL, 0};
    int64_t store_bytes = store_tiles * (int64_t)ps_cuda_tile_bytes(system);
    workspace->store_tiles = store_tiles;
    ps_cuda_take<unsigned char>(&arena, (int64_t)system->scratch_bytes);
    ps_cuda_take<unsigned char>(&arena, 2 * (int64_t)ps_cuda_aside_bytes(system));
    ps_cuda_take<unsigned char>(&arena, store_bytes);
    workspace->bytes = arena.used;
    PS_TRY(ps_cuda_allocate(system->backend, arena.used, "the workspace", &workspace->memory, error));
    arena.base = (unsigned char *)workspace->memory;
    arena.used = 0;
    workspace->scratch = ps_cuda_take<unsigned char>(&arena, (int64_t)system->scratch_bytes);
    workspace->aside = ps_cuda_take<unsigned char>(&arena, 2 * (int64_t)ps_cuda_aside_bytes(system));
    void *store = ps_cuda_take<unsigned char>(&arena, store_bytes);
    workspace->g = ps_cuda_g_in(system, store, store_tiles);
    workspace->n_owners = store_tiles / system->layout.n_tiles;
    workspace->owner = (uint64_t *)calloc((size_t)workspace->n_owners + 1, sizeof *workspace->owner);
    if (!workspace->owner) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the workspace");
    /* slots that hold no pixel are never written: their spectra must be numbers */
    return PS_CUDA(error, cudaMemsetAsync(store, 0, (size_t)store_bytes, system->backend->compute));
}

ps_code ps_cuda_workspace_ensure(ps_cuda_system *system, int64_t n_frames, int64_t *tiles, ps_error *error) {
    ps_cuda_workspace *workspace = &system->workspace;
    size_t scratch = system->scratch_bytes + 256 + 2 * ps_cuda_aside_bytes(system) + 256;
    size_t free_bytes = ps_cuda_available(system->backend) + workspace->bytes;
    int64_t possible = free_bytes > scratch ? ps_cuda_chunk_tiles(system, n_frames, free_bytes - scratch) : 0;
    if (possible == 0)
        return PS_FAIL(
            error, PS_E_MEMORY,
            "cuda: %lld frames need %.3f GiB of workspace and %.3f GiB of spectra each at least; %.3f GiB of the budget are left",
            (long long)n_frames, (double)scratch / (1 << 30),
            (double)ps_cuda_tile_bytes(system) * (double)system->layout.largest_segment / (1 << 30), (double)free_bytes / (1 << 30));
    *tiles = possible;
    if (workspace->memory && workspace->store_tiles >= n_frames * possible) return PS_OK;
    ps_cuda_workspace_release(system);
    ps_code code = allocate(system, n_frames * possible, error);
    if (code != PS_OK) ps_cuda_workspace_release(system);
    return code;
}

ps_cuda_arena ps_cuda_scratch(const ps_cuda_system *system) {
    ps_cuda_arena arena = {system->workspace.scratch + ps_cuda_forward_scratch(system), 0};
    return arena;
}
