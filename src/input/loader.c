#include "input/loader.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/busy.h"
#include "core/log.h"
#include "input/open.h"

enum { MAX_SLOTS = 64 };
static const size_t chunk_bytes_wanted = (size_t)16 << 20;

typedef struct {
    void *counts;
    int64_t first_position, n_positions;
} slot;

struct ps_loader {
    ps_loader_shape shape;
    int64_t positions_per_chunk;
    int n_slots;
    slot slots[MAX_SLOTS];
    int head, n_filled; /* the oldest filled slot, and how many are */

    pthread_t thread;
    int n_threads; /* of OpenMP: what the creating thread has, which a new thread would not take over */
    bool has_thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char *source;                    /* the recording to read; NULL: idle */
    bool reading, cancelled, ending; /* the thread works; it shall drop the recording; it shall end */
    bool all_filled;                 /* every chunk of the recording is in the ring */
    ps_error failure;
    ps_loader_findings found;
    double seconds;

    int32_t *bad; /* [n_bad] pixels that are not looked at */
    int64_t n_bad;
    ps_pattern_tally *tally; /* [n_positions] */
    uint8_t *odd;            /* [n_positions] ps_pattern_kind, what is to be filled; NULL: nothing */
    void *last_good;         /* a pattern, while odd ones are filled */
    bool has_last_good;
};

static size_t position_bytes(const ps_loader_shape *shape) {
    return (size_t)shape->detector_rows * (size_t)shape->detector_columns * ps_dtype_bytes(shape->dtype);
}

ps_code ps_loader_check_shape(const ps_loader_shape *wanted, const ps_reader *reader, ps_error *error) {
    const ps_recording *found = &reader->info;
    if (found->n_positions == wanted->n_positions && found->detector_rows == wanted->detector_rows &&
        found->detector_columns == wanted->detector_columns && found->dtype == wanted->dtype)
        return PS_OK;
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: found %lld positions of %lld x %lld %s, expected %lld of %lld x %lld %s as in the rest of the series", reader->path,
                   (long long)found->n_positions, (long long)found->detector_rows, (long long)found->detector_columns,
                   ps_dtype_name(found->dtype), (long long)wanted->n_positions, (long long)wanted->detector_rows,
                   (long long)wanted->detector_columns, ps_dtype_name(wanted->dtype));
}

/* Waits for an empty slot; NULL when the recording was cancelled. */
static slot *wait_for_slot(ps_loader *loader) {
    slot *empty = NULL;
    pthread_mutex_lock(&loader->mutex);
    while (!loader->cancelled && loader->n_filled == loader->n_slots) pthread_cond_wait(&loader->changed, &loader->mutex);
    if (!loader->cancelled) empty = &loader->slots[(loader->head + loader->n_filled) % loader->n_slots];
    pthread_mutex_unlock(&loader->mutex);
    return empty;
}

static void publish_slot(ps_loader *loader, double seconds) {
    pthread_mutex_lock(&loader->mutex);
    loader->n_filled++;
    loader->seconds += seconds;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->mutex);
}

static int64_t count_pixels(const ps_loader_shape *shape) {
    return shape->detector_rows * shape->detector_columns;
}

/* The first good pattern behind `position`, for one at the beginning that has none before it. */
static ps_code find_good_behind(ps_loader *loader, ps_reader *reader, int64_t position, ps_error *error) {
    while (position < loader->shape.n_positions && loader->odd[position] != PS_PATTERN_GOOD) position++;
    if (position == loader->shape.n_positions) return PS_FAIL(error, PS_E_INPUT, "%s: no pattern holds counts", reader->path);
    loader->has_last_good = true;
    return ps_reader_read(reader, position, 1, loader->last_good, error);
}

/* What is missing in a scan is best stood for by what lies beside it, as everywhere (input/partial.h). */
static ps_code fill_odd(ps_loader *loader, ps_reader *reader, const slot *into, ps_error *error) {
    size_t bytes = position_bytes(&loader->shape);
    uint8_t *pattern = into->counts;
    for (int64_t i = into->first_position; i < into->first_position + into->n_positions; i++, pattern += bytes) {
        if (loader->odd[i] == PS_PATTERN_GOOD) {
            bool is_needed = i + 1 == loader->shape.n_positions || loader->odd[i + 1] != PS_PATTERN_GOOD ||
                             i + 1 == into->first_position + into->n_positions;
            if (is_needed) memcpy(loader->last_good, pattern, bytes);
            loader->has_last_good = true;
            continue;
        }
        if (!loader->has_last_good) PS_TRY(find_good_behind(loader, reader, i, error));
        memcpy(pattern, loader->last_good, bytes);
    }
    return PS_OK;
}

static ps_code read_slot(ps_loader *loader, ps_reader *reader, const slot *into, ps_error *error) {
    PS_TRY(ps_reader_read(reader, into->first_position, into->n_positions, into->counts, error));
    if (loader->odd) PS_TRY(fill_odd(loader, reader, into, error));
    ps_busy_begin(PS_RESOURCE_DECODE);
    ps_patterns_tally(loader->shape.dtype, into->counts, into->n_positions, count_pixels(&loader->shape), loader->bad, loader->n_bad,
                      loader->tally + into->first_position);
    ps_busy_end(PS_RESOURCE_DECODE);
    return PS_OK;
}

