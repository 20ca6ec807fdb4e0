/* Counting with counters in shared memory: the fast histogram kernel.
 *
 * A block owns a group of 32 pixels and runs through a batch's patterns once, with all cells of its pixels in shared memory: words
 * [cell / 2, pixel], two 16-bit counters a word, so that pixel p lives in bank p whatever its value. A lane loads 16 bytes, V values of
 * neighbouring pixels of one pattern; 32/V lanes cover the group, a warp V patterns. Lanes of pattern row r start at value r and wrap
 * round, so that at every step the 32 lanes touch 32 different pixels, hence 32 banks, and increments never collide. The loads of the next
 * patterns are under way while these are counted. At the end the words are added to those of the same shape in global memory, 16 bytes a
 * lane, rows that are zero left alone. Those hold up to 65535 patterns; before they could overflow `widen` adds them to the 32-bit
 * accumulator [pixel, cell].
 *
 * Bytes moved: the batch once, and the words in use twice, coalesced. More cells than shared memory holds are done in tiles, the batch's
 * slice read once per tile (from L2 mostly). What was measured, and what was tried, is in docs/performance.md. */
#include "kernels/cuda/histogram_kernels.cuh"

namespace {

constexpr int MOST_THREADS = 896 /* of a multiprocessor */, CELL_BYTES = PS_GROUP * 2, SECTOR_CELLS = 8, FLUSH_LOADS = 4;

/* Threads of a block: fewer where the compiler needs more registers for the same. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int BLOCK_THREADS = 640;
#else
constexpr int BLOCK_THREADS = MOST_THREADS;
#endif

/* 16-byte loads of a lane that are under way while as many are counted: what registers hold. */
template <class T> constexpr int LOADS = sizeof(T) == 1 ? 1 : 2;

constexpr int WIDEN_THREADS = 256;

struct tiling {
    int tile_cells; /* cells in shared memory at a time, a multiple of SECTOR_CELLS */
    int n_tiles, n_threads, n_splits;
    size_t shared_bytes;
};

__device__ __forceinline__ void unpack(uint4 data, uint32_t *w) {
    w[0] = data.x, w[1] = data.y, w[2] = data.z, w[3] = data.w;
}

/* Rotates 16 bytes so that element k becomes what was element (k + shift) mod V. */
template <class T> __device__ __forceinline__ void rotate(uint32_t *w, int shift) {
    constexpr int PER_WORD = sizeof(T) >= 4 ? 1 : 4 / sizeof(T);
    int words = sizeof(T) == 8 ? 2 * shift : shift / PER_WORD;
    uint32_t a[4], b[4];
#pragma unroll
    for (int i = 0; i < 4; i++) a[i] = words & 2 ? w[(i + 2) % 4] : w[i];
#pragma unroll
    for (int i = 0; i < 4; i++) b[i] = words & 1 ? a[(i + 1) % 4] : a[i];
#pragma unroll
    for (int i = 0; i < 4; i++)
        w[i] = PER_WORD == 1 ? b[i] : __funnelshift_r(b[i], b[(i + 1) % 4], (shift % PER_WORD) * 8 * (int)sizeof(T));
}

/* address: shared memory of the lane's pixel in word 0. Asks for nothing back, which atomicAdd leaves to the compiler. */
__device__ __forceinline__ void increment(uint32_t address, uint32_t amount) {
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(address), "r"(amount) : "memory");
}

__device__ __forceinline__ bool any(uint4 v) {
    return (v.x | v.y | v.z | v.w) != 0;
}

/* Adds n vectors of words to those in global memory, two counters at a time: there is no carry between them, since together they hold at
 * most 65535 patterns. EXCLUSIVE: no other block adds to these; then a few loads overlap. */
