#include "kernels/backend.h"

const int ps_aberration_orders[PS_N_ABERRATIONS][2] = {{1, 0}, {1, 2}, {2, 1}, {2, 3}, {3, 0}, {3, 2}, {3, 4},
                                                       {4, 1}, {4, 3}, {4, 5}, {5, 0}, {5, 2}, {5, 4}, {5, 6}};
