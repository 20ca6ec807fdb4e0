/* The transfer of one alias at the pixels of one block, in float with phases formed in double.
 *
 * Tiles outside both overlaps are skipped. Of the others, up to four at a time go through stages, each a plain loop over their 64
 * pixels that the compiler turns into vector code: geometry and the polynomials s and d in double, reduced to a fraction of a
 * quarter turn there, and everything else in float. An error of a phase is then that of its float fraction, 4e-8 rad, however
 * many turns the aberrations make; the transfer is good to about 2e-7. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/fast/isa/variant.h"

enum { GROUP = 4, POINTS = GROUP * PS_FAST_TILE, MOST_TILES = PS_FAST_BLOCK / PS_FAST_TILE };

/* What one group of tiles works on. */
typedef struct {
    double x[POINTS], y[POINTS], inside[POINTS], dot[POINTS];
    float factor[POINTS];
    float w1[POINTS], w2[POINTS]; /* w1 A(k-q), w2 A(k+q) */
    float sine[POINTS], cosine[POINTS];
    float re[POINTS], im[POINTS]; /* factor * e^(i s) */
} group;

/* An angle in quarter turns: its nearest whole number modulo 4, and what is left, -1/2 ... 1/2. */
typedef struct {
    float fraction[POINTS];
    int32_t quarter[POINTS];
} quarters;

#define UNROLLED static inline __attribute__((always_inline))

UNROLLED void evaluate_degree(int degree, const ps_fast_polynomial *p, const group *g, double *values) {
    for (int i = 0; i < POINTS; i++) {
        double x = g->x[i], y = g->y[i], sum = 0.0;
        for (int a = degree; a >= 0; a--) {
            double inner = p->coefficient[a][degree - a];
            for (int b = degree - a - 1; b >= 0; b--) inner = inner * y + p->coefficient[a][b];
            sum = sum * x + inner;
        }
        values[i] = sum;
    }
}

static void evaluate(const ps_fast_polynomial *p, const group *g, double *values) {
    switch (p->degree) {
    case 0: evaluate_degree(0, p, g, values); break;
    case 1: evaluate_degree(1, p, g, values); break;
    case 2: evaluate_degree(2, p, g, values); break;
    case 3: evaluate_degree(3, p, g, values); break;
    case 4: evaluate_degree(4, p, g, values); break;
    case 5: evaluate_degree(5, p, g, values); break;
    default: evaluate_degree(6, p, g, values); break;
    }
}

/* Adding and subtracting 1.5 * 2^52 rounds to the nearest whole number. */
static void split_quarters(const double *values, quarters *q) {
    const double rounder = 0x1.8p52;
    for (int i = 0; i < POINTS; i++) {
        double whole = (values[i] + rounder) - rounder;
        q->fraction[i] = (float)(values[i] - whole);
        q->quarter[i] = (int32_t)whole;
    }
}

/* sin and cos of pi/2 z, -1/2 <= z <= 1/2, to 6e-8. */
UNROLLED float sine_of(float z, float z2) {
    return z * (1.57079633f + z2 * (-0.645964096f + z2 * (0.0796925828f + z2 * (-4.68126648e-3f + z2 * 1.58206741e-4f))));
}

UNROLLED float cosine_of(float z2) {
    return 1.0f + z2 * (-1.23370054f + z2 * (0.253669204f + z2 * (-0.0208600713f + z2 * 9.03631703e-4f)));
}

static void sine_cosine(const quarters *q, float *sine, float *cosine) {
    for (int i = 0; i < POINTS; i++) {
        float z = q->fraction[i], z2 = z * z, s = sine_of(z, z2), c = cosine_of(z2);
        int32_t quarter = q->quarter[i];
        float first = quarter & 1 ? c : s, second = quarter & 1 ? s : c;
        sine[i] = first * (float)(1 - (quarter & 2));
        cosine[i] = second * (float)(1 - ((quarter + 1) & 2));
    }
}

