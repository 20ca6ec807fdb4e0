#include "tasks/simulate/record.h"

#include <omp.h>
#include <stdlib.h>

#include "hdf5/bslz4.h"
#include "tasks/simulate/master_writer.h"

/* Buffers of one recording; owned. */
typedef struct {
    void *tiles;          /* one block's tiles; NULL when counts are in memory */
    uint8_t *pixels;      /* [n_threads, n_pixels] one position each */
    uint8_t *streams;     /* [slots, stream_room] */
    size_t *stream_bytes; /* [slots] */
    size_t stream_room;
    int64_t slots;
} buffers;

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void buffers_free(buffers *b) {
    free(b->tiles);
    free(b->pixels);
    free(b->streams);
    free(b->stream_bytes);
}

static ps_code buffers_create(const ps_simulate_setup *setup, buffers *b, ps_error *error) {
    ps_code code = PS_OK;
    const ps_simulate_memory *memory = &setup->memory;
    size_t element = ps_dtype_bytes(setup->job->dtype), row = (size_t)setup->n_pixels * element;
    b->stream_room = ps_bslz4_bound(setup->n_pixels, element);
    b->slots = ps_simulate_slots(setup);
    b->tiles = memory->in_memory ? NULL : malloc((size_t)memory->positions_per_block * row);
    b->pixels = malloc((size_t)setup->n_threads * row);
    b->streams = malloc((size_t)b->slots * b->stream_room);
    b->stream_bytes = malloc((size_t)b->slots * sizeof *b->stream_bytes);
    PS_GO_ALLOC(error, (b->tiles || memory->in_memory) && b->pixels && b->streams && b->stream_bytes);
done:
    return code;
}

/* Encodes positions first ... first + n - 1 of a block into the slots. */
static ps_code encode(const ps_simulate_setup *setup, const ps_transpose *turning, int64_t block, const void *tiles, int64_t first,
                      int64_t n, buffers *b, ps_error *error) {
    ps_code code = PS_OK;
    size_t element = ps_dtype_bytes(setup->job->dtype), row = (size_t)setup->n_pixels * element;
#pragma omp parallel for schedule(static) num_threads(setup->n_threads)
    for (int64_t slot = 0; slot < n; slot++) {
        uint8_t *pixels = b->pixels + (size_t)omp_get_thread_num() * row;
        ps_error own = {0};
        ps_transpose_pick(turning, block, tiles, first + slot, pixels);
        if (ps_bslz4_encode(pixels, setup->n_pixels, element, b->streams + (size_t)slot * b->stream_room, b->stream_room,
                            &b->stream_bytes[slot], &own) == PS_OK)
            continue;
#pragma omp critical(ps_record_encode)
        code = PS_FAIL(error, own.code, "%s", own.text);
    }
    return code;
}

static ps_code record_block(const ps_simulate_setup *setup, ps_transpose *turning, int64_t block, buffers *b, ps_master_writer *writer,
                            ps_error *error) {
    const void *tiles = NULL;
    int64_t per_block = setup->memory.positions_per_block, n_positions = least(per_block, setup->n_positions - block * per_block);
    PS_TRY(ps_transpose_get(turning, block, b->tiles, &tiles, error));
    for (int64_t first = 0; first < n_positions; first += b->slots) {
        int64_t n = least(b->slots, n_positions - first);
        PS_TRY(encode(setup, turning, block, tiles, first, n, b, error));
        for (int64_t slot = 0; slot < n; slot++)
            PS_TRY(ps_master_append(writer, b->streams + (size_t)slot * b->stream_room, b->stream_bytes[slot], error));
    }
    return PS_OK;
}

static ps_code create_writer(const ps_simulate_setup *setup, int64_t frame, const ps_simulate_paths *paths, ps_master_writer **writer,
                             ps_error *error) {
    const ps_job_simulate *job = setup->job;
    const ps_master_spec spec = {.master_path = paths->master,
                                 .scan_rows = job->scan_rows,
                                 .scan_columns = job->scan_columns,
                                 .detector_rows = job->detector_rows,
                                 .detector_columns = job->detector_columns,
                                 .dtype = job->dtype,
                                 .positions_per_file = job->frames_per_file > 0 ? job->frames_per_file : setup->n_positions,
                                 .voltage_V = setup->optics.voltage_V,
                                 .description = "simulated by ptyseries",
                                 .job_text = setup->job_text,
                                 .science = setup->science,
                                 .frame = frame,
                                 .companions = {paths->truth, paths->optics}};
    return ps_master_create(&spec, writer, error);
}

ps_code ps_record(const ps_simulate_setup *setup, int64_t frame, ps_transpose *turning, const ps_simulate_paths *paths,
                  const ps_simulate_watch *watch, ps_error *error) {
    ps_code code = PS_OK;
    ps_master_writer *writer = NULL;
    buffers b = {0};
    int64_t per_block = setup->memory.positions_per_block, n_blocks = (setup->n_positions + per_block - 1) / per_block;
    PS_GO(buffers_create(setup, &b, error));
    PS_GO(create_writer(setup, frame, paths, &writer, error));
    for (int64_t block = 0; block < n_blocks; block++) {
        PS_GO(record_block(setup, turning, block, &b, writer, error));
        PS_GO(watch->tell(watch->context, (double)(block + 1) / (double)n_blocks, error));
    }
    ps_master_writer *whole = writer;
    writer = NULL;
    code = ps_master_finish(whole, error);
done:
    ps_master_abandon(writer);
    buffers_free(&b);
    return code;
}