template <bool EXCLUSIVE> __device__ __forceinline__ void flush(const uint4 *vectors, uint4 *target, int n) {
    for (int first = threadIdx.x; first < n; first += FLUSH_LOADS * blockDim.x) {
        uint4 sum[FLUSH_LOADS];
#pragma unroll
        for (int i = 0; i < FLUSH_LOADS; i++) {
            int v = first + i * blockDim.x;
            if (EXCLUSIVE && v < n && any(vectors[v])) sum[i] = target[v];
        }
#pragma unroll
        for (int i = 0; i < FLUSH_LOADS; i++) {
            int v = first + i * blockDim.x;
            if (v >= n || !any(vectors[v])) continue;
            uint4 mine = vectors[v];
            if (EXCLUSIVE) {
                target[v] = make_uint4(sum[i].x + mine.x, sum[i].y + mine.y, sum[i].z + mine.z, sum[i].w + mine.w);
            } else {
                uint32_t *words = (uint32_t *)(target + v);
                if (mine.x) atomicAdd(words, mine.x);
                if (mine.y) atomicAdd(words + 1, mine.y);
                if (mine.z) atomicAdd(words + 2, mine.z);
                if (mine.w) atomicAdd(words + 3, mine.w);
            }
        }
    }
}

/* The lane's vectors of patterns first, first + V, ...; those behind the end are left as they are. */
template <class T> __device__ __forceinline__ void load(uint4 *data, const T *source, int64_t first, int64_t end, int64_t n_padded) {
    constexpr int V = 16 / sizeof(T);
#pragma unroll
    for (int u = 0; u < LOADS<T>; u++)
        if (first + u * V < end) data[u] = __ldcs((const uint4 *)(source + (first + u * V) * n_padded));
}

/* Counts patterns begin ... end - 1 of the block's group. */
template <class T, bool FORMULA, bool CENTRED, bool TILED>
__device__ __forceinline__ void count(uint32_t *words, const ps_device_batch &batch, const ps_device_map &map, int64_t begin, int64_t end,
                                      uint32_t tile, uint32_t tile_cells) {
    constexpr int V = 16 / sizeof(T), LANES = PS_GROUP / V;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
    int row = lane / LANES, column = lane % LANES * V;
    int64_t pixel = (int64_t)blockIdx.x * PS_GROUP + column;
    const T *source = (const T *)batch.frames + pixel;
    uint32_t centre[4] = {0, 0, 0, 0}, address[V];
    ps_finder<T, FORMULA> finder(map);
    if (CENTRED) {
        unpack(*(const uint4 *)((const T *)batch.centre + pixel), centre);
        rotate<T>(centre, row);
    }
#pragma unroll
    for (int k = 0; k < V; k++) {
        address[k] = (uint32_t)__cvta_generic_to_shared(words) + (column + (k + row) % V) * 4;
        asm volatile("" : "+r"(address[k])); /* kept, not computed again at every use */
    }
    int64_t first = begin + (int64_t)warp * V * LOADS<T> + row, step = (int64_t)n_warps * V * LOADS<T>;
    uint4 data[LOADS<T>], next[LOADS<T>];
    load<T>(data, source, first, end, batch.n_padded);
    for (; first - row < end; first += step) {
        load<T>(next, source, first + step, end, batch.n_padded);
#pragma unroll
        for (int u = 0; u < LOADS<T>; u++) {
            uint32_t w[4];
            if (first + u * V >= end) continue;
            unpack(data[u], w);
            rotate<T>(w, row);
#pragma unroll
            for (int k = 0; k < V; k++) {
                T zero_or_centre = CENTRED ? ps_element<T>(centre, k) : (T)0;
                ps_place place = finder.place(ps_centred<T>(ps_element<T>(w, k), zero_or_centre));
                if (TILED) place.word -= tile / 2;
                if (!TILED || place.word < tile_cells / 2) increment(address[k] + place.word * (PS_GROUP * 4), place.high ? 0x10000u : 1u);
            }
        }
#pragma unroll
        for (int u = 0; u < LOADS<T>; u++) data[u] = next[u];
    }
}

