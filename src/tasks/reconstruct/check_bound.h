/* What will bound a reconstruct job here: seconds a frame that each resource (core/busy.h) will be busy, measured on a sample, and how
 * they overlap. */
#ifndef PS_TASKS_RECONSTRUCT_CHECK_BOUND_H
#define PS_TASKS_RECONSTRUCT_CHECK_BOUND_H

#include "core/busy.h"
#include "tasks/check.h"

/* Seconds from frame to frame of one rank. A rank reads and decodes the next frame while it computes this one and writes the one before;
 * decoding takes the same cores as a backend that computes on them. busy_s: [PS_N_RESOURCES] of a frame. */
double ps_frame_period(const double *busy_s);

/* Reading: of the first recording that can be read, up to 64 MiB or a second of it, as the file system gives it now. */
ps_code ps_check_sample_reading(const ps_check_report *report, double *busy_s, ps_error *error);
/* Writing: up to 64 MiB to a file without a name in the output's folder, which is gone when it is closed, brought to disk, read back.
 * 0 where the file system has no such files. */
ps_code ps_check_sample_writing(const ps_check_report *report, double *busy_s, ps_error *error);

#endif
