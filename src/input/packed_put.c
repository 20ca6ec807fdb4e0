/* Packed patterns from their places into rooms, and from there into a frame. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_read.h"
#include "input/packed_parts.h"

enum { LARGEST_GAP = 1 << 16 };

/* ---- reading ------------------------------------------------------------------------------------------------------------------- */

/* Patterns from begin on, before end, that one read brings: neighbours in one file with small gaps at most; *bytes of it. */
static int64_t end_of_run(const ps_packed_recording *r, int64_t begin, int64_t end, size_t *bytes) {
    int64_t i = begin;
    for (; i < end; i++) {
        const ps_packed_place *p = &r->places[i], *before = p - 1;
        if (i > begin && (p->file != before->file || p->address < before->address + before->bytes ||
                          p->address - before->address - before->bytes > LARGEST_GAP))
            break;
        *bytes = (size_t)(p->address + p->bytes - r->places[begin].address);
    }
    return i;
}

/* The same gaps are counted as ps_packed_read makes. */
int64_t ps_packed_fit(const ps_packed_recording *r, int64_t first, size_t room_bytes) {
    size_t used = 0;
    int64_t i = first;
    for (; i < r->n_known; i++) {
        size_t bytes = 0;
        if (i > first && end_of_run(r, i - 1, i + 1, &bytes) == i + 1)
            bytes -= r->places[i - 1].bytes;
        else
            bytes = r->places[i].bytes;
        if (bytes > room_bytes - used) break;
        used += bytes;
    }
    return i - first;
}

ps_code ps_packed_read(const ps_packed_recording *r, int64_t first, int64_t n, uint8_t *room, ps_packed_pattern *patterns, size_t *used,
                       ps_error *error) {
    *used = 0;
    for (int64_t begin = first, end; begin < first + n; begin = end) {
        size_t bytes = 0;
        end = end_of_run(r, begin, first + n, &bytes);
        const ps_packed_place *from = &r->places[begin];
        PS_TRY(ps_file_read(r->files[from->file].path, r->files[from->file].descriptor, from->address, bytes, room + *used, error));
        for (int64_t i = begin; i < end; i++) {
            size_t offset = *used + (size_t)(r->places[i].address - from->address);
            if (r->check) PS_TRY(r->check(r->format, i, room + offset, error));
            patterns[i - first].offset = (uint32_t)(offset + (size_t)r->lead_bytes);
            patterns[i - first].bytes = r->places[i].bytes - (uint32_t)r->lead_bytes;
        }
        *used += bytes;
    }
    return PS_OK;
}

/* ---- into a frame -------------------------------------------------------------------------------------------------------------- */

/* What the reading threads share. */
typedef struct {
    ps_packed_recording *recording;
    ps_frame *frame;
    const ps_packed_watch *watch;
    const uint8_t *looks;
    uint8_t *notes;
    int64_t next; /* position */
    ps_error failure;
} putting;

typedef struct {
    uint8_t *own; /* where the backend has no rooms */
    ps_packed_pattern *patterns;
    int64_t patterns_room;
} reading_thread;

enum { OWN_ROOM = 8 << 20, MOST_THREADS = 15 /* more do not read faster, and each holds a room */ };

static bool may_go_on(putting *p) {
    if (p->failure.code == PS_OK && p->watch && !p->watch->goes_on(p->watch->context))
        PS_FAIL(&p->failure, PS_E_INTERRUPTED, "reading was stopped");
    return p->failure.code == PS_OK;
}

/* Where the file that holds the next pattern cannot be read this way. */
static void end_search(putting *p) {
    const ps_packed_recording *r = p->recording;
    if (r->failure.code != PS_OK)
        p->failure = r->failure;
    else
        PS_FAIL(&p->failure, PS_E_INPUT, "%s", r->why);
}

/* As many of the known patterns as fit, but not fewer than fit because of what is not known yet: false then. */
static bool take_known(putting *p, size_t room_bytes, int64_t *first, int64_t *n) {
    ps_packed_recording *r = p->recording;
    while (*n == 0 && p->next < r->n_known) {
        int64_t fit = ps_packed_fit(r, p->next, room_bytes);
        if (fit > 0 && p->next + fit == r->n_known && r->n_known < r->n_positions) return false;
        if (fit == 0) p->notes[p->next] = PS_PACKED_TOO_LARGE;
        *first = p->next;
        *n = fit;
        p->next += fit > 0 ? fit : 1;
    }
    return *n > 0 || p->next == r->n_positions;
}