static void note_findings(ps_loader *loader, const ps_reader *reader) {
    pthread_mutex_lock(&loader->mutex);
    loader->found = (ps_loader_findings){.invalid = ps_reader_invalid(reader),
                                         .n_missing = reader->info.n_missing,
                                         .n_pixels = count_pixels(&loader->shape) - loader->n_bad};
    pthread_mutex_unlock(&loader->mutex);
}

static ps_code read_recording(ps_loader *loader, ps_error *error) {
    ps_reader *reader = NULL;
    double begin_s = ps_seconds();
    ps_busy_begin(PS_RESOURCE_FILE);
    ps_code code = ps_reader_open(loader->source, &loader->shape.options, &reader, error);
    ps_busy_end(PS_RESOURCE_FILE);
    if (code == PS_OK) code = ps_loader_check_shape(&loader->shape, reader, error);
    for (int64_t position = 0; code == PS_OK && position < loader->shape.n_positions;) {
        slot *into = wait_for_slot(loader);
        if (!into) break;
        int64_t left = loader->shape.n_positions - position;
        into->first_position = position;
        into->n_positions = left < loader->positions_per_chunk ? left : loader->positions_per_chunk;
        if (position > 0) begin_s = ps_seconds(); /* opening counts as reading, waiting does not */
        code = read_slot(loader, reader, into, error);
        if (code == PS_OK) publish_slot(loader, ps_seconds() - begin_s);
        position += into->n_positions;
    }
    if (reader) note_findings(loader, reader);
    ps_reader_close(reader);
    return code;
}

static void *loader_main(void *argument) {
    ps_loader *loader = argument;
    omp_set_num_threads(loader->n_threads);
    pthread_mutex_lock(&loader->mutex);
    for (;;) {
        while (!loader->ending && !loader->reading) pthread_cond_wait(&loader->changed, &loader->mutex);
        if (loader->ending) break;
        pthread_mutex_unlock(&loader->mutex);
        ps_error failure = {0};
        read_recording(loader, &failure);
        pthread_mutex_lock(&loader->mutex);
        loader->failure = failure;
        loader->all_filled = true;
        loader->reading = false;
        pthread_cond_broadcast(&loader->changed);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

typedef struct {
    int64_t positions_per_chunk;
    int n_slots;
    size_t chunk_bytes;
} ring_layout;

static ring_layout lay_out_ring(const ps_loader_shape *shape, size_t ring_bytes) {
    ring_layout ring;
    size_t each = position_bytes(shape);
    size_t chunk = chunk_bytes_wanted < ring_bytes / 2 ? chunk_bytes_wanted : ring_bytes / 2;
    ring.positions_per_chunk = chunk > each ? (int64_t)(chunk / each) : 1;
    if (ring.positions_per_chunk > shape->n_positions) ring.positions_per_chunk = shape->n_positions;
    ring.chunk_bytes = (size_t)ring.positions_per_chunk * each;
    size_t n_slots = ring_bytes / ring.chunk_bytes;
    int64_t n_chunks = (shape->n_positions + ring.positions_per_chunk - 1) / ring.positions_per_chunk;
    if (n_slots > (size_t)n_chunks) n_slots = (size_t)n_chunks;
    ring.n_slots = n_slots > MAX_SLOTS ? MAX_SLOTS : n_slots < 2 ? 2 : (int)n_slots;
    return ring;
}

size_t ps_loader_bytes(const ps_loader_shape *shape, size_t ring_bytes) {
    ring_layout ring = lay_out_ring(shape, ring_bytes);
    return (size_t)ring.n_slots * ring.chunk_bytes;
}

static ps_code allocate_ring(ps_loader *loader, size_t ring_bytes, ps_error *error) {
    ring_layout ring = lay_out_ring(&loader->shape, ring_bytes);
    loader->positions_per_chunk = ring.positions_per_chunk;
    loader->n_slots = ring.n_slots;
    for (int i = 0; i < loader->n_slots; i++)
        if (!(loader->slots[i].counts = malloc(ring.chunk_bytes)))
            return PS_FAIL(error, PS_E_MEMORY, "cannot allocate %zu bytes to read recordings into", ring.chunk_bytes);
    return PS_OK;
}

ps_code ps_loader_create(const ps_loader_shape *shape, size_t ring_bytes, ps_loader **created, ps_error *error) {
    ps_code code = PS_OK;
    *created = NULL;
    ps_loader *loader = calloc(1, sizeof *loader);
    if (!loader) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate the loader");
    loader->shape = *shape;
    loader->n_threads = omp_get_max_threads();
    pthread_mutex_init(&loader->mutex, NULL);
    pthread_cond_init(&loader->changed, NULL);
    PS_GO(allocate_ring(loader, ring_bytes, error));
    PS_GO_ALLOC(error, loader->tally = calloc((size_t)shape->n_positions, sizeof *loader->tally));
    if (pthread_create(&loader->thread, NULL, loader_main, loader) != 0)
        PS_GO(PS_FAIL(error, PS_E_INTERNAL, "cannot start the reading thread"));
    loader->has_thread = true;
    *created = loader;
    loader = NULL;
done:
    ps_loader_destroy(loader);
    return code;
}

void ps_loader_destroy(ps_loader *loader) {
    if (!loader) return;
    if (loader->has_thread) {
        ps_loader_cancel(loader);
        pthread_mutex_lock(&loader->mutex);
        loader->ending = true;
        pthread_cond_broadcast(&loader->changed);
        pthread_mutex_unlock(&loader->mutex);
        pthread_join(loader->thread, NULL);
    }
    for (int i = 0; i < loader->n_slots; i++) free(loader->slots[i].counts);
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->mutex);
    free(loader->source);
    free(loader->bad);
    free(loader->tally);
    free(loader->odd);
    free(loader->last_good);
    free(loader);
}

ps_code ps_loader_ignore(ps_loader *loader, const uint8_t *bad, ps_error *error) {
    int64_t n_pixels = count_pixels(&loader->shape), n_bad = 0;
    for (int64_t i = 0; bad && i < n_pixels; i++) n_bad += bad[i] != 0;
    int32_t *list = malloc((size_t)(n_bad + 1) * sizeof *list);
    if (!list) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate a list of bad pixels");
    n_bad = 0;
    for (int64_t i = 0; bad && i < n_pixels; i++)
        if (bad[i]) list[n_bad++] = (int32_t)i;
    free(loader->bad);
    loader->bad = list;
    loader->n_bad = n_bad;
    return PS_OK;
}

ps_code ps_loader_begin(ps_loader *loader, const char *source, ps_error *error) {
    return ps_loader_begin_filled(loader, source, NULL, error);
}

/* The thread is idle, so that what it reads from can be changed. */
static ps_code keep_odd(ps_loader *loader, const uint8_t *odd, ps_error *error) {
    size_t n = (size_t)loader->shape.n_positions;
    free(loader->odd);
    loader->odd = NULL;
    loader->has_last_good = false;
    if (!odd) return PS_OK;
    if (!loader->last_good) loader->last_good = malloc(position_bytes(&loader->shape));
    loader->odd = malloc(n);
    if (!loader->odd || !loader->last_good) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to fill patterns");
    memcpy(loader->odd, odd, n);
    return PS_OK;
}

ps_code ps_loader_begin_filled(ps_loader *loader, const char *source, const uint8_t *odd, ps_error *error) {
    char *copy = strdup(source);
    if (!copy) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    ps_loader_cancel(loader);
    ps_code code = keep_odd(loader, odd, error);
    if (code != PS_OK) {
        free(copy);
        return code;
    }
    pthread_mutex_lock(&loader->mutex);
    free(loader->source);
    loader->source = copy;
    loader->head = loader->n_filled = 0;
    loader->all_filled = loader->cancelled = false;
    loader->seconds = 0;
    loader->found = (ps_loader_findings){0};
    ps_error_clear(&loader->failure);
    loader->reading = true;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->mutex);
    return PS_OK;
}

