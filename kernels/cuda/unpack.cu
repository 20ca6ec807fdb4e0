/* Packed patterns to counts: the kernels around unpack_core.h.
 *
 * find_kernel: a thread a pattern walks the lengths of its blocks. unpack_kernel (bitshuffle-LZ4): a warp takes a block; LZ4 unpacks it
 * into shared memory, the lanes turn the planes in place, 32 elements each, where active pixels lie, and write what is wanted into the
 * frame's sheets, a list's entry each, neighbouring slots by neighbouring lanes. bytes_kernel (LZ4, plain): a warp takes a block and writes
 * it to the upload buffer, out of which gather_kernel takes the active pixels; see_kernel tallies and limits there. Bytes: the packed ones
 * once and the active counts once; the latency of LZ4's sequences bounds, hidden by as many warps as shared memory holds blocks. */
#include "kernels/cuda/count_sheets.cuh"
#include "kernels/cuda/intrinsics.cuh"
#include "kernels/cuda/unpack.cuh"

enum { FIND_THREADS = 128, MOST_WARPS = 8, BYTES_WARPS = 4, SEE_THREADS = 256 };
static const uint32_t not_found = 0xffffffffu;

typedef struct {
    ps_cuda_packed packed;
    ps_unpack_shape shape;
    ps_unpack_meaning meaning;
    int64_t n_all_positions;
    int32_t n_listed;
    const int32_t *blocks; /* [n_listed]; NULL: all, and the rest */
    const int32_t *first_entry;
    const uint2 *entries;
    const uint32_t *active, *looks;
    int64_t n_words; /* of one of the two looks */
    void *counts;
    uint8_t *refused;
    uint32_t *tally;
    uint32_t room_bytes; /* of shared memory, a warp */
} unpack_arguments;

static __global__ void __launch_bounds__(FIND_THREADS) find_kernel(const __grid_constant__ unpack_arguments a) {
    int64_t position = (int64_t)blockIdx.x * FIND_THREADS + threadIdx.x;
    if (position >= a.packed.n_positions) return;
    ps_packed_pattern pattern = a.packed.d_patterns[position];
    uint32_t *starts = a.packed.d_starts + position * (a.shape.n_blocks + 1);
    if (ps_unpack_find_blocks(&a.shape, a.packed.d_bytes + pattern.offset, pattern.bytes, starts)) return;
    starts[0] = not_found;
    a.refused[a.packed.first_position + position] = 1;
}

/* 32 bits from bit `at` on. */
__device__ inline uint32_t bits_at(const uint32_t *words, uint32_t at) {
    return __funnelshift_r(words[at / 32], words[at / 32 + 1], at & 31);
}

/* A lane's share of a pattern's tally. */
typedef struct {
    uint32_t lit[2], marked[2], limited;
} lane_tally;

__device__ inline void add_seen(const unpack_arguments &a, lane_tally *own, ps_unpack_seen seen, uint32_t looks0, uint32_t looks1) {
    own->lit[0] += __popc(seen.lit & looks0);
    own->lit[1] += __popc(seen.lit & looks1);
    own->marked[0] += __popc(seen.marked & looks0);
    own->marked[1] += __popc(seen.marked & looks1);
    own->limited += __popc(seen.limited);
}

/* All lanes. */
__device__ inline void add_tally(const unpack_arguments &a, int64_t position, const lane_tally &own) {
    uint32_t *tally = a.tally + PS_CUDA_TALLIES * position;
    uint32_t sums[PS_CUDA_TALLIES] = {own.lit[0], own.lit[1], own.marked[0], own.marked[1], own.limited};
#pragma unroll
    for (int i = 0; i < PS_CUDA_TALLIES; i++) {
        uint32_t sum = ps_unpack_sum(sums[i]);
        if (threadIdx.x % 32 == 0 && sum > 0) atomicAdd(&tally[i], sum);
    }
}

template <typename Word> __device__ inline Word *count_of(const unpack_arguments &a, uint32_t slot, int64_t position) {
    return (Word *)a.counts + ps_cuda_scan_start(slot, a.n_all_positions) + position * PS_CUDA_SHEET;
}

