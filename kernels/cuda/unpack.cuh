/* What the three files that unpack patterns on the device share: kernels (unpack.cu), where counts go (unpack_lists.cu), and the ring of
 * pieces through which packed bytes come (unpack_ring.cu). */
#ifndef PS_KERNELS_CUDA_UNPACK_CUH
#define PS_KERNELS_CUDA_UNPACK_CUH

#include "kernels/cuda/operations.h"

enum { PS_CUDA_PIECES = 16, PS_CUDA_TALLIES = 5 };

/* Packed patterns on the device, and room to find their blocks. */
typedef struct {
    uint8_t *d_bytes;                    /* readable up to the word that holds the last byte */
    const ps_packed_pattern *d_patterns; /* [n_positions] */
    uint32_t *d_starts;                  /* [n_positions, n_blocks + 1] */
    int64_t first_position, n_positions;
    bool is_dense; /* plain patterns from d_bytes on, one right behind the other: a limit is made to hold in place */
} ps_cuda_packed;

/* unpack_lists.cu: makes the lists of the system those of a shape. Under upload_lock. */
ps_code ps_cuda_unpack_lists(ps_cuda_system *system, const ps_unpack_shape *shape, ps_error *error);
/* unpack.cu: whether the kernels take the shape. */
bool ps_cuda_unpack_fits(const ps_cuda_backend *backend, const ps_unpack_shape *shape);
/* Launches all that brings the patterns into the frame; the lists must be those of the shape. bitshuffle-LZ4 on any stream, the other
 * packings on the upload stream, through the upload buffers. */
ps_code ps_cuda_unpack_launch(ps_cuda_frame *frame, const ps_unpack_shape *shape, const ps_cuda_packed *packed, cudaStream_t stream,
                              ps_error *error);

#endif
