/* Going on with an output that exists: the same fingerprint, verified frames, and one more run in its provenance. */
#ifndef PS_STORE_RESUME_H
#define PS_STORE_RESUME_H

#include "store/output.h"

/* What a file that is gone on with held. */
typedef struct {
    int64_t n_frames, n_done, n_failed, n_pending; /* after this; n_done: verified */
    int64_t n_damaged; /* frames that were done, but whose bytes have not the CRC recorded for them: pending again, and counted there */
} ps_resume_report;

/* ps_output_resume of output.h, with what it found. report may be NULL. */
ps_code ps_output_resume_report(const char *path, const ps_output_spec *spec, bool retry_failed, ps_resume_report *report, ps_error *error);

#endif
