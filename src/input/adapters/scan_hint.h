/* What a number of patterns that does not fit a scan's shape probably means. */
#ifndef PS_INPUT_ADAPTERS_SCAN_HINT_H
#define PS_INPUT_ADAPTERS_SCAN_HINT_H

#include <stddef.h>
#include <stdint.h>

/* text: "" or a sentence that names the job's option that would fit: repeats, flyback, skipped patterns, a recording that was stopped. */
void ps_scan_hint(int64_t n_frames, int64_t rows, int64_t columns, char *text, size_t bytes);
/* The same when no shape is known: a square scan with flyback. */
void ps_square_hint(int64_t n_frames, char *text, size_t bytes);

#endif
