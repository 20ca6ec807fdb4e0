/* How a system's frequencies are shared out: classes by alias count, and the tasks of a reduction. */
#ifndef PS_KERNELS_CUDA_TASKS_H
#define PS_KERNELS_CUDA_TASKS_H

#include "kernels/cuda/cuda.h"

enum { PS_CUDA_SMALL_TASK = 4, PS_CUDA_LARGE_TASK = 8 }; /* aliases of one task at most */

/* Calls place(task, is_small) for every task in the order they run. */
template <typename Place> static inline void ps_cuda_walk_tasks(const ps_cuda_system *system, Place place) {
    bool has_ssb = system->methods & PS_METHOD_SSB;
    for (int64_t i = has_ssb ? 0 : 1; i < system->desc.n_frequencies; i++) {
        int32_t n = system->frequencies[i].n_aliases;
        for (int32_t first = 0; first < n || first == 0; first += PS_CUDA_LARGE_TASK) {
            ps_cuda_task task;
            task.frequency = (int32_t)i;
            task.first = first;
            task.n_aliases = n - first < PS_CUDA_LARGE_TASK ? n - first : PS_CUDA_LARGE_TASK;
            task.sums_data_norm = first == 0 && i > 0;
            place(task, task.n_aliases <= PS_CUDA_SMALL_TASK);
        }
    }
}

/* The class of a frequency with n_aliases > 0. */
static inline int ps_cuda_class_of(int32_t n_aliases) {
    return n_aliases > PS_CUDA_SMALL ? PS_CUDA_SMALL : n_aliases - 1;
}

/* Elements of the packed triangle of N that the methods need of a frequency. */
static inline int64_t ps_cuda_normal_elements(const ps_cuda_system *system, int32_t n) {
    if (system->methods & PS_METHOD_COMPLEX) return (int64_t)n * (2 * n + 1);
    return system->methods & PS_METHOD_PHASE ? (int64_t)n * (n + 1) / 2 : 0;
}

#endif
