/* Operations that a backend need not have, built from those it must have. Arguments as backend.c has checked them. Internal. */
#ifndef PS_KERNELS_BACKEND_DEFAULT_H
#define PS_KERNELS_BACKEND_DEFAULT_H

#include "kernels/backend.h"

/* Data norm of all frequencies but zero, from what get_right_side says of each. */
ps_code ps_default_data_norm(ps_frame *frame, double *data_norm, ps_error *error);
/* The same one by one: [n_frequencies]. */
ps_code ps_default_data_norms(ps_frame *frame, double *data_norms, ps_error *error);
/* Section 5's scales from the diagonals of get_normal. */
ps_code ps_default_scales(ps_system *system, ps_methods method, double *amplitude, double *phase, ps_error *error);

#endif
