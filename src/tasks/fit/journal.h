/* Fits that are settled while a run is under way, so that one that is killed does not lose them: OUTPUT.fit-journal, rows that are on disk
 * before the next fit begins. It goes when the output is there. Rank-local, one rank, with the output's lock held. */
#ifndef PS_TASKS_FIT_JOURNAL_H
#define PS_TASKS_FIT_JOURNAL_H

#include "tasks/fit/file.h"

typedef struct {
    char *path; /* NULL: it was not begun */
    int fd;     /* -1: it has no row yet */
} ps_fit_journal;

#define PS_FIT_JOURNAL_NONE ((ps_fit_journal){.fd = -1})

/* Whether a run left one. */
bool ps_fit_journal_is_there(const char *output);
/* Begins a new one, which is there from its first row on, or (goes_on) goes on with one that is there: items and pictures of its rows are
 * filled and their `settled` set, but (again) for those that failed. A row that was cut off ends it. PS_E_ARGUMENT: it is of another job,
 * other recordings or another version of this program. signature: ps_fit_signature. Owned: ps_fit_journal_end. */
ps_code ps_fit_journal_begin(const ps_fit_file_spec *spec, bool goes_on, bool again, ps_fit_item *items, ps_fit_pictures *pictures,
                             bool *settled, ps_fit_journal *journal, ps_error *error);
/* On disk when it returns. */
ps_code ps_fit_journal_add(ps_fit_journal *journal, const ps_fit_file_spec *spec, int64_t index, ps_error *error);
/* done: the file goes. */
void ps_fit_journal_end(ps_fit_journal *journal, bool done);

#endif
