#include "cluster/waiting.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char note_name[] = "PTYSERIES_WAITING"; /* carries the note over to the program started anew */

/* ---- ranks -------------------------------------------------------------------------------------------------------------------- */

/* "4(x2),3": four ranks on each of two nodes, three on the next. */
static int ranks_of_node(const char *list, long node) {
    while (*list) {
        char *end;
        long n = strtol(list, &end, 10), times = 1;
        if (end == list || n < 1) return 1;
        if (strncmp(end, "(x", 2) == 0) times = strtol(end + 2, &end, 10);
        if (*end == ')') end++;
        if (node < times) return (int)n;
        node -= times;
        list = *end == ',' ? end + 1 : end + strlen(end);
    }
    return 1;
}

static int positive(const char *name) {
    const char *text = getenv(name);
    int value = text ? atoi(text) : 0;
    return value > 0 ? value : 0;
}

static int count_ranks(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"};
    const char *slurm = getenv("SLURM_STEP_TASKS_PER_NODE"), *node = getenv("SLURM_NODEID");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (positive(names[i])) return positive(names[i]);
    return slurm && node ? ranks_of_node(slurm, atol(node)) : 1;
}

/* ---- cores -------------------------------------------------------------------------------------------------------------------- */

/* CPUs of the cpuset, which is where Linux lets a process go that asks for all; it is put back where its launcher bound it. */
static int count_cpuset(void) {
    static cpu_set_t bound, all, allowed;
    int n = 1;
    if (sched_getaffinity(0, sizeof bound, &bound) != 0) return (int)sysconf(_SC_NPROCESSORS_ONLN);
    memset(&all, 0xff, sizeof all);
    n = CPU_COUNT(&bound);
    if (sched_setaffinity(0, sizeof all, &all) != 0) return n;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) n = CPU_COUNT(&allowed);
    sched_setaffinity(0, sizeof bound, &bound);
    return n;
}

static bool read_line(const char *path, char *line, int bytes) {
    FILE *file = fopen(path, "r");
    bool good = file && fgets(line, bytes, file);
    if (file) fclose(file);
    return good;
}

/* The quota of one group's folder in CPUs; 0: none. */
static double quota_at(const char *root, const char *folder) {
    char path[4400], line[80];
    double quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/cpu.max", root, folder);
    if (read_line(path, line, sizeof line)) return sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : 0;
    snprintf(path, sizeof path, "%s/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", root, folder);
    if (read_line(path, line, sizeof line)) quota = atof(line);
    snprintf(path, sizeof path, "%s/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", root, folder);
    if (read_line(path, line, sizeof line)) period = atof(line);
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* The least quota of a group and those around it. */
static double quota_above(const char *root, char *folder, double least) {
    for (;;) {
        double quota = quota_at(root, folder);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
        char *slash = strrchr(folder, '/');
        if (!slash) return least;
        *slash = '\0';
    }
}

/* Lines are "hierarchy:controllers:group": none for version 2, "cpu" among them for version 1. */
static double find_quota(const char *root) {
    char path[256], line[4200];
    double least = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        bool is_cpu = controllers[1] == '\0';
        for (char *name = strtok(controllers + 1, ","); name; name = strtok(NULL, ",")) is_cpu |= strcmp(name, "cpu") == 0;
        if (is_cpu) least = quota_above(root, group, least);
    }
    if (file) fclose(file);
    return least;
}

static int count_cores(const char *root) {
    int n = count_cpuset(), granted = positive("SLURM_CPUS_ON_NODE");
    double quota = find_quota(root);
    if (granted && granted < n) n = granted;
    if (quota > 0 && quota < n) n = quota < 1 ? 1 : (int)(quota + 0.5);
    return n;
}

/* ---- what is done ------------------------------------------------------------------------------------------------------------- */

ps_waiting_node ps_waiting_look(const char *root) {
    return (ps_waiting_node){.n_ranks = count_ranks(), .n_threads = positive("OMP_NUM_THREADS"), .n_cores = count_cores(root)};
}

bool ps_waiting_is_crowded(const ps_waiting_node *node) {
    int n_threads = node->n_threads > 1 ? node->n_threads : 1;
    return node->n_ranks > 1 && (int64_t)node->n_ranks * n_threads > node->n_cores;
}

static bool openmp_is_told(void) {
    return getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT");
}

static void write_note(const ps_waiting_node *node) {
    char text[240], threads[48] = "";
    if (node->n_threads > 1) snprintf(threads, sizeof threads, " of %d threads", node->n_threads);
    snprintf(text, sizeof text, "%d ranks%s share %d core%s of this node: threads that wait leave their core to others%s", node->n_ranks,
             threads, node->n_cores, node->n_cores == 1 ? "" : "s",
             openmp_is_told() ? ", those of OpenMP as OMP_WAIT_POLICY and GOMP_SPINCOUNT say" : "");
    setenv(note_name, text, 1);
}

void ps_waiting_prepare(char **arguments) {
    if (getenv(note_name)) return; /* started anew */
    ps_waiting_node node = ps_waiting_look("");
    if (!ps_waiting_is_crowded(&node)) return;
    write_note(&node);
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    if (openmp_is_told() || node.n_threads == 1) return; /* teams of one never wait */
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    execv("/proc/self/exe", arguments); /* returns only where it fails: then threads spin, as they would have */
    unsetenv("OMP_WAIT_POLICY");
    unsetenv(note_name);
}

const char *ps_waiting_note(void) {
    return getenv(note_name);
}