static void load_group(const ps_fast_pixels *pixels, const ps_fast_alias *alias, const float *factor, const int32_t *tiles, group *g) {
    for (int t = 0; t < GROUP; t++) {
        int64_t from = (int64_t)tiles[t] * PS_FAST_TILE;
        memcpy(g->x + t * PS_FAST_TILE, pixels->x + from, PS_FAST_TILE * sizeof *g->x);
        memcpy(g->y + t * PS_FAST_TILE, pixels->y + from, PS_FAST_TILE * sizeof *g->y);
        memcpy(g->inside + t * PS_FAST_TILE, pixels->inside + from, PS_FAST_TILE * sizeof *g->inside);
        memcpy(g->factor + t * PS_FAST_TILE, factor + from, PS_FAST_TILE * sizeof *g->factor);
    }
    for (int i = 0; i < POINTS; i++) g->dot[i] = g->x[i] * alias->q[0] + g->y[i] * alias->q[1];
}

/* Section 2's soft aperture at k + sign q, from u = 1 - |k + sign q|^2: 1 - sqrt(1 - u) without cancellation. */
static void soft_aperture(const ps_fast_pixels *pixels, const ps_fast_alias *alias, const group *g, double sign, float *aperture) {
    float row2 = pixels->pitch[0] * pixels->pitch[0], difference = pixels->pitch[1] * pixels->pitch[1] - row2;
    for (int i = 0; i < POINTS; i++) {
        float u = (float)(g->inside[i] - alias->q2 - 2.0 * sign * g->dot[i]);
        float y = (float)(g->y[i] + sign * alias->q[1]);
        float radius2 = u < 1.0f ? 1.0f - u : 1e-30f, along = y * y / radius2;
        float pixel = sqrtf(row2 + difference * (along < 1.0f ? along : 1.0f)); /* near k + sign q = 0, where u is rounded, along is not */
        float a = u / ((1.0f + sqrtf(radius2)) * pixel) + 0.5f;
        aperture[i] = a < 0.0f ? 0.0f : a > 1.0f ? 1.0f : a;
    }
}

/* The same for square pixels of at most most_square_pitch, where the edge is |u| <= 0.21 and 1 - sqrt(1 - u) a short series. */
static const float most_square_pitch = 0.2f;

static void square_aperture(const ps_fast_pixels *pixels, const ps_fast_alias *alias, const group *g, double sign, float *aperture) {
    static const float c[] = {0.5f,          0.125f,         0.0625f,         0.0390625f,        0.02734375f,
                              0.0205078125f, 0.01611328125f, 0.013092041016f, 0.01091003417969f, 0.009273529053f};
    float scale = 1.0f / pixels->pitch[0];
    for (int i = 0; i < POINTS; i++) {
        float u = (float)(g->inside[i] - alias->q2 - 2.0 * sign * g->dot[i]), sum = c[9];
        u = u < -0.25f ? -0.25f : u > 0.25f ? 0.25f : u;
        for (int n = 8; n >= 0; n--) sum = sum * u + c[n];
        float a = u * sum * scale + 0.5f;
        aperture[i] = a < 0.0f ? 0.0f : a > 1.0f ? 1.0f : a;
    }
}

/* A(k-q) and A(k+q). */
static void edge_apertures(const ps_fast_pixels *pixels, const ps_fast_alias *alias, group *g) {
    bool square = pixels->pitch[0] == pixels->pitch[1] && pixels->pitch[0] <= most_square_pitch;
    void (*aperture)(const ps_fast_pixels *, const ps_fast_alias *, const group *, double, float *) =
        square ? square_aperture : soft_aperture;
    aperture(pixels, alias, g, -1.0, g->w1);
    aperture(pixels, alias, g, 1.0, g->w2);
}

