/* Fits that were begun and never ended: their recording killed its process, or something else did. They are counted in OUTPUT.fit-tries,
 * on disk before a fit begins, since there is no output yet that could keep them; the file goes when none is left. Rank-local, one rank. */
#ifndef PS_TASKS_FIT_TRIES_H
#define PS_TASKS_FIT_TRIES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum { PS_FIT_MOST_TRIES = 2 };

typedef struct {
    char *path;
    int64_t n;
    struct ps_fit_try {
        char *source; /* of a recording */
        int64_t count;
    } * items; /* [n] */
} ps_fit_tries;

/* forget: all counts go. Owned: ps_fit_tries_free. */
ps_code ps_fit_tries_open(const char *output, bool forget, ps_fit_tries *tries, ps_error *error);
void ps_fit_tries_free(ps_fit_tries *tries);
int64_t ps_fit_tries_count(const ps_fit_tries *tries, const char *source);
/* One more of each of n, on disk. */
ps_code ps_fit_tries_begin(ps_fit_tries *tries, int64_t n, const char *const *sources, ps_error *error);
/* The fits ended, well or not (settled): nothing is counted any more; or they were given up politely: these tries do not count. */
ps_code ps_fit_tries_end(ps_fit_tries *tries, int64_t n, const char *const *sources, bool settled, ps_error *error);
/* All counts go, and the file: the output that is there says which fits failed. */
void ps_fit_tries_forget(ps_fit_tries *tries);

#endif
