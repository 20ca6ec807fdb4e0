/* How much scratch the largest operation of a system needs, by arithmetic alone, so that a plan made without a device says what will be
 * used. */
#include "kernels/cuda/operations.h"

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

size_t ps_cuda_scratch_bytes(const ps_cuda_system *system) {
    size_t most = larger(ps_cuda_solve_scratch(system), ps_cuda_eigenbasis_scratch(system));
    if (system->methods & PS_METHOD_SSB) most = larger(most, larger(ps_cuda_ssb_wave_scratch(system), ps_cuda_ssb_phase_scratch(system)));
    if (system->methods & PS_METHOD_MF) most = larger(most, ps_cuda_right_side_image_scratch(system));
    return ps_cuda_forward_scratch(system) + 256 + most;
}
