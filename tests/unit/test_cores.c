/* Which cores each rank gets, on machines that are made up here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/binding.h"
#include "cluster/cores.h"

enum { MOST = 256 };

typedef struct {
    ps_cpu cpus[MOST];
    ps_cpu_set bound[MOST];
    int numa[MOST];
    ps_cores_question question;
} machine;

/* n_cores cores in n_numa equal parts; hyperthreads as Linux numbers them: CPU c and c + n_cores are one core. */
static void make(machine *m, int n_cores, int n_numa, int n_threads_per_core, int n_ranks) {
    memset(m, 0, sizeof *m);
    for (int i = 0; i < n_cores * n_threads_per_core; i++)
        m->cpus[i] = (ps_cpu){.cpu = i, .core = i % n_cores, .numa = i % n_cores * n_numa / n_cores};
    for (int rank = 0; rank < n_ranks; rank++) m->numa[rank] = -1;
    m->question = (ps_cores_question){
        .n_cpus = n_cores * n_threads_per_core, .cpus = m->cpus, .n_ranks = n_ranks, .bound = m->bound, .numa = m->numa, .launched = true};
}

static void bind(machine *m, int rank, const char *list) {
    assert_true(ps_cpu_set_parse(list, &m->bound[rank]));
}

static void expect(const machine *m, int rank, ps_cores_action action, const char *list, int n_threads) {
    ps_cores_plan plan;
    char text[512];
    assert_true(ps_cores_decide(&m->question, rank, &plan));
    ps_cpu_set_print(&plan.set, text, sizeof text);
    assert_int_equal(plan.action, action);
    assert_string_equal(text, list);
    assert_int_equal(plan.n_threads, n_threads);
}

static void two_ranks_on_16_cores_bound_to_one_each(void **state) {
    (void)state;
    machine m;
    make(&m, 16, 1, 1, 2);
    bind(&m, 0, "0");
    bind(&m, 1, "1");
    expect(&m, 0, PS_CORES_SPREAD, "0-7", 8);
    expect(&m, 1, PS_CORES_SPREAD, "8-15", 8);
    m.question.asked = true;
    expect(&m, 1, PS_CORES_SHORT, "1", 1);
}

static void one_rank_gets_all(void **state) {
    (void)state;
    machine m;
    make(&m, 16, 2, 1, 1);
    bind(&m, 0, "3");
    expect(&m, 0, PS_CORES_SPREAD, "0-15", 16);
    m.question.launched = false; /* taskset -c 3 ptyseries run */
    expect(&m, 0, PS_CORES_KEPT, "3", 1);
}

static void enough_is_kept(void **state) {
    (void)state;
    machine m;
    make(&m, 2, 1, 1, 2);
    bind(&m, 0, "0");
    bind(&m, 1, "1");
    expect(&m, 0, PS_CORES_KEPT, "0", 1);
    make(&m, 16, 1, 1, 3); /* 5.33 each; the smallest part that spreading gives is 5 */
    for (int rank = 0; rank < 3; rank++) bind(&m, rank, rank == 0 ? "0-4" : rank == 1 ? "5-9" : "10-15");
    expect(&m, 0, PS_CORES_KEPT, "0-4", 5);
}

/* Unbound, or bound to a socket that they share: not moved, and not more threads than there are cores. */
static void shared_cores_are_counted_in_parts(void **state) {
    (void)state;
    machine m;
    make(&m, 16, 1, 1, 2);
    bind(&m, 0, "0-15");
    bind(&m, 1, "0-15");
    expect(&m, 0, PS_CORES_KEPT, "0-15", 8);
    make(&m, 64, 2, 1, 4);
    for (int rank = 0; rank < 4; rank++) bind(&m, rank, rank % 2 ? "32-63" : "0-31");
    expect(&m, 3, PS_CORES_KEPT, "32-63", 16);
    for (int rank = 0; rank < 4; rank++) bind(&m, rank, "0-31"); /* all on one socket of two */
    expect(&m, 3, PS_CORES_SPREAD, "48-63", 16);
}

