#include "cluster/memory_bounds.h"

#include <inttypes.h>
#include <omp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cluster/memory_files.h"
#include "core/text.h"

/* Kinds of owners that are no directory of a control group. */
enum { OWNER_HOST = 1, OWNER_COMMIT, OWNER_SLURM, OWNER_PROCESS };

__attribute__((format(printf, 5, 6))) static void add_bound(ps_memory_bounds *bounds, uint64_t free_bytes, uint64_t kind, uint64_t which,
                                                            const char *format, ...) {
    ps_memory_bound *to = &bounds->bounds[0];
    if (bounds->n < PS_MAX_MEMORY_BOUNDS) {
        to = &bounds->bounds[bounds->n++];
    } else {
        for (int i = 1; i < bounds->n; i++)
            if (bounds->bounds[i].free_bytes > to->free_bytes) to = &bounds->bounds[i];
        if (to->free_bytes <= free_bytes) return;
    }
    *to = (ps_memory_bound){.free_bytes = free_bytes, .owner = {kind, which}};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(to->text, sizeof to->text, format, arguments);
    va_end(arguments);
}

static uint64_t less(uint64_t limit, uint64_t used) {
    return limit > used ? limit - used : 0;
}

/* ---- the host ----------------------------------------------------------------------------------------------------------------- */

void ps_memory_bounds_add_host(const char *root, ps_memory_bounds *bounds) {
    uint64_t available, limit, committed, mode;
    if (ps_memory_file_entry(root, "/proc/meminfo", "MemAvailable:", &available))
        add_bound(bounds, available * 1024, OWNER_HOST, 0, "free memory of the host (MemAvailable)");
    bool strict = ps_memory_file_number(root, "/proc/sys/vm/overcommit_memory", &mode) && mode == 2;
    if (strict && ps_memory_file_entry(root, "/proc/meminfo", "CommitLimit:", &limit) &&
        ps_memory_file_entry(root, "/proc/meminfo", "Committed_AS:", &committed))
        add_bound(bounds, less(limit, committed) * 1024, OWNER_COMMIT, 0, "the host's commit limit (vm.overcommit_memory is 2)");
}

/* ---- control groups ----------------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *limit, *usage, *statistics[2];
} group_files;

static const group_files version_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};
static const group_files version_2 = {"memory.max", "memory.current", {"inactive_file", "active_file"}};
static const group_files version_2_high = {"memory.high", "memory.current", {"inactive_file", "active_file"}};

/* Pages of files that were read are given up when memory is wanted. */
static uint64_t reclaimable(const char *root, const char *folder, const group_files *files) {
    char path[PS_MEMORY_PATH];
    uint64_t all = 0, pages;
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    for (int i = 0; i < 2; i++)
        if (ps_memory_file_entry(root, path, files->statistics[i], &pages)) all += pages;
    return all;
}

static void add_group(const char *root, const char *folder, const group_files *files, ps_memory_bounds *bounds) {
    const uint64_t none = (uint64_t)1 << 60; /* what version 1 writes when there is no limit is a little less than 2^63 */
    char path[PS_MEMORY_PATH];
    uint64_t limit, usage, device, inode;
    snprintf(path, sizeof path, "%s/%s", folder, files->limit);
    if (!ps_memory_file_number(root, path, &limit) || limit >= none) return;
    snprintf(path, sizeof path, "%s/%s", folder, files->usage);
    if (!ps_memory_file_number(root, path, &usage) || !ps_memory_file_identity(root, folder, &device, &inode)) return;
    usage = less(usage, reclaimable(root, folder, files));
    char all[PS_BYTES_TEXT], used[PS_BYTES_TEXT];
    add_bound(bounds, less(limit, usage), device + 16, inode, "control group %.120s: %s is %s, %s in use", folder, files->limit,
              ps_text_bytes((double)limit, all), ps_text_bytes((double)usage, used));
}

/* folder: where the process is, below mount; then every folder above it. */
static void add_groups(const char *root, char *folder, size_t mount_length, bool is_version_2, ps_memory_bounds *bounds) {
    for (;;) {
        add_group(root, folder, is_version_2 ? &version_2 : &version_1, bounds);
        if (is_version_2) add_group(root, folder, &version_2_high, bounds);
        char *end = strrchr(folder, '/');
        if (strlen(folder) <= mount_length || !end || (size_t)(end - folder) < mount_length) return;
        *end = '\0';
    }
}

void ps_memory_bounds_add_cgroups(const char *root, ps_memory_bounds *bounds) {
    for (int version = 1; version <= 2; version++) {
        char folder[PS_MEMORY_PATH];
        size_t mount_length;
        if (ps_cgroup_folder(root, version, "memory", folder, &mount_length)) add_groups(root, folder, mount_length, version == 2, bounds);
    }
}

/* ---- the process and Slurm ---------------------------------------------------------------------------------------------------- */

/* Address space that the threads still to be started take with their stacks and the C library's arenas: two teams (computing, reading) and
 * a few more. Arenas that do not fit are done without. */
static uint64_t threads_bytes(uint64_t free_bytes) {
    const uint64_t arena = (uint64_t)64 << 20, default_stack = (uint64_t)2 << 20;
    uint64_t n = 2 * (uint64_t)omp_get_max_threads() + 2, stack = default_stack;
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) stack = limit.rlim_cur;
    uint64_t arenas = n * arena < free_bytes / 4 ? n * arena : free_bytes / 4;
    return n * stack + arenas;
}

