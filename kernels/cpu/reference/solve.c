#include <assert.h>
#include <lapacke.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"

/* Scratch of one thread, for matrices of up to `dim` unknowns. */
typedef struct {
    double complex *factor, *columns; /* [dim, dim] */
    double complex *x, *nx;           /* [dim] */
} scratch;

/* What solving one frequency leaves besides x. */
typedef struct {
    double residual, effective_dof;
} sums;

static double complex dot(int64_t n, const double complex *a, const double complex *b) {
    double complex sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += conj(a[i]) * b[i];
    return sum;
}

/* Section 5: x = (N + mu scale prior)^-1 b in the eigenbasis V, lambda of prior^-1/2 N prior^-1/2. */
static sums solve_phase(const ps_cpu_frame *frame, int64_t frequency, double strength, scratch *s) {
    const ps_reference_system *system = (const ps_reference_system *)frame->system;
    const ps_frequency *f = &system->cpu.desc.frequencies[frequency];
    const double *prior = system->cpu.desc.prior_phase + f->first_alias, *lambda = system->eigenvalues + f->first_alias;
    const double complex *vectors = system->eigenvectors + system->basis_offset[frequency], *b = frame->right_phase + f->first_alias;
    double mu = strength * system->cpu.scale_phase;
    int64_t n = f->n_aliases;
    sums out = {.residual = frame->data_norm[frequency]};
    memset(s->x, 0, (size_t)n * sizeof *s->x);
    for (int64_t j = 0; j < n; j++) {
        double complex c = 0.0;
        for (int64_t a = 0; a < n; a++) c += conj(vectors[a + j * n]) * b[a] / sqrt(prior[a]);
        double complex y = c / (lambda[j] + mu);
        for (int64_t a = 0; a < n; a++) s->x[a] += vectors[a + j * n] * y / sqrt(prior[a]);
        out.residual += lambda[j] * pow(cabs(y), 2) - 2.0 * creal(conj(y) * c);
        out.effective_dof += lambda[j] / (lambda[j] + mu);
    }
    return out;
}

/* tr((N + D)^-1 N), from the Cholesky factor of N + D. */
static int form_effective_dof(int64_t dim, const double complex *normal, scratch *s, double *effective_dof) {
    memcpy(s->columns, normal, (size_t)(dim * dim) * sizeof *normal);
    int info = LAPACKE_zpotrs(LAPACK_COL_MAJOR, 'U', (int)dim, (int)dim, s->factor, (int)dim, s->columns, (int)dim);
    for (int64_t a = 0; a < dim; a++) *effective_dof += creal(s->columns[a * (dim + 1)]);
    return info;
}

static int solve_complex(const ps_cpu_frame *frame, int64_t frequency, const ps_strength *strength, bool with_effective_dof, scratch *s,
                         sums *out) {
    const ps_reference_system *system = (const ps_reference_system *)frame->system;
    const ps_frequency *f = &system->cpu.desc.frequencies[frequency];
    const double *prior = system->cpu.desc.prior_complex + f->first_alias;
    const double complex *normal = system->normal + system->normal_offset[frequency];
    int64_t n = f->n_aliases, dim = 2 * n;
    *out = (sums){.residual = frame->data_norm[frequency]};
    if (n == 0) return 0;
    memcpy(s->factor, normal, (size_t)(dim * dim) * sizeof *normal);
    memcpy(s->x, frame->right_amplitude + f->first_alias, (size_t)n * sizeof *s->x);
    memcpy(s->x + n, frame->right_phase + f->first_alias, (size_t)n * sizeof *s->x);
    for (int64_t a = 0; a < n; a++) {
        s->factor[a * (dim + 1)] += strength->amplitude * system->cpu.scale_amplitude * prior[a];
        s->factor[(n + a) * (dim + 1)] += strength->phase * system->cpu.scale_phase * prior[a];
    }
    int info = LAPACKE_zpotrf(LAPACK_COL_MAJOR, 'U', (int)dim, s->factor, (int)dim);
    if (info == 0) info = LAPACKE_zpotrs(LAPACK_COL_MAJOR, 'U', (int)dim, 1, s->factor, (int)dim, s->x, (int)dim);
    if (info != 0) return info;
    for (int64_t a = 0; a < dim; a++) {
        s->nx[a] = 0.0;
        for (int64_t b = 0; b < dim; b++) s->nx[a] += normal[a + b * dim] * s->x[b];
    }
    out->residual += creal(dot(dim, s->x, s->nx)) - 2.0 * creal(dot(n, s->x, frame->right_amplitude + f->first_alias)) -
                     2.0 * creal(dot(n, s->x + n, frame->right_phase + f->first_alias));
    return with_effective_dof ? form_effective_dof(dim, normal, s, &out->effective_dof) : 0;
}

typedef struct {
    const ps_cpu_frame *frame;
    ps_methods method;
    bool with_effective_dof;
    scratch *threads;         /* [n_threads] */
    double complex *image[2]; /* amplitude, phase: [fine]; NULL: not wanted */
    sums *per_frequency;      /* [n_frequencies] */
} work;

