/* How many ranks and cores of a node the environment and the control group tell of, and when that is a crowd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cluster/waiting.h"

static char root[] = "/tmp/ptyseries_waiting_XXXXXX";

static const char *const variables[] = {
    "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NODEID",
    "SLURM_CPUS_ON_NODE",         "OMP_NUM_THREADS"};

static int clear(void **state) {
    (void)state;
    char command[128];
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    snprintf(command, sizeof command, "rm -rf %s && mkdir -p %s/proc/self", root, root);
    return system(command);
}

static int begin(void **state) {
    (void)state;
    return mkdtemp(root) ? 0 : 1;
}

static int end(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void put(const char *name, const char *text) {
    char path[256], command[300];
    snprintf(path, sizeof path, "%s/%s", root, name);
    snprintf(command, sizeof command, "mkdir -p $(dirname '%s')", path);
    assert_int_equal(system(command), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_ranks(void **state) {
    (void)state;
    assert_int_equal(ps_waiting_look(root).n_ranks, 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "4(x2),3,17", 1);
    assert_int_equal(ps_waiting_look(root).n_ranks, 1); /* which node is this? */
    const int expected[] = {4, 4, 3, 17, 1};
    for (int node = 0; node < 5; node++) {
        char text[8];
        snprintf(text, sizeof text, "%d", node);
        setenv("SLURM_NODEID", text, 1);
        assert_int_equal(ps_waiting_look(root).n_ranks, expected[node]);
    }
    setenv("SLURM_STEP_TASKS_PER_NODE", "many", 1);
    assert_int_equal(ps_waiting_look(root).n_ranks, 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "6", 1); /* mpirun inside of a step */
    assert_int_equal(ps_waiting_look(root).n_ranks, 6);
}

static void test_cores(void **state) {
    (void)state;
    int all = ps_waiting_look(root).n_cores;
    assert_true(all >= 1);
    setenv("SLURM_CPUS_ON_NODE", "1", 1);
    assert_int_equal(ps_waiting_look(root).n_cores, 1);
    setenv("SLURM_CPUS_ON_NODE", "100000", 1);
    assert_int_equal(ps_waiting_look(root).n_cores, all);
}

static void test_quota_of_version_2(void **state) {
    (void)state;
    int all = ps_waiting_look(root).n_cores;
    put("proc/self/cgroup", "0::/job/step\n");
    put("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
    assert_int_equal(ps_waiting_look(root).n_cores, all);
    put("sys/fs/cgroup/job/cpu.max", "60000 100000\n"); /* the group around it */
    assert_int_equal(ps_waiting_look(root).n_cores, 1);
}

static void test_quota_of_version_1(void **state) {
    (void)state;
    int all = ps_waiting_look(root).n_cores;
    put("proc/self/cgroup", "7:memory:/else\n4:cpu,cpuacct:/job\n1:cpuset:/\n");
    put("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "50000\n");
    put("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(ps_waiting_look(root).n_cores, all);
    put("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
    assert_int_equal(ps_waiting_look(root).n_cores, 1);
}

static void test_crowd(void **state) {
    (void)state;
    assert_false(ps_waiting_is_crowded(&(ps_waiting_node){.n_ranks = 1, .n_threads = 64, .n_cores = 1})); /* OpenMP itself sees that */
    assert_false(ps_waiting_is_crowded(&(ps_waiting_node){.n_ranks = 16, .n_threads = 0, .n_cores = 16}));
    assert_true(ps_waiting_is_crowded(&(ps_waiting_node){.n_ranks = 17, .n_threads = 0, .n_cores = 16}));
    assert_false(ps_waiting_is_crowded(&(ps_waiting_node){.n_ranks = 2, .n_threads = 8, .n_cores = 16}));
    assert_true(ps_waiting_is_crowded(&(ps_waiting_node){.n_ranks = 2, .n_threads = 9, .n_cores = 16}));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_ranks, clear), cmocka_unit_test_setup(test_cores, clear),
                                       cmocka_unit_test_setup(test_quota_of_version_2, clear),
                                       cmocka_unit_test_setup(test_quota_of_version_1, clear), cmocka_unit_test(test_crowd)};
    return cmocka_run_group_tests(tests, begin, end);
}