/* The elements behind the blocks, fewer than eight. */
template <typename Word, bool sees> __device__ inline void take_rest(const unpack_arguments &a, const uint8_t *rest, int64_t position) {
    uint32_t lane = threadIdx.x % 32, n = a.shape.n_elements % 8, first = a.shape.n_elements - n;
    auto element = [&](uint32_t i, ps_unpack_seen *seen) {
        uint32_t value = ps_unpack_element(rest + i * sizeof(Word), 1, sizeof(Word), a.shape.flip, 0);
        *seen = ps_unpack_see_value(&value, sizeof(Word), a.meaning);
        return value;
    };
    ps_unpack_seen seen;
    if (sees) {
        lane_tally own = {};
        if (lane < n) {
            element(lane, &seen);
            add_seen(a, &own, seen, bits_at(a.looks, first + lane) & 1, bits_at(a.looks + a.n_words, first + lane) & 1);
        }
        __syncwarp();
        add_tally(a, position, own);
    }
    int32_t end = a.first_entry[a.shape.n_blocks + 1];
    for (int32_t e = a.first_entry[a.shape.n_blocks] + (int32_t)lane; e < end; e += 32)
        *count_of<Word>(a, a.entries[e].x, position) = (Word)element(a.entries[e].y, &seen);
}

/* Turns what is wanted of a block's planes; first: its first element. */
template <typename Word, bool sees>
__device__ inline void turn_planes(const unpack_arguments &a, uint8_t *planes, uint32_t first, uint32_t n, int64_t position) {
    lane_tally own = {};
    for (uint32_t w = threadIdx.x % 32; 32 * w < n; w += 32) {
        ps_unpack_seen seen = {0, 0, 0};
        if (sees) {
            seen = ps_unpack_see(planes, n / 8, sizeof(Word), a.shape.flip, w, a.meaning);
            add_seen(a, &own, seen, bits_at(a.looks, first + 32 * w), bits_at(a.looks + a.n_words, first + 32 * w));
        }
        if (bits_at(a.active, first + 32 * w) != 0) ps_unpack_turn(planes, n / 8, sizeof(Word), w, seen.limited);
    }
    __syncwarp();
    if (sees) add_tally(a, position, own);
}

/* Blocks a multiprocessor has room for, at least; 0: left to the compiler, which on later cards aims at more than registers allow. */
constexpr int unpack_blocks() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
    return 4;
#else
    return 0;
#endif
}

template <typename Word, bool sees>
static __global__ void __launch_bounds__(32 * MOST_WARPS, (unpack_blocks())) unpack_kernel(const __grid_constant__ unpack_arguments a) {
    extern __shared__ uint4 shared[];
    int64_t task = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, local = task / a.n_listed;
    if (local >= a.packed.n_positions) return;
    uint32_t block = (uint32_t)(task % a.n_listed);
    if (a.blocks) block = (uint32_t)a.blocks[block];
    const uint32_t *starts = a.packed.d_starts + local * (a.shape.n_blocks + 1);
    if (starts[0] == not_found) return;
    const uint8_t *stream = a.packed.d_bytes + a.packed.d_patterns[local].offset;
    int64_t position = a.packed.first_position + local;
    uint32_t start = starts[block];
    if (block == a.shape.n_blocks) {
        take_rest<Word, sees>(a, stream + start, position);
        return;
    }
    uint8_t *room = (uint8_t *)shared + threadIdx.x / 32 * a.room_bytes;
    uint32_t n_bytes = ps_unpack_block_bytes(&a.shape, block), n = n_bytes / (uint32_t)sizeof(Word);
    if (!ps_unpack_lz4(stream + start, ps_unpack_stored_bytes(&a.shape, stream, start, block), room, n_bytes)) {
        a.refused[position] = 1;
        return;
    }
    __syncwarp();
    turn_planes<Word, sees>(a, room, block * (a.shape.block_bytes / (uint32_t)sizeof(Word)), n, position);
    int32_t end = a.first_entry[block + 1];
    for (int32_t e = a.first_entry[block] + (int32_t)(threadIdx.x % 32); e < end; e += 32) {
        uint2 entry = a.entries[e];
        *count_of<Word>(a, entry.x, position) = (Word)ps_unpack_element(room, n, sizeof(Word), a.shape.flip, entry.y);
    }
}

