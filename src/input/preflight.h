/* A look at recordings in processes of their own, before this process opens them.
 *
 * A damaged file can make the HDF5 library crash or never come to an end, and with it all ranks of a run. A helper process, which is forked
 * while the program is still small (before MPI, devices and threads), therefore has a child of its own look at each recording first
 * (look.h). What ends the child is an ordinary error here, and so is a file system that does not answer: of any file, HDF5 or not, the
 * child is the first to touch it. */
#ifndef PS_INPUT_PREFLIGHT_H
#define PS_INPUT_PREFLIGHT_H

#include "core/error.h"
#include "input/reader.h"

/* Processor time that a look may take: longer means a damaged file. Time on the clock is another matter: slow file systems are no fault of
 * a file, so it is longer (PS_FILE_PATIENCE_S in the environment sets it, 10 s at most after a look that got no answer), and what takes
 * longer still is told as a file system that does not answer. */
enum { PS_PREFLIGHT_CPU_SECONDS = 30, PS_PREFLIGHT_WAIT_SECONDS = 120 };

/* What the child does with a source; what becomes of it besides a crash or a wait is not asked. */
typedef void ps_preflight_look(const char *source, const ps_reader_options *options);

/* Starts the helper, which ends with this process. Without it (never started, or it could not be) every look passes. look: usually
 * ps_recording_look. */
void ps_preflight_begin(ps_preflight_look *look);

/* PS_E_INPUT names the file at which the library crashed or ran out of time, or that did not answer. Everything else passes, errors of the
 * file too: opening it will tell them. A recording that passed is not looked at again. Any thread. */
ps_code ps_preflight_inspect(const char *source, const ps_reader_options *options, ps_error *error);

/* PS_E_INPUT when looking up path, a file or a pattern, gets no answer; whether it exists does not matter. Once a folder. Any thread. */
ps_code ps_preflight_reach(const char *path, ps_error *error);

/* Another process has looked at source, and it passed. */
void ps_preflight_pass(const char *source);

#endif
