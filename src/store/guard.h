/* Nothing that a job reads may be a file that its run writes, replaces or removes, under whatever name. Rank-local; nothing is written. */
#ifndef PS_STORE_GUARD_H
#define PS_STORE_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "input/reader.h"
#include "input/series.h"
#include "job/job.h"

/* Files that are there and that the run would write, replace or remove. */
typedef struct {
    char *path;
    const char *what; /* "/output/file", "a lock of the run", ...; a literal */
    bool own;         /* of this program: no recording links to it */
    dev_t device;
    ino_t inode;
} ps_guard_target;

typedef struct {
    int64_t n, room;
    ps_guard_target *targets; /* [n], owned */
} ps_guard_targets;           /* starts as {0} */

/* Takes path (NULL: PS_E_MEMORY). What is not there is left out. */
ps_code ps_guard_add(ps_guard_targets *targets, char *path, const char *what, ps_error *error);
void ps_guard_free(ps_guard_targets *targets);
/* PS_E_JOB when one of the targets is the job itself or a file that it names, or that such a file links to: the same by device and inode,
 * so that hard links, symbolic links and mounts do not hide it. options: how recordings are opened (input/preflight.h). */
ps_code ps_guard_inputs(const ps_job *job, const ps_guard_targets *targets, const ps_reader_options *options, ps_error *error);

/* Everything that can be known about /output/file of a job that writes one, before the run: its directory is there and can be
 * written, it is no directory, device or pipe, no pattern of series.files catches it, no recording of the series is an output of this
 * program, and ps_guard_inputs for it and the files beside it. PS_E_JOB. */
ps_code ps_guard_output(const ps_job *job, const ps_reader_options *options, ps_error *error);

/* PS_E_JOB unless recordings (paths as series.files gives them) are none of this program's outputs, and no pattern would catch output_file
 * once it is there. Used by ps_guard_output. */
ps_code ps_guard_series(const ps_job *job, const ps_reader_options *options, ps_error *error);
/* The whole series, what first, count and stride leave out too, for that is not to be lost either; empty when it cannot be listed, which
 * opening it will tell. ps_series_free. */
void ps_guard_list_series(const ps_job *job, ps_series *series);

#endif