static void add_limit(ps_memory_bounds *bounds, __rlimit_resource_t resource, const char *entry, const char *what) {
    struct rlimit limit;
    uint64_t taken;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    if (!ps_memory_file_entry("", "/proc/self/status", entry, &taken)) return;
    uint64_t left = less(limit.rlim_cur, taken * 1024);
    char all[PS_BYTES_TEXT], used[PS_BYTES_TEXT], threads[PS_BYTES_TEXT];
    add_bound(bounds, less(left, threads_bytes(left)), OWNER_PROCESS, (uint64_t)getpid(), "%s: %s, %s in use, %s for threads", what,
              ps_text_bytes((double)limit.rlim_cur, all), ps_text_bytes((double)taken * 1024, used),
              ps_text_bytes((double)threads_bytes(left), threads));
}

void ps_memory_bounds_add_process(ps_memory_bounds *bounds) {
    add_limit(bounds, RLIMIT_AS, "VmSize:", "address space of the process (ulimit -v)");
    add_limit(bounds, RLIMIT_DATA, "VmData:", "data of the process (ulimit -d)");
}

static uint64_t variable(const char *name) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

/* In MiB. What the ranks hold already is little beside it, and Slurm's own count of it is not at hand. */
void ps_memory_bounds_add_slurm(ps_memory_bounds *bounds) {
    uint64_t node = variable("SLURM_MEM_PER_NODE"), cpu = variable("SLURM_MEM_PER_CPU"), n_cpus = variable("SLURM_CPUS_ON_NODE");
    uint64_t gpu = variable("SLURM_MEM_PER_GPU"), n_gpus = variable("SLURM_GPUS_ON_NODE");
    if (!getenv("SLURM_JOB_ID")) return;
    if (node > 0) add_bound(bounds, node << 20, OWNER_SLURM, 0, "Slurm's memory of the node (SLURM_MEM_PER_NODE=%" PRIu64 ")", node);
    if (cpu > 0 && n_cpus > 0)
        add_bound(bounds, cpu * n_cpus << 20, OWNER_SLURM, 1,
                  "Slurm's memory of the node (SLURM_MEM_PER_CPU=%" PRIu64 " on %" PRIu64 " CPUs)", cpu, n_cpus);
    if (gpu > 0 && n_gpus > 0)
        add_bound(bounds, gpu * n_gpus << 20, OWNER_SLURM, 2,
                  "Slurm's memory of the node (SLURM_MEM_PER_GPU=%" PRIu64 " on %" PRIu64 " GPUs)", gpu, n_gpus);
}

/* ---- shares ------------------------------------------------------------------------------------------------------------------- */

void ps_memory_share_find(const ps_memory_bounds *bounds, const int *n_sharing, ps_memory_share *share) {
    *share = (ps_memory_share){.bytes = UINT64_MAX, .free_bytes = UINT64_MAX, .n_sharing = 1, .text = "no limit is known"};
    for (int i = 0; i < bounds->n; i++) {
        const ps_memory_bound *bound = &bounds->bounds[i];
        int n = n_sharing && n_sharing[i] > 1 ? n_sharing[i] : 1;
        uint64_t part = bound->free_bytes / (uint64_t)n;
        if (part >= share->bytes) continue;
        *share = (ps_memory_share){.bytes = part, .free_bytes = bound->free_bytes, .n_sharing = n};
        snprintf(share->text, sizeof share->text, "%s", bound->text);
    }
    if (share->bytes != UINT64_MAX) share->bytes -= share->bytes / 16;
}

static void read_bounds(ps_memory_bounds *bounds) {
    bounds->n = 0;
    ps_memory_bounds_add_host("", bounds);
    ps_memory_bounds_add_cgroups("", bounds);
    ps_memory_bounds_add_process(bounds);
    ps_memory_bounds_add_slurm(bounds);
}

void ps_memory_share_alone(ps_memory_share *share) {
    ps_memory_bounds bounds;
    read_bounds(&bounds);
    ps_memory_share_find(&bounds, NULL, share);
}

static bool has_owner(const ps_memory_bounds *bounds, const uint64_t owner[2]) {
    for (int i = 0; i < bounds->n; i++)
        if (memcmp(bounds->bounds[i].owner, owner, sizeof bounds->bounds[i].owner) == 0) return true;
    return false;
}

/* How many of the node's ranks have each of this rank's bounds; all: [n_ranks] of the node. */
static void count_sharing(const ps_memory_bounds *mine, const ps_memory_bounds *all, int n_ranks, int *n_sharing) {
    for (int i = 0; i < mine->n; i++) {
        n_sharing[i] = 0;
        for (int rank = 0; rank < n_ranks; rank++) n_sharing[i] += has_owner(&all[rank], mine->bounds[i].owner);
    }
}

ps_code ps_memory_share_measure(const ps_cluster *cluster, ps_memory_share *share, ps_error *error) {
    ps_memory_bounds mine, *all = NULL;
    int n_sharing[PS_MAX_MEMORY_BOUNDS];
    MPI_Comm node = MPI_COMM_NULL;
    ps_code code = PS_OK;
    if (cluster->n_ranks == 1) {
        ps_memory_share_alone(share);
        return PS_OK;
    }
    PS_GO(PS_MPI(error, MPI_Comm_split_type(cluster->communicator, MPI_COMM_TYPE_SHARED, cluster->rank, MPI_INFO_NULL, &node)));
    read_bounds(&mine);
    all = calloc((size_t)cluster->n_node_ranks, sizeof *all);
    PS_GO(ps_cluster_agree(cluster, all ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate the list of memory limits"), error));
    PS_GO(PS_MPI(error, MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, all, (int)sizeof mine, MPI_BYTE, node)));
    count_sharing(&mine, all, cluster->n_node_ranks, n_sharing);
    ps_memory_share_find(&mine, n_sharing, share);
done:
    if (node != MPI_COMM_NULL) MPI_Comm_free(&node);
    free(all);
    return code;
}
