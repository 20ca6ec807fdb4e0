/* x = (N + D)^-1 b at any strength, from the prepared bases: docs/physics.md section 5.
 *
 * With A = D0^-1/2 N D0^-1/2 = Q T Q^H and D = mu D0, x = D0^-1/2 Q (T + mu)^-1 Q^H D0^-1/2 b. Strengths of one ratio of amplitude to
 * phase share D0; the ratio 1 is prepared, any other is formed here. The residual is data norm - (y^H c + mu |y|^2) with c = Q^H D0^-1/2 b
 * and y = (T + mu)^-1 c, and the effective degrees of freedom tr((N + D)^-1 N) = dim - mu tr((T + mu)^-1): neither needs x. */
#include <assert.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "kernels/cpu/fast/fast.h"
#include "kernels/cpu/fast/images.h"
#include "kernels/cpu/memory.h"

enum { LANES = PS_FAST_LANES, STRENGTHS_PER_PASS = 4 };

/* Scratch of one thread, for dim unknowns. */
typedef struct {
    double *root;   /* [dim, LANES] */
    double *c, *y;  /* [dim, 2, LANES] */
    double *pivots; /* [2, dim, LANES] */
    double *basis;  /* of a ratio that is not prepared */
} scratch;

/* Strengths solved together: one ratio; at most STRENGTHS_PER_PASS when images are wanted. */
typedef struct {
    const ps_cpu_frame *frame;
    ps_methods method;
    double ratio;
    int64_t n;
    const int64_t *index;         /* [n] which of the caller's strengths */
    const ps_strength *strengths; /* the caller's */
    bool with_effective_dof;
    float *x[2];           /* [n, n_aliases, 2] amplitude, phase; NULL: not wanted */
    double *explained;     /* [n, n_batches] multiplicity-weighted sums of y^H c + mu |y|^2 */
    double *effective_dof; /* [n, n_batches] */
    scratch *threads;
} pass;

static size_t scratch_doubles(int64_t dim) {
    return (size_t)(dim * LANES * 7 + ps_fast_basis_doubles((int)dim));
}

size_t ps_fast_solve_bytes(const ps_system_desc *desc, ps_methods methods) {
    size_t dim = (size_t)ps_cpu_max_aliases(desc, true) * (methods & PS_METHOD_COMPLEX ? 2 : 1), threads = (size_t)ps_cpu_max_threads();
    size_t planes = methods & PS_METHOD_COMPLEX ? 2 : 1;
    return threads * (scratch_doubles((int64_t)dim) * sizeof(double) + sizeof(scratch) + ps_fast_image_bytes(desc)) +
           ps_fast_imager_bytes(desc) + STRENGTHS_PER_PASS * planes * (size_t)desc->n_aliases * 2 * sizeof(float);
}

/* c = D0^-1/2 b of a batch. */
static void load_right_sides(const pass *p, const ps_fast_batch *batch, scratch *s) {
    const ps_system_desc *desc = &p->frame->system->desc;
    bool both = p->method == PS_METHOD_COMPLEX;
    for (int lane = 0; lane < LANES; lane++)
        for (int a = 0; a < batch->n; a++) {
            int64_t alias = batch->frequency[lane] < 0 ? -1 : desc->frequencies[batch->frequency[lane]].first_alias + a;
            for (int half = 0; half < (both ? 2 : 1); half++) {
                const double *b = ps_fast_pairs(both && half == 0 ? p->frame->right_amplitude : p->frame->right_phase);
                int i = half * batch->n + a;
                for (int part = 0; part < 2; part++)
                    s->c[(i * 2 + part) * LANES + lane] = alias < 0 ? 0.0 : b[2 * alias + part] / s->root[i * LANES + lane];
            }
        }
}

/* x = D0^-1/2 Q y into the arrays over aliases. */
static void store_solution(const pass *p, const ps_fast_batch *batch, int64_t at, const double *basis, scratch *s) {
    const ps_fast_system *system = (const ps_fast_system *)p->frame->system;
    const ps_system_desc *desc = &system->cpu.desc;
    bool both = p->method == PS_METHOD_COMPLEX;
    int dim = both ? 2 * batch->n : batch->n;
    system->isa->from_basis(dim, basis, basis + PS_FAST_PACKED(dim), s->y);
    for (int half = 0; half < 2; half++) {
        int first = both && half == 1 ? batch->n : 0;
        if (!p->x[half]) continue;
        for (int lane = 0; lane < LANES && batch->frequency[lane] >= 0; lane++) {
            float *to = p->x[half] + 2 * (at * desc->n_aliases + desc->frequencies[batch->frequency[lane]].first_alias);
            for (int a = 0; a < 2 * batch->n; a++)
                to[a] = (float)(s->y[(2 * first + a) * LANES + lane] / s->root[(first + a / 2) * LANES + lane]);
        }
    }
}

