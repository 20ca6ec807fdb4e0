/* The aliases of scan frequencies: docs/physics.md section 4. */
#ifndef PS_FIT_ALIASES_H
#define PS_FIT_ALIASES_H

#include <stdint.h>

#include "core/error.h"

typedef struct {
    int64_t *first;           /* [n + 1] into the others */
    double *q_row, *q_column; /* [first[n]] 1/Angstrom */
} ps_fit_aliases;

/* Of each of n frequencies q: q itself, then every other q + m/step on the fine grid of the upsampling with |q| below limit. PS_E_JOB when
 * one has more than PS_MAX_ALIASES. Owned by the caller. */
ps_code ps_fit_aliases_list(int64_t n, const double *q_row, const double *q_column, const double step_A[2], int64_t upsampling,
                            double limit, ps_fit_aliases *aliases, ps_error *error);
void ps_fit_aliases_free(ps_fit_aliases *aliases);

#endif
