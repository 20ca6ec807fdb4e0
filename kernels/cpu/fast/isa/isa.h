/* The hot loops of the fast CPU path. Every file of this folder is compiled once per instruction set; a table of the functions is
 * chosen at run time. Nothing here allocates, fails or uses threads.
 *
 * Pixels are in slot order, padded with dark ones to whole tiles. Rows of transfer and spectra are planes: `width` real parts, then
 * `width` imaginary parts. */
#ifndef PS_KERNELS_CPU_FAST_ISA_ISA_H
#define PS_KERNELS_CPU_FAST_ISA_ISA_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PS_FAST_TILE = 16,   /* pixels that are evaluated or skipped together: 4 x 4 on the detector */
    PS_FAST_BLOCK = 512, /* pixels whose products are summed in float before they join a double */
    PS_FAST_LANES = 8,   /* frequencies whose matrices are worked on together */
    PS_FAST_POWERS = 7   /* of a polynomial of degree 6: x^0 ... x^6 */
};

/* coefficient[i][j] of x^i y^j; those beyond the degree are not read. */
typedef struct {
    int degree;
    double coefficient[PS_FAST_POWERS][PS_FAST_POWERS];
} ps_fast_polynomial;

/* Pixels in units of the aperture's radius: x = k_row/k_max, y = k_column/k_max. */
typedef struct {
    int64_t n_tiles;
    const double *x, *y;                        /* [n_tiles * TILE] */
    const double *inside;                       /* [n_tiles * TILE] 1 - x^2 - y^2 */
    const float *tile_x, *tile_y, *tile_radius; /* [n_tiles] a circle around each tile */
    float pitch[2];                             /* detector pixel along row, column, in the same unit */
} ps_fast_pixels;

/* One alias, docs/physics.md section 3 written as
 *     T_phase = i A(k) e^(i s) (m cos d + i p sin d)     s = (chi(k+q) - chi(k-q))/2     m = w1 A(k-q) - w2 A(k+q)
 *     T_amplitude = A(k) e^(i s) (p cos d + i m sin d)   d = chi(k) - (chi(k+q) + chi(k-q))/2   p = w1 A(k-q) + w2 A(k+q)
 * so that nothing cancels where both overlaps meet. */
typedef struct {
    double q[2], q2;         /* q/k_max, its square */
    ps_fast_polynomial s, d; /* in quarter turns, of x and y */
    bool is_thick;
    double rate, drift; /* w1, w2 = sinc of rate (x.q -+ q2/2) - drift turns */
} ps_fast_alias;

/* Products of rows: sums[i][j] += conj(row i) . column j over one block. */
typedef struct {
    int64_t n_rows, n_columns;
    const float *rows, *columns; /* [n_rows, 2, width], [n_columns, 2, width] at these strides in floats */
    int64_t row_stride, column_stride;
    int64_t width;              /* a multiple of TILE, at most BLOCK */
    const bool *row_is_dark;    /* [n_rows] all zero; may be NULL */
    const bool *column_is_dark; /* [n_columns]; may be NULL */
} ps_fast_operands;

typedef struct {
    const char *name;
    bool (*is_supported)(void);

    /* Transfer of one alias at the tiles [first, first + n): amplitude, phase: [2, n * TILE] floats, amplitude may be NULL. factor:
     * [all pixels] A(k) times what the caller weighs with. Returns true when everything is zero. */
    bool (*transfer)(const ps_fast_pixels *pixels, const ps_fast_alias *alias, const float *factor, int64_t first, int64_t n,
                     float *amplitude, float *phase);

    /* sums: [n_rows, n_columns, 2, 8] doubles; upper: only where column >= row. */
    void (*products)(const ps_fast_operands *operands, bool upper, double *sums);

    /* N and b of one alias against one spectrum, [n_tiles, 2, TILE], without storing the transfer: for trial optics. */
    void (*explain)(const ps_fast_pixels *pixels, const ps_fast_alias *alias, const float *factor, const float *spectrum, double *normal,
                    double right[2]);
    /* Where a trial puts n pixels, a multiple of TILE: x = to_x[0] row + to_x[1] column + to_x[2], y likewise, 1 - x^2 - y^2, A(k).
     * pitch: as in ps_fast_pixels. */
    void (*place)(int64_t n, const double *row, const double *column, const double to_x[3], const double to_y[3], const float pitch[2],
                  double *x, double *y, double *inside, float *factor);

    /* Scales every entry of one row to length 1, or 0 where its length is not above `floor`. */
    void (*normalise)(int64_t width, float floor, float *row);

    /* Reduces prior^-1/2 N prior^-1/2 of LANES frequencies to real tridiagonal form, physics section 5; see tridiagonal.c. */
    void (*tridiagonalise)(int n, double *matrix, double *reduced);
    /* vectors: [n, 2, LANES] in place: to and from the basis in which the matrix is tridiagonal. */
    void (*to_basis)(int n, const double *matrix, const double *reduced, double *vectors);
    void (*from_basis)(int n, const double *matrix, const double *reduced, double *vectors);
    /* Solves (T + mu) y = c. c, y: [n, 2, LANES]; pivots: [2, n, LANES] scratch. explained: [LANES] c^H y + mu |y|^2;
     * trace: [LANES] tr((T + mu)^-1), either may be NULL. Returns false when a pivot is not positive. */
    bool (*solve_shifted)(int n, const double *reduced, double mu, const double *c, double *y, double *pivots, double *explained,
                          double *trace);

    /* c = a b. a: [m, k], b: [k, n], c: [m, n], rows at these strides in floats; n: a multiple of TILE. */
    void (*multiply)(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_stride, const float *b, int64_t b_stride, float *c,
                     int64_t c_stride);

    /* phase: [n] atan2 of (imaginary, real); sums, squares: [n] phase and its square are added. */
    void (*add_phases)(int64_t n, const float *real, const float *imaginary, double *sums, double *squares);
} ps_fast_isa;

/* Doubles that tridiagonalise leaves beside the reflectors in `matrix`: diagonal, off-diagonal, reflector sizes, phases. */
#define PS_FAST_REDUCED(n) ((int64_t)5 * (n)*PS_FAST_LANES)
/* Doubles of LANES packed lower triangles: entry (i, j), j <= i, is [2, LANES] at i (i + 1)/2 + j. */
#define PS_FAST_PACKED(n) ((int64_t)(n) * ((n) + 1) * PS_FAST_LANES)

#if defined(__x86_64__)
#define PS_FAST_ISAS(X) X(baseline) X(avx2) X(avx512) /* best last */
#else
#define PS_FAST_ISAS(X) X(baseline)
#endif

/* The best one this machine runs, or the one named in PS_CPU_ISA (baseline, avx2, avx512); NULL: that name cannot be used here. */
const ps_fast_isa *ps_fast_isa_choose(void);

#endif
