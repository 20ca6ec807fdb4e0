/* N and b of one alias against one spectrum: the transfer (transfer.c) and both sums in one pass, for trial optics, whose transfer is used
 * once. Tiles outside both overlaps are skipped; of the others a tile's 16 pixels go through everything in registers. Phases are formed
 * and reduced in double, the rest is float; a pixel's part joins the sums of its place in the tile, which are added up in double after
 * every few tiles. */
#include <math.h>

#include "kernels/cpu/fast/isa/variant.h"

enum { TILE = PS_FAST_TILE, JOINED = 32 /* tiles */ };

#define UNROLLED static inline __attribute__((always_inline))

typedef struct {
    float normal[TILE], re[TILE], im[TILE];
} part;

UNROLLED double polynomial(int degree, const ps_fast_polynomial *p, double x, double y) {
    double sum = 0.0;
#pragma GCC unroll 8
    for (int a = degree; a >= 0; a--) {
        double inner = p->coefficient[a][degree - a];
#pragma GCC unroll 8
        for (int b = degree - a - 1; b >= 0; b--) inner = inner * y + p->coefficient[a][b];
        sum = a == degree ? inner : sum * x + inner;
    }
    return sum;
}

/* sin and cos of an angle in quarter turns, by the nearest whole number of them and what is left, to 6e-8. */
UNROLLED void sine_cosine(double angle, float *sine, float *cosine) {
    const double rounder = 0x1.8p52;
    double whole = (angle + rounder) - rounder;
    float z = (float)(angle - whole), z2 = z * z;
    int32_t quarter = (int32_t)whole;
    float s = z * (1.57079633f + z2 * (-0.645964096f + z2 * (0.0796925828f + z2 * (-4.68126648e-3f + z2 * 1.58206741e-4f))));
    float c = 1.0f + z2 * (-1.23370054f + z2 * (0.253669204f + z2 * (-0.0208600713f + z2 * 9.03631703e-4f)));
    float first = quarter & 1 ? c : s, second = quarter & 1 ? s : c;
    *sine = first * (float)(1 - (quarter & 2));
    *cosine = second * (float)(1 - ((quarter + 1) & 2));
}

/* Section 2's soft aperture where 1 - |k|^2 is u: 1 - sqrt(1 - u) without cancellation. y: k along columns. */
UNROLLED float aperture_at(float u, float y, float row2, float more2) {
    float radius2 = u < 1.0f ? 1.0f - u : 1e-30f, along = y * y / radius2;
    float pixel = sqrtf(row2 + more2 * (along < 1.0f ? along : 1.0f));
    float a = u / ((1.0f + sqrtf(radius2)) * pixel) + 0.5f;
    return a < 0.0f ? 0.0f : a > 1.0f ? 1.0f : a;
}

/* The same for square pixels of at most most_square_pitch, where the edge is |u| <= 0.21 and 1 - sqrt(1 - u) a short series. */
static const float most_square_pitch = 0.2f;

UNROLLED float square_aperture_at(float u, float scale) {
    static const float c[] = {0.5f,          0.125f,         0.0625f,         0.0390625f,        0.02734375f,
                              0.0205078125f, 0.01611328125f, 0.013092041016f, 0.01091003417969f, 0.009273529053f};
    float sum = c[9], near = u < -0.25f ? -0.25f : u > 0.25f ? 0.25f : u;
#pragma GCC unroll 16
    for (int n = 8; n >= 0; n--) sum = sum * near + c[n];
    float a = near * sum * scale + 0.5f;
    return a < 0.0f ? 0.0f : a > 1.0f ? 1.0f : a;
}

typedef enum { PLAIN, SQUARE, SOFT } edges; /* of a tile: none, of square pixels, any */

/* sin(x)/x of an angle in turns. */
UNROLLED float sinc(double turns) {
    float sine, cosine, angle = (float)(2.0 * M_PI * turns), square = angle * angle;
    bool small = square < 4e-3f;
    sine_cosine(4.0 * turns, &sine, &cosine);
    return small ? 1.0f - square * (1.0f / 6.0f) * (1.0f - square * 0.05f) : sine / (small ? 1.0f : angle);
}

/* degree_s, degree_d, edge and is_thick are constants where this is expanded. inside: of a plain tile, A(k-q) and A(k+q). */
UNROLLED void add_tile(int degree_s, int degree_d, edges edge, bool is_thick, const ps_fast_pixels *pixels, const ps_fast_alias *alias,
                       const float *factor, const float *re, const float *im, const float inside[2], part *sums) {
    float row2 = pixels->pitch[0] * pixels->pitch[0], more2 = pixels->pitch[1] * pixels->pitch[1] - row2;
    float scale = 1.0f / pixels->pitch[0];
    for (int i = 0; i < TILE; i++) {
        double x = pixels->x[i], y = pixels->y[i];
        float w1 = inside[0], w2 = inside[1], sin_s, cos_s, sin_d, cos_d;
        double dot = x * alias->q[0] + y * alias->q[1];
        double middle = pixels->inside[i] - alias->q2;
        float u1 = (float)(middle + 2.0 * dot), u2 = (float)(middle - 2.0 * dot);
        if (edge == SQUARE) {
            w1 = square_aperture_at(u1, scale);
            w2 = square_aperture_at(u2, scale);
        } else if (edge == SOFT) {
            w1 = aperture_at(u1, (float)(y - alias->q[1]), row2, more2);
            w2 = aperture_at(u2, (float)(y + alias->q[1]), row2, more2);
        }
        if (is_thick) {
            w1 *= sinc(alias->rate * (dot - 0.5 * alias->q2) - alias->drift);
            w2 *= sinc(alias->rate * (dot + 0.5 * alias->q2) - alias->drift);
        }
        sine_cosine(polynomial(degree_s, &alias->s, x, y), &sin_s, &cos_s);
        sine_cosine(polynomial(degree_d, &alias->d, x, y), &sin_d, &cos_d);
        float a = factor[i] * (w1 - w2) * cos_d, b = factor[i] * (w1 + w2) * sin_d;
        float t_re = -(cos_s * b + sin_s * a), t_im = cos_s * a - sin_s * b;
        sums->normal[i] += t_re * t_re + t_im * t_im;
        sums->re[i] += t_re * re[i] + t_im * im[i];
        sums->im[i] += t_re * im[i] - t_im * re[i];
    }
}

