/* What bounds memory, on hosts whose /proc and /sys are written here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/memory_bounds.h"

static const uint64_t MiB = (uint64_t)1 << 20;
static char root[64];

static void write_file(const char *path, const char *text) {
    char command[600], full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    snprintf(command, sizeof command, "mkdir -p $(dirname %s)", full);
    assert_int_equal(system(command), 0);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/ptyseries_bounds_XXXXXX");
    assert_non_null(mkdtemp(root));
    write_file("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1024 kB\nMemAvailable:    8388608 kB\nCommitLimit:     4194304 "
                                "kB\nCommitted_AS:    1048576 kB\n");
    return 0;
}

static int remove_root(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static ps_memory_share share_here(void) {
    ps_memory_bounds bounds = {0};
    ps_memory_share share;
    ps_memory_bounds_add_host(root, &bounds);
    ps_memory_bounds_add_cgroups(root, &bounds);
    ps_memory_share_find(&bounds, NULL, &share);
    return share;
}

static void expect(uint64_t mebibytes, const char *text) {
    ps_memory_share share = share_here();
    if (share.free_bytes != mebibytes * MiB || !strstr(share.text, text))
        fail_msg("%" PRIu64 " MiB (%s), expected %" PRIu64 " (... %s ...)", share.free_bytes / MiB, share.text, mebibytes, text);
    assert_true(share.bytes < share.free_bytes && share.bytes > share.free_bytes / 10 * 9);
}

static void the_hosts_free_memory(void **state) {
    (void)state;
    expect(8192, "MemAvailable");
    write_file("/proc/sys/vm/overcommit_memory", "2\n");
    expect(3072, "commit limit");
    write_file("/proc/sys/vm/overcommit_memory", "1\n");
    expect(8192, "MemAvailable");
}

static void unified_groups_and_their_ancestors(void **state) {
    (void)state;
    write_file("/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
    write_file("/proc/self/mountinfo",
               "24 23 0:21 / /proc rw - proc proc rw\n31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
    write_file("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
    expect(8192, "MemAvailable");
    write_file("/sys/fs/cgroup/slurm/job_7/memory.max", "2147483648\n"); /* an ancestor's limit */
    write_file("/sys/fs/cgroup/slurm/job_7/memory.current", "1073741824\n");
    expect(1024, "/slurm/job_7: memory.max is 2 GiB, 1 GiB in use");
    write_file("/sys/fs/cgroup/slurm/job_7/memory.stat", "anon 5\nfile 900000000\ninactive_file 268435456\nactive_file 268435456\n");
    expect(1536, "512 MiB in use"); /* files that were read are no reason to refuse */
    write_file("/sys/fs/cgroup/slurm/job_7/memory.high", "1610612736\n");
    expect(1024, "memory.high");
    write_file("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "104857600\n");
    write_file("/sys/fs/cgroup/slurm/job_7/step_0/memory.current", "209715200\n"); /* above the limit: nothing is left */
    ps_memory_share share = share_here();
    assert_true(share.free_bytes == 0 && share.bytes == 0);
}

