/* N of every frequency, and the scales: docs/physics.md section 5. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "kernels/cpu/fast/fast.h"
#include "kernels/cpu/memory.h"

enum { SUM = 2 * PS_FAST_LANES }; /* doubles of one complex running sum (isa.h, products) */

/* Scratch of one thread. */
typedef struct {
    float *rows;  /* [dim, 2, BLOCK] */
    double *sums; /* [dim, dim, SUM] */
    bool is_dark[2 * PS_MAX_ALIASES];
} scratch;

static void add_block(const ps_fast_system *system, int64_t frequency, int64_t block, int64_t dim, const float *factor, scratch *s) {
    int64_t width = ps_fast_block_width(system, block);
    ps_fast_transfer_rows(system, frequency, block, ps_fast_has(system, PS_METHOD_COMPLEX), factor, s->rows, s->is_dark);
    ps_fast_operands operands = {.n_rows = dim,
                                 .n_columns = dim,
                                 .rows = s->rows,
                                 .columns = s->rows,
                                 .row_stride = 2 * width,
                                 .column_stride = 2 * width,
                                 .width = width,
                                 .row_is_dark = s->is_dark,
                                 .column_is_dark = s->is_dark};
    system->isa->products(&operands, true, s->sums);
}

/* Puts the sums' lower triangle into one lane of a batch's packed matrix. */
static void store_lane(int64_t dim, const double *sums, int lane, double *packed) {
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j <= i; j++) { /* N_ij = conj(N_ji) */
            const double *sum = sums + (j * dim + i) * SUM;
            double *entry = packed + (i * (i + 1) / 2 + j) * SUM + lane;
            entry[0] = ps_fast_total(sum);
            entry[PS_FAST_LANES] = i == j ? 0.0 : -ps_fast_total(sum + PS_FAST_LANES);
        }
}

/* An empty lane holds the unit matrix, which every later step leaves finite. */
static void store_unit(int64_t dim, int lane, double *packed) {
    for (int64_t i = 0; i < dim; i++)
        for (int64_t j = 0; j <= i; j++) {
            double *entry = packed + (i * (i + 1) / 2 + j) * SUM + lane;
            entry[0] = i == j;
            entry[PS_FAST_LANES] = 0.0;
        }
}

static void keep_diagonal(ps_fast_system *system, const ps_frequency *f, int64_t dim, int lane, const double *packed) {
    double *amplitude = system->diagonal, *phase = amplitude + system->cpu.desc.n_aliases;
    for (int64_t a = 0; a < f->n_aliases; a++) {
        int64_t i = dim - f->n_aliases + a;
        amplitude[f->first_alias + a] = packed[a * (a + 3) / 2 * SUM + lane];
        phase[f->first_alias + a] = packed[i * (i + 3) / 2 * SUM + lane];
    }
}

static void normal_of_batch(ps_fast_system *system, const ps_fast_batch *batch, const float *factor, scratch *s) {
    int64_t dim = ps_fast_dim(system, batch);
    double *packed = system->normal + batch->normal;
    for (int lane = 0; lane < PS_FAST_LANES; lane++) {
        int64_t frequency = batch->frequency[lane];
        if (frequency < 0) {
            store_unit(dim, lane, packed);
            continue;
        }
        memset(s->sums, 0, (size_t)(dim * dim * SUM) * sizeof *s->sums);
        for (int64_t block = 0; block < ps_fast_n_blocks(system); block++) add_block(system, frequency, block, dim, factor, s);
        store_lane(dim, s->sums, lane, packed);
        keep_diagonal(system, &system->cpu.desc.frequencies[frequency], dim, lane, packed);
    }
}

static double diagonal(const ps_cpu_system *cpu, int64_t frequency, int64_t a, bool of_phase) {
    const double *kept = ((const ps_fast_system *)cpu)->diagonal + (of_phase ? cpu->desc.n_aliases : 0);
    return kept[cpu->desc.frequencies[frequency].first_alias + a];
}

ps_code ps_fast_normal(ps_fast_system *system, ps_error *error) {
    int n_threads = system->cpu.backend->n_threads;
    int64_t padded = system->pixels.n_tiles * PS_FAST_TILE;
    size_t dim = (size_t)ps_cpu_max_aliases(&system->cpu.desc, true) * (ps_fast_has(system, PS_METHOD_COMPLEX) ? 2 : 1);
    ps_code code = PS_OK;
    scratch *threads = ps_cpu_allocate_zero((size_t)n_threads, sizeof *threads);
    float *factor = ps_cpu_allocate((size_t)padded, sizeof *factor);
    PS_GO_ALLOC(error, threads);
    PS_GO_ALLOC(error, factor);
    for (int i = 0; i < n_threads; i++) {
        threads[i].rows = ps_cpu_allocate(dim * 2 * PS_FAST_BLOCK, sizeof *threads[i].rows);
        threads[i].sums = ps_cpu_allocate(dim * dim * SUM, sizeof *threads[i].sums);
        PS_GO_ALLOC(error, threads[i].rows);
        PS_GO_ALLOC(error, threads[i].sums);
    }
    for (int64_t i = 0; i < padded; i++) factor[i] = system->aperture[i] * sqrtf(system->weights[i]);
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
    for (int64_t i = 0; i < system->n_batches; i++) normal_of_batch(system, &system->batches[i], factor, &threads[omp_get_thread_num()]);
    PS_GO(ps_cpu_system_form_scales(&system->cpu, diagonal, error));
done:
    for (int i = 0; threads && i < n_threads; i++) {
        ps_cpu_free(threads[i].rows);
        ps_cpu_free(threads[i].sums);
    }
    ps_cpu_free(threads);
    ps_cpu_free(factor);
    return code;
}
