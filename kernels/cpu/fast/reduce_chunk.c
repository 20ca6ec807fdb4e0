/* The transfer at each block of pixels, frequency by frequency, and its products with every frame's g. A block's products join the double
 * sums in the order of blocks, whatever the chunks. */
#include "kernels/cpu/fast/reduce_chunk.h"

#include <omp.h>
#include <string.h>

#include "kernels/cpu/fast/g_store.h"
#include "kernels/cpu/memory.h"

enum { SUM = 2 * PS_FAST_LANES };

struct ps_fast_reduce_scratch {
    float *rows;     /* [2 n_aliases, 2, BLOCK] */
    float *plain;    /* [n_frames, 2, BLOCK] g of one frequency */
    float *weighted; /* [n_frames, 2, BLOCK] W g */
    double *sums;    /* [2 n_aliases, n_frames, SUM] */
    bool is_dark[2 * PS_MAX_ALIASES];
};

static size_t scratch_floats(size_t n_aliases, size_t n_frames) {
    return (2 * n_aliases + 2 * n_frames) * 2 * PS_FAST_BLOCK;
}

static size_t scratch_sums(size_t n_aliases, size_t n_frames) {
    return (2 * n_aliases > 1 ? 2 * n_aliases : 1) * n_frames * SUM;
}

size_t ps_fast_reduce_bytes(const ps_system_desc *desc, int64_t n_frames) {
    size_t aliases = (size_t)ps_cpu_max_aliases(desc, false), frames = (size_t)n_frames;
    return scratch_floats(aliases, frames) * sizeof(float) + scratch_sums(aliases, frames) * sizeof(double) +
           sizeof(ps_fast_reduce_scratch);
}

/* g of one frequency and block of every frame, conjugated when the partner is what is stored, and W g. */
static void load_spectra(const ps_fast_chunk *c, const ps_fast_system *system, const ps_frequency *f, int64_t block, int64_t width,
                         ps_fast_reduce_scratch *s) {
    const ps_system_desc *desc = &system->cpu.desc;
    bool conjugate;
    int64_t index = ps_cpu_half_index(desc, f, &conjugate), at = (block - c->first_block) * PS_FAST_BLOCK;
    const float *weights = system->weights + block * PS_FAST_BLOCK;
    float sign = conjugate ? -1.0f : 1.0f;
    for (int64_t i = 0; i < c->n_frames; i++) {
        float *plain = s->plain + i * 2 * width, *weighted = s->weighted + i * 2 * width;
        ps_fast_g_load(c->g[i], index, at, width, width, sign, plain, plain + width);
        for (int64_t p = 0; p < width; p++) {
            weighted[p] = weights[p] * plain[p];
            weighted[width + p] = weights[p] * plain[width + p];
        }
    }
}

static void add_data_norm(const ps_fast_chunk *c, const ps_fast_system *system, int64_t frequency, int64_t width,
                          ps_fast_reduce_scratch *s) {
    for (int64_t i = 0; i < c->n_frames; i++) {
        ps_fast_operands operands = {
            .n_rows = 1, .n_columns = 1, .rows = s->plain + i * 2 * width, .columns = s->weighted + i * 2 * width, .width = width};
        memset(s->sums, 0, SUM * sizeof *s->sums);
        system->isa->products(&operands, false, s->sums);
        c->frames[i]->data_norm[frequency] += ps_fast_total(s->sums);
    }
}

/* An array over aliases that every frame has. */
typedef enum { RIGHT_AMPLITUDE, RIGHT_PHASE, SSB } target;

/* sums [n, n_frames] join one of each frame's arrays, times scale. */
static void join_sums(const ps_fast_chunk *c, const ps_frequency *f, const double *sums, target which, double scale) {
    for (int64_t i = 0; i < c->n_frames; i++) {
        double complex *const arrays[] = {c->frames[i]->right_amplitude, c->frames[i]->right_phase, c->frames[i]->ssb};
        double *to = ps_fast_pairs(arrays[which]) + 2 * f->first_alias;
        for (int64_t a = 0; a < f->n_aliases; a++) {
            const double *sum = sums + (a * c->n_frames + i) * SUM;
            to[2 * a] += scale * ps_fast_total(sum);
            to[2 * a + 1] += scale * ps_fast_total(sum + PS_FAST_LANES);
        }
    }
}

