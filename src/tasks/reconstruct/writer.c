#include "tasks/reconstruct/writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/watchdog.h"
#include "core/assert.h"
#include "tasks/reconstruct/blame.h"
#include "tasks/reconstruct/odd_note.h"
#include "tasks/reconstruct/results_queue.h"
#include "tasks/series.h"

/* Where the images of one method of a frame go. */
typedef struct {
    ps_image_sink sink;
    ps_writer *writer;
    struct slot *slot;
    int item;
} method_sink;

/* A frame on its way. */
typedef struct slot {
    ps_writer_frame frame;
    int place; /* in the queue */
    method_sink sinks[PS_MOST_METHODS];
    ps_method_results numbers;
    char note[PS_ODD_NOTE];
    ps_frame_parts *parts;
    ps_error failure; /* it is to be failed, with this reason */
} slot;

struct ps_writer {
    const ps_work *work;
    ps_progress *progress;
    pthread_mutex_t progress_mutex;
    ps_results_queue *queue;
    int n_slots;
    slot *slots; /* [n_slots] */
    pthread_t thread;
    bool has_thread;
    atomic_long writing;     /* the frame that an entry was last taken of; -1: none yet */
    ps_work_summary summary; /* the writing thread's until it is gone */
};

/* ---- writing ------------------------------------------------------------------------------------------------------------------------ */

void ps_writer_show(ps_writer *writer, int64_t n_completed) {
    pthread_mutex_lock(&writer->progress_mutex);
    ps_progress_update(writer->progress, n_completed, NULL);
    pthread_mutex_unlock(&writer->progress_mutex);
}

/* The frame is done or failed, and counted. */
static ps_code complete(ps_writer *writer, const slot *s, ps_error *error) {
    int64_t n_completed;
    PS_TRY(ps_attempts_end(writer->work->attempts, s->frame.frame, error));
    PS_TRY(ps_queue_complete(writer->work->queue, &n_completed, error));
    ps_writer_show(writer, n_completed);
    return PS_OK;
}

static ps_code fail_frame(ps_writer *writer, slot *s, ps_error *error) {
    ps_output *output = writer->work->output;
    ps_code reason = s->failure.code;
    ps_series_log_failure(writer->work->run, s->frame.frame, s->failure.text);
    PS_TRY(ps_output_write_seen(output, s->frame.frame, &s->frame.seen, error));
    PS_TRY(ps_output_fail_frame(output, s->frame.frame, s->failure.text, error));
    writer->summary.n_failed++;
    writer->summary.n_unread += reason == PS_E_INPUT || reason == PS_E_IO || reason == PS_E_HDF5;
    return complete(writer, s, error);
}

static ps_code finish_frame(ps_writer *writer, slot *s, ps_error *error) {
    ps_output *output = writer->work->output;
    PS_TRY(ps_output_write_seen(output, s->frame.frame, &s->frame.seen, error));
    ps_code code = ps_output_finish_frame(output, s->parts, &s->frame.result, &s->failure);
    if (code != PS_OK && ps_output_blames_frame(code)) return fail_frame(writer, s, error);
    if (code != PS_OK) return PS_FAIL(error, code, "%s", s->failure.text);
    writer->summary.n_done++;
    return complete(writer, s, error);
}

/* An image of a frame that is to be failed has nowhere to go, but its memory is free only when it has arrived. */
static ps_code write_image(ps_writer *writer, slot *s, const ps_results_entry *entry, ps_error *error) {
    const ps_image_place place = {
        .method = writer->work->job->methods.items[entry->item].method, .result = entry->result, .part = entry->part};
    ps_error reason = {0};
    PS_TRY(ps_backend_host_wait(writer->work->backend, entry->image, error));
    if (s->failure.code != PS_OK) return PS_OK;
    ps_code code = ps_output_write_image(writer->work->output, s->parts, &place, entry->image, &reason);
    if (code == PS_OK) return PS_OK;
    *(ps_output_blames_frame(code) ? &s->failure : error) = reason;
    return ps_output_blames_frame(code) ? PS_OK : code;
}