static void ranks_go_next_to_their_gpus(void **state) {
    (void)state;
    machine m;
    const char *expected[4] = {"32-47", "48-63", "0-15", "16-31"};
    make(&m, 64, 2, 1, 4);
    for (int rank = 0; rank < 4; rank++) {
        char core[8];
        snprintf(core, sizeof core, "%d", rank);
        bind(&m, rank, core);
        m.numa[rank] = rank < 2; /* the first two GPUs hang on the second socket */
    }
    for (int rank = 0; rank < 4; rank++) expect(&m, rank, PS_CORES_SPREAD, expected[rank], 16);
    m.numa[2] = -1; /* not all known: in order */
    for (int rank = 0; rank < 4; rank++) expect(&m, rank, PS_CORES_SPREAD, expected[(rank + 2) % 4], 16);
}

static void hyperthreads_go_by_core(void **state) {
    (void)state;
    machine m;
    make(&m, 16, 2, 2, 4);
    for (int rank = 0; rank < 4; rank++) bind(&m, rank, rank == 0 ? "0,16" : rank == 1 ? "1,17" : rank == 2 ? "2,18" : "3,19");
    expect(&m, 0, PS_CORES_SPREAD, "0-3,16-19", 8);
    expect(&m, 3, PS_CORES_SPREAD, "12-15,28-31", 8);
    make(&m, 4, 1, 2, 8); /* more ranks than cores: a hardware thread each */
    for (int rank = 0; rank < 8; rank++) bind(&m, rank, "0,4");
    expect(&m, 0, PS_CORES_SPREAD, "0", 1);
    expect(&m, 1, PS_CORES_SPREAD, "4", 1);
    expect(&m, 7, PS_CORES_SPREAD, "7", 1);
}

static void more_ranks_than_cpus(void **state) {
    (void)state;
    machine m;
    make(&m, 2, 1, 1, 5);
    for (int rank = 0; rank < 5; rank++) bind(&m, rank, "0-1");
    expect(&m, 4, PS_CORES_KEPT, "0-1", 1);
    for (int rank = 0; rank < 5; rank++) bind(&m, rank, "0");
    expect(&m, 0, PS_CORES_SPREAD, "0", 1);
    expect(&m, 4, PS_CORES_SPREAD, "1", 1);
}

/* 8 of a node's 64 cores are the job's. */
static void the_batch_systems_share(void **state) {
    (void)state;
    machine m;
    make(&m, 8, 1, 1, 2);
    for (int i = 0; i < 8; i++) m.cpus[i].cpu = m.cpus[i].core = 24 + i; /* a cpuset shows which */
    m.question.n_granted = 8;
    bind(&m, 0, "24");
    bind(&m, 1, "25");
    expect(&m, 0, PS_CORES_SPREAD, "24-27", 4);
    expect(&m, 1, PS_CORES_SPREAD, "28-31", 4);
    make(&m, 64, 2, 1, 2); /* nothing shows which */
    m.question.n_granted = 8;
    bind(&m, 0, "0");
    bind(&m, 1, "1");
    expect(&m, 1, PS_CORES_FREED, "0-63", 4);
    bind(&m, 0, "0-63");
    bind(&m, 1, "0-63");
    expect(&m, 1, PS_CORES_KEPT, "0-63", 4);
    bind(&m, 0, "0-3");
    bind(&m, 1, "4-7");
    expect(&m, 1, PS_CORES_KEPT, "4-7", 4);
}

static void lists_are_read_and_written(void **state) {
    (void)state;
    ps_cpu_set set;
    char text[64];
    assert_true(ps_cpu_set_parse(" 0-2,5,7-8\n", &set));
    assert_int_equal(ps_cpu_set_count(&set), 6);
    ps_cpu_set_print(&set, text, sizeof text);
    assert_string_equal(text, "0-2,5,7-8");
    assert_true(ps_cpu_set_parse("\n", &set));
    assert_int_equal(ps_cpu_set_count(&set), 0);
    assert_false(ps_cpu_set_parse("0-", &set));
    assert_false(ps_cpu_set_parse("a", &set));
    assert_false(ps_cpu_set_parse("3-1", &set));
    assert_false(ps_cpu_set_parse("1;2", &set));
    assert_true(ps_cpu_set_parse("0-99999", &set)); /* as many as there is room for */
    ps_cpu_set_print(&set, text, 4);
    assert_int_equal(strlen(text), 3);
}

/* ---- evidence ----------------------------------------------------------------------------------------------------------------- */

