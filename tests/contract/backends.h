/* The backends a contract program runs on, and how exact each has to be (docs/physics.md section 9). */
#ifndef PS_TESTS_CONTRACT_BACKENDS_H
#define PS_TESTS_CONTRACT_BACKENDS_H

#include "kernels/backend.h"

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
 * offer: cpu-reference, cpu-fast, check-reference, check-fast, cuda. Ends the program when one is unknown, or when
 * PS_REQUIRE_GPU=1 and cuda cannot be used. Returns their number. */
int contract_backends(const contract_backend **backends);

#endif
