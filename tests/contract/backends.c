#include "contract/backends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

/* What a backend of the list owes follows from its precision; one with a device may depend on chunks in the last bits. */
static void offer_entry(const ps_backend_entry *entry) {
    const char *required = getenv("PS_REQUIRE_GPU");
    contract_tolerance tolerance = strcmp(entry->precision, "reference") == 0 ? float64 : fast;
    ps_error error = {0};
    int count = 0;
    tolerance.exact_chunks = !entry->needs_device;
    if (ps_backend_entry_devices(entry, &count, &error) == PS_OK && count > 0) {
        offer(entry->ops, tolerance);
        return;
    }
    if (required && strcmp(required, "1") == 0) stop("PS_REQUIRE_GPU=1, but ", error.text);
    printf("contract: %s left out: %s\n", entry->name, error.text);
}

int contract_backends(const contract_backend **backends) {
    if (n_chosen == 0) {
        if (!ps_fast_isa_choose()) {
            printf("skipped: this machine has no instruction set %s\n", getenv("PS_CPU_ISA"));
            exit(77);
        }
        for (int i = 0; i < ps_backend_list()->n; i++) offer_entry(&ps_backend_list()->entries[i]);
        offer(&contract_check_reference, float64);
        offer(&contract_check_fast, fast);
        if (n_chosen == 0) stop("no such backend: ", getenv("PS_CONTRACT_BACKENDS"));
    }
    *backends = chosen;
    return n_chosen;
}

int contract_run(const struct CMUnitTest *tests, size_t n) {
    const contract_backend *backends;
    struct CMUnitTest *own = malloc(n * sizeof *own);
    int n_backends = contract_backends(&backends), failed = 0;
    if (!own) stop("no memory", "");
    for (int i = 0; i < n_backends; i++) {
        memcpy(own, tests, n * sizeof *own);
        for (size_t k = 0; k < n; k++) own[k].initial_state = (void *)&backends[i];
        failed += _cmocka_run_group_tests(backends[i].ops->name, own, n, NULL, NULL);
    }
    free(own);
    return failed;
}
