/* b, data norm and the SSB sums of a batch of frames, physics sections 5 and 6: the frames' spectra are made, in chunks of whole segments
 * when the budget does not hold them whole, and reduced by reduce.cu and reduce_exact.cu; the phase method's projection follows. */
#include <assert.h>

#include "kernels/cuda/reduce_kernels.cuh"

/* How many of `left` frames the next launch takes: there are kernels for 1, 2 and 4. */
static int frames_together(int64_t left) {
    return left >= PS_REDUCE_FRAMES ? PS_REDUCE_FRAMES : left >= 2 ? 2 : 1;
}

static ps_code reduce_chunk(ps_cuda_frame *const *frames, int64_t n_frames, int64_t first_band, int64_t end_band, int64_t frame_tiles,
                            ps_error *error) {
    const ps_cuda_system *system = frames[0]->system;
    ps_reduce_arguments args = {};
    args.pixels = ps_cuda_system_pixels(system);
    args.aliases = ps_cuda_system_aliases(system);
    args.lines = ps_g_lines_of(system);
    args.exact = system->d_exact;
    args.n_exact = system->n_exact;
    args.first_band = (int32_t)first_band;
    args.end_band = (int32_t)end_band;
    args.ssb_scale = 1.0 / (double)system->desc.n_active;
    for (int64_t done = 0; done < n_frames;) {
        int together = frames_together(n_frames - done);
        for (int i = 0; i < together; i++, done++) {
            args.g[i] = ps_g_frame_lines_of(ps_cuda_g_from(system, system->workspace.g, done * frame_tiles));
            args.inverse_dose[i] = 1.0 / frames[done]->dose;
            args.right_amplitude[i] = frames[done]->d_right_amplitude;
            args.right_phase[i] = frames[done]->d_right_phase;
            args.ssb[i] = frames[done]->d_ssb;
            args.data_norm[i] = frames[done]->d_data_norm;
            if (!(system->methods & PS_METHOD_COMPLEX)) args.right_amplitude[i] = NULL;
        }
        PS_TRY(ps_reduce_launch(system, together, &args, error));
    }
    return PS_OK;
}

/* --- a batch --- */

static ps_code clear_sums(ps_cuda_frame *frame, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    size_t bytes = (size_t)system->desc.n_aliases * sizeof(double2);
    cudaStream_t stream = system->backend->compute;
    if (system->methods & PS_METHODS_RIGHT_SIDE) PS_TRY(PS_CUDA(error, cudaMemsetAsync(frame->d_right_phase, 0, bytes, stream)));
    if (system->methods & PS_METHOD_COMPLEX) PS_TRY(PS_CUDA(error, cudaMemsetAsync(frame->d_right_amplitude, 0, bytes, stream)));
    if (system->methods & PS_METHOD_SSB) PS_TRY(PS_CUDA(error, cudaMemsetAsync(frame->d_ssb, 0, bytes, stream)));
    return PS_CUDA(error, cudaMemsetAsync(frame->d_data_norm, 0, (size_t)system->desc.n_frequencies * sizeof(double), stream));
}

/* Section 6: the image's zero frequency is the mean of all pixels' g(0, k) = mean counts / dose. */
static ps_code set_ssb_zero(ps_cuda_frame *frame, ps_error *error) {
    const ps_cuda_system *system = frame->system;
    if (!(system->methods & PS_METHOD_SSB) || system->zero_alias < 0) return PS_OK;
    double2 value = make_double2(0.0, 0.0);
    for (int64_t i = 0; i < system->desc.n_active; i++) value.x += frame->mean[i] / frame->dose / (double)system->desc.n_active;
    return ps_cuda_send(frame->d_ssb + system->zero_alias, &value, 1, error);
}

/* The spectra of one frame's chunk, unless its complete spectra are there from an earlier call. */
static ps_code fill_store(ps_cuda_frame *frame, int64_t place, int64_t first_tile, int64_t n_tiles, int64_t frame_tiles, ps_error *error) {
    ps_cuda_workspace *workspace = &frame->system->workspace;
    bool whole = n_tiles == frame->system->layout.n_tiles;
    if (whole && workspace->owner[place] == frame->serial) return PS_OK;
    if (place < workspace->n_owners) workspace->owner[place] = 0; /* what fails half way leaves nobody's spectra there */
    PS_TRY(ps_cuda_spectra(frame, first_tile, n_tiles, ps_cuda_g_from(frame->system, workspace->g, place * frame_tiles), error));
    if (whole) workspace->owner[place] = frame->serial;
    return PS_OK;
}

static ps_code reduce_batch(ps_cuda_frame *const *frames, int64_t n_frames, ps_error *error) {
    ps_cuda_system *system = frames[0]->system;
    const ps_cuda_layout *layout = &system->layout;
    int64_t tiles;
    PS_TRY(ps_cuda_workspace_ensure(system, n_frames, &tiles, error));
    for (int64_t i = 0; i < system->workspace.n_owners && tiles < layout->n_tiles; i++) system->workspace.owner[i] = 0;
    for (int64_t i = 0; i < n_frames; i++) PS_TRY(clear_sums(frames[i], error));
    for (int64_t band = 0, end; band < layout->n_bands; band = end) {
        end = ps_cuda_chunk_end(layout, band, tiles);
        int64_t first = layout->bands[band].first_tile, last = layout->bands[end - 1].first_tile + layout->bands[end - 1].n_tiles;
        for (int64_t i = 0; i < n_frames; i++) PS_TRY(fill_store(frames[i], i, first, last - first, tiles, error));
        PS_TRY(reduce_chunk(frames, n_frames, band, end, tiles, error));
    }
    for (int64_t i = 0; i < n_frames; i++)
        if (system->methods & PS_METHOD_PHASE) PS_TRY(ps_cuda_project(frames[i], error));
    PS_TRY(PS_CUDA(error, cudaStreamSynchronize(system->backend->compute)));
    for (int64_t i = 0; i < n_frames; i++) PS_TRY(set_ssb_zero(frames[i], error));
    return PS_OK;
}

static ps_code reduce(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    PS_TRY(ps_cuda_enter(((ps_cuda_frame *)frames[0])->system->backend, error));
    for (int64_t i = 0; i < n_frames; i++) PS_TRY(ps_cuda_frame_ensure_means((ps_cuda_frame *)frames[i], error));
    for (int64_t i = 0; i < n_frames; i++) ((ps_cuda_frame *)frames[i])->dose = dose[i];
    return reduce_batch((ps_cuda_frame *const *)frames, n_frames, error);
}

ps_code ps_cuda_frame_reduce(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    assert(n_frames > 0);
    ps_cuda_backend *backend = ((ps_cuda_frame *)frames[0])->system->backend;
    pthread_mutex_lock(&backend->compute_lock);
    ps_code code = reduce(frames, n_frames, dose, error);
    pthread_mutex_unlock(&backend->compute_lock);
    return code;
}