template <class T, bool FORMULA, bool CENTRED, bool TILED>
__global__ void __launch_bounds__(BLOCK_THREADS, 1) fill_shared(const ps_device_batch batch, const ps_device_map map, const tiling t) {
    extern __shared__ uint4 shared[];
    uint32_t *words = (uint32_t *)shared;
    int64_t share = (batch.n_frames + gridDim.y - 1) / gridDim.y, begin = share * blockIdx.y;
    int64_t end = begin + share < batch.n_frames ? begin + share : batch.n_frames;
    for (int i = 0; i < t.n_tiles; i++) {
        uint32_t tile = (uint32_t)i * (uint32_t)t.tile_cells;
        for (int v = threadIdx.x; v < t.tile_cells * CELL_BYTES / 16; v += blockDim.x) shared[v] = make_uint4(0, 0, 0, 0);
        __syncthreads();
        count<T, FORMULA, CENTRED, TILED>(words, batch, map, begin, end, tile, (uint32_t)t.tile_cells);
        __syncthreads();
        int n_cells = batch.cell_pitch - tile < t.tile_cells ? (int)(batch.cell_pitch - tile) : t.tile_cells;
        uint4 *target = (uint4 *)(batch.packed + ((int64_t)blockIdx.x * batch.cell_pitch + tile) / 2 * PS_GROUP);
        if (gridDim.y == 1)
            flush<true>(shared, target, n_cells * CELL_BYTES / 16);
        else
            flush<false>(shared, target, n_cells * CELL_BYTES / 16);
        __syncthreads();
    }
}

/* 64 cells of a group at a time: packed words [cell / 2, pixel] to the accumulator [pixel, cell] through shared memory, padded by one word
 * against bank conflicts; zeros are left behind. */
__global__ void __launch_bounds__(WIDEN_THREADS) widen_packed(uint32_t *packed, uint32_t *counts, int64_t cell_pitch) {
    __shared__ uint32_t tile[PS_GROUP][PS_GROUP + 1];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int64_t n_words = cell_pitch / 2;
    uint32_t *words = packed + (int64_t)blockIdx.x * n_words * PS_GROUP;
    for (int64_t first = (int64_t)blockIdx.y * PS_GROUP; first < n_words; first += (int64_t)gridDim.y * PS_GROUP) {
        for (int i = warp; i < PS_GROUP && first + i < n_words; i += WIDEN_THREADS / 32) {
            tile[i][lane] = words[(first + i) * PS_GROUP + lane];
            if (tile[i][lane]) words[(first + i) * PS_GROUP + lane] = 0;
        }
        __syncthreads();
        for (int pixel = warp; pixel < PS_GROUP && first + lane < n_words; pixel += WIDEN_THREADS / 32) {
            uint32_t pair = tile[lane][pixel];
            uint2 *target = (uint2 *)(counts + ((int64_t)blockIdx.x * PS_GROUP + pixel) * cell_pitch) + first + lane;
            if (pair) *target = make_uint2(target->x + (pair & 0xffff), target->y + (pair >> 16));
        }
        __syncthreads();
    }
}

int round_up(int64_t value, int multiple) {
    return (int)((value + multiple - 1) / multiple * multiple);
}