/* Multiplies aperture by sinc of 2 pi (rate (x.q + sign q2/2) - drift). */
static void thicken(const ps_fast_alias *alias, const group *g, double sign, float *aperture) {
    double turns[POINTS], quarter_turns[POINTS];
    float sine[POINTS], cosine[POINTS];
    quarters q;
    for (int i = 0; i < POINTS; i++) {
        turns[i] = alias->rate * (g->dot[i] + 0.5 * sign * alias->q2) - alias->drift;
        quarter_turns[i] = 4.0 * turns[i];
    }
    split_quarters(quarter_turns, &q);
    sine_cosine(&q, sine, cosine);
    for (int i = 0; i < POINTS; i++) {
        float angle = (float)(2.0 * M_PI * turns[i]), square = angle * angle;
        bool small = square < 4e-3f;
        float ratio = sine[i] / (small ? 1.0f : angle), series = 1.0f - square * (1.0f / 6.0f) * (1.0f - square * 0.05f);
        aperture[i] *= small ? series : ratio;
    }
}

/* cos d and sin d of a group are in g->cosine, g->sine, factor e^(i s) in g->re, g->im. */
static void form_phases(const ps_fast_alias *alias, group *g) {
    double angle[POINTS];
    quarters q;
    evaluate(&alias->s, g, angle);
    split_quarters(angle, &q);
    sine_cosine(&q, g->im, g->re);
    for (int i = 0; i < POINTS; i++) {
        g->re[i] *= g->factor[i];
        g->im[i] *= g->factor[i];
    }
    evaluate(&alias->d, g, angle);
    split_quarters(angle, &q);
    sine_cosine(&q, g->sine, g->cosine);
}

/* T_phase = (re + i im) (-p sin d + i m cos d), in tile after tile of the row. */
static void store_phase(const group *g, int n_tiles, const int32_t *places, int64_t width, float *row) {
    float re[POINTS], im[POINTS];
    for (int i = 0; i < POINTS; i++) {
        float a = -(g->w1[i] + g->w2[i]) * g->sine[i], b = (g->w1[i] - g->w2[i]) * g->cosine[i];
        re[i] = g->re[i] * a - g->im[i] * b;
        im[i] = g->re[i] * b + g->im[i] * a;
    }
    for (int t = 0; t < n_tiles; t++) {
        memcpy(row + places[t] * PS_FAST_TILE, re + t * PS_FAST_TILE, PS_FAST_TILE * sizeof *re);
        memcpy(row + width + places[t] * PS_FAST_TILE, im + t * PS_FAST_TILE, PS_FAST_TILE * sizeof *im);
    }
}

/* T_amplitude = (re + i im) (p cos d + i m sin d). */
static void store_amplitude(const group *g, int n_tiles, const int32_t *places, int64_t width, float *row) {
    float re[POINTS], im[POINTS];
    for (int i = 0; i < POINTS; i++) {
        float a = (g->w1[i] + g->w2[i]) * g->cosine[i], b = (g->w1[i] - g->w2[i]) * g->sine[i];
        re[i] = g->re[i] * a - g->im[i] * b;
        im[i] = g->re[i] * b + g->im[i] * a;
    }
    for (int t = 0; t < n_tiles; t++) {
        memcpy(row + places[t] * PS_FAST_TILE, re + t * PS_FAST_TILE, PS_FAST_TILE * sizeof *re);
        memcpy(row + width + places[t] * PS_FAST_TILE, im + t * PS_FAST_TILE, PS_FAST_TILE * sizeof *im);
    }
}

/* How a tile lies to the aperture moved to +q or -q. */
typedef enum { OUTSIDE, INSIDE, EDGE } position;

typedef struct {
    int n;
    int32_t tiles[MOST_TILES + GROUP], places[MOST_TILES + GROUP]; /* in all pixels, in the block */
    uint8_t first[MOST_TILES + GROUP], second[MOST_TILES + GROUP]; /* positions for A(k-q), A(k+q) */
} tile_list;

