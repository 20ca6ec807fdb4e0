/* The SSB estimator `phase`: what its two ways of transforming a pixel's corrected spectrum share.
 *
 * A pixel's corrected spectrum v is conjugate-odd, v(-Q) = -conj(v(Q)), so its image is i times the real transform of -i v, plus the mean
 * at zero frequency. Rows and columns of a fine Nyquist frequency hold a conjugate-even part as well; its images are functions of one
 * coordinate (times +-1 along the other), from short transforms. */
#ifndef PS_KERNELS_CUDA_SSB_GRID_CUH
#define PS_KERNELS_CUDA_SSB_GRID_CUH

#include "kernels/cuda/g_store.cuh"
#include "kernels/cuda/ssb_gamma.cuh"

/* What kernels need of the fine grid, the scan and the pixels. */
typedef struct {
    int64_t rows, columns, scan_rows, scan_columns;
    int64_t first_tile, n_spectrum;
    ps_cuda_g g;                   /* from first_tile on */
    const double *slot_u, *slot_v; /* [n_slots] k in fine steps along scan rows, columns */
    const ps_cuda_pixel *pixels;   /* [n_slots] */
} ps_ssb_grid;

/* A sum of phases and of their squares. */
typedef double2 ps_ssb_sum;

/* The estimator at work on one frame. */
typedef struct {
    ps_cuda_frame *frame;
    ps_cuda_geometry along_row, along_column; /* in fine steps; kappa's first coordinate across the line */
    double *slot_u, *slot_v;
    ps_ssb_sum *sums;         /* [rows, columns]; by sheets [2], added at the end */
    unsigned char *transform; /* ps_ssb_phase_..._scratch bytes */
    double mean;              /* counts: all pixels' */
} ps_ssb_phase;

/* g: of the tiles from first_tile on. */
static inline ps_ssb_grid ps_ssb_phase_grid(const ps_ssb_phase *phase, int64_t first_tile, const ps_cuda_g *g) {
    const ps_cuda_system *system = phase->frame->system;
    ps_ssb_grid grid = {ps_cuda_fine_rows(&system->desc),
                        ps_cuda_fine_columns(&system->desc),
                        system->desc.scan_rows,
                        system->desc.scan_columns,
                        first_tile,
                        system->n_spectrum,
                        *g,
                        phase->slot_u,
                        phase->slot_v,
                        system->d_pixels};
    return grid;
}

/* The fine frequency of an index; an even length's Nyquist index is the negative frequency. */
__device__ inline int ps_ssb_frequency(int index, int n) {
    return index < (n + 1) / 2 ? index : index - n;
}

/* One line's pixel as the kernels need it. slot: the pixel; row: the line is a row of the grid, at frequency `fixed`. */
__device__ inline void ps_ssb_form_line(const ps_cuda_geometry &g, const ps_ssb_grid &grid, int64_t slot, bool row, double fixed, int side,
                                        ps_gamma_line *line) {
    const ps_cuda_pixel &pixel = grid.pixels[slot];
    double u = grid.slot_u[slot], v = grid.slot_v[slot];
    ps_gamma_form_terms(g, fixed, row ? u : v, pixel.chi, side, line);
    if (side == 0) ps_gamma_form_line(g, fixed, row ? u : v, row ? v : u, pixel.aperture, line);
}

/* A pixel's stored half-plane. */
__device__ inline ps_g_pixel ps_ssb_spectrum(const ps_ssb_grid &grid, int64_t slot) {
    return ps_g_pixel_at(grid.g, grid.n_spectrum, (int)grid.scan_rows, slot / PS_CUDA_LANES - grid.first_tile, (int)(slot % PS_CUDA_LANES));
}

/* g conj(gamma)/|gamma| in the units of g's store. */
__device__ inline float2 ps_ssb_corrected(float2 g, float2 unit) {
    return make_float2(fmaf(g.x, unit.x, g.y * unit.y), fmaf(g.y, unit.x, -(g.x * unit.y)));
}

/* The angle of (real, imaginary), to 2e-7; 0 of (0, 0). */
__device__ inline float ps_ssb_angle(float imaginary, float real) {
    float a = fabsf(real), b = fabsf(imaginary), t = fminf(a, b) * ps_rcp(fmaxf(fmaxf(a, b), 1e-37f)), z = t * t;
    float p = fmaf(0.00405994431f, z, -0.0207067526f);
    p = fmaf(p, z, 0.0498556304f);
    p = fmaf(p, z, -0.0807439302f);
    p = fmaf(p, z, 0.10888644f);
    p = fmaf(p, z, -0.142609107f);
    p = fmaf(p, z, 0.199989272f);
    p = fmaf(p, z, -0.333333257f);
    p = fmaf(p * z, t, t);
    p = b > a ? 1.57079633f - p : p;
    p = real < 0.0f ? 3.14159265f - p : p;
    return copysignf(p, imaginary);
}

/* All pixels of the tiles [first, first + n) whose g is at `g`: their phases and squares join phase->sums. Work may be left on the
 * compute and the side stream; each array of sums belongs to one of them. */
ps_code ps_ssb_phase_add_sheets(const ps_ssb_phase *phase, int64_t first_tile, int64_t n_tiles, const ps_cuda_g *g, ps_error *error);
ps_code ps_ssb_phase_add_batches(const ps_ssb_phase *phase, int64_t first_tile, int64_t n_tiles, const ps_cuda_g *g, ps_error *error);
/* Bytes they work in; 0: a side of the fine grid is not for the former. */
int64_t ps_ssb_phase_sheets_scratch(const ps_cuda_system *system);
int64_t ps_ssb_phase_batches_scratch(const ps_cuda_system *system);

#endif
