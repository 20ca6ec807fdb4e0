/* The CPU backends behind a wall, so that mistakes a GPU would punish show without one.
 *
 * While one is open, everything the CPU code allocates is filled with NaN. What a caller passes in is copied to a buffer that
 * ends at a page nobody may touch and is unmapped when the call returns: reading past the end, or keeping a pointer of the
 * caller's, ends the program. Outputs are filled with NaN first; one left unwritten is PS_E_DEVICE. So is a system or frame one
 * of whose arrays is not its own. */
#ifndef PS_TESTS_CONTRACT_CHECK_BACKEND_H
#define PS_TESTS_CONTRACT_CHECK_BACKEND_H

#include "kernels/backend.h"

extern const ps_backend_ops contract_check_reference; /* "check-reference" */
extern const ps_backend_ops contract_check_fast;      /* "check-fast" */

#endif