/* raw: [n_positions of the batch, pattern] bytes */
static __global__ void __launch_bounds__(32 * BYTES_WARPS, 8)
    bytes_kernel(const __grid_constant__ unpack_arguments a, int64_t batch_first, int64_t n_batch, uint8_t *raw) {
    int64_t task = (int64_t)blockIdx.x * BYTES_WARPS + threadIdx.x / 32, in_batch = task / a.shape.n_blocks, local = batch_first + in_batch;
    if (in_batch >= n_batch) return;
    uint32_t block = (uint32_t)(task % a.shape.n_blocks);
    const uint32_t *starts = a.packed.d_starts + local * (a.shape.n_blocks + 1);
    if (starts[0] == not_found) return;
    const uint8_t *stream = a.packed.d_bytes + a.packed.d_patterns[local].offset;
    uint32_t start = starts[block], n_bytes = ps_unpack_block_bytes(&a.shape, block);
    uint8_t *to = raw + in_batch * a.shape.n_elements * a.shape.element_bytes + block * a.shape.block_bytes;
    if (!ps_unpack_bytes(&a.shape, stream + start, ps_unpack_stored_bytes(&a.shape, stream, start, block), to, n_bytes))
        a.refused[a.packed.first_position + local] = 1;
}

/* Tallies a pattern a block, and makes counts native and the limit hold in place. */
template <typename Word>
static __global__ void __launch_bounds__(SEE_THREADS)
    see_kernel(const __grid_constant__ unpack_arguments a, int64_t batch_first, Word *raw) {
    Word *pattern = raw + (int64_t)blockIdx.x * a.shape.n_elements;
    lane_tally own = {};
    for (uint32_t i = threadIdx.x; i < a.shape.n_elements; i += SEE_THREADS) {
        uint32_t value = ps_unpack_native(pattern[i], a.shape.flip);
        ps_unpack_seen seen = ps_unpack_see_value(&value, sizeof(Word), a.meaning);
        if (seen.limited || a.shape.flip) pattern[i] = (Word)value;
        add_seen(a, &own, seen, bits_at(a.looks, i) & 1, bits_at(a.looks + a.n_words, i) & 1);
    }
    __syncwarp();
    add_tally(a, a.packed.first_position + batch_first + blockIdx.x, own);
}

/* --- launches --- */

static uint32_t room_of(const ps_unpack_shape *shape) {
    return shape->n_blocks > 0 ? (ps_unpack_block_bytes(shape, 0) + 15) / 16 * 16 : 16;
}

bool ps_cuda_unpack_fits(const ps_cuda_backend *backend, const ps_unpack_shape *shape) {
    return shape->packing != PS_PACKED_BSLZ4 || room_of(shape) <= backend->shared_bytes_max;
}

/* Warps of a block, so that a multiprocessor holds as many as it can. */
static int best_warps(const ps_cuda_backend *backend, uint32_t room) {
    int best = 1, most = 0;
    for (int warps = 1; warps <= MOST_WARPS && warps * room <= backend->shared_bytes_max; warps++) {
        int blocks = (int)((backend->shared_bytes_max + 1024) / (warps * room + 1024)), held = (blocks < 32 ? blocks : 32) * warps;
        if (held > most && held <= 64) {
            most = held;
            best = warps;
        }
    }
    return best;
}

template <typename Word, bool sees>
static ps_code launch_blocks(ps_cuda_backend *backend, const unpack_arguments *a, cudaStream_t stream, ps_error *error) {
    int warps = best_warps(backend, a->room_bytes);
    size_t shared_bytes = (size_t)warps * a->room_bytes;
    int64_t n_tasks = a->packed.n_positions * a->n_listed;
    PS_TRY(PS_CUDA(error, cudaFuncSetAttribute(unpack_kernel<Word, sees>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes)));
    auto kernel = unpack_kernel<Word, sees>;
    PS_CUDA_LAUNCH(error, kernel, (unsigned)ps_cuda_blocks(n_tasks, warps), 32 * warps, shared_bytes, stream, *a);
    return PS_OK;
}

