/* Single side band images: docs/physics.md section 6.
 *
 * u = -i times the corrected spectrum is what is kept: gamma(-q) = -conj(gamma(q)), so that u(-q) = conj(u(q)) and the corrected wave is
 * w0 + i V, w0 the zero frequency and V a real image. Fine Nyquist lines add an image R: wave = w0 - R + i V, R the imaginary part of
 * u's transform, which two lines make (images.h). Without w0 in the transform, its rounding errors are those of the contrast. */
#include <assert.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "kernels/cpu/fast/images.h"
#include "kernels/cpu/fast/keep.h"
#include "kernels/cpu/memory.h"

/* One image's phase, atan2(V, w0 - R), and its square join the sums. real: [fine_columns] of every thread, scratch. */
static void add_image(const ps_fast_system *system, double zero, const float *image, ps_fast_lines lines, float *real, double *sums,
                      double *squares) {
    int64_t rows = ps_cpu_fine_rows(&system->cpu.desc), columns = ps_cpu_fine_columns(&system->cpu.desc);
#pragma omp parallel for schedule(static) num_threads(system->cpu.backend->n_threads)
    for (int64_t r = 0; r < rows; r++) {
        float *own = real + omp_get_thread_num() * columns, row_sign = r % 2 ? -1.0f : 1.0f;
        for (int64_t c = 0; c < columns; c++) {
            float column_sign = c % 2 ? -1.0f : 1.0f;
            own[c] = (float)zero - (row_sign * lines.along_row[c] + column_sign * lines.along_column[r]);
        }
        system->isa->add_phases(columns, own, image + r * columns, sums + r * columns, squares + r * columns);
    }
}

typedef struct {
    const ps_cpu_frame *frame;
    double zero;            /* w0 */
    ps_fast_imager imager;  /* memory for as many images as go together */
    float *real;            /* [n_threads, fine_columns] */
    double *sums, *squares; /* [fine] */
} estimate;

static ps_code estimate_wave(estimate *e, ps_error *error) {
    const ps_system_desc *desc = &e->frame->system->desc;
    float *u = ps_cpu_allocate((size_t)(2 * desc->n_aliases), sizeof *u);
    if (!u) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld coefficients", (long long)desc->n_aliases);
    for (int64_t i = 0; i < 2 * desc->n_aliases; i++) u[i] = (float)ps_fast_pairs(e->frame->ssb)[i];
    const float *image = ps_fast_image(&e->imager, 0, u, 1);
    ps_fast_lines lines = ps_fast_nyquist(&e->imager, 0, u, 1);
    add_image((const ps_fast_system *)e->frame->system, e->zero, image, lines, e->real, e->sums, e->squares);
    ps_cpu_free(u);
    return PS_OK;
}

/* u of every alias at one tile of pixels: [n_aliases, 2, TILE]; at: the tile's first slot in g's store, in a block of `width`. */
static void correct_tile(const ps_cpu_frame *frame, int64_t tile, const ps_fast_g *store, int64_t at, int64_t width, float *u) {
    const ps_fast_system *system = (const ps_fast_system *)frame->system;
    const ps_system_desc *desc = &system->cpu.desc;
#pragma omp parallel for schedule(dynamic, 64) num_threads(system->cpu.backend->n_threads)
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        bool conjugate;
        float g[2][PS_FAST_TILE];
        int64_t spectrum = ps_cpu_half_index(desc, f, &conjugate);
        ps_fast_g_load(store, spectrum, at, width, PS_FAST_TILE, conjugate ? -1.0f : 1.0f, g[0], g[1]);
        for (int64_t alias = f->first_alias; alias < f->first_alias + f->n_aliases; alias++) {
            ps_fast_alias terms;
            float *row = u + alias * 2 * PS_FAST_TILE;
            ps_fast_alias_terms(system, alias, &terms);
            bool is_zero = desc->fine_row[alias] == 0 && desc->fine_column[alias] == 0;
            if (system->isa->transfer(&system->pixels, &terms, system->aperture, tile, 1, NULL, row) || is_zero) {
                memset(row, 0, 2 * PS_FAST_TILE * sizeof *row);
                continue;
            }
            system->isa->normalise(PS_FAST_TILE, PS_FAST_GAMMA_FLOOR, row);
            for (int p = 0; p < PS_FAST_TILE; p++) {
                float g_re = g[0][p], g_im = g[1][p], t_re = row[p], t_im = row[PS_FAST_TILE + p];
                row[p] = t_re * g_re + t_im * g_im;
                row[PS_FAST_TILE + p] = t_re * g_im - t_im * g_re;
            }
        }
    }
}

/* Images of the tile's pixels, as many at a time as there are threads; sums are joined pixel by pixel, so in a fixed order. */
static void add_tile(estimate *e, int64_t n_pixels, const float *u) {
    const ps_fast_system *system = (const ps_fast_system *)e->frame->system;
    int n_threads = system->cpu.backend->n_threads;
    const float *images[PS_FAST_TILE] = {NULL};
    ps_fast_lines lines[PS_FAST_TILE] = {{0}};
    int64_t round = n_threads < PS_FAST_TILE ? n_threads : PS_FAST_TILE;
    for (int64_t first = 0; first < n_pixels; first += round) {
        int64_t n = n_pixels - first < round ? n_pixels - first : round;
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
        for (int64_t i = 0; i < n; i++) {
            images[i] = ps_fast_image(&e->imager, (int)i, u + first + i, PS_FAST_TILE);
            lines[i] = ps_fast_nyquist(&e->imager, (int)i, u + first + i, PS_FAST_TILE);
        }
        for (int64_t i = 0; i < n; i++) add_image(system, e->zero, images[i], lines[i], e->real, e->sums, e->squares);
    }
}

