/* ro-crate-metadata.json beside an output: a Process Run Crate (RO-Crate 1.1, profile process 0.5) that says in JSON-LD which program made
 * which output from which inputs, one action per run. One crate describes all outputs of a directory. */
#ifndef PS_STORE_CRATE_H
#define PS_STORE_CRATE_H

#include "core/error.h"

/* Rank-local. Puts the output at path into the crate of its directory, in place of what that said about it before; the rest stays. A file
 * of that name that is no crate stays untouched: PS_E_ARGUMENT. */
ps_code ps_crate_write(const char *path, ps_error *error);
/* The same for an output that is complete: what could not be said beside it is a warning, and takes nothing from it. */
void ps_crate_tell(const char *path);

#endif
