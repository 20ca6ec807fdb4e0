/* Opening a recording: from what a user names to a reader with all that options ask for in front of it. */
#ifndef PS_INPUT_OPEN_H
#define PS_INPUT_OPEN_H

#include "input/reader.h"

/* source: "path" or "path:/dataset". The format is chosen by looking into the file, never by its name alone. options: NULL: none. Owned by
 * the caller: ps_reader_close. */
ps_code ps_reader_open(const char *source, const ps_reader_options *options, ps_reader **reader, ps_error *error);

#endif
