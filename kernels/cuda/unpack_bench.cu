/* The time that patterns which lie on the device already take to become counts. */
#include "kernels/cuda/unpack.cuh"

typedef struct {
    void *memory;
    size_t bytes;
    cudaEvent_t begin, end;
} timing;

static ps_code time_launch(ps_cuda_frame *frame, const ps_packed *packed, const ps_unpack_shape *shape, timing *t, double *seconds,
                           ps_error *error) {
    cudaStream_t stream = frame->system->backend->upload;
    ps_cuda_arena arena = {(unsigned char *)t->memory, 0};
    uint8_t *d_bytes = ps_cuda_take<uint8_t>(&arena, (int64_t)packed->n_bytes + 4);
    ps_packed_pattern *d_patterns = ps_cuda_take<ps_packed_pattern>(&arena, packed->n_positions);
    uint32_t *d_starts = ps_cuda_take<uint32_t>(&arena, packed->n_positions * ((int64_t)shape->n_blocks + 1));
    ps_cuda_packed on_device = {d_bytes, d_patterns, d_starts, packed->first_position, packed->n_positions, false};
    float ms = 0.0f;
    PS_TRY(ps_cuda_send(d_bytes, packed->bytes, (int64_t)packed->n_bytes, error));
    PS_TRY(ps_cuda_send(d_patterns, packed->patterns, packed->n_positions, error));
    PS_TRY(PS_CUDA(error, cudaEventRecord(t->begin, stream)));
    PS_TRY(ps_cuda_unpack_launch(frame, shape, &on_device, stream, error));
    PS_TRY(PS_CUDA(error, cudaEventRecord(t->end, stream)));
    PS_TRY(PS_CUDA(error, cudaEventSynchronize(t->end)));
    PS_TRY(PS_CUDA(error, cudaEventElapsedTime(&ms, t->begin, t->end)));
    *seconds = ms * 1e-3;
    return PS_OK;
}

ps_code ps_cuda_bench_unpack(ps_frame *handle, const ps_packed *packed, double *seconds, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_system *system = frame->system;
    const ps_packed_pattern *first = &packed->patterns[0];
    ps_unpack_shape shape;
    timing t = {};
    ps_code code = PS_OK;
    if (!ps_unpack_shape_of(packed->packing, (uint32_t)ps_dtype_bytes(frame->dtype), false, system->base.n_pixels,
                            packed->bytes + first->offset, first->bytes, &shape))
        return PS_FAIL(error, PS_E_ARGUMENT, "the first packed pattern has no sound header");
    t.bytes = packed->n_bytes + 1024 + (size_t)packed->n_positions * (sizeof *first + ((size_t)shape.n_blocks + 1) * sizeof(uint32_t));
    PS_TRY(ps_cuda_enter(system->backend, error));
    PS_TRY(ps_cuda_allocate(system->backend, t.bytes, "packed patterns for measuring", &t.memory, error));
    PS_GO(PS_CUDA(error, cudaEventCreate(&t.begin)));
    PS_GO(PS_CUDA(error, cudaEventCreate(&t.end)));
    PS_GO(ps_cuda_unpack_lists(system, &shape, error));
    PS_GO(time_launch(frame, packed, &shape, &t, seconds, error));
done:
    if (t.begin) cudaEventDestroy(t.begin);
    if (t.end) cudaEventDestroy(t.end);
    ps_cuda_free(system->backend, t.memory, t.bytes);
    return code;
}
