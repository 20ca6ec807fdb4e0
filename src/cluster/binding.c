#include "cluster/binding.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "cluster/memory_files.h"

/* ---- what the user asked for -------------------------------------------------------------------------------------------------- */

/* Variables by which a user (or mpirun, from its options) asks for a binding. part: only values that hold it; not: values that ask for
 * none. */
typedef struct {
    const char *name, *part, *not ;
} binding_variable;

static const binding_variable variables[] = {{"OMPI_MCA_hwloc_base_binding_policy", NULL, NULL},
                                             {"OMPI_MCA_hwloc_base_cpu_set", NULL, NULL},
                                             {"OMPI_MCA_hwloc_base_cpu_list", NULL, NULL},
                                             {"OMPI_MCA_rmaps_base_cpus_per_rank", NULL, NULL},
                                             {"OMPI_MCA_rmaps_base_mapping_policy", "pe=", NULL},
                                             {"OMPI_MCA_orte_rankfile", NULL, NULL},
                                             {"OMPI_MCA_rmaps_rank_file_path", NULL, NULL},
                                             {"PRTE_MCA_hwloc_default_binding_policy", NULL, NULL},
                                             {"PRTE_MCA_hwloc_default_cpu_list", NULL, NULL},
                                             {"PRTE_MCA_rmaps_default_mapping_policy", "pe=", NULL},
                                             {"PRTE_MCA_rmaps_rank_file_path", NULL, NULL},
                                             {"HYDRA_BINDING", NULL, NULL},
                                             {"HYDRA_BIND", NULL, NULL},
                                             {"I_MPI_PIN", NULL, NULL},
                                             {"I_MPI_PIN_DOMAIN", NULL, NULL},
                                             {"I_MPI_PIN_PROCESSOR_LIST", NULL, NULL},
                                             {"MV2_CPU_MAPPING", NULL, NULL},
                                             {"MV2_CPU_BINDING_POLICY", NULL, NULL},
                                             {"OMP_PROC_BIND", NULL, "false"},
                                             {"OMP_PLACES", NULL, NULL},
                                             {"GOMP_CPU_AFFINITY", NULL, NULL},
                                             {"KMP_AFFINITY", NULL, "none"}};

static const char *value_of(char *const *environment, const char *name) {
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') return *environment + length + 1;
    return NULL;
}

static bool asked_by_variable(char *const *environment, char *by, size_t bytes) {
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = value_of(environment, variables[i].name);
        if (!value || !*value || (variables[i].part && !strcasestr(value, variables[i].part))) continue;
        if (variables[i].not &&strcasestr(value, variables[i].not )) continue;
        snprintf(by, bytes, "%s=%.40s", variables[i].name, value);
        return true;
    }
    return false;
}

/* mpirun's options with one or two dashes, and programs that bind what they start. */
static bool asks(const char *word, const char *next) {
    static const char *const options[] = {"bind-to",  "binding",  "rankfile",      "cpu-set",      "cpu-list",
                                          "cpu-bind", "cpu_bind", "cpus-per-proc", "cpus-per-rank"};
    static const char *const binders[] = {"taskset", "numactl", "hwloc-bind", "likwid-pin", "likwid-mpirun", "dplace", "omplace"};
    const char *name = strrchr(word, '/') ? strrchr(word, '/') + 1 : word, *option = word + strspn(word, "-");
    for (size_t i = 0; i < sizeof binders / sizeof *binders; i++)
        if (strcmp(name, binders[i]) == 0) return true;
    if (option == word || option > word + 2) return false;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (strncmp(option, options[i], strlen(options[i])) == 0) return true;
    return strcmp(option, "rf") == 0 ||
           (strncmp(option, "map-by", 6) == 0 && (strcasestr(option, "pe=") || (next && strcasestr(next, "pe="))));
}

/* Slurm binds tasks by itself (mask_cpu) when it is not told how; --cpus-per-task says how many CPUs a task is to have. */
static bool asked_of_slurm(char *const *environment, char *by, size_t bytes) {
    static const char *const types[] = {"none", "threads", "cores", "sockets", "ldoms", "rank", "map_"};
    const char *type = value_of(environment, "SLURM_CPU_BIND_TYPE"), *per_task = value_of(environment, "SLURM_CPUS_PER_TASK");
    for (size_t i = 0; type && i < sizeof types / sizeof *types; i++)
        if (strstr(type, types[i])) {
            snprintf(by, bytes, "SLURM_CPU_BIND_TYPE=%.40s", type);
            return true;
        }
    if (per_task) snprintf(by, bytes, "SLURM_CPUS_PER_TASK=%.40s", per_task);
    return per_task != NULL;
}

