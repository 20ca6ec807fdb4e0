/* Files that can be read without waiting for somebody: regular ones.
 *
 * Opening a FIFO waits until another program writes to it, a device or socket may never end; none of them is a recording, mask or job. */
#ifndef PS_CORE_REGULAR_H
#define PS_CORE_REGULAR_H

#include "core/error.h"

/* What is at path when it is no regular file: "a FIFO (named pipe)", "a socket", "a device", "a folder"; NULL: it is a regular file,
 * or nothing that stat can see. Opens nothing. */
const char *ps_special_file(const char *path);

/* PS_E_INPUT names what path is when it is no regular file; PS_OK also when there is nothing. */
ps_code ps_regular_check(const char *path, ps_error *error);

/* Opens a regular file for reading; *descriptor: closed by the caller, -1 after an error, which has this code. Never waits for a writer. */
ps_code ps_regular_open(const char *path, ps_code code, int *descriptor, ps_error *error);

#endif
