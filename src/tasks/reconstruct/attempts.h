/* Frames that kill their process or lose their device, found by counting how often each was begun and never ended.
 *
 * The count stands in the output, on disk, before a frame is begun, and goes back when it ends or is given up politely. A frame with a
 * count is a suspect: it may have been in company when something else struck. Suspects are therefore left until all other frames are dealt
 * with, and then tried one at a time, with nothing else in hand on any rank. One that has PS_MOST_ATTEMPTS is not begun again but failed.
 */
#ifndef PS_TASKS_RECONSTRUCT_ATTEMPTS_H
#define PS_TASKS_RECONSTRUCT_ATTEMPTS_H

#include "cluster/cluster.h"
#include "store/output.h"

enum { PS_MOST_ATTEMPTS = 2 };

typedef struct ps_attempts ps_attempts;

/* Collective. output: open, borrowed; its counts are where this starts. */
ps_code ps_attempts_create(const ps_cluster *cluster, ps_output *output, int64_t n_frames, ps_attempts **attempts, ps_error *error);
/* Collective. */
void ps_attempts_destroy(ps_attempts *attempts);

/* Rank-local, as all below. How often the frame was begun and never ended, by any rank, not counting that this one has it in hand. */
ps_code ps_attempts_count(ps_attempts *attempts, int64_t frame, int64_t *n, ps_error *error);
/* Counts, on disk; nothing happens for a frame that this rank has in hand already. */
ps_code ps_attempts_begin(ps_attempts *attempts, int64_t frame, ps_error *error);
/* The frame was written or failed: its count is 0. */
ps_code ps_attempts_end(ps_attempts *attempts, int64_t frame, ps_error *error);
/* This rank gives up all that it has in hand. blameless: whatever made it, none of these frames did, and their counts go back. */
ps_code ps_attempts_give_up(ps_attempts *attempts, bool blameless, ps_error *error);

/* By one rank, when all have given up because each lost its device: that may be the devices' fault, so this run counts once for each frame,
 * not once for each rank. */
ps_code ps_attempts_count_once(ps_attempts *attempts, ps_error *error);

/* Only one rank at a time may try suspects. *entered false: another does. Entering twice is allowed; ps_attempts_give_up leaves too. */
ps_code ps_attempts_enter(ps_attempts *attempts, bool *entered, ps_error *error);
ps_code ps_attempts_leave(ps_attempts *attempts, ps_error *error);

#endif