template <typename Word>
static ps_code launch_bytes(ps_cuda_frame *frame, const unpack_arguments *a, bool sees, cudaStream_t stream, ps_error *error) {
    ps_cuda_backend *backend = frame->system->backend;
    size_t pattern = (size_t)a->shape.n_elements * sizeof(Word);
    PS_TRY(ps_cuda_upload_ensure(backend, ps_cuda_upload_bytes(&frame->system->desc, frame->dtype), error));
    int64_t step = (int64_t)(backend->upload_bytes / pattern);
    uint8_t *raw = backend->d_upload[0];
    for (int64_t first = 0, n; first < a->packed.n_positions; first += n) {
        n = a->packed.n_positions - first < step ? a->packed.n_positions - first : step;
        PS_CUDA_LAUNCH(error, bytes_kernel, (unsigned)ps_cuda_blocks(n * a->shape.n_blocks, BYTES_WARPS), 32 * BYTES_WARPS, 0, stream, *a,
                       first, n, raw);
        if (sees) PS_CUDA_LAUNCH(error, see_kernel<Word>, (unsigned)n, SEE_THREADS, 0, stream, *a, first, (Word *)raw);
        PS_TRY(ps_cuda_frame_gather(frame, a->packed.first_position + first, n, raw, stream, error));
    }
    return PS_OK;
}

/* Plain patterns need no unpacking: the active pixels are taken out of the bytes as they came. */
template <typename Word>
static ps_code launch_dense(ps_cuda_frame *frame, const unpack_arguments *a, bool sees, cudaStream_t stream, ps_error *error) {
    const ps_cuda_packed *packed = &a->packed;
    unsigned n = (unsigned)packed->n_positions;
    if (sees) PS_CUDA_LAUNCH(error, see_kernel<Word>, n, SEE_THREADS, 0, stream, *a, 0, (Word *)packed->d_bytes);
    return ps_cuda_frame_gather(frame, packed->first_position, packed->n_positions, packed->d_bytes, stream, error);
}

template <typename Word> static ps_code launch(ps_cuda_frame *frame, const unpack_arguments *a, cudaStream_t stream, ps_error *error) {
    bool sees = frame->unpack_tallies || a->meaning.limit > 0, is_changed = sees || a->shape.flip > 0;
    if (a->packed.is_dense) return launch_dense<Word>(frame, a, is_changed, stream, error);
    PS_CUDA_LAUNCH(error, find_kernel, (unsigned)ps_cuda_blocks(a->packed.n_positions, FIND_THREADS), FIND_THREADS, 0, stream, *a);
    if (a->shape.packing != PS_PACKED_BSLZ4) return launch_bytes<Word>(frame, a, is_changed, stream, error);
    return sees ? launch_blocks<Word, true>(frame->system->backend, a, stream, error)
                : launch_blocks<Word, false>(frame->system->backend, a, stream, error);
}

ps_code ps_cuda_unpack_launch(ps_cuda_frame *frame, const ps_unpack_shape *shape, const ps_cuda_packed *packed, cudaStream_t stream,
                              ps_error *error) {
    const ps_cuda_system *system = frame->system;
    unpack_arguments a = {};
    a.packed = *packed;
    a.shape = *shape;
    a.meaning = frame->unpack_meaning;
    a.n_all_positions = system->n_positions;
    bool has_rest = ps_unpack_rest_bytes(shape) > 0;
    a.n_listed = frame->unpack_tallies ? (int32_t)shape->n_blocks + has_rest : system->n_unpack_blocks;
    a.blocks = frame->unpack_tallies ? NULL : system->d_unpack_blocks;
    a.first_entry = system->d_unpack_first;
    a.entries = system->d_unpack_entries;
    a.active = system->d_unpack_active;
    a.looks = frame->d_looks;
    a.n_words = ps_cuda_unpack_words(&system->desc);
    a.counts = frame->d_counts;
    a.refused = frame->d_refused;
    a.tally = frame->d_tally;
    a.room_bytes = room_of(shape);
    switch (shape->element_bytes) {
    case 1: return launch<uint8_t>(frame, &a, stream, error);
    case 2: return launch<uint16_t>(frame, &a, stream, error);
    case 4: return launch<uint32_t>(frame, &a, stream, error);
    default: return PS_FAIL(error, PS_E_INTERNAL, "patterns of elements of %u bytes", shape->element_bytes);
    }
}
