/* From the description of a system to the pixels' tiles and the transfer's geometry. Host code. */
#ifndef PS_KERNELS_CUDA_LAYOUT_H
#define PS_KERNELS_CUDA_LAYOUT_H

#include "kernels/cuda/cuda.h"

/* PS_E_ARGUMENT unless k is an affine function of detector row and column whose two steps are perpendicular, which every detector's
 * is (docs/physics.md section 1). On error *layout is empty. Owned by the caller: ps_cuda_layout_free. */
ps_code ps_cuda_layout_build(const ps_system_desc *desc, ps_cuda_layout *layout, ps_cuda_geometry *geometry, ps_error *error);
void ps_cuda_layout_free(ps_cuda_layout *layout);
/* The same transfer in units of a step (row_step along scan rows, column_step along scan columns, 1/Angstrom): what the SSB phase
 * estimator walks along. */
void ps_cuda_geometry_build(const ps_probe *probe, const double direction_u[2], const double direction_v[2], ps_cuda_geometry *geometry);
/* q in pixels along the detector's rows and columns. */
void ps_cuda_to_pixels(const ps_cuda_geometry *geometry, double q_row, double q_column, double *u, double *v);

#endif
