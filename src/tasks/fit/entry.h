/* What a fit job has of its own: docs/fit.md. */
#ifndef PS_TASKS_FIT_ENTRY_H
#define PS_TASKS_FIT_ENTRY_H

#include "fit/fit.h"
#include "job/job.h"

typedef enum { PS_SIGN_AUTO, PS_SIGN_POSITIVE, PS_SIGN_NEGATIVE } ps_fit_sign;

typedef struct {
    ps_fit_options options; /* but for what the optics give */
    int64_t n_frequencies;  /* of the band; 0: as many as make a fair number of data with the pixels */
    double strength;
    int64_t upsampling; /* whose aliases are kept; 1: none */
    ps_fit_sign sign;
    bool per_frame;    /* every usable recording has a fit of its own, which starts from the one before */
    int64_t frame;     /* of each optics group, which of its usable recordings; 0: the first */
    char *optics_file; /* absolute; {stem} in it stands for the name of the recording that was fitted; NULL: beside the output */
} ps_job_fit;

/* fit: filled; place may be absent: then all is automatic. Frees nothing on error. */
ps_code ps_fit_read_entry(const ps_json *place, const char *base_directory, ps_job_fit *fit, ps_error *error);
/* Of a fit job. */
const ps_job_fit *ps_fit_entry(const ps_job *job);

#endif
