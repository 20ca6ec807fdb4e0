/* Recordings that ended early: shown at the length the job's scan needs, the missing patterns filled with the last one. */
#ifndef PS_INPUT_ADAPTERS_PARTIAL_H
#define PS_INPUT_ADAPTERS_PARTIAL_H

#include "input/reader.h"

/* Patterns that a recording of the job's scan takes, with skipped, flyback and repeated ones; 0: the job gives no scan shape. */
int64_t ps_positions_needed(const ps_reader_options *options);

/* When *reader has fewer patterns than `needed`, puts a reader of that many in front of it, replaces *reader by it, and notes it. */
ps_code ps_partial_wrap(ps_reader **reader, int64_t needed, ps_error *error);

#endif
