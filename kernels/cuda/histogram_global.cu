/* Counting with one global increment per value, in both layouts of the accumulator; and reading counts out of either.
 *
 * Neighbouring lanes take neighbouring pixels of one pattern, a block 256 of them, grid.y runs over patterns. In [cell, pixel] (bin-major)
 * lanes whose pixels share a bin share a sector; in [pixel, cell] (pixel-major) every increment touches its own. A pattern increments each
 * pixel's row once, so a sector is back in DRAM before it is hit again unless the cells in use fit the L2: that, 32 bytes read and
 * written per value, is what bounds both, and why histogram_shared.cu is the default. */
#include "kernels/cuda/histogram_kernels.cuh"

namespace {

constexpr int THREADS = 256, MOST_GRID_ROWS = 65535, TILE = 32, TILE_ROWS = 8;

template <class T, bool FORMULA>
__global__ void __launch_bounds__(THREADS)
    fill_global(const ps_device_batch batch, const ps_device_map map, int64_t pixel_stride, int64_t cell_stride) {
    int64_t pixel = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (pixel >= batch.n_padded) return;
    ps_finder<T, FORMULA> finder(map);
    T centre = batch.centre ? ((const T *)batch.centre)[pixel] : (T)0;
    uint32_t *counts = batch.counts + pixel * pixel_stride;
    for (int64_t f = blockIdx.y; f < batch.n_frames; f += gridDim.y) {
        ps_place place = finder.place(ps_centred<T>(((const T *)batch.frames)[f * batch.n_padded + pixel], centre));
        atomicAdd(counts + (2 * (int64_t)place.word + place.high) * cell_stride, 1u);
    }
}

template <class T> void start_dtype(bool bin_major, const ps_device_batch &batch, const ps_device_map &map, cudaStream_t stream) {
    dim3 grid((unsigned)((batch.n_padded + THREADS - 1) / THREADS),
              (unsigned)(batch.n_frames < MOST_GRID_ROWS ? batch.n_frames : MOST_GRID_ROWS));
    int64_t pixel_stride = bin_major ? 1 : batch.cell_pitch, cell_stride = bin_major ? batch.n_padded : 1;
    if constexpr (ps_input<T>::small) {
        if (!map.table) {
            fill_global<T, true><<<grid, THREADS, 0, stream>>>(batch, map, pixel_stride, cell_stride);
            return;
        }
    }
    fill_global<T, false><<<grid, THREADS, 0, stream>>>(batch, map, pixel_stride, cell_stride);
}

/* 32 x 32 tiles of [cell, pixel] to [pixel, cell] through shared memory, padded by one word against bank conflicts. */
__global__ void transpose(const uint32_t *counts, int64_t n_padded, int64_t first_pixel, int64_t n_pixels, int64_t n_cells,
                          uint32_t *rows) {
    __shared__ uint32_t tile[TILE][TILE + 1];
    int64_t cell = (int64_t)blockIdx.x * TILE;
    for (int64_t pixel = (int64_t)blockIdx.y * TILE; pixel < n_pixels; pixel += (int64_t)gridDim.y * TILE) {
        for (int i = threadIdx.y; i < TILE; i += TILE_ROWS)
            if (cell + i < n_cells && pixel + threadIdx.x < n_pixels)
                tile[i][threadIdx.x] = counts[(cell + i) * n_padded + first_pixel + pixel + threadIdx.x];
        __syncthreads();
        for (int i = threadIdx.y; i < TILE; i += TILE_ROWS)
            if (pixel + i < n_pixels && cell + threadIdx.x < n_cells)
                rows[(pixel + i) * n_cells + cell + threadIdx.x] = tile[threadIdx.x][i];
        __syncthreads();
    }
}

__global__ void compact(const uint32_t *counts, int64_t cell_pitch, int64_t n_cells, uint32_t *rows) {
    int64_t pixel = blockIdx.x;
    for (int64_t cell = threadIdx.x; cell < n_cells; cell += blockDim.x) rows[pixel * n_cells + cell] = counts[pixel * cell_pitch + cell];
}

} // namespace

ps_code ps_histogram_launch_global(ps_dtype dtype, bool bin_major, const ps_device_batch *batch, const ps_device_map *map,
                                   cudaStream_t stream, ps_error *error) {
    PS_HISTOGRAM_DISPATCH(dtype, start_dtype, bin_major, *batch, *map, stream);
    PS_HISTOGRAM_CUDA(error, cudaGetLastError());
    return PS_OK;
}

ps_code ps_histogram_launch_readout(bool bin_major, const ps_device_batch *batch, int64_t first_pixel, int64_t n_pixels, uint32_t *rows,
                                    cudaStream_t stream, ps_error *error) {
    if (bin_major) {
        int64_t pixel_tiles = (n_pixels + TILE - 1) / TILE;
        dim3 grid((unsigned)((batch->n_cells + TILE - 1) / TILE), (unsigned)(pixel_tiles < MOST_GRID_ROWS ? pixel_tiles : MOST_GRID_ROWS));
        transpose<<<grid, dim3(TILE, TILE_ROWS), 0, stream>>>(batch->counts, batch->n_padded, first_pixel, n_pixels, batch->n_cells, rows);
    } else {
        compact<<<(unsigned)n_pixels, THREADS, 0, stream>>>(batch->counts + first_pixel * batch->cell_pitch, batch->cell_pitch,
                                                            batch->n_cells, rows);
    }
    PS_HISTOGRAM_CUDA(error, cudaGetLastError());
    return PS_OK;
}
