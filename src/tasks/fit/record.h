/* One fit as its output has it. */
#ifndef PS_TASKS_FIT_RECORD_H
#define PS_TASKS_FIT_RECORD_H

#include "store/view.h"

/* Owned: ps_fit_record_free. */
typedef struct {
    int64_t n; /* parameters; 0: the fit failed */
    char **names, **units;
    double *values, *errors, *correlation; /* [n], [n], [n, n] */
    int64_t n_notes;
    char **notes;
    char *failure, *optics; /* optics: JSON after the fit */
    double frame, before, after, twin, seconds, evaluations, n_frequencies, n_pixels;
} ps_fit_record;

ps_code ps_fit_record_count(const ps_view *view, int64_t *n, ps_error *error);
ps_code ps_fit_record_read(const ps_view *view, int64_t index, ps_fit_record *record, ps_error *error);
void ps_fit_record_free(ps_fit_record *record);
/* Elements of a dataset below /entry; 0 when it is not there. */
int64_t ps_fit_record_elements(const ps_view *view, const char *name);

#endif
