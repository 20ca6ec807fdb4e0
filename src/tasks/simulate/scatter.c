#include "tasks/simulate/scatter.h"

#include <complex.h>
#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/simulate/probe_rows.h"
#include "tasks/simulate/vector.h"

enum { STRIP = 16 }; /* columns transformed together: a cache line of each row and more */

typedef struct {
    fftwf_complex *spectrum; /* [scan_rows, stride] */
    fftwf_complex *strip;    /* [scan_rows, STRIP] */
    float *real, *imaginary; /* [fine columns] P along one row */
} workspace;

struct ps_scatter {
    ps_probe probe;
    ps_chi_polynomial chi;
    ps_fine_grid grid;
    int64_t scan_rows, scan_columns;
    int64_t stride;                      /* of the scan's spectrum: rows are aligned, and not a power of two apart, which caches dislike */
    double q_step[2];                    /* 1/Angstrom between Fourier coefficients */
    double outer, inner;                 /* 1/Angstrom: A is 0 outside, 1 inside */
    int64_t first[2];                    /* lowest frequency index of the fine grid along rows, columns */
    fftwf_complex *object;               /* [fine rows, fine columns] O~, ascending frequency */
    fftwf_plan along_row, along_columns; /* of one row; of one strip */
    int n_threads;
    workspace *workspaces; /* [n_threads] */
};

/* What is needed of a row of the disc |k - q| < outer: columns first ... first + n - 1 of the object's spectrum. */
typedef struct {
    int64_t first, n;
    double k_first; /* column component of k - q at the first */
} chord;

static int64_t modulo(int64_t value, int64_t n) {
    int64_t rest = value % n;
    return rest < 0 ? rest + n : rest;
}

/* The object's Fourier coefficients, float, in ascending order of frequency. */
static ps_code transform_object(const ps_specimen *specimen, ps_scatter *scatter, ps_error *error) {
    ps_code code = PS_OK;
    int64_t rows = specimen->grid.rows, columns = specimen->grid.columns, n = rows * columns;
    fftw_plan plan = NULL;
    fftw_complex *wave = fftw_alloc_complex((size_t)n);
    PS_GO_ALLOC(error, wave);
    for (int64_t i = 0; i < n; i++) wave[i] = cexp(specimen->log_amplitude[i] + I * specimen->phase[i]) / (double)n;
    plan = fftw_plan_dft_2d((int)rows, (int)columns, wave, wave, FFTW_FORWARD, FFTW_ESTIMATE);
    PS_GO_ALLOC(error, plan);
    fftw_execute(plan);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            scatter->object[r * columns + c] =
                (fftwf_complex)wave[modulo(r + scatter->first[0], rows) * columns + modulo(c + scatter->first[1], columns)];
done:
    fftw_destroy_plan(plan);
    fftw_free(wave);
    return code;
}

static ps_code create_workspaces(ps_scatter *scatter, ps_error *error) {
    ps_code code = PS_OK;
    size_t n = (size_t)(scatter->scan_rows * scatter->stride), columns = (size_t)scatter->grid.columns;
    scatter->workspaces = calloc((size_t)scatter->n_threads, sizeof *scatter->workspaces);
    PS_GO_ALLOC(error, scatter->workspaces);
    for (int thread = 0; thread < scatter->n_threads; thread++) {
        workspace *own = &scatter->workspaces[thread];
        own->spectrum = fftwf_alloc_complex(n);
        own->strip = fftwf_alloc_complex((size_t)scatter->scan_rows * STRIP);
        own->real = fftwf_alloc_real(columns);
        own->imaginary = fftwf_alloc_real(columns);
        PS_GO_ALLOC(error, own->spectrum && own->strip && own->real && own->imaginary);
        memset(own->strip, 0, (size_t)scatter->scan_rows * STRIP * sizeof *own->strip);
    }
done:
    return code;
}

/* Estimated, not measured, plans: the same plans, so the same rounding, in every run and on every rank. FFTW's own estimate for two
 * dimensions takes three times as long as strips of columns do. */
