#include "method/curves.h"

#include <math.h>

void ps_curve_strengths(double *strengths) {
    for (int i = 0; i < PS_N_CURVE_STRENGTHS; i++) strengths[i] = pow(10.0, -4.0 + i / 12.0);
}

int64_t ps_curve_gcv(int64_t n, const double *residual, const double *effective_dof, double n_data, double *gcv) {
    int64_t least = 0;
    for (int64_t i = 0; i < n; i++) {
        double free_fraction = 1 - effective_dof[i] / n_data;
        gcv[i] = residual[i] / n_data / (free_fraction * free_fraction);
        if (gcv[i] < gcv[least]) least = i;
    }
    return least;
}
