/* The grid that simulated objects live on, periodic over the scan area, and Gaussians on it: atoms and moving defects. */
#ifndef PS_TASKS_SIMULATE_GAUSSIAN_H
#define PS_TASKS_SIMULATE_GAUSSIAN_H

#include <stdint.h>

typedef struct {
    int64_t rows, columns;
    double step_A[2];
} ps_fine_grid;

enum { PS_WIDEST_GAUSSIAN = 64 }; /* grid steps that ps_gaussian_add takes as sigma at most */

/* Adds height * exp(-|r - at_A|^2 / (2 sigma_A^2)) to field [rows, columns], around the edges too. */
void ps_gaussian_add(const ps_fine_grid *grid, const double at_A[2], double sigma_A, double height, double *field);

#endif