static void multiply_rows(const ps_fast_chunk *c, const ps_fast_system *system, int64_t n_rows, int64_t width, const float *rows,
                          const bool *is_dark, const float *columns, double *sums) {
    ps_fast_operands operands = {.n_rows = n_rows,
                                 .n_columns = c->n_frames,
                                 .rows = rows,
                                 .columns = columns,
                                 .row_stride = 2 * width,
                                 .column_stride = 2 * width,
                                 .width = width,
                                 .row_is_dark = is_dark};
    memset(sums, 0, (size_t)(n_rows * c->n_frames * SUM) * sizeof *sums);
    system->isa->products(&operands, false, sums);
}

/* gamma = -i T_phase, so that g conj(gamma)/|gamma| is i times what is kept, g conj(T_phase)/|T_phase| (ssb.c). */
static void add_ssb(const ps_fast_chunk *c, const ps_fast_system *system, const ps_frequency *f, int64_t width, float *rows,
                    const bool *is_dark, ps_fast_reduce_scratch *s) {
    for (int64_t a = 0; a < f->n_aliases; a++)
        if (!is_dark[a]) system->isa->normalise(width, PS_FAST_GAMMA_FLOOR, rows + a * 2 * width);
    multiply_rows(c, system, f->n_aliases, width, rows, is_dark, s->plain, s->sums);
    join_sums(c, f, s->sums, SSB, 1.0 / (double)system->cpu.desc.n_active);
}

static void add_block(const ps_fast_chunk *c, const ps_fast_system *system, int64_t frequency, int64_t block, ps_fast_reduce_scratch *s) {
    const ps_frequency *f = &system->cpu.desc.frequencies[frequency];
    int64_t width = ps_fast_block_width(system, block), n = f->n_aliases;
    bool amplitude = ps_fast_has(system, PS_METHOD_COMPLEX), phase = ps_fast_has(system, PS_METHODS_RIGHT_SIDE);
    load_spectra(c, system, f, block, width, s);
    add_data_norm(c, system, frequency, width, s);
    ps_fast_transfer_rows(system, frequency, block, amplitude, system->aperture, s->rows, s->is_dark);
    if (phase && frequency > 0) {
        multiply_rows(c, system, amplitude ? 2 * n : n, width, s->rows, s->is_dark, s->weighted, s->sums);
        if (amplitude) join_sums(c, f, s->sums, RIGHT_AMPLITUDE, 1.0);
        join_sums(c, f, s->sums + (amplitude ? n * c->n_frames * SUM : 0), RIGHT_PHASE, 1.0);
    }
    int64_t first = amplitude ? n : 0;
    if (ps_fast_has(system, PS_METHOD_SSB)) add_ssb(c, system, f, width, s->rows + first * 2 * width, s->is_dark + first, s);
}

ps_code ps_fast_reduce_scratch_create(const ps_cpu_system *system, int64_t n_frames, ps_fast_reduce_scratch **threads, ps_error *error) {
    size_t aliases = (size_t)ps_cpu_max_aliases(&system->desc, false), frames = (size_t)n_frames;
    int n_threads = system->backend->n_threads;
    *threads = ps_cpu_allocate_zero((size_t)n_threads, sizeof **threads);
    for (int i = 0; *threads && i < n_threads; i++) {
        ps_fast_reduce_scratch *s = &(*threads)[i];
        s->rows = ps_cpu_allocate(scratch_floats(aliases, frames), sizeof *s->rows);
        s->sums = ps_cpu_allocate(scratch_sums(aliases, frames), sizeof *s->sums);
        if (!s->rows || !s->sums) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the products of %zu aliases", aliases);
        s->plain = s->rows + 2 * aliases * 2 * PS_FAST_BLOCK;
        s->weighted = s->plain + frames * 2 * PS_FAST_BLOCK;
    }
    return *threads ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %d threads", n_threads);
}

void ps_fast_reduce_scratch_free(const ps_cpu_system *system, ps_fast_reduce_scratch *threads) {
    for (int i = 0; threads && i < system->backend->n_threads; i++) {
        ps_cpu_free(threads[i].rows);
        ps_cpu_free(threads[i].sums);
    }
    ps_cpu_free(threads);
}

void ps_fast_reduce_chunk(const ps_fast_chunk *c, ps_fast_reduce_scratch *threads) {
    const ps_fast_system *system = (const ps_fast_system *)c->frames[0]->system;
    const ps_system_desc *desc = &system->cpu.desc;
#pragma omp parallel for schedule(dynamic, 4) num_threads(system->cpu.backend->n_threads)
    for (int64_t i = 0; i < desc->n_frequencies; i++)
        for (int64_t b = 0; b < c->n_blocks; b++) add_block(c, system, i, c->first_block + b, &threads[omp_get_thread_num()]);
}
