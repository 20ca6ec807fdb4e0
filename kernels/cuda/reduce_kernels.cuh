/* What the reduction's two kernels share. */
#ifndef PS_KERNELS_CUDA_REDUCE_KERNELS_CUH
#define PS_KERNELS_CUDA_REDUCE_KERNELS_CUH

#include "kernels/cuda/g_store.cuh"
#include "kernels/cuda/transfer.cuh"

enum { PS_REDUCE_FRAMES = 4 }; /* of one launch at most */

typedef struct {
    ps_cuda_pixels pixels;
    ps_cuda_aliases aliases;
    const ps_cuda_task *tasks; /* [n_tasks] */
    int64_t n_tasks;
    const int32_t *exact; /* [n_exact] aliases that reduce_exact.cu takes */
    int64_t n_exact;
    int32_t first_band, end_band; /* of the chunk, whole segments */
    double ssb_scale;             /* 1/n_active */
    ps_g_lines lines;
    ps_g_frame_lines g[PS_REDUCE_FRAMES];
    double inverse_dose[PS_REDUCE_FRAMES];
    double2 *right_amplitude[PS_REDUCE_FRAMES], *right_phase[PS_REDUCE_FRAMES], *ssb[PS_REDUCE_FRAMES];
    double *data_norm[PS_REDUCE_FRAMES];
} ps_reduce_arguments;

/* Near q = 0 both side bands cover the disc and T_phase is their small difference: b of these aliases (one in a hundred) is formed in
 * double. (qu, qv): detector pixels. */
__host__ __device__ static inline bool ps_reduce_is_exact(const ps_cuda_geometry &g, double qu, double qv) {
    return g.edge_u * qu * qu + g.edge_v * qv * qv < 0.04; /* |q| below a fifth of the semiangle's frequency */
}

__device__ inline void ps_reduce_add(double2 *place, double re, double im) {
    *place = make_double2(place->x + re, place->y + im);
}

/* reduce.cu: frames 1, 2 or PS_REDUCE_FRAMES of args, all but the tasks of which are in it. */
ps_code ps_reduce_launch(const ps_cuda_system *system, int n_frames, ps_reduce_arguments *args, ps_error *error);
/* reduce_exact.cu */
ps_code ps_reduce_launch_exact(const ps_cuda_system *system, int n_frames, const ps_reduce_arguments *args, ps_error *error);

#endif
