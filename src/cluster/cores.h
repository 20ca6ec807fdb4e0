/* Which cores each rank of a node computes on: a decision without side effects, and sets of CPUs.
 *
 * A CPU is what Linux counts (a hardware thread); a core has one or more of them. */
#ifndef PS_CLUSTER_CORES_H
#define PS_CLUSTER_CORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PS_MAX_CPUS = 4096 };

/* Laid out as the kernel's and glibc's sets are. */
typedef struct {
    uint64_t bits[PS_MAX_CPUS / 64];
} ps_cpu_set;

void ps_cpu_set_add(ps_cpu_set *set, int cpu);
bool ps_cpu_set_has(const ps_cpu_set *set, int cpu);
int ps_cpu_set_count(const ps_cpu_set *set);
/* "0-7,16", as /proc and /sys write it. Parsing gives false when text is no such list; it may be empty. */
bool ps_cpu_set_parse(const char *text, ps_cpu_set *set);
void ps_cpu_set_print(const ps_cpu_set *set, char *text, size_t bytes);

/* core: any number that CPUs of one core share, cores near to each other near; numa: the memory next to it. */
typedef struct {
    int cpu, core, numa;
} ps_cpu;

typedef struct {
    int n_cpus;
    const ps_cpu *cpus; /* [n_cpus] that the job may use on this node, in any order */
    int n_ranks;
    const ps_cpu_set *bound; /* [n_ranks] where each rank of the node may run now */
    const int *numa;         /* [n_ranks] of the rank's device; -1: it has none, or it is not known */
    bool launched;           /* by mpirun, srun or the like, which may have bound the ranks */
    bool asked;              /* the user asked for a binding, whichever */
    int n_granted;           /* CPUs of the node that the batch system gave the job, or whose time it may use; 0: not known */
} ps_cores_question;

typedef enum {
    PS_CORES_KEPT,   /* each rank has its share already */
    PS_CORES_SPREAD, /* the launcher's own binding left less: each rank gets its part of the cores */
    PS_CORES_FREED,  /* the same, but which of the node's CPUs are the job's is not to be seen: all, with its share of threads */
    PS_CORES_SHORT   /* less than the share, as the user asked */
} ps_cores_action;

typedef struct {
    ps_cores_action action; /* the same for all ranks of a node */
    ps_cpu_set set;         /* where this rank is to run */
    int n_threads;          /* that it should compute with, >= 1: its CPUs, or its part of those that ranks share */
    double had, share;      /* CPUs of this rank before, shared ones in parts; CPUs of the node by ranks */
} ps_cores_plan;

/* rank: of the node. Ranks get equal, adjoining parts of the cores, those whose devices are on one NUMA node side by side on it; with
 * more ranks than cores, parts of the CPUs. PS_E_MEMORY aside nothing fails: false, then. */
bool ps_cores_decide(const ps_cores_question *question, int rank, ps_cores_plan *plan);

#endif
