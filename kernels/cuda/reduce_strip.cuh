/* What one warp of the reduction does with a strip, up to 8 tiles of a band: runs of tiles of one column (alias and side band) or of one
 * alias (both side bands, for SSB), summed in float over the tiles and over the four rows of a tile. */
#ifndef PS_KERNELS_CUDA_REDUCE_STRIP_CUH
#define PS_KERNELS_CUDA_REDUCE_STRIP_CUH

#include "kernels/cuda/reduce_kernels.cuh"
#include "kernels/cuda/row_phase.cuh"

enum { PS_REDUCE_STRIP = 8 }; /* tiles; the same for any number of frames, for it shows in the order of sums */

/* Shared memory of one warp. Sums of a segment: [vector][FRAMES], a vector being an alias's side band in `right` (2 alias + side), an
 * alias in `ssb`. */
template <int ALIASES, bool RIGHT, bool SSB, int FRAMES> struct __align__(16) ps_strip_memory {
    ps_row_phase rows[2 * ALIASES * PS_CUDA_BAND_ROWS];
    float2 g[FRAMES][PS_REDUCE_STRIP][PS_CUDA_LANES];
    float2 right[RIGHT ? 2 * ALIASES : 1][FRAMES], ssb[SSB ? ALIASES : 1][FRAMES];
    ps_cuda_task task;
    int64_t first_alias;
    double conjugate;
    ps_g_place place;
};

/* A strip as a lane sees it. */
struct ps_strip {
    double v;                  /* column of this lane's pixel in the first tile, from k = 0 */
    const ps_cuda_tile *tiles; /* moved on by the lane: element 0 of each array is this lane's */
    const float2 *g;           /* shared: this lane's g in the first tile of frame 0; [FRAMES][PS_REDUCE_STRIP][32] */
    const float2 *directions;
};

/* Tiles of a strip that a column covers, [begin, end), in one word; bit 31 - i of edges: tile i meets the aperture's edge. */
struct ps_run {
    unsigned packed;
    __device__ inline int begin() const { return (int)(packed & 15u); }
    __device__ inline int end() const { return (int)(packed >> 8 & 15u); }
    __device__ inline unsigned edges() const { return packed & 0xff000000u; }
};

/* The run of a band of n tiles in two words: [begin, end) and the tiles inside the aperture, 16 bits each. */
__device__ inline uint2 ps_run_of(const ps_reach &reach, int n) {
    int begin = min(reach.first, n), end = min(max(reach.last + 1, begin), n);
    int inner = min(max(reach.inner_first, begin), end), outer = min(max(reach.inner_last + 1, inner), end);
    return make_uint2((unsigned)(begin | end << 16), (unsigned)(inner | outer << 16));
}

__device__ inline int ps_strip_tile(unsigned tile, int first) {
    return min(max((int)tile - first, 0), (int)PS_REDUCE_STRIP);
}

/* What of it lies in the strip from tile `first` on. */
__device__ inline ps_run ps_run_in_strip(uint2 run, int first) {
    unsigned inside = 0xffffffffu >> ps_strip_tile(run.y & 0xffffu, first) & ~(0xffffffffu >> ps_strip_tile(run.y >> 16, first));
    ps_run part = {(unsigned)(ps_strip_tile(run.x & 0xffffu, first) | ps_strip_tile(run.x >> 16, first) << 8) | (~inside & 0xff000000u)};
    return part;
}

/* The run of another lane. */
__device__ inline ps_run ps_run_of_lane(ps_run mine, int lane) {
    ps_run run = {__shfl_sync(PS_FULL_WARP, mine.packed, lane)};
    return run;
}

/* --- sums --- */

/* conj(a) b added to *sum. */
__device__ inline void ps_add_product(float2 *sum, float a_re, float a_im, float2 b) {
    sum->x = fmaf(a_re, b.x, fmaf(a_im, b.y, sum->x));
    sum->y = fmaf(a_re, b.y, fmaf(-a_im, b.x, sum->y));
}

__device__ inline float ps_add_lane(float mine, float sent, int other) {
    return mine + __shfl_xor_sync(PS_FULL_WARP, sent, other);
}

/* Sums over the four lanes of a tile column, of frame lane % 4 (lane % FRAMES where there are fewer). */
__device__ inline float ps_sum_rows(const float (&x)[1], int) {
    float sum = ps_add_lane(x[0], x[0], 1);
    return ps_add_lane(sum, sum, 2);
}
__device__ inline float ps_sum_rows(const float (&x)[2], int lane) {
    bool odd = lane & 1;
    float sum = ps_add_lane(odd ? x[1] : x[0], odd ? x[0] : x[1], 1);
    return ps_add_lane(sum, sum, 2);
}
__device__ inline float ps_sum_rows(const float (&x)[4], int lane) {
    bool odd = lane & 1, high = lane & 2;
    float low_pair = ps_add_lane(odd ? x[1] : x[0], odd ? x[0] : x[1], 1);
    float high_pair = ps_add_lane(odd ? x[3] : x[2], odd ? x[2] : x[3], 1);
    return ps_add_lane(high ? high_pair : low_pair, high ? low_pair : high_pair, 2);
}