void ps_binding_read_evidence(char *const *environment, int n_arguments, char *const *launcher, ps_binding_evidence *evidence) {
    const char *granted = value_of(environment, "SLURM_CPUS_ON_NODE");
    bool by_mpirun = value_of(environment, "OMPI_COMM_WORLD_RANK") || value_of(environment, "MV2_COMM_WORLD_RANK");
    bool by_srun = !by_mpirun && value_of(environment, "SLURM_STEP_ID") && value_of(environment, "SLURM_PROCID");
    *evidence =
        (ps_binding_evidence){.launched = by_mpirun || by_srun || value_of(environment, "PMIX_RANK") || value_of(environment, "PMI_RANK"),
                              .n_granted = granted ? atoi(granted) : 0};
    evidence->asked = asked_by_variable(environment, evidence->by, sizeof evidence->by);
    if (!evidence->asked && by_srun) evidence->asked = asked_of_slurm(environment, evidence->by, sizeof evidence->by);
    for (int i = 0; i < n_arguments && !evidence->asked; i++) {
        evidence->asked = asks(launcher[i], i + 1 < n_arguments ? launcher[i + 1] : NULL);
        if (evidence->asked) snprintf(evidence->by, sizeof evidence->by, "%.80s", launcher[i]);
    }
}

/* ---- the launcher ------------------------------------------------------------------------------------------------------------- */

enum { MOST_BYTES = 1 << 20, MOST_WORDS = 4096 };

/* A file of words that NULs end; *words: [returned + 1] into *text, both malloc'd. 0: it cannot be read. */
static int read_words(pid_t pid, const char *name, char **text, char ***words) {
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    *text = malloc(MOST_BYTES + 1);
    *words = calloc(MOST_WORDS + 1, sizeof **words);
    size_t length = file && *text && *words ? fread(*text, 1, MOST_BYTES, file) : 0;
    if (file) fclose(file);
    if (*text) (*text)[length] = '\0';
    for (size_t at = 0; at < length && n < MOST_WORDS; at += strlen(*text + at) + 1) (*words)[n++] = *text + at;
    return n;
}

static bool is_rank(pid_t pid) {
    static const char *const marks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK"};
    char *text, **words;
    bool found = false;
    read_words(pid, "environ", &text, &words);
    for (size_t i = 0; words && i < sizeof marks / sizeof *marks; i++) found |= value_of(words, marks[i]) != NULL;
    free(text);
    free(words);
    return found;
}

static pid_t parent_of(pid_t pid) {
    char path[64];
    uint64_t parent = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return ps_memory_file_entry("", path, "PPid:", &parent) ? (pid_t)parent : 0;
}

/* The first ancestor that is no rank's process itself: mpirun, its daemon, Slurm's step. */
static pid_t find_launcher(void) {
    pid_t pid = getppid();
    while (pid > 1 && is_rank(pid)) pid = parent_of(pid);
    return pid;
}

static bool read_allowed_list(pid_t pid, ps_cpu_set *set) {
    char path[64], line[8192];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, "Cpus_allowed_list:", 18) == 0 && ps_cpu_set_parse(line + 18, set);
    if (file) fclose(file);
    return found;
}

/* ---- what the job may use ----------------------------------------------------------------------------------------------------- */

static void intersect(ps_cpu_set *set, const ps_cpu_set *with) {
    for (int i = 0; i < PS_MAX_CPUS / 64; i++) set->bits[i] &= with->bits[i];
}

static void unite(ps_cpu_set *set, const ps_cpu_set *with) {
    for (int i = 0; i < PS_MAX_CPUS / 64; i++) set->bits[i] |= with->bits[i];
}

static void narrow_to_file(const char *folder, const char *name, ps_cpu_set *allowed) {
    char path[PS_MEMORY_PATH], line[8192];
    ps_cpu_set found;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path || !ps_memory_file_line("", path, line, sizeof line)) return;
    if (ps_cpu_set_parse(line, &found) && ps_cpu_set_count(&found) > 0) intersect(allowed, &found);
}

static void narrow_to_cgroups(ps_cpu_set *allowed) {
    char folder[PS_MEMORY_PATH];
    size_t unused;
    if (ps_cgroup_folder("", 1, "cpuset", folder, &unused)) narrow_to_file(folder, "cpuset.cpus", allowed);
    if (ps_cgroup_folder("", 2, "cpuset", folder, &unused)) narrow_to_file(folder, "cpuset.cpus.effective", allowed);
}

