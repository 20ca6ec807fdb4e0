/* Is the file that a run writes still the one with the output's name? Something else may remove, replace, move or cut it, or its file
 * system may go, while all writing into the open file goes on as if nothing were. */
#ifndef PS_STORE_PRESENCE_H
#define PS_STORE_PRESENCE_H

#include "store/internal.h"

/* Rank-local, once the descriptor is open: what the file is. */
ps_code ps_presence_note(ps_output *output, ps_error *error);
/* Rank-local, two system calls. PS_E_IO says what happened to the file. */
ps_code ps_presence_check(const ps_output *output, ps_error *error);
/* Rank-local, after all ranks brought their data to disk: a file without a name is copied to PATH.recovered-N, or below the directory the
 * program was started in when that one is gone too. Says where it is, as an error, or that it could not be saved. */
void ps_presence_save(const ps_output *output);

#endif