static ps_code write_entry(ps_writer *writer, const ps_results_entry *entry, ps_error *error) {
    slot *s = &writer->slots[entry->frame];
    atomic_store(&writer->writing, (long)s->frame.frame);
    ps_watchdog_beat("write", (long)s->frame.frame);
    if (entry->image) return write_image(writer, s, entry, error);
    if (entry->left_alone) return PS_OK;
    return s->failure.code != PS_OK ? fail_frame(writer, s, error) : finish_frame(writer, s, error);
}

/* Until the queue is closed and empty, or, where who calls is not to wait, empty. */
static void write_entries(ps_writer *writer, bool waits) {
    for (;;) {
        ps_results_entry entry;
        ps_error reason = {0};
        bool found;
        ps_results_next(writer->queue, waits, &entry, &found);
        if (!found) return;
        if (write_entry(writer, &entry, &reason) == PS_OK)
            ps_results_done(writer->queue);
        else
            ps_results_fail(writer->queue, &reason);
    }
}

static void *writer_main(void *argument) {
    write_entries(argument, true);
    return NULL;
}

/* ---- from the computing thread --------------------------------------------------------------------------------------------------------
 */

static ps_code put(ps_writer *writer, const ps_results_entry *entry, ps_error *error) {
    PS_TRY(ps_results_put(writer->queue, entry, error));
    if (writer->has_thread) return PS_OK;
    write_entries(writer, false);
    return ps_results_check(writer->queue, error);
}

/* While who computes waits, it is the writing that makes no progress. */
static ps_code sink_room(ps_image_sink *sink, int result, int64_t strength, float **image, ps_error *error) {
    method_sink *to = (method_sink *)sink;
    (void)result;
    (void)strength;
    ps_watchdog_beat("write", atomic_load(&to->writer->writing));
    PS_TRY(ps_results_take_image(to->writer->queue, image, &to->slot->frame.waited_s, error));
    ps_watchdog_beat("solve", (long)to->slot->frame.frame);
    return PS_OK;
}

static ps_code sink_send(ps_image_sink *sink, int result, int64_t strength, float *image, ps_error *error) {
    method_sink *to = (method_sink *)sink;
    const ps_results_entry entry = {.frame = to->slot->place, .image = image, .item = to->item, .result = result, .part = strength};
    return put(to->writer, &entry, error);
}

static void sink_drop(ps_image_sink *sink, float *image) {
    ps_results_return_image(((method_sink *)sink)->writer->queue, image);
}

ps_code ps_writer_begin(ps_writer *writer, int64_t work_item, int64_t frame, ps_writer_frame **begun, ps_error *error) {
    int place;
    double waited_s = 0;
    *begun = NULL;
    ps_watchdog_beat("write", atomic_load(&writer->writing));
    PS_TRY(ps_results_take_frame(writer->queue, &place, &waited_s, error));
    slot *s = &writer->slots[place];
    s->frame = (ps_writer_frame){.work_item = work_item, .frame = frame, .result.methods = &s->numbers, .waited_s = waited_s};
    for (int i = 0; i < PS_MOST_METHODS; i++) s->frame.sinks[i] = &s->sinks[i].sink;
    s->failure = (ps_error){0};
    ps_frame_parts_begin(s->parts, frame);
    *begun = &s->frame;
    return PS_OK;
}

static ps_code end_frame(ps_writer *writer, ps_writer_frame *frame, bool left_alone, ps_error *error) {
    const ps_results_entry entry = {.frame = ((slot *)frame)->place, .left_alone = left_alone};
    return put(writer, &entry, error);
}

ps_code ps_writer_finish(ps_writer *writer, ps_writer_frame *frame, ps_error *error) {
    slot *s = (slot *)frame;
    snprintf(s->note, sizeof s->note, "%s", frame->result.note ? frame->result.note : "");
    frame->result.note = frame->result.note ? s->note : NULL;
    return end_frame(writer, frame, false, error);
}

