#include "plan/backend_choice.h"

ps_code ps_backend_choose(const ps_job *job, int node_rank, int n_node_ranks, const ps_backend_ops **ops, ps_backend_options *options,
                          ps_error *error) {
    const ps_backend_request request = {.name = job->backend,
                                        .precision = job->precision == PS_PRECISION_REFERENCE ? "reference" : "fast",
                                        .node_rank = node_rank,
                                        .n_node_ranks = n_node_ranks,
                                        .where_name = "/compute/backend",
                                        .where_precision = "/compute/precision",
                                        .needs_histograms = job->needs_histograms};
    *options = (ps_backend_options){.n_threads = (int)job->n_threads,
                                    .memory_budget_bytes = (size_t)(job->memory_budget_GiB * 1024.0 * 1024.0 * 1024.0)};
    return ps_backend_select(&request, ops, options, error);
}
