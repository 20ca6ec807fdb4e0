/* b, data norm and the sums of section 6 for a batch of frames: one evaluation of the transfer serves all of them. Pixels go through in
 * chunks of whole blocks (reduce_chunk.c). */
#include "kernels/cpu/fast/keep.h"
#include "kernels/cpu/fast/reduce_chunk.h"
#include "kernels/cpu/memory.h"

/* The image's zero frequency is the mean of all pixels' g(0, k), and kept apart (ssb.c). */
static void clear_ssb_zero(ps_cpu_frame *frame) {
    int64_t alias = ps_cpu_zero_alias(&frame->system->desc);
    if (frame->ssb && alias >= 0) frame->ssb[alias] = 0.0;
}

/* From g that the frames keep. */
static ps_code reduce_kept(ps_cpu_frame *const *frames, int64_t n_frames, ps_fast_g **g, ps_fast_reduce_scratch *threads, ps_error *error) {
    for (int64_t i = 0; i < n_frames; i++) {
        PS_TRY(ps_fast_keep_g(frames[i], error));
        g[i] = frames[i]->g;
    }
    const ps_fast_chunk whole = {frames, n_frames, 0, ps_fast_n_blocks((const ps_fast_system *)frames[0]->system), g};
    ps_fast_reduce_chunk(&whole, threads);
    return PS_OK;
}

/* g: [n_frames] zeroed; theirs for as long as a chunk lasts. */
static ps_code reduce_chunks(ps_cpu_frame *const *frames, int64_t n_frames, int64_t chunk_blocks, ps_fast_g **g,
                             ps_fast_reduce_scratch *threads, ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)frames[0]->system;
    int64_t n_blocks = ps_fast_n_blocks(system), padded = system->pixels.n_tiles * PS_FAST_TILE;
    int64_t slots = chunk_blocks * PS_FAST_BLOCK < padded ? chunk_blocks * PS_FAST_BLOCK : padded;
    ps_code code = PS_OK;
    for (int64_t i = 0; i < n_frames; i++) PS_GO_ALLOC(error, g[i] = ps_fast_g_create(&system->cpu.desc, slots));
    for (int64_t first = 0; first < n_blocks; first += chunk_blocks) {
        int64_t begin = first * PS_FAST_BLOCK, n = padded - begin < slots ? padded - begin : slots;
        const ps_fast_chunk c = {frames, n_frames, first, n_blocks - first < chunk_blocks ? n_blocks - first : chunk_blocks, g};
        for (int64_t i = 0; i < n_frames; i++) PS_GO(ps_fast_spectra(frames[i], begin, n, g[i], error));
        ps_fast_reduce_chunk(&c, threads);
    }
done:
    for (int64_t i = 0; i < n_frames; i++) ps_cpu_free(g[i]);
    return code;
}

static ps_code reduce_frames(ps_cpu_frame *const *frames, int64_t n_frames, const ps_memory_plan *plan, ps_fast_reduce_scratch *threads,
                             ps_error *error) {
    ps_fast_g **g = ps_cpu_allocate_zero((size_t)n_frames, sizeof *g);
    if (!g) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %lld frames", (long long)n_frames);
    ps_code code = plan->holds_g
                       ? reduce_kept(frames, n_frames, g, threads, error)
                       : reduce_chunks(frames, n_frames, (plan->pixels_per_chunk + PS_FAST_BLOCK - 1) / PS_FAST_BLOCK, g, threads, error);
    ps_cpu_free(g);
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
    for (int64_t i = 0; i < n_frames; i++)
        if (!plan.holds_g || frames[i]->dose != dose[i]) ps_fast_drop_g(frames[i]);
    PS_GO(ps_cpu_frames_begin(handles, n_frames, dose, error));
    PS_GO(reduce_frames(frames, n_frames, &plan, threads, error));
    for (int64_t i = 0; i < n_frames; i++) clear_ssb_zero(frames[i]);
done:
    ps_fast_reduce_scratch_free(system, threads);
    return code;
}