ps_code ps_writer_fail(ps_writer *writer, ps_writer_frame *frame, const ps_error *reason, ps_error *error) {
    ((slot *)frame)->failure = *reason;
    return end_frame(writer, frame, false, error);
}

void ps_writer_leave(ps_writer *writer, ps_writer_frame *frame) {
    end_frame(writer, frame, true, NULL);
}

ps_code ps_writer_wait(ps_writer *writer, ps_error *error) {
    return ps_results_wait(writer->queue, error);
}

ps_code ps_writer_check(const ps_writer *writer, ps_error *error) {
    return ps_results_check(writer->queue, error);
}

/* ---- beginning and end ----------------------------------------------------------------------------------------------------------------
 */

static ps_code create_slot(ps_writer *writer, int place, ps_error *error) {
    const ps_method_set *methods = &writer->work->job->methods;
    slot *s = &writer->slots[place];
    s->place = place;
    for (int i = 0; i < methods->n; i++)
        s->sinks[i] =
            (method_sink){.sink = {.n_rooms = (writer->work->n_images + 1) / 2, .room = sink_room, .send = sink_send, .drop = sink_drop},
                          .writer = writer,
                          .slot = s,
                          .item = i};
    PS_TRY(ps_method_results_create_numbers(methods, &s->numbers, error));
    return ps_frame_parts_create(writer->work->output, &s->parts, error);
}

static ps_code start_thread(ps_writer *writer, ps_error *error) {
    if (!writer->work->cluster->threads) return PS_OK;
    writer->has_thread = pthread_create(&writer->thread, NULL, writer_main, writer) == 0;
    return writer->has_thread ? PS_OK : PS_FAIL(error, PS_E_INTERNAL, "cannot start the writing thread");
}

ps_code ps_writer_create(const ps_work *work, ps_progress *progress, ps_writer **created, ps_error *error) {
    ps_code code = PS_OK;
    ps_writer *writer = calloc(1, sizeof *writer);
    *created = NULL;
    if (!writer) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate the writer of results");
    writer->work = work;
    writer->progress = progress;
    atomic_store(&writer->writing, -1);
    pthread_mutex_init(&writer->progress_mutex, NULL);
    writer->n_slots = (int)work->n_unwritten;
    writer->slots = calloc((size_t)writer->n_slots, sizeof *writer->slots);
    PS_GO_ALLOC(error, writer->slots);
    for (int i = 0; i < writer->n_slots; i++) PS_GO(create_slot(writer, i, error));
    PS_GO(ps_results_create(work->n_images, work->images, writer->n_slots, &writer->queue, error));
    PS_GO(start_thread(writer, error));
    *created = writer;
    writer = NULL;
done:
    ps_writer_destroy(writer);
    return code;
}

ps_code ps_writer_stop(ps_writer *writer, ps_work_summary *summary, ps_error *error) {
    ps_results_close(writer->queue);
    if (writer->has_thread) pthread_join(writer->thread, NULL);
    writer->has_thread = false;
    summary->n_done += writer->summary.n_done;
    summary->n_failed += writer->summary.n_failed;
    summary->n_unread += writer->summary.n_unread;
    writer->summary = (ps_work_summary){0};
    return ps_results_check(writer->queue, error);
}

ps_code ps_writer_give_back(ps_writer *writer, ps_error *error) {
    for (int place = 0; place < writer->n_slots; place++)
        if (ps_results_is_left(writer->queue, place))
            PS_TRY(ps_queue_give_back(writer->work->queue, writer->slots[place].frame.work_item, error));
    return PS_OK;
}

void ps_writer_destroy(ps_writer *writer) {
    if (!writer) return;
    for (int i = 0; writer->slots && i < writer->n_slots; i++) {
        ps_method_results_free(&writer->slots[i].numbers);
        ps_frame_parts_destroy(writer->slots[i].parts);
    }
    free(writer->slots);
    ps_results_destroy(writer->queue);
    pthread_mutex_destroy(&writer->progress_mutex);
    free(writer);
}
