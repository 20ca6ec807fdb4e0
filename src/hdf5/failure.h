/* Why a call of the HDF5 library failed, and whether a lack of memory was the reason. */
#ifndef PS_HDF5_FAILURE_H
#define PS_HDF5_FAILURE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* The innermost reason of the last failed HDF5 call, one line; "no reason given" when there is none. */
void ps_hdf5_reason(char *text, size_t bytes);

/* Whether the last HDF5 call failed because the library could not allocate memory. */
bool ps_hdf5_lacked_memory(void);
/* Fails with this text, ": " and the innermost reason of the last HDF5 call. Where that, or something noted by ps_hdf5_note_lack since
 * ps_hdf5_forget_lack, was a lack of memory it says so, for then nothing is known to be wrong with the file, and the code is PS_E_MEMORY
 * when there is indeed none left; else PS_E_INPUT. */
ps_code ps_hdf5_fail(ps_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What a file does not say is looked for below by the dozen, and what cannot be read is taken for not said. Whether a lack of memory was
 * the reason since the last call of this function, in this thread. */
bool ps_hdf5_forget_lack(void);
bool ps_hdf5_note_lack(bool succeeded); /* after a call whose failure is not told otherwise; returns its argument */

#endif
