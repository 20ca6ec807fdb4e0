/* b, data norm and the sums of section 6 for a batch of frames: one evaluation of the transfer serves all of them. Pixels go through in
 * chunks of whole blocks (reduce_chunk.c). */
#include "kernels/cpu/fast/reduce_chunk.h"
#include "kernels/cpu/memory.h"

/* The image's zero frequency is the mean of all pixels' g(0, k), and kept apart (ssb.c). */
static void clear_ssb_zero(ps_cpu_frame *frame) {
    int64_t alias = ps_cpu_zero_alias(&frame->system->desc);
    if (frame->ssb && alias >= 0) frame->ssb[alias] = 0.0;
}

static ps_code reduce_chunks(ps_cpu_frame *const *frames, int64_t n_frames, int64_t chunk_blocks, ps_fast_reduce_scratch *threads,
                             ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)frames[0]->system;
    const ps_system_desc *desc = &system->cpu.desc;
    int64_t half = desc->scan_rows * ps_cpu_half_columns(desc), padded = system->pixels.n_tiles * PS_FAST_TILE;
    int64_t stride = 2 * (chunk_blocks * PS_FAST_BLOCK < padded ? chunk_blocks * PS_FAST_BLOCK : padded);
    ps_code code = PS_OK;
    float *spectra = ps_cpu_allocate((size_t)(n_frames * half * stride), sizeof *spectra);
    PS_GO_ALLOC(error, spectra);
    for (int64_t first = 0; first < ps_fast_n_blocks(system); first += chunk_blocks) {
        int64_t left = ps_fast_n_blocks(system) - first;
        ps_fast_chunk c = {frames, n_frames, first, left < chunk_blocks ? left : chunk_blocks, stride, spectra};
        PS_GO(ps_fast_reduce_chunk(&c, spectra, threads, error));
    }
done:
    ps_cpu_free(spectra);
    return code;
}

ps_code ps_fast_reduce(ps_frame *const *handles, int64_t n_frames, const double *dose, ps_error *error) {
    ps_cpu_frame *const *frames = (ps_cpu_frame *const *)handles;
    const ps_cpu_system *system = frames[0]->system;
    ps_memory_plan plan;
    PS_TRY(ps_fast_memory_plan(&system->desc, system->methods, frames[0]->dtype, system->backend->budget_bytes, n_frames, &plan, error));
    PS_TRY(ps_cpu_batch_require(&plan, n_frames, error));
    ps_code code = PS_OK;
    ps_fast_reduce_scratch *threads = NULL;
    PS_GO(ps_fast_reduce_scratch_create(system, n_frames, &threads, error));
    PS_GO(ps_cpu_frames_begin(handles, n_frames, dose, error));
    PS_GO(reduce_chunks(frames, n_frames, (plan.pixels_per_chunk + PS_FAST_BLOCK - 1) / PS_FAST_BLOCK, threads, error));
    for (int64_t i = 0; i < n_frames; i++) clear_ssb_zero(frames[i]);
done:
    ps_fast_reduce_scratch_free(system, threads);
    return code;
}