static ps_code create_plans(ps_scatter *scatter, ps_error *error) {
    ps_code code = PS_OK;
    workspace *own = &scatter->workspaces[0];
    int rows = (int)scatter->scan_rows;
    scatter->along_row = fftwf_plan_dft_1d((int)scatter->scan_columns, own->spectrum, own->spectrum, FFTW_BACKWARD, FFTW_ESTIMATE);
    scatter->along_columns =
        fftwf_plan_many_dft(1, &rows, STRIP, own->strip, NULL, STRIP, 1, own->strip, NULL, STRIP, 1, FFTW_BACKWARD, FFTW_ESTIMATE);
    PS_GO_ALLOC(error, scatter->along_row && scatter->along_columns);
done:
    return code;
}

ps_code ps_scatter_create(const ps_probe *probe, const ps_specimen *specimen, int64_t scan_rows, int64_t scan_columns, int n_threads,
                          ps_scatter **scatter, ps_error *error) {
    ps_code code = PS_OK;
    const ps_fine_grid *grid = &specimen->grid;
    ps_scatter *made = calloc(1, sizeof *made);
    PS_GO_ALLOC(error, made);
    double widest = fmax(probe->pitch_rad[0], probe->pitch_rad[1]);
    *made = (ps_scatter){.probe = *probe, .grid = *grid, .scan_rows = scan_rows, .scan_columns = scan_columns, .n_threads = n_threads};
    made->stride = (scan_columns + 7) / 8 * 8 + 8;
    made->q_step[0] = 1.0 / ((double)grid->rows * grid->step_A[0]);
    made->q_step[1] = 1.0 / ((double)grid->columns * grid->step_A[1]);
    made->outer = (probe->semiangle_rad + 0.5 * widest) / probe->wavelength_A;
    made->inner = (probe->semiangle_rad - 0.5 * widest) / probe->wavelength_A;
    made->first[0] = -(grid->rows / 2);
    made->first[1] = -(grid->columns / 2);
    ps_chi_polynomial_build(probe, &made->chi);
    made->object = fftwf_alloc_complex((size_t)(grid->rows * grid->columns));
    PS_GO_ALLOC(error, made->object);
    PS_GO(transform_object(specimen, made, error));
    PS_GO(create_workspaces(made, error));
    PS_GO(create_plans(made, error));
    *scatter = made;
    made = NULL;
done:
    ps_scatter_destroy(made);
    return code;
}

void ps_scatter_destroy(ps_scatter *scatter) {
    if (!scatter) return;
    for (int thread = 0; scatter->workspaces && thread < scatter->n_threads; thread++) {
        fftwf_free(scatter->workspaces[thread].spectrum);
        fftwf_free(scatter->workspaces[thread].strip);
        fftwf_free(scatter->workspaces[thread].real);
        fftwf_free(scatter->workspaces[thread].imaginary);
    }
    fftwf_destroy_plan(scatter->along_row);
    fftwf_destroy_plan(scatter->along_columns);
    free(scatter->workspaces);
    fftwf_free(scatter->object);
    free(scatter);
}

int64_t ps_scatter_bytes(const ps_fine_grid *grid, int64_t scan_rows, int64_t scan_columns, int n_threads) {
    int64_t fine = grid->rows * grid->columns, scan = scan_rows * (scan_columns + 2 * STRIP);
    int64_t building = 2 * (int64_t)sizeof(double) * fine; /* transform_object */
    return (int64_t)sizeof(fftwf_complex) * (fine + n_threads * scan) + building;
}

/* The columns of the spectrum whose k - q lies in the disc, for the row with row component k_row of k - q; n is 0 outside. */
static chord find_chord(const ps_scatter *scatter, double k_row, double k_column) {
    double half = sqrt(fmax(scatter->outer * scatter->outer - k_row * k_row, 0.0)), step = scatter->q_step[1];
    int64_t low = scatter->first[1], high = low + scatter->grid.columns - 1; /* frequency indices */
    double from = fmax(ceil((k_column - half) / step), (double)low), to = fmin(floor((k_column + half) / step), (double)high);
    if (fabs(k_row) >= scatter->outer || to < from) return (chord){0};
    return (chord){(int64_t)from - low, (int64_t)(to - from) + 1, k_column - from * step};
}

