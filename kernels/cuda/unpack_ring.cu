/* The way of packed patterns to the device: a ring of pinned pieces, each with a buffer and a stream of its own on the device, so that
 * while one piece is filled others are copied and unpacked. Callers fill pieces themselves (ps_frame_unpack_room), or have their bytes
 * copied into one. A piece is free again when what was launched from it is done. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/unpack.cuh"

static const int64_t piece_patterns = 16384, piece_starts = 1 << 18;
static const size_t piece_bytes_wanted = (size_t)8 << 20, largest_pattern = (size_t)16 << 20;

typedef struct {
    uint8_t *h_bytes;
    ps_packed_pattern *h_patterns;
    uint8_t *device; /* one block: bytes, patterns, starts */
    cudaStream_t stream;
    cudaEvent_t done;
    bool is_taken;              /* by a caller, or by a put */
    const ps_cuda_frame *owner; /* for which it is taken */
} piece;

/* Places and sizes inside a piece; the host holds bytes and patterns. */
typedef struct {
    size_t bytes;
    int64_t patterns, starts;
    size_t d_patterns, d_starts, d_bytes; /* the last: in all */
} piece_layout;

struct ps_cuda_ring {
    piece pieces[PS_CUDA_PIECES]; /* [n_pieces] */
    int n_pieces;
    piece_layout layout;
    int next, n_taken, n_frames; /* n_frames: being put */
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

static size_t aligned(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

/* A pattern that does not get shorter fits, unless its blocks are tiny. */
static piece_layout lay_out(const ps_system_desc *desc, ps_dtype dtype) {
    piece_layout l;
    int64_t pixels = desc->detector_rows * desc->detector_columns, positions = ps_cuda_positions(desc);
    size_t pattern = (size_t)pixels * ps_dtype_bytes(dtype), one = pattern + pattern / 64 + 256, all = one * (size_t)positions;
    l.bytes = aligned(one > piece_bytes_wanted ? one : all < piece_bytes_wanted ? all : piece_bytes_wanted);
    l.patterns = positions < piece_patterns ? positions : piece_patterns;
    int64_t most = pixels / 8 + 2, wanted = most * l.patterns;
    l.starts = most > piece_starts ? most : wanted < piece_starts ? wanted : piece_starts;
    l.d_patterns = l.bytes + 256; /* whole words are read behind the last byte */
    l.d_starts = l.d_patterns + aligned((size_t)l.patterns * sizeof(ps_packed_pattern));
    l.d_bytes = l.d_starts + aligned((size_t)l.starts * sizeof(uint32_t));
    return l;
}

/* Larger patterns would make a large ring, and few of them are many blocks. */
static bool takes(ps_packing packing, ps_dtype dtype, int64_t n_pixels) {
    (void)packing;
    return ps_unpack_takes(dtype, n_pixels) && (size_t)n_pixels * ps_dtype_bytes(dtype) <= largest_pattern;
}

size_t ps_cuda_ring_bytes(const ps_system_desc *desc, ps_dtype dtype) {
    if (!takes(PS_PACKED_BSLZ4, dtype, desc->detector_rows * desc->detector_columns)) return 0;
    return PS_CUDA_PIECES * lay_out(desc, dtype).d_bytes;
}

void ps_cuda_ring_release(ps_cuda_backend *backend) {
    struct ps_cuda_ring *ring = backend->ring;
    if (!ring) return;
    for (int i = 0; i < ring->n_pieces; i++) {
        piece *p = &ring->pieces[i];
        if (p->stream) cudaStreamSynchronize(p->stream);
        if (p->stream) cudaStreamDestroy(p->stream);
        if (p->done) cudaEventDestroy(p->done);
        if (p->h_bytes) cudaFreeHost(p->h_bytes);
        if (p->h_patterns) cudaFreeHost(p->h_patterns);
        ps_cuda_free(backend, p->device, ring->layout.d_bytes);
    }
    pthread_mutex_destroy(&ring->lock);
    pthread_cond_destroy(&ring->changed);
    free(ring);
    backend->ring = NULL;
}

static ps_code build_piece(ps_cuda_backend *backend, const piece_layout *l, piece *p, ps_error *error) {
    PS_TRY(PS_CUDA(error, cudaStreamCreateWithFlags(&p->stream, cudaStreamNonBlocking)));
    PS_TRY(PS_CUDA(error, cudaEventCreateWithFlags(&p->done, cudaEventDisableTiming)));
    PS_TRY(PS_CUDA(error, cudaMallocHost((void **)&p->h_bytes, l->bytes)));
    PS_TRY(PS_CUDA(error, cudaMallocHost((void **)&p->h_patterns, (size_t)l->patterns * sizeof *p->h_patterns)));
    PS_TRY(ps_cuda_allocate(backend, l->d_bytes, "a buffer for packed patterns", (void **)&p->device, error));
    return PS_CUDA(error, cudaMemsetAsync(p->device, 0, l->d_bytes, p->stream));
}

/* A batch's spectra may hold the memory that the ring is to have. */
static void make_way(ps_cuda_system *system, size_t bytes) {
    if (ps_cuda_available(system->backend) >= bytes) return;
    pthread_mutex_lock(&system->backend->compute_lock);
    ps_cuda_workspace_release(system);
    pthread_mutex_unlock(&system->backend->compute_lock);
}

/* A ring whose pieces are large enough. */
static ps_code ensure_ring(ps_cuda_frame *frame, ps_error *error) {
    ps_cuda_backend *backend = frame->system->backend;
    piece_layout l = lay_out(&frame->system->desc, frame->dtype);
    const struct ps_cuda_ring *old = backend->ring;
    if (old && old->layout.bytes >= l.bytes && old->layout.patterns >= l.patterns && old->layout.starts >= l.starts) return PS_OK;
    if (old && old->n_frames > 0)
        return PS_FAIL(error, PS_E_ARGUMENT, "cuda: packed patterns of larger frames than those that are being put");
    ps_cuda_ring_release(backend);
    make_way(frame->system, (size_t)backend->n_pieces * l.d_bytes);
    struct ps_cuda_ring *ring = (struct ps_cuda_ring *)calloc(1, sizeof *ring);
    if (!ring) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a ring of pieces");
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->changed, NULL);
    ring->layout = l;
    ring->n_pieces = backend->n_pieces;
    backend->ring = ring;
    ps_code code = PS_OK;
    for (int i = 0; i < ring->n_pieces && code == PS_OK; i++) code = build_piece(backend, &l, &ring->pieces[i], error);
    if (code != PS_OK) ps_cuda_ring_release(backend);
    return code;
}

/* Waits until a piece can be filled; most: how many may be taken already. */
static ps_code take_piece(struct ps_cuda_ring *ring, int most, const ps_cuda_frame *owner, piece **taken, ps_error *error) {
    pthread_mutex_lock(&ring->lock);
    while (ring->n_taken > most) pthread_cond_wait(&ring->changed, &ring->lock);
    while (ring->pieces[ring->next].is_taken) ring->next = (ring->next + 1) % ring->n_pieces;
    piece *p = &ring->pieces[ring->next];
    ring->next = (ring->next + 1) % ring->n_pieces;
    p->is_taken = true;
    p->owner = owner;
    ring->n_taken++;
    pthread_mutex_unlock(&ring->lock);
    *taken = p;
    return PS_CUDA(error, cudaEventSynchronize(p->done));
}

static void give_piece(struct ps_cuda_ring *ring, piece *p) {
    pthread_mutex_lock(&ring->lock);
    ring->n_taken -= p->is_taken;
    p->is_taken = false;
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

/* --- begin --- */

static ps_code send_looks(ps_cuda_frame *frame, const uint8_t *looks, ps_error *error) {
    const ps_system_desc *desc = &frame->system->desc;
    int64_t words = ps_cuda_unpack_words(desc), n = desc->detector_rows * desc->detector_columns;
    uint32_t *bits = (uint32_t *)calloc(2 * (size_t)words, sizeof *bits);
    if (!bits) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for masks of %lld pixels", (long long)n);
    for (int64_t i = 0; looks && i < n; i++)
        for (int which = 0; which < 2; which++) bits[which * words + i / 32] |= (uint32_t)(looks[i] >> which & 1) << i % 32;
    ps_code code = ps_cuda_send(frame->d_looks, bits, 2 * words, error);
    free(bits);
    return code;
}

static ps_code begin_locked(ps_cuda_frame *frame, const ps_unpack_rules *rules, ps_error *error) {
    ps_cuda_system *system = frame->system;
    PS_TRY(ps_cuda_enter(system->backend, error));
    PS_TRY(ensure_ring(frame, error));
    frame->unpack_meaning = ps_unpack_meaning_of(frame->dtype, rules ? rules->limit : 0);
    frame->unpack_tallies = rules && rules->looks;
    frame->unpack_big_endian = rules && rules->big_endian;
    PS_TRY(send_looks(frame, rules ? rules->looks : NULL, error));
    PS_TRY(PS_CUDA(error, cudaMemset(frame->d_refused, 0, (size_t)system->n_positions)));
    PS_TRY(PS_CUDA(error, cudaMemset(frame->d_tally, 0, (size_t)system->n_positions * sizeof(ps_unpack_tally))));
    return PS_CUDA(error, cudaStreamSynchronize(0)); /* the ring's streams do not wait for it by themselves */
}

static ps_code begin(ps_frame *handle, const ps_unpack_rules *rules, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_frame_renew(frame);
    pthread_mutex_lock(&frame->system->backend->upload_lock);
    ps_code code = begin_locked(frame, rules, error);
    if (code == PS_OK) frame->system->backend->ring->n_frames++;
    pthread_mutex_unlock(&frame->system->backend->upload_lock);
    return code;
}

/* --- rooms --- */

static ps_code lend(ps_frame *handle, uint8_t **room, size_t *bytes, ps_error *error) {
    ps_cuda_backend *backend = ((ps_cuda_frame *)handle)->system->backend;
    piece *p = NULL;
    PS_TRY(ps_cuda_enter(backend, error));
    PS_TRY(take_piece(backend->ring, backend->ring->n_pieces - 2, (ps_cuda_frame *)handle, &p, error));
    *room = p->h_bytes;
    *bytes = backend->ring->layout.bytes;
    return PS_OK;
}

/* --- put --- */

static ps_code refuse(ps_cuda_frame *frame, int64_t first, int64_t n, ps_error *error) {
    cudaStream_t stream = frame->system->backend->upload;
    return PS_CUDA(error, cudaMemsetAsync(frame->d_refused + first, 1, (size_t)n, stream));
}

/* Launches what brings the patterns of a piece, whose bytes are on their way, into the frame: as many at once as its table holds. */
static ps_code launch_patterns(ps_cuda_frame *frame, piece *p, const ps_unpack_shape *shape, int64_t first, int64_t n,
                               const ps_packed_pattern *patterns, cudaStream_t stream, ps_error *error) {
    const piece_layout *l = &frame->system->backend->ring->layout;
    int64_t fit = l->starts / ((int64_t)shape->n_blocks + 1), most = fit < l->patterns ? fit : l->patterns;
    ps_cuda_packed packed = {p->device, (ps_packed_pattern *)(p->device + l->d_patterns), (uint32_t *)(p->device + l->d_starts), 0, 0,
                             false};
    for (int64_t done = 0; done < n; done += packed.n_positions) {
        packed.first_position = first + done;
        packed.n_positions = n - done < most ? n - done : most;
        size_t bytes = (size_t)packed.n_positions * sizeof *patterns;
        if (done > 0) PS_TRY(PS_CUDA(error, cudaStreamSynchronize(stream)));
        memcpy(p->h_patterns, patterns + done, bytes);
        PS_TRY(PS_CUDA(error, cudaMemcpyAsync(p->device + l->d_patterns, p->h_patterns, bytes, cudaMemcpyHostToDevice, stream)));
        PS_TRY(ps_cuda_unpack_launch(frame, shape, &packed, stream, error));
    }
    return PS_OK;
}

/* Plain patterns, whole, one right behind the other from the first byte on. */
static bool are_dense(const ps_unpack_shape *shape, int64_t n, const ps_packed_pattern *patterns) {
    uint32_t bytes = shape->n_elements * shape->element_bytes;
    if (shape->packing != PS_PACKED_PLAIN) return false;
    for (int64_t i = 0; i < n; i++)
        if (patterns[i].bytes != bytes || patterns[i].offset != (uint64_t)i * bytes) return false;
    return true;
}

static ps_code submit(ps_cuda_frame *frame, piece *p, const ps_unpack_shape *shape, int64_t first, int64_t n,
                      const ps_packed_pattern *patterns, size_t bytes, ps_error *error) {
    ps_cuda_backend *backend = frame->system->backend;
    bool is_dense = are_dense(shape, n, patterns), is_own = is_dense || shape->packing == PS_PACKED_BSLZ4;
    cudaStream_t stream = is_own ? p->stream : backend->upload; /* the others share the upload buffers */
    PS_TRY(PS_CUDA(error, cudaMemcpyAsync(p->device, p->h_bytes, bytes, cudaMemcpyHostToDevice, stream)));
    if (is_dense) {
        ps_cuda_packed packed = {p->device, NULL, NULL, first, n, true};
        PS_TRY(ps_cuda_unpack_launch(frame, shape, &packed, stream, error));
    } else
        PS_TRY(launch_patterns(frame, p, shape, first, n, patterns, stream, error));
    return PS_CUDA(error, cudaEventRecord(p->done, stream));
}

/* As many patterns from `done` on as fit, one behind the other; returns how many, and *bytes of them. */
static int64_t fill_piece(const ps_packed *packed, int64_t done, const piece_layout *l, piece *p, ps_packed_pattern *patterns,
                          size_t *bytes) {
    int64_t n = 0;
    *bytes = 0;
    for (; done + n < packed->n_positions && n < l->patterns; n++) {
        ps_packed_pattern from = packed->patterns[done + n];
        if (from.bytes > l->bytes - *bytes) break;
        memcpy(p->h_bytes + *bytes, packed->bytes + from.offset, from.bytes);
        patterns[n].offset = (uint32_t)*bytes;
        patterns[n].bytes = from.bytes;
        *bytes += from.bytes;
    }
    return n;
}

/* Bytes of the caller's own: through pieces. A pattern that fits into none is refused. */
static ps_code put_copied(ps_cuda_frame *frame, const ps_packed *packed, const ps_unpack_shape *shape, ps_error *error) {
    struct ps_cuda_ring *ring = frame->system->backend->ring;
    ps_code code = PS_OK;
    ps_packed_pattern *patterns = (ps_packed_pattern *)malloc((size_t)ring->layout.patterns * sizeof *patterns);
    if (!patterns) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a table of patterns");
    for (int64_t done = 0, n; done < packed->n_positions && code == PS_OK; done += n > 0 ? n : 1) {
        piece *p = NULL;
        size_t bytes = 0;
        n = 0;
        code = take_piece(ring, ring->n_pieces - 1, frame, &p, error);
        if (code == PS_OK) n = fill_piece(packed, done, &ring->layout, p, patterns, &bytes);
        if (code == PS_OK && n > 0) code = submit(frame, p, shape, packed->first_position + done, n, patterns, bytes, error);
        if (code == PS_OK && n == 0) code = refuse(frame, packed->first_position + done, 1, error);
        give_piece(ring, p);
    }
    free(patterns);
    return code;
}

static piece *piece_of(struct ps_cuda_ring *ring, const uint8_t *bytes) {
    for (int i = 0; i < ring->n_pieces; i++)
        if (bytes == ring->pieces[i].h_bytes) return &ring->pieces[i];
    return NULL;
}

/* The shape that the first pattern with a sound header has; false: none has, or the kernels do not take it. */
static bool find_shape(const ps_cuda_frame *frame, const ps_packed *packed, ps_unpack_shape *shape) {
    const ps_cuda_system *system = frame->system;
    int64_t n_pixels = system->desc.detector_rows * system->desc.detector_columns;
    for (int64_t i = 0; i < packed->n_positions; i++) {
        const ps_packed_pattern *p = &packed->patterns[i];
        if (!ps_unpack_shape_of(packed->packing, (uint32_t)ps_dtype_bytes(frame->dtype), frame->unpack_big_endian, n_pixels,
                                packed->bytes + p->offset, p->bytes, shape))
            continue;
        return ps_cuda_unpack_fits(system->backend, shape) && (int64_t)shape->n_blocks + 1 <= system->backend->ring->layout.starts;
    }
    return false;
}

static ps_code put_locked(ps_cuda_frame *frame, const ps_packed *packed, piece *p, ps_error *error) {
    ps_unpack_shape shape;
    PS_TRY(ps_cuda_enter(frame->system->backend, error));
    if (!find_shape(frame, packed, &shape)) return refuse(frame, packed->first_position, packed->n_positions, error);
    PS_TRY(ps_cuda_unpack_lists(frame->system, &shape, error));
    if (!p) return put_copied(frame, packed, &shape, error);
    return submit(frame, p, &shape, packed->first_position, packed->n_positions, packed->patterns, packed->n_bytes, error);
}

static ps_code put(ps_frame *handle, const ps_packed *packed, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_backend *backend = frame->system->backend;
    piece *p = piece_of(backend->ring, packed->bytes);
    if (p && packed->n_bytes > backend->ring->layout.bytes)
        return PS_FAIL(error, PS_E_ARGUMENT, "cuda: %zu packed bytes in a room of %zu", packed->n_bytes, backend->ring->layout.bytes);
    ps_code code = PS_OK;
    pthread_mutex_lock(&backend->upload_lock);
    if (packed->n_positions > 0) code = put_locked(frame, packed, p, error);
    pthread_mutex_unlock(&backend->upload_lock);
    if (p) give_piece(backend->ring, p);
    return code;
}

/* --- end --- */

static ps_code end(ps_frame *handle, uint8_t *refused, ps_unpack_tally *tally, ps_error *error) {
    ps_cuda_frame *frame = (ps_cuda_frame *)handle;
    ps_cuda_backend *backend = frame->system->backend;
    int64_t n = frame->system->n_positions;
    ps_code code = ps_cuda_enter(backend, error);
    for (int i = 0; i < backend->ring->n_pieces; i++) {
        if (backend->ring->pieces[i].owner == frame) give_piece(backend->ring, &backend->ring->pieces[i]);
        if (code == PS_OK) code = PS_CUDA(error, cudaStreamSynchronize(backend->ring->pieces[i].stream));
    }
    if (code == PS_OK) code = PS_CUDA(error, cudaStreamSynchronize(backend->upload));
    if (code == PS_OK && refused) code = ps_cuda_fetch(refused, frame->d_refused, n, error);
    if (code == PS_OK && tally) code = ps_cuda_fetch((uint32_t *)tally, frame->d_tally, PS_CUDA_TALLIES * n, error);
    pthread_mutex_lock(&backend->upload_lock);
    backend->ring->n_frames--;
    pthread_mutex_unlock(&backend->upload_lock);
    return code;
}

static_assert(sizeof(ps_unpack_tally) == PS_CUDA_TALLIES * sizeof(uint32_t), "tallies are fetched as they lie on the device");

const ps_unpack_ops ps_cuda_unpack = {takes, begin, lend, put, end};
