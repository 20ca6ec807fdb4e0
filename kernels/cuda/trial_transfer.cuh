/* What the kernels of trial optics (trials.cu) share: a trial as they take it, a pixel's place under it, and the transfer there.
 *
 * Lengths are in units of the aperture's radius, phases in quarter turns. With s = (chi(k+q) - chi(k-q))/2 and d = chi(k) -
 * (chi(k+q) + chi(k-q))/2, section 3 reads
 *
 *     T_phase = i A(k) e^(i s) (m cos d + i p sin d)     m, p = w1 A(k-q) -+ w2 A(k+q)
 *
 * in which nothing cancels where both overlaps meet. Phases are formed in double and taken modulo a turn there; the rest is float. */
#ifndef PS_KERNELS_CUDA_TRIAL_TRANSFER_CUH
#define PS_KERNELS_CUDA_TRIAL_TRANSFER_CUH

#include "kernels/cuda/transfer.cuh"

enum { PS_TRIAL_SHARE = 8, PS_TRIAL_TILE = 256, PS_TRIAL_CHUNK = 2048 }; /* frequencies of a block; pixels at a time; pixels of a block */

struct __align__(16) ps_cuda_trial {
    double chi[PS_CUDA_CHI_TERMS]; /* coefficient of x^i y^j at ps_cuda_chi_index(i, j) */
    double x[3], y[3];             /* x = x[0] row + x[1] column + x[2] of a detector pixel */
    double q_scale;                /* a band's q in 1/Angstrom to the trial's */
    double rate, drift[2];         /* thickness argument in half turns: rate ((x, y).q -+ q^2/2) - drift.q */
    float pitch2, more2;           /* a pixel's square along rows; that along columns less it */
    int32_t is_thick, degree;      /* of chi */
};

struct ps_trial_place {
    double x, y, chi;
    float aperture;
};

/* Of N pixels, side by side. */
template <int N> struct ps_trial_places {
    double x[N], y[N], chi[N];
    float aperture[N];
    __device__ inline void put(int i, const ps_trial_place &place) {
        x[i] = place.x;
        y[i] = place.y;
        chi[i] = place.chi;
        aperture[i] = place.aperture;
    }
    __device__ inline ps_trial_place get(int i) const { return {x[i], y[i], chi[i], aperture[i]}; }
};

struct ps_trial_alias {
    double x, y, square, drift;
};

__device__ inline ps_trial_alias ps_trial_alias_of(const ps_cuda_trial &t, double q_row, double q_column) {
    ps_trial_alias q = {q_row * t.q_scale, q_column * t.q_scale, 0.0, 0.0};
    q.square = fma(q.x, q.x, q.y * q.y);
    q.drift = fma(t.drift[0], q.x, t.drift[1] * q.y);
    return q;
}

/* chi at n places, which share what is read of it; of `DEGREE` at most. */
template <int DEGREE, int N>
__device__ inline void ps_trial_chi(const double *chi, const double (&x)[N], const double (&y)[N], double (&values)[N]) {
#pragma unroll
    for (int j = DEGREE; j >= 0; j--) {
        double inner[N];
#pragma unroll
        for (int i = DEGREE - j; i >= 0; i--) {
            double c = chi[ps_cuda_chi_index(i, j)];
#pragma unroll
            for (int n = 0; n < N; n++) inner[n] = i == DEGREE - j ? c : fma(inner[n], x[n], c);
        }
#pragma unroll
        for (int n = 0; n < N; n++) values[n] = j == DEGREE ? inner[n] : fma(values[n], y[n], inner[n]);
    }
}

/* The soft aperture where 1 - |k|^2 is `inside`: 1 - sqrt(1 - u) without cancellation. */
__device__ inline float ps_trial_aperture(const ps_cuda_trial &t, double inside, double column) {
    float u = (float)inside, y = (float)column, radius2 = u < 1.0f ? 1.0f - u : 1e-30f;
    float along = fminf(y * y / radius2, 1.0f), pixel = sqrtf(fmaf(t.more2, along, t.pitch2));
    float a = u / ((1.0f + sqrtf(radius2)) * pixel) + 0.5f;
    return fminf(fmaxf(a, 0.0f), 1.0f);
}

