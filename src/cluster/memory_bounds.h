/* What bounds the memory that this process may still take on its node, and how ranks share it.
 *
 * A bound is something that runs out: the host's free memory, a control group (version 1 or 2) on the way from this process up to the
 * root, what Slurm granted, or a limit of the process itself (ulimit -v, -d). */
#ifndef PS_CLUSTER_MEMORY_BOUNDS_H
#define PS_CLUSTER_MEMORY_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#include "cluster/cluster.h"

typedef struct {
    uint64_t free_bytes;
    uint64_t owner[2]; /* ranks of a node whose bounds have the same owner share one */
    char text[224];    /* "MemAvailable of the host": what it is, for people */
} ps_memory_bound;

enum { PS_MAX_MEMORY_BOUNDS = 16 };
typedef struct {
    int n;
    ps_memory_bound bounds[PS_MAX_MEMORY_BOUNDS]; /* when there are more, those with the least left */
} ps_memory_bounds;

/* The tightest bound of a rank. */
typedef struct {
    uint64_t bytes;      /* what this rank may take: its part, less a reserve for libraries and fragments */
    uint64_t free_bytes; /* left of the bound, for all who share it */
    int n_sharing;       /* ranks of this node */
    char text[224];      /* the bound's */
} ps_memory_share;

/* Each adds what it finds; what cannot be read is no bound. root is in front of /proc and /sys: "" but in tests. */
void ps_memory_bounds_add_host(const char *root, ps_memory_bounds *bounds);    /* MemAvailable; the commit limit where it is strict */
void ps_memory_bounds_add_cgroups(const char *root, ps_memory_bounds *bounds); /* limit less usage; pages of files do not count as used */
void ps_memory_bounds_add_process(ps_memory_bounds *bounds);                   /* RLIMIT_AS, RLIMIT_DATA */
void ps_memory_bounds_add_slurm(ps_memory_bounds *bounds);                     /* SLURM_MEM_PER_NODE, _CPU, _GPU */

/* n_sharing: [bounds->n] ranks of the node that have the bound with the same owner; NULL: this one alone. No bound at all leaves
 * UINT64_MAX bytes. */
void ps_memory_share_find(const ps_memory_bounds *bounds, const int *n_sharing, ps_memory_share *share);

/* One process by itself, here and now. */
void ps_memory_share_alone(ps_memory_share *share);
/* Collective: of this rank, here and now. To be asked before the ranks take memory. */
ps_code ps_memory_share_measure(const ps_cluster *cluster, ps_memory_share *share, ps_error *error);

#endif