/* Version 2: "1600000 100000", or "max 100000"; version 1: two files, -1 where there is no limit. */
static double quota_of(const char *root, const char *folder, int version) {
    char path[PS_MEMORY_PATH + 32], line[96];
    double quota = 0, period = 0;
    uint64_t value;
    if (version == 2) {
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        bool is_limited = ps_memory_file_line(root, path, line, sizeof line) && sscanf(line, "%lf %lf", &quota, &period) == 2;
        return is_limited && quota > 0 && period > 0 ? quota / period : 0;
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (ps_memory_file_number(root, path, &value)) quota = (double)value;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (ps_memory_file_number(root, path, &value)) period = (double)value;
    return quota > 0 && period > 0 ? quota / period : 0;
}

int ps_binding_quota(const char *root) {
    double least = 0;
    for (int version = 1; version <= 2; version++) {
        char folder[PS_MEMORY_PATH];
        size_t mount_length;
        if (!ps_cgroup_folder(root, version, "cpu", folder, &mount_length)) continue;
        for (char *end = folder; end; *end = '\0') {
            double quota = quota_of(root, folder, version);
            if (quota > 0 && (least == 0 || quota < least)) least = quota;
            end = strlen(folder) > mount_length ? strrchr(folder, '/') : NULL;
            if (!end || (size_t)(end - folder) < mount_length) break;
        }
    }
    return least == 0 ? 0 : least < 1 ? 1 : (int)least;
}

bool ps_binding_read(ps_binding *binding) {
    char *text, **words, *own_text, **own;
    ps_cpu_set launchers;
    *binding = (ps_binding){0};
    if (sched_getaffinity(0, sizeof binding->bound, (cpu_set_t *)&binding->bound) != 0) return false;
    pid_t launcher = find_launcher();
    int n = read_words(launcher, "cmdline", &text, &words);
    read_words(getpid(), "environ", &own_text, &own); /* as it was started: MPI adds variables of its own, also without a launcher */
    ps_binding_read_evidence(own, n, words, &binding->evidence);
    int quota = ps_binding_quota("");
    if (quota > 0 && (binding->evidence.n_granted <= 0 || quota < binding->evidence.n_granted)) binding->evidence.n_granted = quota;
    free(text);
    free(words);
    free(own_text);
    free(own);
    memset(&binding->allowed, 0xff, sizeof binding->allowed);
    narrow_to_file("/sys/devices/system/cpu", "online", &binding->allowed);
    narrow_to_cgroups(&binding->allowed);
    if (launcher > 1 && read_allowed_list(launcher, &launchers)) intersect(&binding->allowed, &launchers);
    unite(&binding->allowed, &binding->bound);
    return true;
}

/* ---- topology ----------------------------------------------------------------------------------------------------------------- */

enum { MOST_NUMA_NODES = 256 };

static int first_of(const ps_cpu_set *set) {
    for (int cpu = 0; cpu < PS_MAX_CPUS; cpu++)
        if (ps_cpu_set_has(set, cpu)) return cpu;
    return -1;
}

static int core_of(const char *root, int cpu) {
    static const char *const names[] = {"core_cpus_list", "thread_siblings_list"};
    for (int i = 0; i < 2; i++) {
        char path[128], line[512];
        ps_cpu_set siblings;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, names[i]);
        if (ps_memory_file_line(root, path, line, sizeof line) && ps_cpu_set_parse(line, &siblings) && ps_cpu_set_has(&siblings, cpu))
            return first_of(&siblings);
    }
    return cpu;
}

int ps_binding_topology(const char *root, const ps_cpu_set *set, ps_cpu *cpus) {
    int n = 0;
    for (int cpu = 0; cpu < PS_MAX_CPUS; cpu++)
        if (ps_cpu_set_has(set, cpu)) cpus[n++] = (ps_cpu){.cpu = cpu, .core = core_of(root, cpu)};
    for (int node = 0; node < MOST_NUMA_NODES; node++) {
        char path[96], line[8192];
        ps_cpu_set members;
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
        if (!ps_memory_file_line(root, path, line, sizeof line) || !ps_cpu_set_parse(line, &members)) continue;
        for (int i = 0; i < n; i++)
            if (ps_cpu_set_has(&members, cpus[i].cpu)) cpus[i].numa = node;
    }
    return n;
}

int ps_binding_numa_of(const char *root, const char *pci_device) {
    char path[128], name[32], line[32];
    size_t n = 0;
    for (; pci_device[n] && n + 1 < sizeof name; n++) name[n] = (char)tolower((unsigned char)pci_device[n]);
    name[n] = '\0';
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", name);
    return ps_memory_file_line(root, path, line, sizeof line) ? atoi(line) : -1;
}