static ps_binding_evidence evidence_of(const char *const *environment, const char *const *words) {
    ps_binding_evidence evidence;
    int n = 0;
    while (words[n]) n++;
    ps_binding_read_evidence((char *const *)environment, n, (char *const *)words, &evidence);
    return evidence;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define MPI "OMPI_COMM_WORLD_RANK=0"

static void nothing_asked(void **state) {
    (void)state;
    ps_binding_evidence e = evidence_of(WORDS(MPI, "OMPI_MCA_orte_bound_at_launch=1", "OMP_NUM_THREADS=4"),
                                        WORDS("mpirun", "-n", "2", "ptyseries", "run", "a.json"));
    assert_true(e.launched && !e.asked && e.n_granted == 0);
    e = evidence_of(WORDS("HOME=/root"), WORDS("bash"));
    assert_true(!e.launched && !e.asked);
    e = evidence_of(WORDS(MPI, "OMP_PROC_BIND=false", "OMPI_MCA_rmaps_base_mapping_policy=node", "KMP_AFFINITY=none"),
                    WORDS("mpirun", "--map-by", "node"));
    assert_false(e.asked);
    e = evidence_of(WORDS("SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_CPU_BIND_TYPE=mask_cpu:", "SLURM_CPUS_ON_NODE=16"),
                    WORDS("slurmstepd: [7.0]"));
    assert_true(e.launched && !e.asked && e.n_granted == 16);
    /* Slurm starts mpirun's daemons unbound; that is not the user's wish */
    e = evidence_of(WORDS(MPI, "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_CPU_BIND_TYPE=none", "SLURM_CPUS_PER_TASK=4"), WORDS("orted"));
    assert_true(e.launched && !e.asked);
    e = evidence_of(WORDS("SLURM_PROCID=0", "SLURM_JOB_ID=7", "SLURM_CPUS_ON_NODE=16"), WORDS("/bin/bash", "slurm_script")); /* no srun */
    assert_false(e.launched);
}

static void asked(void **state) {
    (void)state;
    const char *const variables[] = {"OMPI_MCA_hwloc_base_binding_policy=core",
                                     "OMPI_MCA_hwloc_base_cpu_set=1",
                                     "OMPI_MCA_rmaps_base_mapping_policy=slot:PE=2",
                                     "OMPI_MCA_orte_rankfile=r",
                                     "PRTE_MCA_hwloc_default_binding_policy=none",
                                     "OMP_PROC_BIND=close",
                                     "OMP_PLACES=cores",
                                     "GOMP_CPU_AFFINITY=0-3",
                                     "KMP_AFFINITY=compact",
                                     "I_MPI_PIN_DOMAIN=socket",
                                     "MV2_CPU_MAPPING=0:1",
                                     "HYDRA_BIND=none"};
    const char *const options[] = {"--bind-to", "-bind-to",         "--bind-to-core", "--rankfile",
                                   "-rf",       "--cpu-set",        "--cpu-list",     "--map-by=slot:pe=2",
                                   "taskset",   "/usr/bin/numactl", "hwloc-bind",     "--cpu-bind=cores"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        ps_binding_evidence e = evidence_of(WORDS(MPI, variables[i]), WORDS("mpirun"));
        if (!e.asked || !strstr(variables[i], e.by)) fail_msg("%s is not seen", variables[i]);
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        ps_binding_evidence e = evidence_of(WORDS(MPI), WORDS("mpirun", options[i], "x"));
        if (!e.asked || strcmp(e.by, options[i]) != 0) fail_msg("%s is not seen", options[i]);
    }
    assert_true(evidence_of(WORDS(MPI), WORDS("mpirun", "--map-by", "ppr:2:node:PE=4")).asked);
    assert_true(evidence_of(WORDS("SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_CPUS_PER_TASK=4"), WORDS("slurmstepd")).asked);
    assert_true(evidence_of(WORDS("SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_CPU_BIND_TYPE=cores"), WORDS("slurmstepd")).asked);
}

/* ---- the machine as Linux shows it -------------------------------------------------------------------------------------------- */

static void write_file(const char *root, const char *path, const char *text) {
    char command[600], full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    snprintf(command, sizeof command, "mkdir -p $(dirname %s)", full);
    assert_int_equal(system(command), 0);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void the_topology_is_read(void **state) {
    (void)state;
    char root[] = "/tmp/ptyseries_cores_XXXXXX", command[64];
    ps_cpu_set set;
    ps_cpu cpus[4];
    assert_non_null(mkdtemp(root));
    write_file(root, "/sys/devices/system/cpu/cpu1/topology/core_cpus_list", "1,5\n");
    write_file(root, "/sys/devices/system/cpu/cpu5/topology/core_cpus_list", "1,5\n");
    write_file(root, "/sys/devices/system/cpu/cpu6/topology/thread_siblings_list", "2,6\n");
    write_file(root, "/sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
    write_file(root, "/sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
    write_file(root, "/sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
    assert_true(ps_cpu_set_parse("1,5-6", &set));
    assert_int_equal(ps_binding_topology(root, &set, cpus), 3);
    assert_true(cpus[0].cpu == 1 && cpus[0].core == 1 && cpus[0].numa == 0);
    assert_true(cpus[1].cpu == 5 && cpus[1].core == 1 && cpus[1].numa == 0);
    assert_true(cpus[2].cpu == 6 && cpus[2].core == 2 && cpus[2].numa == 1);
    assert_int_equal(ps_binding_numa_of(root, "0000:3B:00.0"), 1);
    assert_int_equal(ps_binding_numa_of(root, "0000:3C:00.0"), -1);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static void time_of_cpus_is_granted(void **state) {
    (void)state;
    char root[] = "/tmp/ptyseries_quota_XXXXXX", command[64];
    assert_non_null(mkdtemp(root));
    assert_int_equal(ps_binding_quota(root), 0);
    write_file(root, "/proc/self/cgroup", "3:cpu,cpuacct:/pod/a\n0::/pod/a/b\n");
    write_file(root, "/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    write_file(root, "/sys/fs/cgroup/pod/a/b/cpu.max", "max 100000\n");
    assert_int_equal(ps_binding_quota(root), 0);
    write_file(root, "/sys/fs/cgroup/pod/cpu.max", "1600000 100000\n"); /* an ancestor's */
    assert_int_equal(ps_binding_quota(root), 16);
    write_file(root, "/sys/fs/cgroup/pod/a/cpu.max", "50000 100000\n"); /* half of one */
    assert_int_equal(ps_binding_quota(root), 1);
    write_file(root, "/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    write_file(root, "/sys/fs/cgroup/cpu/pod/a/cpu.cfs_quota_us", "-1\n");
    write_file(root, "/sys/fs/cgroup/cpu/pod/a/cpu.cfs_period_us", "100000\n");
    assert_int_equal(ps_binding_quota(root), 0);
    write_file(root, "/sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us", "450000\n");
    write_file(root, "/sys/fs/cgroup/cpu/pod/cpu.cfs_period_us", "100000\n");
    assert_int_equal(ps_binding_quota(root), 4);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

static void this_process_is_seen(void **state) {
    (void)state;
    ps_binding binding;
    assert_true(ps_binding_read(&binding));
    assert_true(ps_cpu_set_count(&binding.bound) >= 1);
    for (int cpu = 0; cpu < PS_MAX_CPUS; cpu++)
        if (ps_cpu_set_has(&binding.bound, cpu)) assert_true(ps_cpu_set_has(&binding.allowed, cpu));
    assert_true(ps_cpu_set_count(&binding.allowed) <= sysconf(_SC_NPROCESSORS_CONF));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ranks_on_16_cores_bound_to_one_each),
        cmocka_unit_test(one_rank_gets_all),
        cmocka_unit_test(enough_is_kept),
        cmocka_unit_test(shared_cores_are_counted_in_parts),
        cmocka_unit_test(ranks_go_next_to_their_gpus),
        cmocka_unit_test(hyperthreads_go_by_core),
        cmocka_unit_test(more_ranks_than_cpus),
        cmocka_unit_test(the_batch_systems_share),
        cmocka_unit_test(lists_are_read_and_written),
        cmocka_unit_test(nothing_asked),
        cmocka_unit_test(asked),
        cmocka_unit_test(the_topology_is_read),
        cmocka_unit_test(time_of_cpus_is_granted),
        cmocka_unit_test(this_process_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
