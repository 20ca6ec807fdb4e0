/* Whose error it is: the one rule of what an error met with a frame in hand ends.
 *
 * An error of the frame's data fails that frame, with its reason in the output, and this rank goes on with the next: what cannot be read
 * (PS_E_INPUT, PS_E_IO, PS_E_HDF5), what these counts, optics and pixels cannot be computed to (PS_E_NUMERIC, PS_E_ARGUMENT, PS_E_JOB), and
 * every code not named below. It is the same for a system made for a whole group and for one made for a frame with invalid-count values.
 *
 * An error of the rank ends this rank's work: its frames are given back, the others go on, and a frame that nobody does stays pending.
 * Those are a device that is lost (PS_E_DEVICE, PS_E_BACKEND), a stop (PS_E_INTERRUPTED), and whatever the output returns, PS_E_NUMERIC
 * excepted, which it returns for values of the frame. Codes alone do not tell the output's PS_E_IO or PS_E_HDF5 from a recording's: who
 * calls the output says so.
 *
 * Memory that is not there (PS_E_MEMORY) blames neither at first: half of the frames in hand are tried at a time, down to one, with all
 * that was kept for later freed. Where one does not fit alone, the rank ends as if it had lost its device.
 *
 * An error of MPI (PS_E_MPI: the queue) ends all ranks: this one cannot tell the others, who would wait for its frames for ever. */
#ifndef PS_TASKS_RECONSTRUCT_BLAME_H
#define PS_TASKS_RECONSTRUCT_BLAME_H

#include <stdbool.h>

#include "core/error.h"

/* code: of an error met with a frame in hand, in anything but the output. */
static inline bool ps_blames_frame(ps_code code) {
    switch (code) {
    case PS_E_DEVICE:
    case PS_E_BACKEND:
    case PS_E_MEMORY:
    case PS_E_MPI:
    case PS_E_INTERRUPTED: return false;
    default: return true;
    }
}

/* code: what writing a frame, or what belongs to its group, to the output returned. */
static inline bool ps_output_blames_frame(ps_code code) {
    return code == PS_E_NUMERIC;
}

#endif
