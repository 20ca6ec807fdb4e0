#include "kernels/cpu/fast/g_store.h"

enum { DEFAULT_CHUNK = 2048 /* pixels: more brings no speed */ };

/* Batches of frequencies with each number of aliases, as batches.c forms them. */
static void count_batches(const ps_system_desc *desc, size_t batches[PS_MAX_ALIASES + 1]) {
    size_t counts[PS_MAX_ALIASES + 1] = {0};
    for (int64_t i = 1; i < desc->n_frequencies; i++) counts[desc->frequencies[i].n_aliases]++;
    for (int n = 0; n <= PS_MAX_ALIASES; n++) batches[n] = (counts[n] + PS_FAST_LANES - 1) / PS_FAST_LANES;
}

static size_t padded_pixels(const ps_system_desc *desc) {
    return (size_t)((desc->n_active + PS_FAST_TILE - 1) / PS_FAST_TILE * PS_FAST_TILE);
}

static size_t system_bytes(const ps_system_desc *desc, ps_methods methods) {
    size_t batches[PS_MAX_ALIASES + 1], doubles = 2 * (size_t)desc->n_aliases, all = 0;
    count_batches(desc, batches);
    for (int n = 1; n <= PS_MAX_ALIASES; n++) {
        size_t each = 0;
        if (methods & PS_METHOD_COMPLEX)
            each += (size_t)(PS_FAST_PACKED(2 * n) + ps_fast_basis_doubles(2 * n));
        else if (methods & PS_METHOD_PHASE)
            each += (size_t)PS_FAST_PACKED(n);
        if (methods & PS_METHOD_PHASE) each += (size_t)ps_fast_basis_doubles(n);
        doubles += batches[n] * each;
        all += batches[n];
    }
    size_t tiles = padded_pixels(desc) / PS_FAST_TILE;
    return sizeof(ps_cpu_backend) + ps_cpu_system_bytes(desc) + doubles * sizeof(double) + all * sizeof(ps_fast_batch) +
           padded_pixels(desc) * (3 * sizeof(double) + 2 * sizeof(float)) + tiles * 3 * sizeof(float) + sizeof(ps_fast_system);
}

static size_t prepare_bytes(const ps_system_desc *desc, ps_methods methods) {
    if (!(methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX))) return 0;
    size_t dim = (size_t)ps_cpu_max_aliases(desc, true) * (methods & PS_METHOD_COMPLEX ? 2 : 1), threads = (size_t)ps_cpu_max_threads();
    return threads * (dim * 2 * PS_FAST_BLOCK * sizeof(float) + dim * dim * 2 * PS_FAST_LANES * sizeof(double) + 64) +
           padded_pixels(desc) * sizeof(float);
}

/* Workspace that does not depend on the chunk: the most of what each step needs. Sums of a sweep's strengths are small beside it. */
static size_t fixed_bytes(const ps_system_desc *desc, ps_methods methods) {
    size_t prepare = prepare_bytes(desc, methods),
           solve = methods & (PS_METHOD_PHASE | PS_METHOD_COMPLEX) ? ps_fast_solve_bytes(desc, methods) : 0;
    size_t ssb = methods & PS_METHOD_SSB ? ps_fast_ssb_bytes(desc) : 0, most = prepare > solve ? prepare : solve;
    size_t mf = methods & PS_METHOD_MF ? ps_fast_right_side_image_bytes(desc) : 0;
    if (ssb > most) most = ssb;
    return most > mf ? most : mf;
}

/* Scratch of a reduction but for g, and what g of one block takes. */
static size_t reduce_bytes(const ps_system_desc *desc, int64_t batch) {
    return ps_fast_spectra_bytes(desc) + (size_t)ps_cpu_max_threads() * ps_fast_reduce_bytes(desc, batch);
}

static size_t chunk_bytes(const ps_system_desc *desc, int64_t batch, size_t pixels) {
    size_t padded = padded_pixels(desc);
    return (size_t)batch * (ps_fast_g_bytes(desc, (int64_t)(pixels < padded ? pixels : padded)) + sizeof(void *));
}

/* With g of the whole batch kept by its frames. */
static bool plan_held(const ps_system_desc *desc, size_t kept, size_t scratch, size_t fixed, size_t budget, int64_t batch,
                      ps_memory_plan *plan) {
    size_t held = chunk_bytes(desc, batch, padded_pixels(desc)), work = scratch > fixed ? scratch : fixed;
    if (!desc->keeps_g || kept + held > budget || work > budget - kept - held) return false;
    plan->holds_g = true;
    plan->workspace_bytes = held + work;
    plan->pixels_per_chunk = desc->n_active;
    return true;
}

/* The largest chunk that the budget holds and that brings speed. */
static void plan_chunk(const ps_system_desc *desc, size_t kept, size_t scratch, size_t fixed, size_t budget, int64_t batch,
                       ps_memory_plan *plan) {
    size_t pixels = PS_FAST_BLOCK;
    while (pixels < DEFAULT_CHUNK && pixels < (size_t)desc->n_active &&
           kept + scratch + chunk_bytes(desc, batch, pixels + PS_FAST_BLOCK) <= budget)
        pixels += PS_FAST_BLOCK;
    size_t work = scratch + chunk_bytes(desc, batch, pixels);
    plan->workspace_bytes = work > fixed ? work : fixed;
    plan->pixels_per_chunk = (int64_t)pixels < desc->n_active ? (int64_t)pixels : desc->n_active;
}

ps_code ps_fast_memory_plan(const ps_system_desc *desc, ps_methods methods, ps_dtype dtype, size_t budget_bytes, int64_t max_frames,
                            ps_memory_plan *plan, ps_error *error) {
    size_t system = system_bytes(desc, methods), frame = ps_cpu_frame_bytes(desc, methods, dtype), fixed = fixed_bytes(desc, methods);
    size_t budget = budget_bytes ? budget_bytes : SIZE_MAX, least = 0;
    for (int64_t batch = max_frames > 1 ? max_frames : 1; batch >= 1; batch--) {
        size_t kept = system + (size_t)batch * frame, scratch = reduce_bytes(desc, batch);
        least = scratch + chunk_bytes(desc, batch, PS_FAST_BLOCK);
        least = kept + (least > fixed ? least : fixed);
        if (least > budget) continue;
        *plan = (ps_memory_plan){.system_bytes = system, .frame_bytes = frame, .frames_per_batch = batch};
        plan->g_bytes = ps_fast_g_bytes(desc, (int64_t)padded_pixels(desc));
        if (!plan_held(desc, kept, scratch, fixed, budget, batch, plan)) plan_chunk(desc, kept, scratch, fixed, budget, batch, plan);
        plan->peak_bytes = kept + plan->workspace_bytes;
        return PS_OK;
    }
    return PS_FAIL(error, PS_E_MEMORY, "one frame needs %.3f GiB, the memory budget is %.3f GiB", (double)least / (1 << 30),
                   (double)budget / (1 << 30));
}
