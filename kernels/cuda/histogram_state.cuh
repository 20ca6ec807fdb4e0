/* What one CUDA histogram holds. Internal to kernels/cuda: histogram_memory.cu makes and frees it, histogram.cu works with it. */
#ifndef PS_KERNELS_CUDA_HISTOGRAM_STATE_CUH
#define PS_KERNELS_CUDA_HISTOGRAM_STATE_CUH

#include "kernels/cuda/histogram_kernels.cuh"

__extension__ typedef __int128 ps_int128;

enum { PS_N_STAGES_PINNED = 3, PS_N_BATCHES = 2, PS_N_MOMENT_ARRAYS = 8 };

/* A pinned buffer that the caller fills; its patterns may go to two batches. */
struct ps_pinned_stage {
    void *frames; /* [stage_frames, n_pixels] */
    cudaEvent_t begin[2], end[2];
    int n_copies; /* under way */
};

struct ps_frame_batch {
    void *frames;                /* device [batch_frames, n_padded] */
    long long *sums, *host_sums; /* [batch_frames] */
    int64_t *segments;           /* [batch_frames] */
    int64_t n_frames;
    bool in_flight; /* launched; its sums are not in totals yet */
    cudaEvent_t copied, begin, filled, done;
};

struct ps_cuda_histogram {
    ps_histogram base;
    ps_histogram_desc desc; /* centre is not kept */
    const ps_histogram_map *map;
    size_t value_bytes;
    int64_t n_padded, n_cells, cell_pitch;
    int64_t batch_frames, stage_frames;
    ps_device_map device_map;
    ps_device_moments moments;
    void *centre;
    uint32_t *table, *counts;
    uint32_t *packed;    /* of the shared kernel: ps_device_batch */
    int64_t since_widen; /* patterns in packed */
    double *edges;
    float *edges_f32;
    long long *moment_arrays; /* [PS_N_MOMENT_ARRAYS, n_padded] */
    ps_pinned_stage stages[PS_N_STAGES_PINNED];
    ps_frame_batch batches[PS_N_BATCHES];
    int stage, batch; /* in use now */
    cudaStream_t copy_stream, compute_stream;
    int64_t read_pixels;        /* pixels read out at a time */
    uint32_t *rows, *host_rows; /* [read_pixels, n_cells] device, pinned */
    cudaEvent_t read_begin, read_kernel, read_end;
    uint64_t *spilled; /* [n_pixels, n_cells]; NULL until the first spill */
    int64_t since_spill, spill_frames;
    ps_int128 *totals; /* [n_segments] */
    ps_histogram_times times;
};

size_t ps_cuda_histogram_minimum_bytes(const ps_histogram_desc *desc, const ps_histogram_map *map);
ps_code ps_cuda_histogram_create(const ps_histogram_desc *desc, const ps_histogram_map *map, ps_histogram **histogram, ps_error *error);
void ps_cuda_histogram_destroy(ps_histogram *histogram);

#endif
