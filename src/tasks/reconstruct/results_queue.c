#include "tasks/reconstruct/results_queue.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/assert.h"
#include "core/log.h"

typedef enum { FREE, TAKEN, ENDED } place_state; /* ended: its end is in the queue, or was when writing failed */

struct ps_results_queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    float **free_images; /* [n_images], n_free of them */
    int64_t n_images, n_free;
    place_state *places; /* [n_frames] */
    int n_frames;
    ps_results_entry *entries; /* [capacity] a ring: an entry for each image and one for each frame is the most there can be */
    int64_t capacity, head, n_entries;
    bool is_closed;
    ps_error failure;
};

ps_code ps_results_create(int64_t n_images, float *const *images, int n_frames, ps_results_queue **created, ps_error *error) {
    PS_ASSERT(n_images > 0 && n_frames > 0);
    ps_code code = PS_OK;
    ps_results_queue *queue = calloc(1, sizeof *queue);
    *created = NULL;
    if (!queue) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate the queue of results");
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->changed, NULL);
    queue->n_images = queue->n_free = n_images;
    queue->n_frames = n_frames;
    queue->capacity = n_images + n_frames;
    PS_GO_ALLOC(error, queue->free_images = malloc((size_t)n_images * sizeof *queue->free_images));
    PS_GO_ALLOC(error, queue->places = calloc((size_t)n_frames, sizeof *queue->places));
    PS_GO_ALLOC(error, queue->entries = malloc((size_t)queue->capacity * sizeof *queue->entries));
    for (int64_t i = 0; i < n_images; i++) queue->free_images[i] = images[n_images - 1 - i];
    *created = queue;
    queue = NULL;
done:
    ps_results_destroy(queue);
    return code;
}

void ps_results_destroy(ps_results_queue *queue) {
    if (!queue) return;
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    free(queue->free_images);
    free(queue->places);
    free(queue->entries);
    free(queue);
}

/* ---- under the mutex ---- */

static ps_code failure_of(const ps_results_queue *queue, ps_error *error) {
    if (queue->failure.code != PS_OK && error && error->code == PS_OK) *error = queue->failure;
    return queue->failure.code;
}

static int find_place(const ps_results_queue *queue) {
    for (int i = 0; i < queue->n_frames; i++)
        if (queue->places[i] == FREE) return i;
    return -1;
}

static void free_image(ps_results_queue *queue, float *image) {
    PS_ASSERT(queue->n_free < queue->n_images);
    queue->free_images[queue->n_free++] = image;
    pthread_cond_broadcast(&queue->changed);
}

static void wait_for_change(ps_results_queue *queue, double *waited_s) {
    double begin_s = ps_seconds();
    pthread_cond_wait(&queue->changed, &queue->mutex);
    if (waited_s) *waited_s += ps_seconds() - begin_s;
}

/* ---- computing ---- */

ps_code ps_results_take_image(ps_results_queue *queue, float **image, double *waited_s, ps_error *error) {
    *image = NULL;
    pthread_mutex_lock(&queue->mutex);
    while (queue->n_free == 0 && queue->failure.code == PS_OK) wait_for_change(queue, waited_s);
    ps_code code = failure_of(queue, error);
    if (code == PS_OK) *image = queue->free_images[--queue->n_free];
    pthread_mutex_unlock(&queue->mutex);
    return code;
}

ps_code ps_results_take_frame(ps_results_queue *queue, int *frame, double *waited_s, ps_error *error) {
    *frame = -1;
    pthread_mutex_lock(&queue->mutex);
    while (find_place(queue) < 0 && queue->failure.code == PS_OK) wait_for_change(queue, waited_s);
    ps_code code = failure_of(queue, error);
    if (code == PS_OK) queue->places[ *frame = find_place(queue)] = TAKEN;
    pthread_mutex_unlock(&queue->mutex);
    return code;
}

void ps_results_return_image(ps_results_queue *queue, float *image) {
    pthread_mutex_lock(&queue->mutex);
    free_image(queue, image);
    pthread_mutex_unlock(&queue->mutex);
}

ps_code ps_results_put(ps_results_queue *queue, const ps_results_entry *entry, ps_error *error) {
    pthread_mutex_lock(&queue->mutex);
    PS_ASSERT(!queue->is_closed && queue->places[entry->frame] == TAKEN);
    ps_code code = failure_of(queue, error);
    if (code == PS_OK) {
        PS_ASSERT(queue->n_entries < queue->capacity);
        queue->entries[(queue->head + queue->n_entries++) % queue->capacity] = *entry;
        if (!entry->image) queue->places[entry->frame] = ENDED;
        pthread_cond_broadcast(&queue->changed);
    } else if (entry->image) {
        free_image(queue, entry->image);
    }
    pthread_mutex_unlock(&queue->mutex);
    return code;
}

ps_code ps_results_wait(ps_results_queue *queue, ps_error *error) {
    pthread_mutex_lock(&queue->mutex);
    while (queue->n_entries > 0 && queue->failure.code == PS_OK) wait_for_change(queue, NULL);
    ps_code code = failure_of(queue, error);
    pthread_mutex_unlock(&queue->mutex);
    return code;
}

ps_code ps_results_check(ps_results_queue *queue, ps_error *error) {
    pthread_mutex_lock(&queue->mutex);
    ps_code code = failure_of(queue, error);
    pthread_mutex_unlock(&queue->mutex);
    return code;
}

void ps_results_close(ps_results_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    queue->is_closed = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

bool ps_results_is_left(ps_results_queue *queue, int frame) {
    PS_ASSERT(frame >= 0 && frame < queue->n_frames);
    pthread_mutex_lock(&queue->mutex);
    bool is_left = queue->places[frame] == ENDED;
    pthread_mutex_unlock(&queue->mutex);
    return is_left;
}

/* ---- writing ---- */

void ps_results_next(ps_results_queue *queue, bool waits, ps_results_entry *entry, bool *found) {
    pthread_mutex_lock(&queue->mutex);
    while (waits && queue->n_entries == 0 && !queue->is_closed && queue->failure.code == PS_OK) wait_for_change(queue, NULL);
    *found = queue->n_entries > 0 && queue->failure.code == PS_OK;
    if (*found) *entry = queue->entries[queue->head];
    pthread_mutex_unlock(&queue->mutex);
}

void ps_results_done(ps_results_queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    PS_ASSERT(queue->n_entries > 0);
    const ps_results_entry entry = queue->entries[queue->head];
    queue->head = (queue->head + 1) % queue->capacity;
    queue->n_entries--;
    if (entry.image)
        free_image(queue, entry.image);
    else
        queue->places[entry.frame] = FREE;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

void ps_results_fail(ps_results_queue *queue, const ps_error *reason) {
    pthread_mutex_lock(&queue->mutex);
    PS_ASSERT(reason->code != PS_OK);
    if (queue->failure.code == PS_OK) queue->failure = *reason;
    for (; queue->n_entries > 0; queue->n_entries--, queue->head = (queue->head + 1) % queue->capacity) {
        const ps_results_entry *entry = &queue->entries[queue->head];
        if (entry->image)
            free_image(queue, entry->image);
        else if (entry->left_alone)
            queue->places[entry->frame] = FREE;
    }
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}