/* Adds the sums of a run over all lanes to a vector of the segment's sums, [FRAMES]. The tree over the lanes is the same for any number
 * of frames. */
template <int FRAMES> __device__ inline void ps_add_sums(float2 *vector, const float2 (&sums)[FRAMES], int lane) {
    float x[FRAMES], y[FRAMES];
#pragma unroll
    for (int frame = 0; frame < FRAMES; frame++) {
        x[frame] = sums[frame].x;
        y[frame] = sums[frame].y;
    }
    bool imaginary = lane & 4;
    float re = ps_sum_rows(x, lane), im = ps_sum_rows(y, lane), sum = ps_add_lane(imaginary ? im : re, imaginary ? re : im, 4);
    sum = ps_add_lane(sum, sum, 8);
    sum = ps_add_lane(sum, sum, 16);
    if (lane < 8 && lane % 4 < FRAMES) ((float *)vector)[2 * (lane % 4) + imaginary] += sum;
}

/* --- tiles --- */

/* A lane's place on its way through the tiles of a run. */
struct ps_tile_walk {
    unsigned edges; /* bit 31: of this tile */
    double v;
    const ps_cuda_tile *tile;
    const float2 *g;

    __device__ inline ps_tile_walk(const ps_strip &strip, int first, unsigned edges)
        : edges(edges << first), v(strip.v + (double)(PS_CUDA_TILE_COLUMNS * first)), tile(strip.tiles + first),
          g(strip.g + first * PS_CUDA_LANES) {}
    __device__ inline void advance() {
        edges <<= 1;
        v += PS_CUDA_TILE_COLUMNS;
        tile++;
        g += PS_CUDA_LANES;
    }
    __device__ inline bool on_edge() const { return (int)edges < 0; }
    __device__ inline float2 value(int frame) const { return g[frame * PS_REDUCE_STRIP * PS_CUDA_LANES]; }
};

/* What a column's tiles have in common, in registers; the row's other terms stay in shared memory. */
struct ps_column {
    double c[6], y0, y1;
    const ps_row_phase *row;

    __device__ inline explicit ps_column(const ps_row_phase *terms) : y0(terms->y0), y1(terms->y1), row(terms) {
#pragma unroll
        for (int j = 0; j < 6; j++) c[j] = terms->c[j];
    }
    /* Multiplies two values by the thickness factor, then by A(kappa): each gets the bits that amplitude() gives it. */
    __device__ inline void multiply(const ps_cuda_geometry &g, double v, bool on_edge, float *a, float *b) const {
        if (g.is_thick) {
            float factor = ps_sinc(fma(y1, v, y0), 0.0f);
            *a *= factor;
            *b *= factor;
        }
        if (on_edge) {
            float edge = ps_aperture<float>(g, row->p, v - row->place);
            *a *= edge;
            *b *= edge;
        }
    }
    /* A(kappa) times the thickness factor. */
    template <typename Real> __device__ inline Real amplitude(const ps_cuda_geometry &g, double v, bool on_edge, Real value) const {
        if (g.is_thick) value *= ps_sinc(fma(y1, v, y0), (Real)0);
        if (on_edge) value *= ps_aperture<Real>(g, row->p, v - row->place);
        return value;
    }
};

/* b: the tiles of one column's run. */
template <int FRAMES>
__device__ inline void ps_add_column(const ps_cuda_geometry &g, const ps_column &column, const ps_strip &strip, const ps_run &run,
                                     float2 (&sums)[FRAMES]) {
    ps_tile_walk at(strip, run.begin(), run.edges());
#pragma unroll 1
    for (int i = run.begin(); i < run.end(); i++, at.advance()) {
        float cosine, sine, amplitude = at.tile->weighted_aperture[0];
        ps_turn_by_table(strip.directions, ps_row_turns(column.c, at.v), &cosine, &sine);
        amplitude = column.amplitude(g, at.v, at.on_edge(), amplitude);
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++) ps_add_product(&sums[frame], amplitude * cosine, amplitude * sine, at.value(frame));
    }
}

/* --- SSB: g conj(gamma)/|gamma|, gamma = t1 - t2 --- */

/* The sign of a side band's amplitude where its size passes the floor of section 6, else 0, for a side band that has the pixel to itself.
 * On the foot of the soft aperture float could decide wrongly, so small ones are formed again in double. */
__device__ inline float ps_unit_amplitude(const ps_cuda_geometry &g, const ps_column &column, double v, float amplitude, float aperture,
                                          bool on_edge) {
    float unit = copysignf(1.0f, amplitude);
    if (fabsf(amplitude) >= 1e-4f) return unit;
    if (amplitude == 0.0f) return 0.0f;
    double exact = column.amplitude(g, v, on_edge, (double)aperture);
    return exact * exact > (double)ps_gamma_floor2 ? unit : 0.0f;
}

