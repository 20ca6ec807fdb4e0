#include <math.h>
#include <omp.h>
#include <string.h>

#include "kernels/cpu/memory.h"
#include "kernels/cpu/reference/reference.h"

/* What one chunk of pixels adds to one alias of one frame: b, and section 6's corrected spectra. Pixel follows pixel in the sums,
 * so that chunks do not show. g: [n]. */
static void add_alias(ps_cpu_frame *frame, int64_t alias, int64_t first, int64_t n, const double complex *amplitude,
                      const double complex *phase, const double complex *g) {
    const double *weights = frame->system->weights + first;
    for (int64_t i = 0; i < n; i++) {
        double complex gamma = -I * phase[i];
        if (frame->right_amplitude) frame->right_amplitude[alias] += weights[i] * conj(amplitude[i]) * g[i];
        if (frame->right_phase) frame->right_phase[alias] += weights[i] * conj(phase[i]) * g[i];
        if (frame->ssb && cabs(gamma) > PS_REFERENCE_GAMMA_FLOOR) frame->ssb[alias] += g[i] * conj(gamma) / cabs(gamma);
    }
}

/* g of one frequency at the chunk's pixels, out of half-planes [n, half]. */
static void gather_frequency(const ps_system_desc *desc, const ps_frequency *f, int64_t n, const double complex *spectra,
                             double complex *g) {
    bool conjugate;
    int64_t half = desc->scan_rows * ps_cpu_half_columns(desc), index = ps_cpu_half_index(desc, f, &conjugate);
    for (int64_t i = 0; i < n; i++) g[i] = conjugate ? conj(spectra[i * half + index]) : spectra[i * half + index];
}

typedef struct {
    ps_cpu_frame **frames;
    int64_t n_frames;
    int64_t first, n;              /* pixels */
    const double complex *spectra; /* [n_frames, n, half] */
} chunk;

/* scratch: [2 + n_frames, n] */
static void add_frequency(const chunk *c, int64_t frequency, double complex *scratch) {
    const ps_reference_system *system = (const ps_reference_system *)c->frames[0]->system;
    const ps_system_desc *desc = &system->cpu.desc;
    const ps_frequency *f = &desc->frequencies[frequency];
    int64_t half = desc->scan_rows * ps_cpu_half_columns(desc);
    double complex *amplitude = scratch, *phase = scratch + c->n, *g = scratch + 2 * c->n;
    for (int64_t i = 0; i < c->n_frames; i++) {
        gather_frequency(desc, f, c->n, c->spectra + i * c->n * half, g + i * c->n);
        for (int64_t pixel = 0; pixel < c->n; pixel++)
            c->frames[i]->data_norm[frequency] += system->cpu.weights[c->first + pixel] * pow(cabs(g[i * c->n + pixel]), 2);
    }
    for (int64_t alias = f->first_alias; alias < f->first_alias + f->n_aliases; alias++) {
        ps_reference_transfer(system, alias, c->first, c->n, amplitude, phase);
        for (int64_t i = 0; i < c->n_frames; i++) add_alias(c->frames[i], alias, c->first, c->n, amplitude, phase, g + i * c->n);
    }
}

/* Section 6: means over the pixels; the image's zero frequency is the mean of all pixels' g(0, k) = mean counts / dose. */
static void finish_frame(ps_cpu_frame *frame) {
    const ps_system_desc *desc = &frame->system->desc;
    int64_t zero = ps_cpu_zero_alias(desc);
    for (int64_t alias = 0; frame->ssb && alias < desc->n_aliases; alias++) frame->ssb[alias] /= (double)desc->n_active;
    if (frame->ssb && zero >= 0) frame->ssb[zero] = ps_cpu_mean_of_means(frame) / frame->dose;
}

static ps_code reduce_chunk(chunk *c, double complex *spectra, double complex *scratch, ps_error *error) {
    const ps_cpu_system *system = c->frames[0]->system;
    int64_t half = system->desc.scan_rows * ps_cpu_half_columns(&system->desc);
    for (int64_t i = 0; i < c->n_frames; i++)
        PS_TRY(ps_reference_spectra(c->frames[i], c->first, c->n, c->frames[i]->dose, spectra + i * c->n * half, error));
    c->spectra = spectra;
#pragma omp parallel for schedule(dynamic) num_threads(system->backend->n_threads)
    for (int64_t i = 0; i < system->desc.n_frequencies; i++) add_frequency(c, i, scratch + omp_get_thread_num() * (2 + c->n_frames) * c->n);
    return PS_OK;
}

static ps_code reduce_chunks(ps_cpu_frame **frames, int64_t n_frames, int64_t pixels, double complex *spectra, double complex *scratch,
                             ps_error *error) {
    int64_t active = frames[0]->system->desc.n_active;
    for (int64_t first = 0; first < active; first += pixels) {
        chunk c = {.frames = frames, .n_frames = n_frames, .first = first, .n = active - first < pixels ? active - first : pixels};
        PS_TRY(reduce_chunk(&c, spectra, scratch, error));
    }
    for (int64_t i = 0; i < n_frames; i++) finish_frame(frames[i]);
    return PS_OK;
}

ps_code ps_reference_reduce(ps_frame *const *handles, int64_t n_frames, const double *dose, ps_error *error) {
    ps_cpu_frame **frames = (ps_cpu_frame **)handles;
    const ps_cpu_system *system = frames[0]->system;
    const ps_system_desc *desc = &system->desc;
    ps_memory_plan plan;
    PS_TRY(ps_reference_memory_plan(desc, system->methods, frames[0]->dtype, system->backend->budget_bytes, n_frames, &plan, error));
    PS_TRY(ps_cpu_batch_require(&plan, n_frames, error));
    size_t half = (size_t)(desc->scan_rows * ps_cpu_half_columns(desc)), n = (size_t)plan.pixels_per_chunk, batch = (size_t)n_frames;
    ps_code code = PS_OK;
    double complex *spectra = ps_cpu_allocate(batch * n * half, sizeof *spectra);
    double complex *scratch = ps_cpu_allocate((size_t)system->backend->n_threads * (2 + batch) * n, sizeof *scratch);
    PS_GO_ALLOC(error, spectra);
    PS_GO_ALLOC(error, scratch);
    PS_GO(ps_cpu_frames_begin(handles, n_frames, dose, error));
    PS_GO(reduce_chunks(frames, n_frames, plan.pixels_per_chunk, spectra, scratch, error));
done:
    ps_cpu_free(spectra);
    ps_cpu_free(scratch);
    return code;
}