template <int DEGREE> __device__ inline ps_trial_place ps_trial_place_of(const ps_cuda_trial &t, int2 pixel) {
    ps_trial_place place;
    double row = pixel.x, column = pixel.y, value[1];
    place.x = fma(t.x[0], row, fma(t.x[1], column, t.x[2]));
    place.y = fma(t.y[0], row, fma(t.y[1], column, t.y[2]));
    const double x[1] = {place.x}, y[1] = {place.y};
    ps_trial_chi<DEGREE, 1>(t.chi, x, y, value);
    place.chi = value[0];
    place.aperture = ps_trial_aperture(t, 1.0 - place.x * place.x - place.y * place.y, place.y);
    return place;
}

/* exp(i phase), however many turns. */
__device__ inline void ps_trial_turn(double phase, float *cosine, float *sine) {
    ps_turn(fma(-4.0, rint(0.25 * phase), phase), cosine, sine);
}

/* T_phase; (0, 0) in the dark. */
template <int DEGREE> __device__ inline float2 ps_trial_transfer(const ps_cuda_trial &t, const ps_trial_place &k, const ps_trial_alias &q) {
    double dot = fma(k.x, q.x, k.y * q.y), inside = 1.0 - k.x * k.x - k.y * k.y - q.square;
    float w1 = ps_trial_aperture(t, fma(2.0, dot, inside), k.y - q.y), w2 = ps_trial_aperture(t, fma(-2.0, dot, inside), k.y + q.y);
    if (k.aperture == 0.0f || (w1 == 0.0f && w2 == 0.0f)) return make_float2(0.0f, 0.0f);
    if (t.is_thick) {
        w1 *= ps_sinc(fma(t.rate, dot - 0.5 * q.square, -q.drift), 0.0f);
        w2 *= ps_sinc(fma(t.rate, dot + 0.5 * q.square, -q.drift), 0.0f);
    }
    const double x[2] = {k.x - q.x, k.x + q.x}, y[2] = {k.y - q.y, k.y + q.y};
    double chi[2];
    float cos_s, sin_s, cos_d, sin_d;
    ps_trial_chi<DEGREE, 2>(t.chi, x, y, chi);
    ps_trial_turn(0.5 * (chi[1] - chi[0]), &cos_s, &sin_s);
    ps_trial_turn(k.chi - 0.5 * (chi[1] + chi[0]), &cos_d, &sin_d);
    float a = k.aperture * (w1 - w2) * cos_d, b = k.aperture * (w1 + w2) * sin_d;
    return make_float2(-fmaf(cos_s, b, sin_s * a), fmaf(cos_s, a, -sin_s * b));
}

/* A band on the device. */
struct ps_cuda_band_arrays {
    int2 *pixels;             /* [n_pixels] row, column */
    float2 *spectra;          /* [n_frequencies, n_pixels] */
    double *q_row, *q_column; /* [aliases] */
    int64_t *first_alias;     /* [n_frequencies + 1] */
    int64_t *first_entry;     /* [n_frequencies + 1] into a trial's matrices */
    int64_t n_pixels, n_chunks;
    double strength;
};

/* A trial's N and b. One alias each: sums, [trials, n_frequencies, n_chunks] N and the two parts of b. More: normal, [trials, entries] of
 * each frequency [n, n], of which the lower triangle is filled, and right, [trials, aliases]. */
struct ps_cuda_trial_sums {
    double3 *sums;
    double2 *normal, *right;
    int64_t n_entries, n_aliases; /* of the frequencies that are asked for */
};

/* trials_single.cu: every frequency has one alias. trials_many.cu: any number. Both: explained: [n_trials] on the device. */
ps_code ps_cuda_trials_single(cudaStream_t stream, const ps_cuda_band_arrays *band, const ps_cuda_trial_sums *sums, int64_t n_frequencies,
                              int64_t n_trials, int degree, const ps_cuda_trial *trials, double *explained, ps_error *error);
ps_code ps_cuda_trials_many(cudaStream_t stream, const ps_cuda_band_arrays *band, const ps_cuda_trial_sums *sums, int64_t n_frequencies,
                            int64_t most_aliases, int64_t n_trials, const ps_cuda_trial *trials, double *explained, ps_error *error);

/* The sum of a block's values, added in the same order always; every thread's. room: [THREADS] shared. */
template <int THREADS> __device__ inline double ps_trial_block_sum(double value, double *room) {
    room[threadIdx.x] = value;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half) room[threadIdx.x] += room[threadIdx.x + half];
    }
    __syncthreads();
    double sum = room[0];
    __syncthreads();
    return sum;
}

#endif
