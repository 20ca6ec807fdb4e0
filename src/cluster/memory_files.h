/* Small files of /proc and /sys, and where a process is among the control groups. */
#ifndef PS_CLUSTER_MEMORY_FILES_H
#define PS_CLUSTER_MEMORY_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PS_MEMORY_PATH = 4096 };

/* All: root is in front of path ("" but in tests); false, and nothing written, when the file or what is looked for is not there. */

/* The number that the file begins with; "max" is UINT64_MAX. */
bool ps_memory_file_number(const char *root, const char *path, uint64_t *number);
/* The number behind key in the line that begins with it. */
bool ps_memory_file_entry(const char *root, const char *path, const char *key, uint64_t *number);
/* The file's first line without its newline. */
bool ps_memory_file_line(const char *root, const char *path, char *line, size_t bytes);
bool ps_memory_file_identity(const char *root, const char *path, uint64_t *device, uint64_t *inode);

/* The folder of this process in the tree of a controller (version 1) or of all controllers (version 2), as /proc/self/cgroup and
 * /proc/self/mountinfo say; inside a container that does not see its own path, the top of what it sees. folder: [PS_MEMORY_PATH], of
 * which the first *mount_length characters are where the tree is mounted. */
bool ps_cgroup_folder(const char *root, int version, const char *controller, char *folder, size_t *mount_length);

#endif
