#include "plan/images_at_once.h"

/* Pinned in a fifth of a second. With more, a device that computes faster than the file takes images would wait later, and as long. */
static const size_t most_bytes = (size_t)512 << 20;

int64_t ps_images_at_once(int64_t per_frame, int64_t n_frames, size_t image_bytes, const ps_memory_share *share) {
    size_t bytes = share && share->bytes / 8 < most_bytes ? (size_t)(share->bytes / 8) : most_bytes;
    int64_t n = (int64_t)(bytes / image_bytes);
    if (n > n_frames * per_frame) n = n_frames * per_frame;
    return n > 2 ? n : 2;
}