static void keep_sums(const pass *p, const ps_fast_batch *batch, int64_t at, int64_t which, double mu, const double *explained,
                      const double *trace) {
    const ps_fast_system *system = (const ps_fast_system *)p->frame->system;
    int dim = p->method == PS_METHOD_COMPLEX ? 2 * batch->n : batch->n;
    double fit = 0.0, effective_dof = 0.0;
    for (int lane = 0; lane < LANES && batch->frequency[lane] >= 0; lane++) {
        int multiplicity = system->cpu.desc.frequencies[batch->frequency[lane]].multiplicity;
        fit += multiplicity * explained[lane];
        if (p->with_effective_dof) effective_dof += multiplicity * (dim - mu * trace[lane]);
    }
    p->explained[at * system->n_batches + which] = fit;
    p->effective_dof[at * system->n_batches + which] = effective_dof;
}

/* All strengths of the pass at one batch. Returns false when a system is not positive definite. */
static bool solve_batch(const pass *p, int64_t which, scratch *s) {
    const ps_fast_system *system = (const ps_fast_system *)p->frame->system;
    const ps_fast_batch *batch = &system->batches[which];
    bool both = p->method == PS_METHOD_COMPLEX, good = true;
    int dim = both ? 2 * batch->n : batch->n;
    double explained[LANES] __attribute__((aligned(64))), trace[LANES] __attribute__((aligned(64)));
    const double *basis = system->bases + (both ? batch->complex_basis : batch->phase_basis);
    ps_fast_form_root(system, batch, p->method, p->ratio, s->root);
    if (both && p->ratio != 1.0) {
        ps_fast_form_basis(system, batch, p->method, s->root, s->basis);
        basis = s->basis;
    }
    const double *reduced = basis + PS_FAST_PACKED(dim);
    load_right_sides(p, batch, s);
    system->isa->to_basis(dim, basis, reduced, s->c);
    for (int64_t at = 0; at < p->n && good; at++) {
        double mu = p->strengths[p->index[at]].phase * (both ? 1.0 : system->cpu.scale_phase);
        good = system->isa->solve_shifted(dim, reduced, mu, s->c, s->y, s->pivots, explained, p->with_effective_dof ? trace : NULL);
        if (!good) break;
        keep_sums(p, batch, at, which, mu, explained, trace);
        if (p->x[0] || p->x[1]) store_solution(p, batch, at, basis, s);
    }
    return good;
}

static ps_code solve_pass(const pass *p, ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)p->frame->system;
    int64_t failed = system->n_batches;
#pragma omp parallel for schedule(dynamic, 8) num_threads(system->cpu.backend->n_threads) reduction(min : failed)
    for (int64_t i = 0; i < system->n_batches; i++)
        if (!solve_batch(p, i, &p->threads[omp_get_thread_num()]) && i < failed) failed = i;
    if (failed == system->n_batches) return PS_OK;
    const ps_frequency *f = &system->cpu.desc.frequencies[system->batches[failed].frequency[0]];
    return PS_FAIL(error, PS_E_NUMERIC, "a system near scan frequency (%d, %d) is not positive definite at strength %g", f->row, f->column,
                   p->strengths[p->index[0]].phase);
}

static void write_image(const pass *p, const ps_fast_imager *imager, int64_t at, int half, const ps_solution *solution) {
    const ps_system_desc *desc = imager->desc;
    int64_t n = ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc), which = p->index[at];
    float *f32 = half ? ps_solution_phase_f32(solution, which, n) : ps_solution_log_amplitude_f32(solution, which, n);
    double *f64 = half ? solution->phase_f64 : solution->log_amplitude_f64;
    const float *image = ps_fast_image(imager, omp_get_thread_num(), p->x[half] + at * desc->n_aliases * 2, 1);
    if (f32) memcpy(f32, image, (size_t)n * sizeof *f32);
    for (int64_t i = 0; f64 && i < n; i++) f64[which * n + i] = image[i];
}

static void write_pass(const pass *p, const ps_fast_imager *imager, const ps_solution *solution) {
    const ps_fast_system *system = (const ps_fast_system *)p->frame->system;
    double data_norm = 0.0;
    for (int64_t i = 1; i < system->cpu.desc.n_frequencies; i++)
        data_norm += system->cpu.desc.frequencies[i].multiplicity * p->frame->data_norm[i];
    for (int64_t at = 0; at < p->n; at++) {
        double explained = 0.0, effective_dof = 0.0;
        for (int64_t i = 0; i < system->n_batches; i++) {
            explained += p->explained[at * system->n_batches + i];
            effective_dof += p->effective_dof[at * system->n_batches + i];
        }
        if (solution->residual) solution->residual[p->index[at]] = data_norm - explained;
        if (solution->effective_dof) solution->effective_dof[p->index[at]] = effective_dof;
    }
#pragma omp parallel for schedule(dynamic) num_threads(system->cpu.backend->n_threads)
    for (int64_t i = 0; i < 2 * p->n; i++)
        if (p->x[i % 2]) write_image(p, imager, i / 2, (int)(i % 2), solution);
}

