/* What kernels/backend.c needs of the packed patterns' part of the interface. Internal. */
#ifndef PS_KERNELS_BACKEND_UNPACK_H
#define PS_KERNELS_BACKEND_UNPACK_H

#include "kernels/backend.h"

/* Ends what ps_frame_unpack_begin began, if anything, whatever came of it. */
void ps_unpack_abandon(ps_frame *frame);

#endif
