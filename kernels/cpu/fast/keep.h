/* A frame's g that stays with it after a reduction, where the memory plan holds it whole. */
#ifndef PS_KERNELS_CPU_FAST_KEEP_H
#define PS_KERNELS_CPU_FAST_KEEP_H

#include "kernels/cpu/fast/g_store.h"

/* Forms all of it in frame->g, at the frame's dose, unless it is there. The frame's means are there. */
ps_code ps_fast_keep_g(ps_cpu_frame *frame, ps_error *error);

/* Frees what the frame keeps; it may keep nothing. */
void ps_fast_drop_g(ps_cpu_frame *frame);

/* g of one block of pixels at the frame's dose: in what the frame keeps, else formed in `spare` (of the first block's width). *at: where
 * the block begins in it. */
ps_code ps_fast_g_of_block(const ps_cpu_frame *frame, int64_t block, const ps_fast_g *spare, const ps_fast_g **g, int64_t *at,
                           ps_error *error);

#endif
