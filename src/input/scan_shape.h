/* How many rows and columns a recording's scan has. */
#ifndef PS_INPUT_SCAN_SHAPE_H
#define PS_INPUT_SCAN_SHAPE_H

#include "input/reader.h"

/* Scan shape from the job (options), else the file's metadata, else, where nothing the file says is against it (scan_doubt), the exact
 * square root of n_positions; otherwise PS_E_INPUT with both numbers and the factor pairs that would fit. Never trims or pads. */
ps_code ps_reader_scan_shape(const ps_reader *reader, const ps_reader_options *options, int64_t *rows, int64_t *columns, ps_error *error);

#endif
