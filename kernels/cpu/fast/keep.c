#include "kernels/cpu/fast/keep.h"

#include "kernels/cpu/memory.h"

void ps_fast_drop_g(ps_cpu_frame *frame) {
    ps_cpu_free(frame->g);
    frame->g = NULL;
}

ps_code ps_fast_keep_g(ps_cpu_frame *frame, ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)frame->system;
    int64_t slots = system->pixels.n_tiles * PS_FAST_TILE;
    if (frame->g) return PS_OK;
    frame->g = ps_fast_g_create(&system->cpu.desc, slots);
    if (!frame->g) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for g of %lld pixels", (long long)system->cpu.desc.n_active);
    ps_code code = ps_fast_spectra(frame, 0, slots, frame->g, error);
    if (code != PS_OK) ps_fast_drop_g(frame);
    return code;
}

ps_code ps_fast_g_of_block(const ps_cpu_frame *frame, int64_t block, const ps_fast_g *spare, const ps_fast_g **g, int64_t *at,
                           ps_error *error) {
    const ps_fast_system *system = (const ps_fast_system *)frame->system;
    *g = frame->g ? frame->g : spare;
    *at = frame->g ? block * PS_FAST_BLOCK : 0;
    return frame->g ? PS_OK : ps_fast_spectra(frame, block * PS_FAST_BLOCK, ps_fast_block_width(system, block), spare, error);
}
