#include "contract/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/check_backend.h"
#include "kernels/cpu/fast/isa/isa.h"

enum { MOST_BACKENDS = 8 };

static const contract_tolerance float64 = {1e-12, 1e-12, 1e-12, 1e-11, 1e-10, true};
static const contract_tolerance fast = {2e-6, 1e-6, 1e-6, 1e-6, 2e-6, true};

static contract_backend chosen[MOST_BACKENDS];
static int n_chosen;

static void stop(const char *text, const char *detail) {
    fprintf(stderr, "contract: %s%s\n", text, detail);
    exit(1);
}

static bool is_wanted(const char *name) {
    const char *list = getenv("PS_CONTRACT_BACKENDS");
    if (!list) return true;
    size_t length = strlen(name);
    for (const char *at = strstr(list, name); at; at = strstr(at + 1, name))
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

static void offer(const ps_backend_ops *ops, contract_tolerance tolerance) {
    if (is_wanted(ops->name)) chosen[n_chosen++] = (contract_backend){ops, tolerance};
}

static void offer_cuda(void) {
    const char *required = getenv("PS_REQUIRE_GPU");
    bool is_required = required && strcmp(required, "1") == 0;
#ifdef PS_WITH_CUDA
    ps_error error = {0};
    int count = 0;
    if (ps_cuda_device_count(&count, &error) == PS_OK && count > 0) {
        contract_tolerance tolerance = fast;
        tolerance.exact_chunks = false;
        offer(&ps_backend_cuda, tolerance);
        return;
    }
    if (is_required) stop("PS_REQUIRE_GPU=1, but no device: ", error.text);
    printf("contract: cuda left out: %s\n", error.text);
#else
    if (is_required) stop("PS_REQUIRE_GPU=1, but this build has no CUDA backend", "");
    printf("contract: cuda left out: not built\n");
#endif
}

int contract_backends(const contract_backend **backends) {
    if (n_chosen == 0) {
        if (!ps_fast_isa_choose()) {
            printf("skipped: this machine has no instruction set %s\n", getenv("PS_CPU_ISA"));
            exit(77);
        }
        offer(&ps_backend_cpu_reference, float64);
        offer(&ps_backend_cpu_fast, fast);
        offer(&contract_check_reference, float64);
        offer(&contract_check_fast, fast);
        offer_cuda();
        if (n_chosen == 0) stop("no such backend: ", getenv("PS_CONTRACT_BACKENDS"));
    }
    *backends = chosen;
    return n_chosen;
}
