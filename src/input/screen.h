/* A look at HDF5 recordings in processes of their own, before this process opens them.
 *
 * A damaged file can make the HDF5 library crash or never come to an end, and with it all ranks of a run. A helper process, which is forked
 * while the program is still small (before MPI, devices and threads), therefore has a child of its own open each recording first, with
 * its mask and its first and last position. What ends the child is an ordinary error here. */
#ifndef PS_INPUT_SCREEN_H
#define PS_INPUT_SCREEN_H

#include "core/error.h"
#include "input/reader.h"

/* Processor time that a look may take, not time on the clock: slow file systems are no fault of a file. */
enum { PS_SCREEN_CPU_SECONDS = 30 };

/* Starts the helper, which ends with this process. Without it (never started, or it could not be) every look passes. */
void ps_screen_begin(void);

/* PS_E_INPUT names the file at which the library crashed or ran out of time. Everything else passes, errors of the file too: opening it
 * will tell them. A recording that passed is not looked at again. Any thread. */
ps_code ps_screen_look(const char *source, const ps_reader_options *options, ps_error *error);

/* Another process has looked at source, and it passed. */
void ps_screen_pass(const char *source);

#endif