static ps_code solve_strength(const work *w, const ps_strength *strength, ps_error *error) {
    const ps_system_desc *desc = &w->frame->system->desc;
    int64_t n_frequencies = desc->n_frequencies, failed = n_frequencies;
#pragma omp parallel for schedule(dynamic) num_threads(w->frame->system->backend->n_threads) reduction(min : failed)
    for (int64_t i = 1; i < n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        scratch *s = &w->threads[omp_get_thread_num()];
        int info = 0;
        if (w->method == PS_METHOD_PHASE)
            w->per_frequency[i] = solve_phase(w->frame, i, strength->phase, s);
        else
            info = solve_complex(w->frame, i, strength, w->with_effective_dof, s, &w->per_frequency[i]);
        if (info != 0 && i < failed) failed = i;
        if (w->image[0]) ps_reference_place(desc, f, s->x, w->image[0]);
        if (w->image[1]) ps_reference_place(desc, f, s->x + (w->method == PS_METHOD_COMPLEX ? f->n_aliases : 0), w->image[1]);
    }
    if (failed < n_frequencies)
        return PS_FAIL(error, PS_E_NUMERIC, "the system of scan frequency (%d, %d) is not positive definite at strength (%g, %g)",
                       desc->frequencies[failed].row, desc->frequencies[failed].column, strength->amplitude, strength->phase);
    return PS_OK;
}

/* f32: of this strength; f64: of all. */
static ps_code write_image(const ps_system_desc *desc, double complex *image, int64_t index, float *f32, double *f64, ps_error *error) {
    int64_t n = ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc);
    if (!image) return PS_OK;
    PS_TRY(ps_reference_image(desc, image, error));
    for (int64_t i = 0; i < n; i++) {
        if (f32) f32[i] = (float)creal(image[i]);
        if (f64) f64[index * n + i] = creal(image[i]);
    }
    return PS_OK;
}

static ps_code solve_and_write(const work *w, int64_t index, const ps_strength *strength, const ps_solution *solution, ps_error *error) {
    const ps_system_desc *desc = &w->frame->system->desc;
    size_t bytes = (size_t)(ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc)) * sizeof(double complex);
    for (int i = 0; i < 2; i++)
        if (w->image[i]) memset(w->image[i], 0, bytes);
    PS_TRY(solve_strength(w, strength, error));
    double residual = 0.0, effective_dof = 0.0;
    for (int64_t i = 1; i < desc->n_frequencies; i++) {
        residual += desc->frequencies[i].multiplicity * w->per_frequency[i].residual;
        effective_dof += desc->frequencies[i].multiplicity * w->per_frequency[i].effective_dof;
    }
    if (solution->residual) solution->residual[index] = residual;
    if (solution->effective_dof) solution->effective_dof[index] = effective_dof;
    int64_t n = ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc);
    float *log_amplitude = ps_solution_log_amplitude_f32(solution, index, n), *phase = ps_solution_phase_f32(solution, index, n);
    PS_TRY(write_image(desc, w->image[0], index, log_amplitude, solution->log_amplitude_f64, error));
    return write_image(desc, w->image[1], index, phase, solution->phase_f64, error);
}

static ps_code allocate_scratch(work *w, int n_threads, int64_t dim, ps_error *error) {
    w->threads = ps_cpu_allocate_zero((size_t)n_threads, sizeof *w->threads);
    if (!w->threads) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %d threads", n_threads);
    for (int i = 0; i < n_threads; i++) {
        scratch *s = &w->threads[i];
        s->factor = ps_cpu_allocate((size_t)(2 * dim * dim + 2 * dim), sizeof *s->factor);
        if (!s->factor) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for systems of %lld unknowns", (long long)dim);
        s->columns = s->factor + dim * dim;
        s->x = s->columns + dim * dim;
        s->nx = s->x + dim;
    }
    return PS_OK;
}

static ps_code allocate_work(work *w, const ps_solution *solution, ps_error *error) {
    const ps_cpu_system *system = w->frame->system;
    size_t n = (size_t)(ps_cpu_fine_rows(&system->desc) * ps_cpu_fine_columns(&system->desc));
    const bool wanted[2] = {ps_solution_wants_log_amplitude(solution), ps_solution_wants_phase(solution)};
    PS_TRY(allocate_scratch(w, system->backend->n_threads, 2 * ps_cpu_max_aliases(&system->desc, true), error));
    for (int i = 0; i < 2; i++) {
        w->image[i] = wanted[i] ? ps_cpu_allocate(n, sizeof *w->image[i]) : NULL;
        if (wanted[i] && !w->image[i]) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for an image of %zu values", n);
    }
    w->per_frequency = ps_cpu_allocate((size_t)system->desc.n_frequencies, sizeof *w->per_frequency);
    if (!w->per_frequency) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for sums");
    return PS_OK;
}

ps_code ps_reference_solve(ps_frame *handle, ps_methods method, int64_t n_strengths, const ps_strength *strengths,
                           const ps_solution *solution, ps_error *error) {
    const ps_cpu_frame *frame = (const ps_cpu_frame *)handle;
    assert(handle->is_reduced && n_strengths > 0);
    work w = {.frame = frame, .method = method, .with_effective_dof = solution->effective_dof != NULL};
    ps_code code = PS_OK;
    PS_GO(allocate_work(&w, solution, error));
    for (int64_t i = 0; i < n_strengths; i++) PS_GO(solve_and_write(&w, i, &strengths[i], solution, error));
done:
    for (int i = 0; w.threads && i < frame->system->backend->n_threads; i++) ps_cpu_free(w.threads[i].factor);
    ps_cpu_free(w.threads);
    ps_cpu_free(w.image[0]);
    ps_cpu_free(w.image[1]);
    ps_cpu_free(w.per_frequency);
    return code;
}