static void join(part *sums, double *normal, double right[2]) {
    for (int i = 0; i < TILE; i++) {
        *normal += sums->normal[i];
        right[0] += sums->re[i];
        right[1] += sums->im[i];
    }
    *sums = (part){{0}, {0}, {0}};
}

/* How far the tile's pixels lie from the aperture moved to q: A is 0 on all of them (-1), 1 (1), or neither (0). */
UNROLLED int lie(float x, float y, float radius, float half) {
    float away = sqrtf(x * x + y * y);
    return away - radius > 1.0f + half ? -1 : away + radius < 1.0f - half ? 1 : 0;
}

UNROLLED void add_tiles(int degree_s, int degree_d, const ps_fast_pixels *pixels, const ps_fast_alias *alias, const float *factor,
                        const float *spectrum, double *normal, double right[2]) {
    float half = 0.5f * (pixels->pitch[0] > pixels->pitch[1] ? pixels->pitch[0] : pixels->pitch[1]) + 1e-5f;
    float q0 = (float)alias->q[0], q1 = (float)alias->q[1];
    part sums = {{0}, {0}, {0}};
    bool is_square = pixels->pitch[0] == pixels->pitch[1] && pixels->pitch[0] <= most_square_pitch;
    int waiting = 0;
    for (int64_t t = 0; t < pixels->n_tiles; t++) {
        float x = pixels->tile_x[t], y = pixels->tile_y[t], radius = pixels->tile_radius[t];
        int minus = lie(x - q0, y - q1, radius, half), plus = lie(x + q0, y + q1, radius, half);
        if (minus < 0 && plus < 0) continue;
        int64_t first = t * TILE;
        const ps_fast_pixels own = {.x = pixels->x + first,
                                    .y = pixels->y + first,
                                    .inside = pixels->inside + first,
                                    .pitch = {pixels->pitch[0], pixels->pitch[1]}};
        const float *re = spectrum + 2 * first, *im = re + TILE, inside[2] = {minus > 0 ? 1.0f : 0.0f, plus > 0 ? 1.0f : 0.0f};
        if (alias->is_thick)
            add_tile(degree_s, degree_d, SOFT, true, &own, alias, factor + first, re, im, inside, &sums);
        else if (minus != 0 && plus != 0)
            add_tile(degree_s, degree_d, PLAIN, false, &own, alias, factor + first, re, im, inside, &sums);
        else if (is_square)
            add_tile(degree_s, degree_d, SQUARE, false, &own, alias, factor + first, re, im, inside, &sums);
        else
            add_tile(degree_s, degree_d, SOFT, false, &own, alias, factor + first, re, im, inside, &sums);
        if (++waiting == JOINED) join(&sums, normal, right), waiting = 0;
    }
    join(&sums, normal, right);
}

/* The polynomials of what is nearly always tried, of defocus and astigmatism alone, and of terms of third and fourth order in k. */
void PS_FAST_NAME(ps_fast_explain)(const ps_fast_pixels *pixels, const ps_fast_alias *alias, const float *factor, const float *spectrum,
                                   double *normal, double right[2]) {
    int s = alias->s.degree, d = alias->d.degree;
    *normal = right[0] = right[1] = 0.0;
    if (s <= 1 && d == 0)
        add_tiles(1, 0, pixels, alias, factor, spectrum, normal, right);
    else if (s <= 2 && d <= 1)
        add_tiles(2, 1, pixels, alias, factor, spectrum, normal, right);
    else if (s <= 3 && d <= 2)
        add_tiles(3, 2, pixels, alias, factor, spectrum, normal, right);
    else /* all 14 terms */
        add_tiles(5, 4, pixels, alias, factor, spectrum, normal, right);
}

void PS_FAST_NAME(ps_fast_place)(int64_t n, const double *row, const double *column, const double to_x[3], const double to_y[3],
                                 const float pitch[2], double *x, double *y, double *inside, float *factor) {
    float row2 = pitch[0] * pitch[0], more2 = pitch[1] * pitch[1] - row2;
    for (int64_t i = 0; i < n; i++) {
        x[i] = to_x[0] * row[i] + to_x[1] * column[i] + to_x[2];
        y[i] = to_y[0] * row[i] + to_y[1] * column[i] + to_y[2];
        inside[i] = 1.0 - x[i] * x[i] - y[i] * y[i];
        factor[i] = aperture_at((float)inside[i], (float)y[i], row2, more2);
    }
}