/* The next patterns for a room; until there are some, the thread helps to find them. false: none are left, or somebody failed. */
static bool claim(putting *p, size_t room_bytes, int64_t *first, int64_t *n) {
    ps_packed_recording *r = p->recording;
    *n = 0;
    pthread_mutex_lock(&r->mutex);
    while (may_go_on(p) && !take_known(p, room_bytes, first, n)) {
        if (ps_packed_find_step(r)) continue;
        if (!ps_packed_find_ended(r))
            pthread_cond_wait(&r->changed, &r->mutex);
        else if (r->n_known < r->n_positions)
            end_search(p);
    }
    pthread_mutex_unlock(&r->mutex);
    return *n > 0;
}

static ps_code find_room(putting *p, reading_thread *t, uint8_t **room, size_t *bytes, ps_error *error) {
    PS_TRY(ps_frame_unpack_room(p->frame, room, bytes, error));
    if (*room) return PS_OK;
    if (!t->own) t->own = malloc(OWN_ROOM);
    *room = t->own;
    *bytes = OWN_ROOM;
    return t->own ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for packed patterns");
}

static ps_code grow(reading_thread *t, int64_t n, ps_error *error) {
    if (n <= t->patterns_room) return PS_OK;
    free(t->patterns);
    t->patterns = malloc((size_t)n * sizeof *t->patterns);
    t->patterns_room = t->patterns ? n : 0;
    return t->patterns ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a table of patterns");
}

/* Almost every pattern shows within its first counts that it is not even. */
static bool is_even(const uint8_t *counts, size_t element_bytes, int64_t n_pixels, const uint8_t *looks) {
    const uint8_t *first = NULL;
    for (int64_t i = 0; i < n_pixels; i++) {
        const uint8_t *count = counts + (size_t)i * element_bytes;
        if (!(looks[i] & 2)) continue;
        if (!first) first = count;
        if (memcmp(count, first, element_bytes) != 0) return false;
    }
    return true;
}

static void note_even(putting *p, int64_t first, int64_t n, const uint8_t *room, const ps_packed_pattern *patterns) {
    const ps_packed_recording *r = p->recording;
    for (int64_t i = 0; i < n; i++)
        if (is_even(room + patterns[i].offset, (size_t)(r->pattern_bytes / r->n_pixels), r->n_pixels, p->looks))
            p->notes[first + i] = PS_PACKED_EVEN;
}

/* A room of which nothing came is given back, or others would wait for it. */
static void give_back(putting *p, uint8_t *room) {
    ps_packed nothing = {.packing = p->recording->packing, .bytes = room};
#pragma omp critical(ps_packed_put)
    ps_frame_unpack_put(p->frame, &nothing, NULL);
}

/* One room: read, put. *more false: nothing was left for it. */
static ps_code put_room(putting *p, reading_thread *t, bool *more, ps_error *error) {
    uint8_t *room;
    size_t bytes, used = 0;
    int64_t first, n;
    ps_code code = PS_OK;
    PS_TRY(find_room(p, t, &room, &bytes, error));
    *more = claim(p, bytes, &first, &n);
    if (*more) code = grow(t, n, error);
    if (*more && code == PS_OK) code = ps_packed_read(p->recording, first, n, room, t->patterns, &used, error);
    if (!*more || code != PS_OK) {
        give_back(p, room);
        return code;
    }
    if (p->looks && p->recording->packing == PS_PACKED_PLAIN) note_even(p, first, n, room, t->patterns);
    ps_packed packed = {p->recording->packing, first, n, room, used, t->patterns};
#pragma omp critical(ps_packed_put)
    code = ps_frame_unpack_put(p->frame, &packed, error);
    return code;
}

static void run_thread(putting *p) {
    reading_thread t = {0};
    ps_error own = {0};
    bool more = true;
    while (more && own.code == PS_OK) put_room(p, &t, &more, &own);
    if (own.code != PS_OK) {
        pthread_mutex_lock(&p->recording->mutex);
        if (p->failure.code == PS_OK) p->failure = own;
        pthread_cond_broadcast(&p->recording->changed);
        pthread_mutex_unlock(&p->recording->mutex);
    }
    free(t.own);
    free(t.patterns);
}

ps_code ps_packed_put(ps_packed_recording *recording, ps_frame *frame, int n_threads, const ps_packed_watch *watch, const uint8_t *looks,
                      uint8_t *notes, ps_error *error) {
    putting p = {.recording = recording, .frame = frame, .watch = watch, .looks = looks, .notes = notes};
    int threads = n_threads > 0 ? n_threads : omp_get_max_threads();
    memset(notes, 0, (size_t)recording->n_positions);
#pragma omp parallel num_threads(threads < MOST_THREADS ? threads : MOST_THREADS)
    run_thread(&p);
    if (p.failure.code != PS_OK && error) *error = p.failure;
    return p.failure.code;
}
