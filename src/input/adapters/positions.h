/* Patterns that are not one per scan position in scan order: skipped ones, flyback, repeats, serpentine rows.
 *
 * In the order of time a recording is: skip_leading patterns; then scan_rows times scan_columns + flyback positions of `repeats`
 * patterns each; then skip_trailing patterns. The flyback behind the last row may be missing. With serpentine rows, rows 1, 3, ... run
 * from the last column to the first, and their flyback comes after the first column. */
#ifndef PS_INPUT_ADAPTERS_POSITIONS_H
#define PS_INPUT_ADAPTERS_POSITIONS_H

#include "input/reader.h"

/* Whether options ask for anything but one pattern per position in order. */
bool ps_positions_asked(const ps_reader_options *options);

/* Puts a reader in front of *reader that shows scan_rows x scan_columns positions, and replaces *reader by it; the new one owns the
 * old. The scan shape comes from options, else from the file. When the numbers do not fit, PS_E_INPUT says all of them, and *reader
 * is left as it was. Sums of repeats are delivered in a type that holds them: uint8 becomes uint16, uint16 uint32, uint32 float64; one
 * invalid-count value among the repeats makes the sum a invalid-count value. */
ps_code ps_positions_wrap(ps_reader **reader, const ps_reader_options *options, ps_error *error);

/* Refuses the options' scan shape where the file says another one that flyback, repeats, skipped patterns or an early end do not account
 * for; a file whose positions are a plain list (1 x n, n x 1) says none. With shape_override a note says it. Before any wrapping. */
ps_code ps_positions_check_shape(ps_reader *reader, const ps_reader_options *options, ps_error *error);

/* Whether n patterns are a scan of rows x columns with the options' skipped patterns, flyback and repeats. */
bool ps_positions_fit(const ps_reader_options *options, int64_t rows, int64_t columns, int64_t n);

/* The type in which `repeats` counts of dtype are summed. */
ps_dtype ps_positions_sum_dtype(ps_dtype dtype, int64_t repeats);

#endif
