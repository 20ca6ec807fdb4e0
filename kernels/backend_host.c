/* Host memory for images: the functions ps_backend_host_* of kernels/backend.h, with their default. */
#include <stdlib.h>

#include "kernels/backend_check.h"

enum { ALIGNMENT = 64 };

static ps_code allocate_blocks(int64_t n, int64_t n_floats, float **blocks, ps_error *error) {
    size_t bytes = ((size_t)n_floats * sizeof **blocks + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    for (int64_t i = 0; i < n; i++)
        if (!(blocks[i] = aligned_alloc(ALIGNMENT, bytes)))
            return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld images of %zu bytes", (long long)n, bytes);
    return PS_OK;
}

ps_code ps_backend_host_allocate(ps_backend *backend, int64_t n, int64_t n_floats, float **blocks, ps_error *error) {
    PS_CHECK_POINTER(backend);
    PS_CHECK_POINTER(blocks);
    for (int64_t i = 0; i < n; i++) blocks[i] = NULL;
    if (n < 1 || n_floats < 1)
        return PS_FAIL(error, PS_E_ARGUMENT, "%lld blocks of %lld floats, expected 1 or more of both", (long long)n, (long long)n_floats);
    ps_code code = backend->ops->host ? backend->ops->host->allocate(backend, n, n_floats, blocks, error)
                                      : allocate_blocks(n, n_floats, blocks, error);
    if (code != PS_OK) ps_backend_host_free(backend, n, blocks);
    return code;
}

void ps_backend_host_free(ps_backend *backend, int64_t n, float **blocks) {
    if (backend->ops->host) backend->ops->host->free(backend, n, blocks);
    for (int64_t i = 0; i < n; i++) {
        if (!backend->ops->host) free(blocks[i]);
        blocks[i] = NULL;
    }
}

ps_code ps_backend_host_wait(ps_backend *backend, const float *block, ps_error *error) {
    return backend->ops->host ? backend->ops->host->wait(backend, block, error) : PS_OK;
}
