/* How many images a rank holds on their way to the output. */
#ifndef PS_PLAN_IMAGES_AT_ONCE_H
#define PS_PLAN_IMAGES_AT_ONCE_H

#include "cluster/memory_bounds.h"

/* per_frame: images that a frame leaves; image_bytes: of each. share: what the rank may take of the host; NULL: no limit. Those of
 * n_frames, or as many as fit; at least 2, for methods that leave pairs. */
int64_t ps_images_at_once(int64_t per_frame, int64_t n_frames, size_t image_bytes, const ps_memory_share *share);

#endif
