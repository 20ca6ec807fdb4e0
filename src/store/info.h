/* What an output file holds, for people; works on a file that is being written. */
#ifndef PS_STORE_INFO_H
#define PS_STORE_INFO_H

#include <stdbool.h>

#include "core/error.h"

/* True for files that this program wrote, by what stands in them. */
bool ps_output_is_output(const char *path);
/* To standard output: frames by state, images, methods, optics, runs, seconds per stage, what failed and why. */
ps_code ps_output_print_info(const char *path, ps_error *error);

#endif