/* Multiplies P along a chord by the aperture, where that is not 1. */
static void apply_aperture(const ps_scatter *scatter, double k_row, const chord *columns, workspace *own) {
    double half = scatter->inner > fabs(k_row) ? sqrt(scatter->inner * scatter->inner - k_row * k_row) : 0.0;
    for (int64_t i = 0; i < columns->n; i++) {
        double k = columns->k_first - (double)i * scatter->q_step[1];
        if (fabs(k) < half) {
            i += (int64_t)((k + half) / scatter->q_step[1]); /* k falls with i: on to the last column inside */
            continue;
        }
        float aperture = (float)ps_probe_aperture(&scatter->probe, k_row, k);
        own->real[i] *= aperture;
        own->imaginary[i] *= aperture;
    }
}

/* sum[i] += object[i] * (real[i] + i imaginary[i]); complex numbers as pairs. */
PS_VECTOR static void add_products(const float *restrict object, const float *restrict real, const float *restrict imaginary, int64_t n,
                                   float *restrict sum) {
    for (int64_t i = 0; i < n; i++) {
        float a = object[2 * i], b = object[2 * i + 1];
        sum[2 * i] += a * real[i] - b * imaginary[i];
        sum[2 * i + 1] += a * imaginary[i] + b * real[i];
    }
}

/* Adds O~ P of one row of the fine spectrum to the scan's spectrum, whose columns it wraps around. */
static void fold_row(const ps_scatter *scatter, int64_t row, const chord *columns, const workspace *own) {
    int64_t scan_row = modulo(row + scatter->first[0], scatter->scan_rows);
    float *sums = (float *)(own->spectrum + scan_row * scatter->stride);
    const float *object = (const float *)(scatter->object + row * scatter->grid.columns + columns->first);
    int64_t at = modulo(columns->first + scatter->first[1], scatter->scan_columns);
    for (int64_t done = 0; done < columns->n; at = 0) {
        int64_t n = columns->n - done < scatter->scan_columns - at ? columns->n - done : scatter->scan_columns - at;
        add_products(object + 2 * done, own->real + done, own->imaginary + done, n, sums + 2 * at);
        done += n;
    }
}

/* intensity[row, column]: squared waves of a strip; columns: how many of the strip are part of the scan. */
PS_VECTOR static void square(const float *restrict strip, int64_t rows, int64_t columns, int64_t stride, float *restrict intensity) {
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < columns; i++) {
            float real = strip[2 * (row * STRIP + i)], imaginary = strip[2 * (row * STRIP + i) + 1];
            intensity[row * stride + i] = real * real + imaginary * imaginary;
        }
}

/* The inverse transform of the scan's spectrum, squared. */
static void transform(const ps_scatter *scatter, workspace *own, float *intensity) {
    for (int64_t row = 0; row < scatter->scan_rows; row++) {
        fftwf_complex *at = own->spectrum + row * scatter->stride;
        fftwf_execute_dft(scatter->along_row, at, at);
    }
    for (int64_t first = 0; first < scatter->scan_columns; first += STRIP) {
        int64_t n = scatter->scan_columns - first < STRIP ? scatter->scan_columns - first : STRIP;
        for (int64_t row = 0; row < scatter->scan_rows; row++)
            memcpy(own->strip + row * STRIP, own->spectrum + row * scatter->stride + first, (size_t)n * sizeof *own->strip);
        fftwf_execute_dft(scatter->along_columns, own->strip, own->strip);
        square((const float *)own->strip, scatter->scan_rows, n, scatter->scan_columns, intensity + first);
    }
}

void ps_scatter_pixel(const ps_scatter *scatter, int thread, double k_row, double k_column, float *intensity) {
    workspace *own = &scatter->workspaces[thread];
    memset(own->spectrum, 0, (size_t)(scatter->scan_rows * scatter->stride) * sizeof *own->spectrum);
    for (int64_t row = 0; row < scatter->grid.rows; row++) {
        double along_row = k_row - (double)(row + scatter->first[0]) * scatter->q_step[0], coefficients[PS_CHI_DEGREE + 1];
        chord columns = find_chord(scatter, along_row, k_column);
        if (columns.n == 0) continue;
        ps_chi_polynomial_row(&scatter->chi, along_row, coefficients);
        ps_chi_row_waves(coefficients, columns.k_first, -scatter->q_step[1], columns.n, own->real, own->imaginary);
        apply_aperture(scatter, along_row, &columns, own);
        fold_row(scatter, row, &columns, own);
    }
    transform(scatter, own, intensity);
}
