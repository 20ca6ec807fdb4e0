/* Which counts of an unpacked block are wanted, and where they go: a list for each block of a pattern, in the order of slots, so that the
 * lanes of a warp write whole sectors of the sheets that count_sheets.cuh describes. Blocks of which nothing is wanted are in no list of
 * blocks. Slots without an active pixel get some active pixel's count, as from gather_kernel. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/unpack.cuh"

/* The most blocks that lists have room for: of eight elements, the smallest. */
static int64_t most_blocks(const ps_system_desc *desc) {
    return desc->detector_rows * desc->detector_columns / 8 + 1;
}

void ps_cuda_unpack_carve_system(ps_cuda_system *system, ps_cuda_arena *arena) {
    system->d_unpack_entries = ps_cuda_take<uint2>(arena, system->layout.n_slots);
    system->d_unpack_first = ps_cuda_take<int32_t>(arena, most_blocks(&system->desc) + 2);
    system->d_unpack_blocks = ps_cuda_take<int32_t>(arena, most_blocks(&system->desc) + 1);
    system->d_unpack_active = ps_cuda_take<uint32_t>(arena, ps_cuda_unpack_words(&system->desc));
}

void ps_cuda_unpack_carve_frame(ps_cuda_frame *frame, ps_cuda_arena *arena) {
    const ps_cuda_system *system = frame->system;
    frame->d_refused = ps_cuda_take<uint8_t>(arena, system->n_positions);
    frame->d_tally = ps_cuda_take<uint32_t>(arena, PS_CUDA_TALLIES * system->n_positions);
    frame->d_looks = ps_cuda_take<uint32_t>(arena, 2 * ps_cuda_unpack_words(&system->desc));
}

typedef struct {
    uint2 *entries;
    int32_t *first, *blocks;
    uint32_t *active;
    int32_t n_listed;
} lists;

static void fill_lists(const ps_cuda_system *system, const ps_unpack_shape *shape, lists *l) {
    const ps_cuda_layout *layout = &system->layout;
    uint32_t block_elements = shape->block_bytes / shape->element_bytes, blocked = shape->n_elements - shape->n_elements % 8;
    auto block_of = [&](uint32_t pixel) { return pixel < blocked ? pixel / block_elements : shape->n_blocks; };
    for (int64_t slot = 0; slot < layout->n_slots; slot++) {
        uint32_t pixel = (uint32_t)layout->slot_detector[slot];
        l->first[block_of(pixel) + 2]++;
        l->active[pixel / 32] |= 1u << pixel % 32;
    }
    for (uint32_t block = 0; block <= shape->n_blocks; block++) {
        if (l->first[block + 2] > 0) l->blocks[l->n_listed++] = (int32_t)block;
        l->first[block + 2] += l->first[block + 1];
    }
    for (int64_t slot = 0; slot < layout->n_slots; slot++) { /* first[block + 1] runs from the block's begin to its end */
        uint32_t pixel = (uint32_t)layout->slot_detector[slot], block = block_of(pixel);
        uint32_t i = pixel < blocked ? pixel - block * block_elements : pixel - blocked;
        uint32_t n = block < shape->n_blocks ? ps_unpack_block_bytes(shape, block) / shape->element_bytes : 0;
        l->entries[l->first[block + 1]++] = make_uint2((uint32_t)slot, n > 0 ? ps_unpack_place(i, n) : i);
    }
}

static ps_code send_lists(ps_cuda_system *system, const ps_unpack_shape *shape, const lists *l, ps_error *error) {
    PS_TRY(ps_cuda_send(system->d_unpack_entries, l->entries, system->layout.n_slots, error));
    PS_TRY(ps_cuda_send(system->d_unpack_first, l->first, (int64_t)shape->n_blocks + 2, error));
    PS_TRY(ps_cuda_send(system->d_unpack_blocks, l->blocks, l->n_listed, error));
    PS_TRY(ps_cuda_send(system->d_unpack_active, l->active, ps_cuda_unpack_words(&system->desc), error));
    system->n_unpack_blocks = l->n_listed;
    system->unpack_shape = *shape;
    return PS_OK;
}

ps_code ps_cuda_unpack_lists(ps_cuda_system *system, const ps_unpack_shape *shape, ps_error *error) {
    if (shape->packing != PS_PACKED_BSLZ4 || memcmp(&system->unpack_shape, shape, sizeof *shape) == 0) return PS_OK;
    ps_code code = PS_OK;
    lists l = {};
    size_t n_blocks = (size_t)shape->n_blocks + 1;
    l.entries = (uint2 *)malloc((size_t)system->layout.n_slots * sizeof *l.entries);
    l.first = (int32_t *)calloc(n_blocks + 2, sizeof *l.first);
    l.blocks = (int32_t *)malloc(n_blocks * sizeof *l.blocks);
    l.active = (uint32_t *)calloc((size_t)ps_cuda_unpack_words(&system->desc), sizeof *l.active);
    PS_GO_ALLOC(error, l.entries && l.first && l.blocks && l.active);
    fill_lists(system, shape, &l);
    PS_GO(PS_CUDA(error, cudaDeviceSynchronize())); /* nothing reads the old ones any more */
    memset(&system->unpack_shape, 0, sizeof system->unpack_shape);
    PS_GO(send_lists(system, shape, &l, error));
done:
    free(l.entries);
    free(l.first);
    free(l.blocks);
    free(l.active);
    return code;
}
