#include "fit/aliases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"

/* Appends one frequency's; returns how many it has, those beyond PS_MAX_ALIASES only counted. */
static int64_t append(double q_row, double q_column, const double step_A[2], int64_t upsampling, double limit, double *rows,
                      double *columns) {
    double reach[2] = {(double)upsampling / (2.0 * step_A[0]), (double)upsampling / (2.0 * step_A[1])};
    int64_t n = 1;
    rows[0] = q_row, columns[0] = q_column;
    for (int64_t a = -upsampling; a <= upsampling; a++)
        for (int64_t b = -upsampling; b <= upsampling; b++) {
            double row = q_row + (double)a / step_A[0], column = q_column + (double)b / step_A[1];
            bool on_grid = row >= -reach[0] && row < reach[0] && column >= -reach[1] && column < reach[1];
            if ((a == 0 && b == 0) || !on_grid || !(hypot(row, column) < limit)) continue;
            if (n < PS_MAX_ALIASES) rows[n] = row, columns[n] = column;
            n++;
        }
    return n;
}

ps_code ps_fit_aliases_list(int64_t n, const double *q_row, const double *q_column, const double step_A[2], int64_t upsampling,
                            double limit, ps_fit_aliases *aliases, ps_error *error) {
    ps_code code = PS_OK;
    size_t most = (size_t)n * (upsampling > 1 ? PS_MAX_ALIASES : 1);
    *aliases = (ps_fit_aliases){.first = malloc((size_t)(n + 1) * sizeof *aliases->first),
                                .q_row = malloc(most * sizeof *aliases->q_row),
                                .q_column = malloc(most * sizeof *aliases->q_column)};
    PS_GO_ALLOC(error, aliases->first);
    PS_GO_ALLOC(error, aliases->q_row);
    PS_GO_ALLOC(error, aliases->q_column);
    aliases->first[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = aliases->first[i];
        int64_t found =
            upsampling > 1 ? append(q_row[i], q_column[i], step_A, upsampling, limit, aliases->q_row + at, aliases->q_column + at) : 1;
        aliases->q_row[at] = q_row[i], aliases->q_column[at] = q_column[i];
        if (found > PS_MAX_ALIASES) {
            code = PS_FAIL(error, PS_E_JOB, "/fit/upsampling: %lld gives a scan frequency %lld aliases, at most %d are possible",
                           (long long)upsampling, (long long)found, PS_MAX_ALIASES);
            goto done;
        }
        aliases->first[i + 1] = at + found;
    }
done:
    if (code != PS_OK) ps_fit_aliases_free(aliases);
    return code;
}

void ps_fit_aliases_free(ps_fit_aliases *aliases) {
    free(aliases->first);
    free(aliases->q_row);
    free(aliases->q_column);
    memset(aliases, 0, sizeof *aliases);
}