static void a_container_that_does_not_see_its_own_path(void **state) {
    (void)state;
    write_file("/proc/self/cgroup", "0::/docker/abc\n");
    write_file("/proc/self/mountinfo", "31 23 0:28 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    write_file("/sys/fs/cgroup/memory.max", "1073741824\n");
    write_file("/sys/fs/cgroup/memory.current", "0\n");
    expect(1024, "memory.max");
    write_file("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n"); /* the path is not there */
    expect(1024, "memory.max");
    write_file("/proc/self/cgroup", "0::/../other\n");
    expect(1024, "memory.max");
}

static void groups_of_version_1(void **state) {
    (void)state;
    write_file("/proc/self/cgroup", "9:cpuset:/\n4:memory,hugetlb:/slurm/uid_0/job_7\n0::/\n");
    write_file("/proc/self/mountinfo", "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n35 31 0:32 / "
                                       "/sys/fs/cgroup/memory rw - cgroup cgroup rw,memory,hugetlb\n");
    write_file("/sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("/sys/fs/cgroup/memory/slurm/uid_0/job_7/memory.usage_in_bytes", "1048576\n");
    expect(8192, "MemAvailable");
    write_file("/sys/fs/cgroup/memory/slurm/uid_0/memory.limit_in_bytes", "3221225472\n");
    write_file("/sys/fs/cgroup/memory/slurm/uid_0/memory.usage_in_bytes", "2147483648\n");
    write_file("/sys/fs/cgroup/memory/slurm/uid_0/memory.stat", "inactive_file 1\ntotal_inactive_file 1073741824\ntotal_active_file 0\n");
    expect(2048, "memory.limit_in_bytes is 3 GiB, 1 GiB in use");
}

static void damaged_files_are_no_bounds(void **state) {
    (void)state;
    write_file("/proc/self/cgroup", "0::/a\nnonsense\n");
    write_file("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\n");
    write_file("/sys/fs/cgroup/a/memory.max", "-5\n");
    expect(8192, "MemAvailable");
    write_file("/sys/fs/cgroup/a/memory.max", "\n");
    expect(8192, "MemAvailable");
    write_file("/proc/meminfo", "MemAvailable: lots\n");
    ps_memory_share share = share_here();
    assert_true(share.bytes == UINT64_MAX);
}

static void slurms_memory(void **state) {
    (void)state;
    ps_memory_bounds bounds = {0};
    ps_memory_share share;
    setenv("SLURM_MEM_PER_NODE", "4096", 1);
    ps_memory_bounds_add_slurm(&bounds);
    assert_int_equal(bounds.n, 0); /* not in a job */
    setenv("SLURM_JOB_ID", "7", 1);
    ps_memory_bounds_add_slurm(&bounds);
    assert_int_equal(bounds.n, 1);
    setenv("SLURM_MEM_PER_CPU", "1000", 1);
    setenv("SLURM_CPUS_ON_NODE", "3", 1);
    setenv("SLURM_MEM_PER_NODE", "0", 1); /* all there is */
    bounds.n = 0;
    ps_memory_bounds_add_slurm(&bounds);
    ps_memory_share_find(&bounds, NULL, &share);
    assert_true(bounds.n == 1 && share.free_bytes == 3000 * MiB && strstr(share.text, "SLURM_MEM_PER_CPU=1000 on 3 CPUs"));
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_MEM_PER_NODE");
    unsetenv("SLURM_MEM_PER_CPU");
    unsetenv("SLURM_CPUS_ON_NODE");
}

static rlim_t used_address_space(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%llu", &pages), 1);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void the_process_own_limit(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        ps_memory_bounds bounds = {0};
        const rlim_t room = (rlim_t)1 << 40, most = used_address_space() + room; /* a sanitizer takes terabytes for itself */
        const struct rlimit limit = {most, most};
        setrlimit(RLIMIT_AS, &limit);
        ps_memory_bounds_add_process(&bounds);
        bool good = bounds.n == 1 && strstr(bounds.bounds[0].text, "ulimit -v") && bounds.bounds[0].free_bytes < limit.rlim_cur &&
                    bounds.bounds[0].free_bytes > room / 2;
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void the_tightest_share_decides(void **state) {
    (void)state;
    ps_memory_bounds bounds = {.n = 2,
                               .bounds = {{.free_bytes = 900 * MiB, .owner = {1, 0}, .text = "of all"},
                                          {.free_bytes = 400 * MiB, .owner = {4, 9}, .text = "own"}}};
    ps_memory_share share;
    ps_memory_share_find(&bounds, NULL, &share);
    assert_string_equal(share.text, "own");
    ps_memory_share_find(&bounds, (const int[]){3, 1}, &share);
    assert_string_equal(share.text, "of all");
    assert_true(share.n_sharing == 3 && share.free_bytes == 900 * MiB && share.bytes <= 300 * MiB && share.bytes > 280 * MiB);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_hosts_free_memory, make_root, remove_root),
        cmocka_unit_test_setup_teardown(unified_groups_and_their_ancestors, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_container_that_does_not_see_its_own_path, make_root, remove_root),
        cmocka_unit_test_setup_teardown(groups_of_version_1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(damaged_files_are_no_bounds, make_root, remove_root),
        cmocka_unit_test(slurms_memory),
        cmocka_unit_test(the_process_own_limit),
        cmocka_unit_test(the_tightest_share_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