/* The phase estimator goes block by block through the pixels: g of a block, kept or formed again, then tile by tile. */
static ps_code estimate_phases(estimate *e, ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)e->frame->system;
    const ps_system_desc *desc = &system->cpu.desc;
    ps_code code = PS_OK;
    ps_fast_g *spare = e->frame->g ? NULL : ps_fast_g_create(desc, ps_fast_block_width(system, 0));
    float *u = ps_cpu_allocate((size_t)(desc->n_aliases * 2 * PS_FAST_TILE), sizeof *u);
    PS_GO_ALLOC(error, spare || e->frame->g);
    PS_GO_ALLOC(error, u);
    for (int64_t block = 0; block < ps_fast_n_blocks(system); block++) {
        int64_t width = ps_fast_block_width(system, block), first = block * PS_FAST_BLOCK, begin;
        const ps_fast_g *g;
        PS_GO(ps_fast_g_of_block(e->frame, block, spare, &g, &begin, error));
        for (int64_t at = 0; at < width; at += PS_FAST_TILE) {
            int64_t left = desc->n_active - first - at;
            correct_tile(e->frame, (first + at) / PS_FAST_TILE, g, begin + at, width, u);
            add_tile(e, left < PS_FAST_TILE ? left : PS_FAST_TILE, u);
        }
    }
done:
    ps_cpu_free(spare);
    ps_cpu_free(u);
    return code;
}

/* sums become means over the pixels; returns the image mean of the variance. */
static double finish_phases(const estimate *e, int64_t n) {
    double loss = 0.0, pixels = (double)e->frame->system->desc.n_active;
    for (int64_t i = 0; i < n; i++) {
        e->sums[i] /= pixels;
        loss += e->squares[i] / pixels - e->sums[i] * e->sums[i];
    }
    return loss / (double)n;
}

size_t ps_fast_ssb_bytes(const ps_system_desc *desc) {
    size_t fine = (size_t)(ps_cpu_fine_rows(desc) * ps_cpu_fine_columns(desc));
    size_t images = (size_t)(ps_cpu_max_threads() < PS_FAST_TILE ? ps_cpu_max_threads() : PS_FAST_TILE);
    size_t padded = (size_t)((desc->n_active + PS_FAST_TILE - 1) / PS_FAST_TILE * PS_FAST_TILE);
    size_t width = padded < PS_FAST_BLOCK ? padded : PS_FAST_BLOCK;
    return fine * 2 * sizeof(double) + (size_t)(ps_cpu_max_threads() * ps_cpu_fine_columns(desc)) * sizeof(float) +
           images * ps_fast_image_bytes(desc) + ps_fast_imager_bytes(desc) + ps_fast_g_bytes(desc, (int64_t)width) +
           (size_t)desc->n_aliases * 2 * PS_FAST_TILE * sizeof(float) + ps_fast_spectra_bytes(desc);
}

ps_code ps_fast_ssb(ps_frame *handle, ps_ssb_estimator estimator, float *phase_f32, double *phase_f64, double *loss, ps_error *error) {
    const ps_cpu_frame *frame = (const ps_cpu_frame *)handle;
    assert(handle->is_reduced);
    const ps_cpu_system *system = frame->system;
    size_t n = (size_t)(ps_cpu_fine_rows(&system->desc) * ps_cpu_fine_columns(&system->desc));
    int round = system->backend->n_threads < PS_FAST_TILE ? system->backend->n_threads : PS_FAST_TILE;
    estimate e = {.frame = frame, .zero = ps_cpu_mean_of_means(frame) / frame->dose};
    ps_code code = PS_OK;
    PS_GO(ps_fast_imager_init(&system->desc, round, &e.imager, error));
    e.real = ps_cpu_allocate((size_t)(system->backend->n_threads * ps_cpu_fine_columns(&system->desc)), sizeof *e.real);
    e.sums = ps_cpu_allocate_zero(n, sizeof *e.sums);
    e.squares = ps_cpu_allocate_zero(n, sizeof *e.squares);
    PS_GO_ALLOC(error, e.real);
    PS_GO_ALLOC(error, e.sums);
    PS_GO_ALLOC(error, e.squares);
    if (estimator == PS_SSB_WAVE) {
        PS_GO(estimate_wave(&e, error));
    } else {
        PS_GO(estimate_phases(&e, error));
        double variance = finish_phases(&e, (int64_t)n);
        if (loss) *loss = variance;
    }
    ps_cpu_write_image((int64_t)n, e.sums, phase_f32, phase_f64);
done:
    ps_fast_imager_release(&e.imager);
    ps_cpu_free(e.real);
    ps_cpu_free(e.sums);
    ps_cpu_free(e.squares);
    return code;
}
