/* What one rank takes of its node to read packed patterns: threads, and pinned memory that they fill. */
#ifndef PS_PLAN_PACKED_SHARE_H
#define PS_PLAN_PACKED_SHARE_H

#include <stddef.h>

typedef struct {
    int n_threads;      /* that read; 0: nothing is handed on packed */
    int n_pieces;       /* of pinned memory: one for each thread, and those that are on their way to the device */
    size_t piece_bytes; /* the patterns' bytes of a piece, at most */
} ps_packed_share;

/* n_threads: that the rank computes with; n_cpus: its part of the node's, 0: not known; pattern_bytes: unpacked; host_bytes: what the rank
 * may take of the host, of which an eighth at most is pinned; 0: no limit. The least is one thread and three pieces. */
ps_packed_share ps_packed_share_find(int n_threads, int n_cpus, size_t pattern_bytes, size_t host_bytes);

#endif