static ps_code allocate_threads(pass *p, ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)p->frame->system;
    int64_t dim = ps_cpu_max_aliases(&system->cpu.desc, true) * (p->method == PS_METHOD_COMPLEX ? 2 : 1);
    int n_threads = system->cpu.backend->n_threads;
    p->threads = ps_cpu_allocate_zero((size_t)n_threads, sizeof *p->threads);
    for (int i = 0; p->threads && i < n_threads; i++) {
        scratch *s = &p->threads[i];
        s->c = ps_cpu_allocate(scratch_doubles(dim), sizeof *s->c);
        if (!s->c) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for systems of %lld unknowns", (long long)dim);
        s->y = s->c + dim * 2 * LANES;
        s->pivots = s->y + dim * 2 * LANES;
        s->root = s->pivots + dim * 2 * LANES;
        s->basis = s->root + dim * LANES;
    }
    return p->threads ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %d threads", n_threads);
}

static ps_code allocate_pass(pass *p, int64_t most, const ps_solution *solution, ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)p->frame->system;
    const bool wanted[2] = {ps_solution_wants_log_amplitude(solution), ps_solution_wants_phase(solution)};
    size_t sums = (size_t)(most * system->n_batches), x = (size_t)(most * system->cpu.desc.n_aliases * 2);
    PS_TRY(allocate_threads(p, error));
    p->explained = ps_cpu_allocate(sums, sizeof *p->explained);
    p->effective_dof = ps_cpu_allocate(sums, sizeof *p->effective_dof);
    if (!p->explained || !p->effective_dof) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu sums", sums);
    for (int i = 0; i < 2; i++) {
        p->x[i] = wanted[i] ? ps_cpu_allocate_zero(x, sizeof *p->x[i]) : NULL;
        if (wanted[i] && !p->x[i]) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu coefficients", x);
    }
    return PS_OK;
}

static void free_pass(pass *p) {
    for (int i = 0; p->threads && i < p->frame->system->backend->n_threads; i++) ps_cpu_free(p->threads[i].c);
    ps_cpu_free(p->threads);
    ps_cpu_free(p->explained);
    ps_cpu_free(p->effective_dof);
    ps_cpu_free(p->x[0]);
    ps_cpu_free(p->x[1]);
}

static double ratio_of(ps_methods method, const ps_strength *strength) {
    return method == PS_METHOD_COMPLEX ? strength->amplitude / strength->phase : 1.0;
}

/* Takes up to `most` strengths that are not done and share the first such one's ratio into the pass. */
static void choose_strengths(pass *p, int64_t n_strengths, int64_t most, uint8_t *is_done, int64_t *index) {
    p->n = 0;
    for (int64_t i = 0; i < n_strengths && p->n < most; i++) {
        if (is_done[i]) continue;
        double ratio = ratio_of(p->method, &p->strengths[i]);
        if (p->n > 0 && ratio != p->ratio) continue;
        p->ratio = ratio;
        is_done[i] = 1;
        index[p->n++] = i;
    }
    p->index = index;
}

ps_code ps_fast_solve(ps_frame *handle, ps_methods method, int64_t n_strengths, const ps_strength *strengths, const ps_solution *solution,
                      ps_error *error) {
    const ps_cpu_frame *frame = (const ps_cpu_frame *)handle;
    assert(handle->is_reduced && n_strengths > 0);
    const ps_cpu_system *system = frame->system;
    bool images = ps_solution_wants_phase(solution) || ps_solution_wants_log_amplitude(solution);
    int64_t most = images && n_strengths > STRENGTHS_PER_PASS ? STRENGTHS_PER_PASS : n_strengths;
    pass p = {.frame = frame, .method = method, .strengths = strengths, .with_effective_dof = solution->effective_dof != NULL};
    ps_fast_imager imager = {0};
    ps_code code = PS_OK;
    uint8_t *is_done = ps_cpu_allocate_zero((size_t)n_strengths, sizeof *is_done);
    int64_t *index = ps_cpu_allocate((size_t)n_strengths, sizeof *index);
    PS_GO_ALLOC(error, is_done);
    PS_GO_ALLOC(error, index);
    PS_GO(allocate_pass(&p, most, solution, error));
    if (images) PS_GO(ps_fast_imager_init(&system->desc, system->backend->n_threads, &imager, error));
    for (choose_strengths(&p, n_strengths, most, is_done, index); p.n > 0; choose_strengths(&p, n_strengths, most, is_done, index)) {
        PS_GO(solve_pass(&p, error));
        write_pass(&p, &imager, solution);
    }
done:
    ps_fast_imager_release(&imager);
    free_pass(&p);
    ps_cpu_free(is_done);
    ps_cpu_free(index);
    return code;
}