/* Tiles of equal size as large as fit; threads and blocks to fill the multiprocessors, patterns split where groups are too few. */
ps_code choose_tiling(const ps_device_batch *batch, tiling *t, ps_error *error) {
    int device, block_bytes, processor_bytes, reserved_bytes, n_processors;
    PS_HISTOGRAM_CUDA(error, cudaGetDevice(&device));
    PS_HISTOGRAM_CUDA(error, cudaDeviceGetAttribute(&block_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    PS_HISTOGRAM_CUDA(error, cudaDeviceGetAttribute(&processor_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
    PS_HISTOGRAM_CUDA(error, cudaDeviceGetAttribute(&reserved_bytes, cudaDevAttrReservedSharedMemoryPerBlock, device));
    PS_HISTOGRAM_CUDA(error, cudaDeviceGetAttribute(&n_processors, cudaDevAttrMultiProcessorCount, device));
    int largest = block_bytes / CELL_BYTES / SECTOR_CELLS * SECTOR_CELLS;
    t->n_tiles = (int)((batch->n_cells + largest - 1) / largest);
    t->tile_cells = round_up((batch->n_cells + t->n_tiles - 1) / t->n_tiles, SECTOR_CELLS);
    t->shared_bytes = (size_t)t->tile_cells * CELL_BYTES;
    int resident = processor_bytes / ((int)t->shared_bytes + reserved_bytes);
    resident = resident < 1 ? 1 : resident > 8 ? 8 : resident;
    t->n_threads = MOST_THREADS / resident / 32 * 32;
    int64_t n_groups = batch->n_padded / PS_GROUP, wanted = (2ll * n_processors * resident + n_groups - 1) / n_groups;
    int64_t most = (batch->n_frames + 255) / 256;
    t->n_splits = (int)(wanted < most ? wanted : most);
    if (t->n_splits < 1) t->n_splits = 1;
    return PS_OK;
}

template <class T, bool FORMULA, bool CENTRED, bool TILED>
cudaError_t start(const ps_device_batch &batch, const ps_device_map &map, const tiling &t, cudaStream_t stream) {
    auto *kernel = fill_shared<T, FORMULA, CENTRED, TILED>;
    cudaFuncAttributes attributes;
    cudaError_t status = cudaFuncGetAttributes(&attributes, kernel);
    if (status == cudaSuccess) status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)t.shared_bytes);
    if (status == cudaSuccess)
        status = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    if (status != cudaSuccess) return status;
    int n_threads = t.n_threads < attributes.maxThreadsPerBlock ? t.n_threads : attributes.maxThreadsPerBlock;
    dim3 grid((unsigned)(batch.n_padded / PS_GROUP), (unsigned)t.n_splits);
    kernel<<<grid, (unsigned)n_threads, t.shared_bytes, stream>>>(batch, map, t);
    return cudaGetLastError();
}

template <class T, bool FORMULA>
cudaError_t start_variant(const ps_device_batch &batch, const ps_device_map &map, const tiling &t, cudaStream_t stream) {
    if (batch.centre)
        return t.n_tiles > 1 ? start<T, FORMULA, true, true>(batch, map, t, stream) : start<T, FORMULA, true, false>(batch, map, t, stream);
    return t.n_tiles > 1 ? start<T, FORMULA, false, true>(batch, map, t, stream) : start<T, FORMULA, false, false>(batch, map, t, stream);
}

template <class T>
void start_dtype(const ps_device_batch &batch, const ps_device_map &map, const tiling &t, cudaStream_t stream, cudaError_t *status) {
    if constexpr (ps_input<T>::small)
        *status = !map.table ? start_variant<T, true>(batch, map, t, stream) : start_variant<T, false>(batch, map, t, stream);
    else
        *status = start_variant<T, false>(batch, map, t, stream);
}

} // namespace

ps_code ps_histogram_launch_shared(ps_dtype dtype, const ps_device_batch *batch, const ps_device_map *map, cudaStream_t stream,
                                   ps_error *error) {
    tiling t;
    cudaError_t status = cudaErrorInvalidValue;
    PS_TRY(choose_tiling(batch, &t, error));
    PS_HISTOGRAM_DISPATCH(dtype, start_dtype, *batch, *map, t, stream, &status);
    if (status != cudaSuccess)
        return PS_FAIL(error, PS_E_DEVICE, "histogram: launch of fill_shared (%d threads, %zu bytes of shared memory): %s", t.n_threads,
                       t.shared_bytes, cudaGetErrorString(status));
    return PS_OK;
}

ps_code ps_histogram_launch_widen(const ps_device_batch *batch, cudaStream_t stream, ps_error *error) {
    const int64_t most_grid_rows = 65535;
    int64_t n_blocks = (batch->cell_pitch / 2 + PS_GROUP - 1) / PS_GROUP;
    dim3 grid((unsigned)(batch->n_padded / PS_GROUP), (unsigned)(n_blocks < most_grid_rows ? n_blocks : most_grid_rows));
    widen_packed<<<grid, WIDEN_THREADS, 0, stream>>>(batch->packed, batch->counts, batch->cell_pitch);
    PS_HISTOGRAM_CUDA(error, cudaGetLastError());
    return PS_OK;
}
