/* The program's log: lines on standard error with level and rank, optionally as JSON lines, and a progress bar.
 *
 * Every rank may log; each line is written with one write call so that lines of ranks do not mix. */
#ifndef PS_CORE_LOG_H
#define PS_CORE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { PS_LOG_DEBUG, PS_LOG_INFO, PS_LOG_WARNING, PS_LOG_ERROR } ps_log_level;

typedef struct {
    ps_log_level level; /* lowest level that is written */
    bool json;          /* one JSON object a line, for machines */
    int rank, n_ranks;  /* the rank is written when there are several */
} ps_log_options;

void ps_log_configure(const ps_log_options *options);
void ps_log(ps_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Progress of a long task, shown by one rank: a bar with ETA on a terminal, otherwise a line at most every `interval_s`. */
typedef struct ps_progress ps_progress;
ps_progress *ps_progress_begin(const char *what, int64_t total, double interval_s); /* owned by the caller; NULL is silent */
void ps_progress_update(ps_progress *progress, int64_t done, const char *note);     /* note: may be NULL */
void ps_progress_end(ps_progress *progress);                                        /* draws the last state and frees */

double ps_seconds(void); /* monotonic clock, seconds */

#ifdef __cplusplus
}
#endif
#endif