/* Tiles [begin, end) that one side band has to itself. sign: -1 for t2. */
template <bool RIGHT, int FRAMES>
__device__ inline void ps_add_single(const ps_cuda_geometry &g, const ps_column &column, const ps_strip &strip, unsigned edges, int begin,
                                     int end, float sign, float2 (&ssb)[FRAMES], float2 (&right)[FRAMES]) {
    ps_tile_walk at(strip, begin, edges);
#pragma unroll 1
    for (int i = begin; i < end; i++, at.advance()) {
        bool on_edge = at.on_edge();
        float cosine, sine, aperture = at.tile->aperture[0], amplitude = aperture;
        float weighted = RIGHT ? at.tile->weighted_aperture[0] : 0.0f;
        column.multiply(g, at.v, on_edge, &amplitude, &weighted);
        float unit = sign * ps_unit_amplitude(g, column, at.v, amplitude, aperture, on_edge);
        ps_turn_by_table(strip.directions, ps_row_turns(column.c, at.v), &cosine, &sine);
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++) {
            float2 value = at.value(frame);
            ps_add_product(&ssb[frame], unit * cosine, unit * sine, value);
            if (RIGHT) ps_add_product(&right[frame], weighted * cosine, weighted * sine, value);
        }
    }
}

/* gamma/|gamma| in double. rows: of this lane's row and sigma = +1; those of -1 are a band's rows further. */
__device__ inline float2 ps_exact_unit_gamma(const ps_cuda_geometry &g, const ps_row_phase *rows, double v, double aperture) {
    double gamma_re = 0.0, gamma_im = 0.0;
#pragma unroll 1
    for (int side = 0; side < 2; side++) {
        const ps_column column(&rows[side * PS_CUDA_BAND_ROWS]);
        double cosine, sine, amplitude = column.amplitude(g, v, true, side ? -aperture : aperture);
        ps_turn(ps_row_turns(column.c, v), &cosine, &sine);
        gamma_re = fma(amplitude, cosine, gamma_re);
        gamma_im = fma(amplitude, sine, gamma_im);
    }
    return ps_unit_gamma(gamma_re, gamma_im);
}

/* Tiles [begin, end) that both side bands reach. */
template <bool RIGHT, int FRAMES>
__device__ inline void ps_add_both(const ps_cuda_geometry &g, const ps_row_phase *rows, const ps_strip &strip, const ps_run (&runs)[2],
                                   int begin, int end, float2 (&ssb)[FRAMES], float2 (&right)[2][FRAMES]) {
    ps_tile_walk at(strip, begin, 0);
#pragma unroll 1
    for (int i = begin; i < end; i++, at.advance()) {
        float cosine[2], sine[2], amplitude[2], weighted[2], aperture = at.tile->aperture[0];
#pragma unroll
        for (int side = 0; side < 2; side++) {
            const ps_column column(&rows[side * PS_CUDA_BAND_ROWS]);
            amplitude[side] = aperture;
            weighted[side] = RIGHT ? at.tile->weighted_aperture[0] : 0.0f;
            column.multiply(g, at.v, (int)(runs[side].edges() << i) < 0, &amplitude[side], &weighted[side]);
            ps_turn_by_table(strip.directions, ps_row_turns(column.c, at.v), &cosine[side], &sine[side]);
        }
        float gamma_re = amplitude[0] * cosine[0] - amplitude[1] * cosine[1], gamma_im = amplitude[0] * sine[0] - amplitude[1] * sine[1];
        float2 unit = ps_unit_gamma(gamma_re, gamma_im);
        if (ps_gamma_is_small(gamma_re, gamma_im)) unit = ps_exact_unit_gamma(g, rows, at.v, (double)aperture);
#pragma unroll
        for (int frame = 0; frame < FRAMES; frame++) {
            float2 value = at.value(frame);
            ps_add_product(&ssb[frame], unit.x, unit.y, value);
            if (RIGHT)
#pragma unroll
                for (int side = 0; side < 2; side++)
                    ps_add_product(&right[side][frame], weighted[side] * cosine[side], weighted[side] * sine[side], value);
        }
    }
}

/* The runs of one alias: each side band's tiles before the other's, those they share, and those after. So a side band's tiles come in the
 * order that ps_add_column takes them in, and b has the same bits. rows: of this lane's row. */
template <bool RIGHT, int FRAMES>
__device__ inline void ps_add_alias(const ps_cuda_geometry &g, const ps_row_phase *rows, const ps_strip &strip, const ps_run (&runs)[2],
                                    float2 (&ssb)[FRAMES], float2 (&right)[2][FRAMES]) {
    int begin = max(runs[0].begin(), runs[1].begin()), end = max(min(runs[0].end(), runs[1].end()), begin);
#pragma unroll
    for (int part = 0; part < 2; part++) {
#pragma unroll
        for (int side = 0; side < 2; side++) {
            int first = part ? max(runs[side].begin(), end) : runs[side].begin(),
                last = part ? runs[side].end() : min(runs[side].end(), begin);
            if (first >= last) continue;
            const ps_column column(&rows[side * PS_CUDA_BAND_ROWS]);
            ps_add_single<RIGHT>(g, column, strip, runs[side].edges(), first, last, side ? -1.0f : 1.0f, ssb, right[side]);
        }
        if (part == 0) ps_add_both<RIGHT>(g, rows, strip, runs, begin, end, ssb, right);
    }
}

#endif
