/* From results to the output: a thread of each rank that writes what the rank's other thread computes, in the order in which it was put
 * into the queue (results_queue.h). It checks numbers, writes, reads back and forms checksums image by image, marks frames done or failed
 * once all of them is on disk, and says so to the other ranks.
 *
 * Where MPI gives no threads the computing thread does the same between two images, and nothing else differs.
 *
 * The first error that is not a frame's own ends the writing: it is what the next call returns, and frames that were finished and not
 * written are given back by ps_writer_give_back. All functions are for the computing thread. */
#ifndef PS_TASKS_RECONSTRUCT_WRITER_H
#define PS_TASKS_RECONSTRUCT_WRITER_H

#include "core/log.h"
#include "tasks/reconstruct/worker.h"

typedef struct ps_writer ps_writer;

/* What is known of a frame beside its images. */
typedef struct {
    int64_t work_item, frame;
    ps_frame_seen seen;
    ps_frame_result result;                /* methods: set by ps_writer_begin, its numbers are the caller's to fill; note: copied */
    ps_image_sink *sinks[PS_MOST_METHODS]; /* of the job's methods: where their images go */
    double waited_s;                       /* the sinks and ps_writer_begin waited for the writer */
} ps_writer_frame;

/* work, progress: borrowed. */
ps_code ps_writer_create(const ps_work *work, ps_progress *progress, ps_writer **writer, ps_error *error);
/* Writes what is in the queue, ends the thread and adds to *summary. The error is that of the writing. */
ps_code ps_writer_stop(ps_writer *writer, ps_work_summary *summary, ps_error *error);
/* After ps_writer_stop. Gives back to the queue of work what was finished and not written. */
ps_code ps_writer_give_back(ps_writer *writer, ps_error *error);
void ps_writer_destroy(ps_writer *writer); /* NULL is allowed */

/* A frame begins, which ends with one of the next three calls; *begun is valid until then. Waits while too many are on their way. */
ps_code ps_writer_begin(ps_writer *writer, int64_t work_item, int64_t frame, ps_writer_frame **begun, ps_error *error);
/* All its images are sent: it is to be done. */
ps_code ps_writer_finish(ps_writer *writer, ps_writer_frame *frame, ps_error *error);
/* It is to be failed, with the reason, whatever was sent. */
ps_code ps_writer_fail(ps_writer *writer, ps_writer_frame *frame, const ps_error *reason, ps_error *error);
/* It is to be left as it is; an error of the writing is told by the next call. */
void ps_writer_leave(ps_writer *writer, ps_writer_frame *frame);

/* Waits until everything is written. */
ps_code ps_writer_wait(ps_writer *writer, ps_error *error);
/* The error of the writing, if there was one. */
ps_code ps_writer_check(const ps_writer *writer, ps_error *error);
/* To the progress of the run, from any thread. */
void ps_writer_show(ps_writer *writer, int64_t n_completed);

#endif
