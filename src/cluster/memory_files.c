#include "cluster/memory_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *open_below(const char *root, const char *path) {
    char full[PS_MEMORY_PATH];
    if (snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full) return NULL;
    return fopen(full, "re");
}

bool ps_memory_file_line(const char *root, const char *path, char *line, size_t bytes) {
    FILE *file = open_below(root, path);
    bool found = file && fgets(line, (int)bytes, file);
    if (file) fclose(file);
    if (found) line[strcspn(line, "\n")] = '\0';
    return found;
}

static bool parse(const char *text, uint64_t *number) {
    char *end;
    text += strspn(text, " \t");
    if (strncmp(text, "max", 3) == 0) {
        *number = UINT64_MAX;
        return true;
    }
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *text == '-') return false;
    *number = value;
    return true;
}

bool ps_memory_file_number(const char *root, const char *path, uint64_t *number) {
    char line[128];
    return ps_memory_file_line(root, path, line, sizeof line) && parse(line, number);
}

bool ps_memory_file_entry(const char *root, const char *path, const char *key, uint64_t *number) {
    char line[256];
    bool found = false;
    size_t length = strlen(key);
    FILE *file = open_below(root, path);
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, key, length) == 0 && strchr(" \t", line[length]) && parse(line + length, number);
    if (file) fclose(file);
    return found;
}

bool ps_memory_file_identity(const char *root, const char *path, uint64_t *device, uint64_t *inode) {
    char full[PS_MEMORY_PATH];
    struct stat found;
    if (snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full || stat(full, &found) != 0) return false;
    *device = (uint64_t)found.st_dev;
    *inode = (uint64_t)found.st_ino;
    return true;
}

/* ---- control groups ----------------------------------------------------------------------------------------------------------- */

/* Is word one of the list's, which commas separate? */
static bool is_listed(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, word, length) == 0 && strchr(",\n", at[length])) return true;
    return false;
}

/* "4:memory:/job_7" or, version 2, "0::/job_7". group: [PS_MEMORY_PATH]. */
static bool own_group(const char *root, int version, const char *controller, char *group) {
    char line[PS_MEMORY_PATH];
    bool found = false;
    FILE *file = open_below(root, "/proc/self/cgroup");
    while (file && !found && fgets(line, sizeof line, file)) {
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found = version == 2 ? list[1] == '\0' : is_listed(list + 1, controller);
        if (found) snprintf(group, PS_MEMORY_PATH, "%s", path);
    }
    if (file) fclose(file);
    return found;
}

/* "32 31 0:29 ROOT MOUNT rw - TYPE source OPTIONS": the tree's part that is mounted, and where. */
static bool find_mount(const char *root, int version, const char *controller, char *part, char *mount) {
    char line[2 * PS_MEMORY_PATH], type[32], options[512];
    bool found = false;
    FILE *file = open_below(root, "/proc/self/mountinfo");
    while (file && !found && fgets(line, sizeof line, file)) {
        const char *behind = strstr(line, " - ");
        if (!behind || sscanf(line, "%*s %*s %*s %4095s %4095s", part, mount) != 2) continue;
        if (sscanf(behind + 3, "%31s %*s %511s", type, options) != 2) continue;
        found = version == 2 ? strcmp(type, "cgroup2") == 0 : strcmp(type, "cgroup") == 0 && is_listed(options, controller);
    }
    if (file) fclose(file);
    return found;
}

bool ps_cgroup_folder(const char *root, int version, const char *controller, char *folder, size_t *mount_length) {
    char group[PS_MEMORY_PATH], part[PS_MEMORY_PATH], mount[PS_MEMORY_PATH], full[PS_MEMORY_PATH];
    if (!own_group(root, version, controller, group) || !find_mount(root, version, controller, part, mount)) return false;
    size_t n = strcmp(part, "/") == 0 ? 0 : strlen(part);
    bool below = strncmp(group, part, n) == 0 && (group[n] == '/' || group[n] == '\0');
    const char *rest = below && strcmp(group + n, "/") != 0 ? group + n : "";
    if (snprintf(folder, PS_MEMORY_PATH, "%s%s", mount, rest) >= PS_MEMORY_PATH) return false;
    if (snprintf(full, sizeof full, "%s%s", root, folder) >= (int)sizeof full || access(full, F_OK) != 0)
        snprintf(folder, PS_MEMORY_PATH, "%s", mount);
    *mount_length = strlen(mount);
    return true;
}
