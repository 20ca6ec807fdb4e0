/* The fingerprint of a run, as lines "key=value": it holds whatever changes results and nothing else (no ranks, backend, memory). */
#ifndef PS_STORE_FINGERPRINT_H
#define PS_STORE_FINGERPRINT_H

#include "store/output.h"

/* text: malloc'd. The same for the same results, on every machine. */
ps_code ps_output_fingerprint(const ps_output_spec *spec, char **text, ps_error *error);

/* Lines of `before` and `after` that differ, as "key: was A, now B" lines, at most `limit` of them and a count of the rest; *differences is
 * malloc'd, "" when there are none. */
ps_code ps_fingerprint_differences(const char *before, const char *after, int64_t limit, char **differences, ps_error *error);

/* Takes the line of a key out of a fingerprint; false: there is none. */
bool ps_fingerprint_drop(char *text, const char *key);
/* Takes out the names of the recordings of frames for which compared[frame] holds: their content was compared. */
void ps_fingerprint_drop_names(char *text, const bool *compared, int64_t n_frames);

#endif
