/* Which files a frame came from, as an output records it: compared when it is gone on with, and brought up to date for frames that could
 * not be read before. */
#ifndef PS_OUTPUT_SOURCES_H
#define PS_OUTPUT_SOURCES_H

#include "output/internal.h"

/* Appends to *text (malloc'd, may hold lines already) one line for every frame whose size, time, checksum or optics is not what the file
 * records. A frame that could not be read then, or cannot be read now, has nothing to compare. */
ps_code ps_sources_differences(const char *path, const ps_output_spec *spec, char **text, ps_error *error);
/* Records the sources of frames that could not be read when the file was made and can be now. */
ps_code ps_sources_refresh(const ps_output *output, const ps_output_spec *spec, ps_error *error);

#endif
