#include "tasks/simulate/gaussian.h"

#include <math.h>

/* values: [2 reach + 1] of a Gaussian at pixels first ... of an axis. Returns first, before it is wrapped. */
static int64_t sample_gaussian(double at, double sigma, double step, int64_t reach, double *values) {
    int64_t middle = (int64_t)floor(at / step + 0.5);
    for (int64_t i = -reach; i <= reach; i++) {
        double distance = ((double)(middle + i) * step - at) / sigma;
        values[i + reach] = exp(-0.5 * distance * distance);
    }
    return middle - reach;
}

enum { REACH = 7, MOST_REACH = REACH * PS_WIDEST_GAUSSIAN }; /* in sigma, in pixels */

void ps_gaussian_add(const ps_fine_grid *grid, const double at_A[2], double sigma_A, double height, double *field) {
    double values[2][2 * MOST_REACH + 1];
    int64_t reach[2], first[2];
    for (int axis = 0; axis < 2; axis++) {
        reach[axis] = (int64_t)fmin(ceil(REACH * sigma_A / grid->step_A[axis]), MOST_REACH);
        first[axis] = sample_gaussian(at_A[axis], sigma_A, grid->step_A[axis], reach[axis], values[axis]);
    }
    for (int64_t i = 0; i <= 2 * reach[0]; i++) {
        int64_t row = ((first[0] + i) % grid->rows + grid->rows) % grid->rows;
        for (int64_t j = 0; j <= 2 * reach[1]; j++) {
            int64_t column = ((first[1] + j) % grid->columns + grid->columns) % grid->columns;
            field[row * grid->columns + column] += height * values[0][i] * values[1][j];
        }
    }
}