ps_code ps_loader_next(ps_loader *loader, ps_loader_chunk *chunk, bool *end, ps_error *error) {
    ps_code code = PS_OK;
    *chunk = (ps_loader_chunk){0};
    *end = false;
    pthread_mutex_lock(&loader->mutex);
    while (loader->n_filled == 0 && !loader->all_filled) pthread_cond_wait(&loader->changed, &loader->mutex);
    if (loader->n_filled > 0) {
        const slot *filled = &loader->slots[loader->head];
        *chunk = (ps_loader_chunk){filled->first_position, filled->n_positions, filled->counts};
    } else {
        code = loader->failure.code;
        if (code != PS_OK && error && error->code == PS_OK) *error = loader->failure;
        *end = code == PS_OK;
    }
    pthread_mutex_unlock(&loader->mutex);
    return code;
}

void ps_loader_release(ps_loader *loader) {
    pthread_mutex_lock(&loader->mutex);
    loader->head = (loader->head + 1) % loader->n_slots;
    loader->n_filled--;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->mutex);
}

void ps_loader_cancel(ps_loader *loader) {
    pthread_mutex_lock(&loader->mutex);
    loader->cancelled = true;
    pthread_cond_broadcast(&loader->changed);
    while (loader->reading) pthread_cond_wait(&loader->changed, &loader->mutex);
    loader->n_filled = 0;
    pthread_mutex_unlock(&loader->mutex);
}

ps_loader_findings ps_loader_found(ps_loader *loader) {
    pthread_mutex_lock(&loader->mutex);
    ps_loader_findings found = loader->found;
    pthread_mutex_unlock(&loader->mutex);
    return found;
}

const ps_pattern_tally *ps_loader_tally(const ps_loader *loader) {
    return loader->tally;
}

double ps_loader_seconds(ps_loader *loader) {
    pthread_mutex_lock(&loader->mutex);
    double seconds = loader->seconds;
    pthread_mutex_unlock(&loader->mutex);
    return seconds;
}
