/* What a rank has computed and not yet written: the bounded queue between the thread that computes and the one that writes.
 *
 *     computing:  take_frame   take_image ... put(image) ...   put(end)                     wait
 *     writing:                            next, write, done      next, write, done
 *
 * There are n_images buffers for images and room for n_frames frames; who computes waits when none is free. Entries leave the queue in the
 * order in which they were put. When writing fails, everything in the queue is let go and who computes is told with the next call: frames
 * that were put to their end and are not written are those of ps_results_is_left.
 *
 * No entry is looked into here, and neither HDF5 nor MPI is called: what is done with an entry is the writer's matter (writer.h). One
 * thread computes and one writes; both may be the same, which then never waits for itself as long as it writes all it put before it takes.
 */
#ifndef PS_TASKS_RECONSTRUCT_RESULTS_QUEUE_H
#define PS_TASKS_RECONSTRUCT_RESULTS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

typedef struct ps_results_queue ps_results_queue;

typedef struct {
    int frame;       /* the frame's place, as ps_results_take_frame gave it */
    float *image;    /* NULL: the frame ends here */
    int item;        /* which image: of the job's methods, */
    int result;      /* of the method's results, */
    int64_t part;    /* which of its images */
    bool left_alone; /* at the end: the frame is not to be written after all */
} ps_results_entry;

/* images: [n_images], borrowed. n_images, n_frames: 1 or more. */
ps_code ps_results_create(int64_t n_images, float *const *images, int n_frames, ps_results_queue **queue, ps_error *error);
void ps_results_destroy(ps_results_queue *queue); /* NULL is allowed; no thread is in it any more */

/* ---- the computing thread; the error is the writer's, if it failed ---- */

/* Waits for a free one. *waited_s: seconds of waiting are added; NULL: not wanted. */
ps_code ps_results_take_image(ps_results_queue *queue, float **image, double *waited_s, ps_error *error);
ps_code ps_results_take_frame(ps_results_queue *queue, int *frame, double *waited_s, ps_error *error);
/* An image that was taken and is not put. */
void ps_results_return_image(ps_results_queue *queue, float *image);
/* Never waits: what is put was taken. On an error the image is returned and the frame's place stays taken. */
ps_code ps_results_put(ps_results_queue *queue, const ps_results_entry *entry, ps_error *error);
/* Waits until all that was put is written. */
ps_code ps_results_wait(ps_results_queue *queue, ps_error *error);
/* PS_OK: writing has not failed. */
ps_code ps_results_check(ps_results_queue *queue, ps_error *error);
/* Nothing more is put; who writes is told so once the queue is empty. */
void ps_results_close(ps_results_queue *queue);
/* Whether the frame in that place was put to its end and is not written: once writing has failed and its thread is gone. */
bool ps_results_is_left(ps_results_queue *queue, int frame);

/* ---- the writing thread ---- */

/* The oldest entry, which stays in the queue until it is done with. waits: until there is one; else *found is false when there is none. It
 * also is when the queue is closed and empty, or writing has failed. */
void ps_results_next(ps_results_queue *queue, bool waits, ps_results_entry *entry, bool *found);
/* The oldest entry is written: its image, or its frame's place, is free. */
void ps_results_done(ps_results_queue *queue);
/* Writing has failed, for good. */
void ps_results_fail(ps_results_queue *queue, const ps_error *reason);

#endif
