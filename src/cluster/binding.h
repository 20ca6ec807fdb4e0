/* What can be seen of who bound this process to which CPUs, and which CPUs its job may use on this node. */
#ifndef PS_CLUSTER_BINDING_H
#define PS_CLUSTER_BINDING_H

#include "cluster/cores.h"

typedef struct {
    bool launched; /* by mpirun, srun or the like */
    bool asked;    /* the user asked for a binding, of processes or of threads */
    char by[96];   /* where that is seen: "--bind-to", "OMP_PROC_BIND=close"; "": nowhere */
    int n_granted; /* CPUs that Slurm gave the job on this node, or whose time a control group grants; 0: not known */
} ps_binding_evidence;

/* environment: "NAME=value" ..., NULL at the end. launcher: its n_arguments command line words; 0: not known. */
void ps_binding_read_evidence(char *const *environment, int n_arguments, char *const *launcher, ps_binding_evidence *evidence);

typedef struct {
    ps_binding_evidence evidence;
    ps_cpu_set bound;   /* where this process may run */
    ps_cpu_set allowed; /* where the job may run on this node: the cpuset of its control group, and what its launcher was left with */
} ps_binding;

/* Of this process, now; false when Linux does not tell. */
bool ps_binding_read(ps_binding *binding);

/* cpus: [at least the count of set]; cores and NUMA nodes from <root>/sys. Returns how many. */
int ps_binding_topology(const char *root, const ps_cpu_set *set, ps_cpu *cpus);
/* CPUs' worth of time that control groups (cpu.max, cpu.cfs_quota_us) grant this process, at least 1; 0: no limit. */
int ps_binding_quota(const char *root);
/* NUMA node of a PCI device ("0000:3b:00.0"); -1: not known. */
int ps_binding_numa_of(const char *root, const char *pci_device);

#endif
