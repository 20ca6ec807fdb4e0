/* The science of a run as lines "key=value": whatever changes results stands here, whatever does not (ranks, backend, memory) does not. */
#ifndef PS_OUTPUT_SIGNATURE_H
#define PS_OUTPUT_SIGNATURE_H

#include "output/output.h"

/* text: malloc'd. Same science, same text, on every machine. */
ps_code ps_output_signature(const ps_output_spec *spec, char **text, ps_error *error);

/* Lines of `before` and `after` that differ, as "key: was A, now B" lines, at most `limit` of them and a count of the rest; *differences is
 * malloc'd, "" when there are none. */
ps_code ps_signature_differences(const char *before, const char *after, int64_t limit, char **differences, ps_error *error);

#endif