/* Lists the tiles that either overlap touches: those that an edge crosses, and the others. */
static void list_tiles(const ps_fast_pixels *pixels, const ps_fast_alias *alias, int64_t first, int64_t n, tile_list *edge,
                       tile_list *plain) {
    float half = 0.5f * (pixels->pitch[0] > pixels->pitch[1] ? pixels->pitch[0] : pixels->pitch[1]) + 1e-5f;
    float q0 = (float)alias->q[0], q1 = (float)alias->q[1], nearest[2][MOST_TILES], farthest[2][MOST_TILES];
    const float *cx = pixels->tile_x + first, *cy = pixels->tile_y + first, *radius = pixels->tile_radius + first;
    for (int64_t t = 0; t < n; t++) {
        float minus = sqrtf((cx[t] - q0) * (cx[t] - q0) + (cy[t] - q1) * (cy[t] - q1));
        float plus = sqrtf((cx[t] + q0) * (cx[t] + q0) + (cy[t] + q1) * (cy[t] + q1));
        nearest[0][t] = minus - radius[t];
        farthest[0][t] = minus + radius[t];
        nearest[1][t] = plus - radius[t];
        farthest[1][t] = plus + radius[t];
    }
    edge->n = plain->n = 0;
    for (int64_t t = 0; t < n; t++) {
        position at[2];
        for (int i = 0; i < 2; i++) at[i] = nearest[i][t] > 1.0f + half ? OUTSIDE : farthest[i][t] < 1.0f - half ? INSIDE : EDGE;
        if (at[0] == OUTSIDE && at[1] == OUTSIDE) continue;
        tile_list *list = at[0] == EDGE || at[1] == EDGE ? edge : plain;
        list->tiles[list->n] = (int32_t)(first + t);
        list->places[list->n] = (int32_t)t;
        list->first[list->n] = (uint8_t)at[0];
        list->second[list->n++] = (uint8_t)at[1];
    }
    for (int i = 0; i < GROUP; i++) { /* a last group that is not full repeats a tile */
        edge->tiles[edge->n + i] = edge->n ? edge->tiles[0] : 0;
        plain->tiles[plain->n + i] = plain->n ? plain->tiles[0] : 0;
        plain->first[plain->n + i] = plain->second[plain->n + i] = OUTSIDE;
    }
}

static void constant_aperture(const uint8_t *positions, float *aperture) {
    for (int t = 0; t < GROUP; t++)
        for (int i = 0; i < PS_FAST_TILE; i++) aperture[t * PS_FAST_TILE + i] = positions[t] == INSIDE ? 1.0f : 0.0f;
}

/* Geometry and phases of up to GROUP tiles of a list. */
static void fill_group(const ps_fast_pixels *pixels, const ps_fast_alias *alias, const float *factor, const tile_list *list, bool is_edge,
                       int at, group *g) {
    load_group(pixels, alias, factor, list->tiles + at, g);
    if (is_edge) {
        edge_apertures(pixels, alias, g);
    } else {
        constant_aperture(list->first + at, g->w1);
        constant_aperture(list->second + at, g->w2);
    }
    if (alias->is_thick) {
        thicken(alias, g, -1.0, g->w1);
        thicken(alias, g, 1.0, g->w2);
    }
    form_phases(alias, g);
}

bool PS_FAST_NAME(ps_fast_transfer)(const ps_fast_pixels *pixels, const ps_fast_alias *alias, const float *factor, int64_t first, int64_t n,
                                    float *amplitude, float *phase) {
    tile_list lists[2]; /* edge, plain */
    group g;
    int64_t width = n * PS_FAST_TILE;
    list_tiles(pixels, alias, first, n, &lists[0], &lists[1]);
    memset(phase, 0, (size_t)(2 * width) * sizeof *phase);
    if (amplitude) memset(amplitude, 0, (size_t)(2 * width) * sizeof *amplitude);
    for (int which = 0; which < 2; which++)
        for (int at = 0; at < lists[which].n; at += GROUP) {
            int n_tiles = lists[which].n - at < GROUP ? lists[which].n - at : GROUP;
            fill_group(pixels, alias, factor, &lists[which], which == 0, at, &g);
            store_phase(&g, n_tiles, lists[which].places + at, width, phase);
            if (amplitude) store_amplitude(&g, n_tiles, lists[which].places + at, width, amplitude);
        }
    return lists[0].n + lists[1].n == 0;
}
