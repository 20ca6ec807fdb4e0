/* Size and checksums of every file behind a series' recordings, so that a run that goes on can tell whether they are still the same.
 *
 * Samples: a file of at most 1 MiB is read whole; of a larger one 8 blocks of 16 KiB, the first at its beginning, the last at its end, the
 * others at equal distances between. That takes about as many reads as opening the file's headers does, and each file is looked at by one
 * rank only. docs/file-format.md tells what it costs. */
#ifndef PS_PLAN_FILE_CHECKS_H
#define PS_PLAN_FILE_CHECKS_H

#include "cluster/cluster.h"
#include "plan/plan.h"
#include "store/output.h"

typedef struct {
    ps_output_file *files; /* [first[n_frames]], frame by frame; paths are the run plan's */
    int64_t *first;        /* [n_frames + 1] */
    uint32_t *named;       /* [n_frames] ps_source_checksum of the named file; 0: it could not be read */
} ps_file_checks;

/* Collective: files are shared out among ranks and, on each, threads; all ranks get the same. With series.verify "whole" every file is also
 * read whole. A recording of which a file is there but cannot be read becomes unreadable in run. PS_E_INTERRUPTED when a stop is wanted.
 * Owned by the caller: ps_file_checks_free. */
ps_code ps_file_checks_make(const ps_cluster *cluster, const ps_job *job, ps_run_plan *run, ps_file_checks *checks, ps_error *error);
void ps_file_checks_free(ps_file_checks *checks);

/* One file, rank-local. *problem: errno; 0: it could be read. The path in *file is borrowed. */
void ps_file_check(const char *path, bool whole, ps_output_file *file, int *problem);

#endif
