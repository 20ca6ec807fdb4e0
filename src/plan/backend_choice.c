#include "plan/backend_choice.h"

#include <string.h>

static ps_code choose_cpu(const ps_job *job, const ps_backend_ops **ops) {
    *ops = job->precision == PS_PRECISION_REFERENCE ? &ps_backend_cpu_reference : &ps_backend_cpu_fast;
    return PS_OK;
}

#ifdef PS_WITH_CUDA
#include <stdlib.h>

static ps_code choose_cuda(const ps_job *job, int node_rank, int n_node_ranks, const ps_backend_ops **ops, ps_backend_options *options,
                           ps_error *error) {
    int n_devices = 0;
    if (job->precision == PS_PRECISION_REFERENCE)
        return PS_FAIL(error, PS_E_JOB,
                       "/compute/precision: reference precision is computed on the CPU; found backend %s, expected cpu or auto",
                       job->backend);
    PS_TRY(ps_cuda_device_count(&n_devices, error));
    const char *number = strchr(job->backend, ':');
    int device = number ? atoi(number + 1) : node_rank % n_devices;
    if (device >= n_devices)
        return PS_FAIL(error, PS_E_BACKEND, "/compute/backend: found %s, but %d CUDA device%s visible here", job->backend, n_devices,
                       n_devices == 1 ? " is" : "s are");
    options->device = device;
    options->n_sharing = number ? n_node_ranks : n_node_ranks / n_devices + (device < n_node_ranks % n_devices);
    *ops = &ps_backend_cuda;
    return PS_OK;
}

static bool cuda_is_usable(void) {
    int n_devices = 0;
    ps_error ignored = {0};
    return ps_cuda_device_count(&n_devices, &ignored) == PS_OK && n_devices > 0;
}
#else
static ps_code choose_cuda(const ps_job *job, int node_rank, int n_node_ranks, const ps_backend_ops **ops, ps_backend_options *options,
                           ps_error *error) {
    (void)node_rank;
    (void)n_node_ranks;
    (void)ops;
    (void)options;
    return PS_FAIL(error, PS_E_BACKEND, "/compute/backend: found %s, but this program was built without CUDA; expected cpu or auto",
                   job->backend);
}

static bool cuda_is_usable(void) {
    return false;
}
#endif

ps_code ps_backend_choose(const ps_job *job, int node_rank, int n_node_ranks, const ps_backend_ops **ops, ps_backend_options *options,
                          ps_error *error) {
    *options = (ps_backend_options){.n_threads = (int)job->n_threads,
                                    .memory_budget_bytes = (size_t)(job->memory_budget_GiB * 1024.0 * 1024.0 * 1024.0)};
    if (strcmp(job->backend, "cpu") == 0) return choose_cpu(job, ops);
    if (strncmp(job->backend, "cuda", 4) == 0) return choose_cuda(job, node_rank, n_node_ranks, ops, options, error);
    if (job->precision == PS_PRECISION_REFERENCE || !cuda_is_usable()) return choose_cpu(job, ops);
    return choose_cuda(job, node_rank, n_node_ranks, ops, options, error);
}
