/* Sums over a block of conj(row) * column for pairs of rows and columns: N (rows with themselves) and b (rows with spectra).
 *
 * A register tile of pairs at a time; each pair's sums stay in two vector registers over the block, a few dozen float additions per
 * element, and join sums in double afterwards. The order of a pair's additions does not depend on what else is summed with it. */
#include <math.h>

#include "kernels/cpu/fast/isa/variant.h"

typedef float vector __attribute__((vector_size(PS_FAST_VECTOR_BYTES), aligned(4), may_alias));
typedef float half_vector __attribute__((vector_size(PS_FAST_VECTOR_BYTES / 2)));
typedef double doubles __attribute__((vector_size(PS_FAST_VECTOR_BYTES), may_alias));

enum {
    FLOATS = PS_FAST_VECTOR_BYTES / 4,
    SUM_DOUBLES = 8 /* of one real sum in memory; vectors shorter than that use its beginning */
};

#define UNROLLED static inline __attribute__((always_inline))

UNROLLED void join(const vector *part, double *sum) {
    union {
        vector whole;
        half_vector halves[2];
    } u = {.whole = *part};
    doubles *total = (doubles *)sum;
    *total += __builtin_convertvector(u.halves[0], doubles) + __builtin_convertvector(u.halves[1], doubles);
}

/* n_rows, n_columns are constants where this is expanded. */
UNROLLED void tile(int n_rows, int n_columns, const ps_fast_operands *o, int64_t row, int64_t column, double *sums) {
    vector re[PS_FAST_REGISTER_TILE][PS_FAST_REGISTER_TILE] = {{{0}}}, im[PS_FAST_REGISTER_TILE][PS_FAST_REGISTER_TILE] = {{{0}}};
    const float *rows = o->rows + row * o->row_stride, *columns = o->columns + column * o->column_stride;
    for (int64_t at = 0; at < o->width; at += FLOATS) {
        vector a_re[PS_FAST_REGISTER_TILE], a_im[PS_FAST_REGISTER_TILE];
        for (int i = 0; i < n_rows; i++) {
            a_re[i] = *(const vector *)(rows + i * o->row_stride + at);
            a_im[i] = *(const vector *)(rows + i * o->row_stride + o->width + at);
        }
        for (int j = 0; j < n_columns; j++) {
            vector b_re = *(const vector *)(columns + j * o->column_stride + at);
            vector b_im = *(const vector *)(columns + j * o->column_stride + o->width + at);
            for (int i = 0; i < n_rows; i++) {
                re[i][j] += a_re[i] * b_re;
                re[i][j] += a_im[i] * b_im;
                im[i][j] += a_re[i] * b_im;
                im[i][j] -= a_im[i] * b_re;
            }
        }
    }
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_columns; j++) {
            double *sum = sums + ((row + i) * o->n_columns + column + j) * 2 * SUM_DOUBLES;
            join(&re[i][j], sum);
            join(&im[i][j], sum + SUM_DOUBLES);
        }
}

static bool all_dark(const bool *is_dark, int64_t first, int64_t n) {
    if (!is_dark) return false;
    for (int64_t i = first; i < first + n; i++)
        if (!is_dark[i]) return false;
    return true;
}

void PS_FAST_NAME(ps_fast_products)(const ps_fast_operands *o, bool upper, double *sums) {
    enum { STEP = PS_FAST_REGISTER_TILE };
    for (int64_t row = 0; row < o->n_rows; row += STEP) {
        int64_t n_rows = o->n_rows - row < STEP ? o->n_rows - row : STEP;
        if (all_dark(o->row_is_dark, row, n_rows)) continue;
        for (int64_t column = upper ? row : 0; column < o->n_columns; column += STEP) {
            int64_t n_columns = o->n_columns - column < STEP ? o->n_columns - column : STEP;
            if (all_dark(o->column_is_dark, column, n_columns)) continue;
            if (n_rows == STEP && n_columns == STEP) {
                tile(STEP, STEP, o, row, column, sums);
            } else if (n_rows == STEP) {
                for (int64_t j = column; j < column + n_columns; j++) tile(STEP, 1, o, row, j, sums);
            } else {
                for (int64_t i = row; i < row + n_rows; i++)
                    for (int64_t j = column; j < column + n_columns; j++) tile(1, 1, o, i, j, sums);
            }
        }
    }
}

void PS_FAST_NAME(ps_fast_normalise)(int64_t width, float floor, float *row) {
    float *re = row, *im = row + width, least = floor * floor;
    for (int64_t i = 0; i < width; i++) {
        float square = re[i] * re[i] + im[i] * im[i];
        float scale = square > least ? 1.0f / sqrtf(square > least ? square : 1.0f) : 0.0f;
        re[i] *= scale;
        im[i] *= scale;
    }
}
