/* /entry/process_N: who made what, one NXprocess per run. Room for PS_PROCESS_SLOTS runs is made at creation, so that a later run adds
 * its own by writing raw data only. The links of those to come are hidden (slots.h) until their run has filled them. Files of earlier
 * versions show them all, with the state "unused". */
#ifndef PS_STORE_PROCESS_H
#define PS_STORE_PROCESS_H

#include <hdf5.h>

#include "core/usage.h"
#include "store/output.h"

/* Creates all slots below entry and fills the first with the spec's notes. When the file is closed, ps_process_hide_reserve is due. */
ps_code ps_process_create_slots(hid_t entry, const ps_output_spec *spec, ps_error *error);
/* The same for a file that no later run goes on with: one slot. */
ps_code ps_process_create_only(hid_t entry, const ps_output_spec *spec, ps_error *error);
/* Hides slots first, first + 1 ... of a closed file that nobody else has, where /entry keeps its links in its header. */
ps_code ps_process_hide_reserve(const char *path, int first, ps_error *error);

/* Number of the slot that was used last (1 ...). */
ps_code ps_process_last(hid_t entry, int *last, ps_error *error);
/* Fills slot `number`, seen or hidden, with the spec's notes and job, its state last, then shows it. Raw data only. What has no place of
 * its own, or is too long for it, goes to "more". */
ps_code ps_process_fill(hid_t entry, int number, const ps_output_spec *spec, ps_error *error);
/* Rank-local, with the file's lock held and nobody else writing it: when all slots are used, replaces the file by a copy of itself
 * with PS_PROCESS_SLOTS more. */
ps_code ps_process_make_room(const char *path, const ps_output_spec *spec, ps_error *error);
/* End time, counts and final state of slot `number`. counts: [3] by ps_frame_state. */
ps_code ps_process_finish(hid_t entry, int number, const int64_t counts[3], ps_error *error);

/* What bounded run `number`, before its end: usage.h. */
ps_code ps_process_write_usage(hid_t entry, int number, const ps_usage *usage, ps_error *error);

#endif
