/* The backends a contract program runs on, and how exact each has to be (docs/physics.md section 9). */
#ifndef PS_TESTS_CONTRACT_BACKENDS_H
#define PS_TESTS_CONTRACT_BACKENDS_H

#include <stddef.h>

#include "kernels/backend_list.h"

/* Largest difference allowed, relative to the largest entry. */
typedef struct {
    double transfer, normal, right_side, eigenvalues, images;
    bool exact_chunks; /* results do not depend on the memory budget, to the last bit */
} contract_tolerance;

typedef struct {
    const ps_backend_ops *ops;
    contract_tolerance tolerance;
} contract_backend;

/* Backends named in the environment variable PS_CONTRACT_BACKENDS (comma separated) or else all that this build and machine
 * offer: those of kernels/backend_list.h, check-reference, check-fast. Ends the program when one is unknown, or when
 * PS_REQUIRE_GPU=1 and one that needs a device cannot be used. Returns their number. */
int contract_backends(const contract_backend **backends);

/* Runs the tests on each of them, which is the tests' state. Returns how many failed. */
struct CMUnitTest;
int contract_run(const struct CMUnitTest *tests, size_t n);

#endif
