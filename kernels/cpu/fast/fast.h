/* The fast CPU path: transfer in float with phases formed in double, products in float over short blocks that join sums in double,
 * tridiagonal bases in double. docs/physics.md section 9 says how exact it has to be.
 *
 * Work is spread over frequencies or pixels, never inside one sum, and sums have a fixed order: results are the same, to the last bit,
 * for any number of threads, batch of frames or memory budget.
 *
 * Pixels are in slots that follow 4 x 4 patches of the detector. Frequencies with the same number of aliases are taken LANES
 * at a time; such a batch shares its matrices' memory, lane by lane (isa/isa.h). */
#ifndef PS_KERNELS_CPU_FAST_FAST_H
#define PS_KERNELS_CPU_FAST_FAST_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/fast/isa/isa.h"

#define PS_FAST_GAMMA_FLOOR 1e-6f /* section 6: at and below it a pixel says nothing about a frequency */

typedef struct {
    int n;                              /* aliases of each of its frequencies */
    int64_t frequency[PS_FAST_LANES];   /* -1: an empty lane */
    int64_t normal;                     /* offset in `normal`, in doubles */
    int64_t phase_basis, complex_basis; /* offsets in `bases`, in doubles */
} ps_fast_batch;

typedef struct {
    ps_cpu_system cpu;
    const ps_fast_isa *isa;
    double k_max; /* semiangle/wavelength, 1/Angstrom */
    ps_fast_pixels pixels;
    ps_fast_polynomial chi, chi_mirrored; /* quarter turns, of k/k_max; mirrored: of -k/k_max */
    float *aperture;                      /* [n_tiles * TILE] A(k), 0 in padding */
    float *weights;                       /* [n_tiles * TILE], 1 in padding */
    int64_t n_batches;
    ps_fast_batch *batches; /* [n_batches] by number of aliases */
    double *normal;         /* per batch, packed: N of the complex method, or of the phase method alone */
    double *bases;          /* per batch: packed reflectors and reduced matrix of each method */
    double *diagonal;       /* [2, n_aliases] of N: amplitude, phase */
} ps_fast_system;

PS_CPU_PATH(fast);

/* A frame's sums as pairs of doubles: [n_aliases, 2]. */
static inline double *ps_fast_pairs(double complex *sums) {
    return (double *)sums;
}
static inline int64_t ps_fast_n_blocks(const ps_fast_system *system) {
    return (system->pixels.n_tiles * PS_FAST_TILE + PS_FAST_BLOCK - 1) / PS_FAST_BLOCK;
}
/* Pixels of a block: BLOCK, or what is left in the last one. */
static inline int64_t ps_fast_block_width(const ps_fast_system *system, int64_t block) {
    int64_t left = system->pixels.n_tiles * PS_FAST_TILE - block * PS_FAST_BLOCK;
    return left < PS_FAST_BLOCK ? left : PS_FAST_BLOCK;
}
static inline bool ps_fast_has(const ps_fast_system *system, ps_methods methods) {
    return system->cpu.methods & methods;
}

/* A running sum of isa.h's products, in a fixed order. */
static inline double ps_fast_total(const double sum[PS_FAST_LANES]) {
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* pixels.c: slot order, and everything over pixels that depends on optics alone. order: [n_active] */
void ps_fast_slot_order(const ps_system_desc *desc, int32_t *order);
ps_code ps_fast_pixels_init(ps_fast_system *system, ps_error *error);
/* The circle around the middle of each tile's extent; x, y and n_tiles are set. */
void ps_fast_fill_tiles(const ps_fast_pixels *pixels, float *tile_x, float *tile_y, float *tile_radius);
void ps_fast_pixels_release(ps_fast_system *system);

/* alias.c: chi as polynomials, and one alias's terms. */
void ps_fast_chi_polynomial(const ps_probe *probe, bool mirrored, ps_fast_polynomial *chi);
/* q: 1/Angstrom, k_max: the aperture's radius; chi_mirrored: see ps_fast_system. */
void ps_fast_terms_at(const ps_probe *probe, double k_max, const ps_fast_polynomial *chi, const ps_fast_polynomial *chi_mirrored,
                      const double q[2], ps_fast_alias *terms);
void ps_fast_alias_terms(const ps_fast_system *system, int64_t alias, ps_fast_alias *terms);

/* Transfer of every alias of a frequency at one block: rows of [2, width], amplitudes first when `amplitude`. factor: [all pixels].
 * is_dark: [rows]. */
void ps_fast_transfer_rows(const ps_fast_system *system, int64_t frequency, int64_t block, bool amplitude, const float *factor, float *rows,
                           bool *is_dark);

ps_code ps_fast_normal(ps_fast_system *system, ps_error *error); /* N of every frequency, and the scales */
ps_code ps_fast_bases(ps_fast_system *system, ps_error *error);

/* Unknowns of a batch's stored N, and where the phase unknowns start in it. */
static inline int ps_fast_dim(const ps_fast_system *system, const ps_fast_batch *batch) {
    return ps_fast_has(system, PS_METHOD_COMPLEX) ? 2 * batch->n : batch->n;
}

/* basis.c: D^-1/2 N D^-1/2 of a batch in tridiagonal form; D = prior for phase; for complex the amplitude half counts `ratio` times.
 * root: [dim, LANES] D^1/2; basis: packed(dim) + reduced(dim) doubles. */
void ps_fast_form_root(const ps_fast_system *system, const ps_fast_batch *batch, ps_methods method, double ratio, double *root);
void ps_fast_form_basis(const ps_fast_system *system, const ps_fast_batch *batch, ps_methods method, const double *root, double *basis);
static inline int64_t ps_fast_basis_doubles(int dim) {
    return PS_FAST_PACKED(dim) + PS_FAST_REDUCED(dim);
}

/* spectra.c: g of the slots [first, first + n) (whole tiles) of one frame into the beginning of a store (g_store.h). */
typedef struct ps_fast_g ps_fast_g;
ps_code ps_fast_spectra(const ps_cpu_frame *frame, int64_t first, int64_t n, const ps_fast_g *g, ps_error *error);
size_t ps_fast_spectra_bytes(const ps_system_desc *desc); /* scratch of ps_fast_spectra */

/* Workspace that each step needs, for memory_plan.c. */
size_t ps_fast_reduce_bytes(const ps_system_desc *desc, int64_t n_frames); /* one thread's, without g */
size_t ps_fast_solve_bytes(const ps_system_desc *desc, ps_methods methods);
size_t ps_fast_ssb_bytes(const ps_system_desc *desc);
size_t ps_fast_right_side_image_bytes(const ps_system_desc *desc);

ps_code ps_fast_batches_init(ps_fast_system *system, ps_error *error);

#endif
