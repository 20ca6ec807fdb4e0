/* What is done with a recording in a process of its own before the program opens it (preflight.h). */
#ifndef PS_INPUT_LOOK_H
#define PS_INPUT_LOOK_H

#include "input/reader.h"

/* Opens it, reads its mask and its first and last position, and keeps nothing. Only the HDF5 library is known to crash; of other files it
 * is enough that they answer. A ps_preflight_look. */
void ps_recording_look(const char *source, const ps_reader_options *options);

#endif
