#include "store/presence.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "hdf5/write.h"
#include "store/publish.h"

ps_code ps_presence_note(ps_output *output, ps_error *error) {
    struct stat status;
    if (fstat(output->fd, &status) != 0) return ps_io_fail(error, errno, "%s: cannot be looked at", output->path);
    output->device = status.st_dev;
    output->inode = status.st_ino;
    output->bytes = status.st_size;
    return PS_OK;
}

static bool is_named(const ps_output *output, int *problem) {
    struct stat named;
    *problem = stat(output->path, &named) == 0 ? 0 : errno;
    return *problem == 0 && named.st_ino == output->inode && named.st_dev == output->device;
}

/* The name that the system knows for the open file. false: it has none, or one of NFS's for files that are gone when they are closed. */
static bool other_name(const ps_output *output, char name[PATH_MAX]) {
    static const char gone[] = " (deleted)";
    struct stat named;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", output->fd);
    ssize_t length = readlink(link, name, PATH_MAX - 1);
    if (length <= 0) return false;
    name[length] = '\0';
    const char *slash = strrchr(name, '/');
    size_t tail = sizeof gone - 1;
    if ((size_t)length > tail && strcmp(name + length - tail, gone) == 0) return false;
    return !(slash && strncmp(slash + 1, ".nfs", 4) == 0) && stat(name, &named) == 0 && named.st_ino == output->inode;
}

ps_code ps_presence_check(const ps_output *output, ps_error *error) {
    static const char meanwhile[] = "while this run was writing it";
    struct stat status;
    char name[PATH_MAX];
    int problem;
    if (fstat(output->fd, &status) != 0) return ps_io_fail(error, errno, "%s: the output was lost %s", output->path, meanwhile);
    if (!is_named(output, &problem)) {
        if (status.st_nlink > 0 && other_name(output, name))
            return PS_FAIL(error, PS_E_IO, "%s: the output was moved to %s %s; move it back, then run again with --resume", output->path,
                           name, meanwhile);
        return PS_FAIL(error, PS_E_IO, "%s: the output was %s %s%s%s", output->path, problem ? "removed" : "replaced by another file",
                       meanwhile, problem && problem != ENOENT ? ": " : "", problem && problem != ENOENT ? strerror(problem) : "");
    }
    if (status.st_size < output->bytes)
        return PS_FAIL(error, PS_E_IO, "%s: the output was cut from %lld to %lld bytes %s", output->path, (long long)output->bytes,
                       (long long)status.st_size, meanwhile);
    return PS_OK;
}

void ps_presence_save(const ps_output *output) {
    struct stat status;
    char name[PATH_MAX], *saved = NULL, *here = NULL;
    ps_error first = {0}, second = {0};
    int problem;
    if (is_named(output, &problem) || (fstat(output->fd, &status) == 0 && status.st_nlink > 0 && other_name(output, name))) return;
    const char *slash = strrchr(output->path, '/');
    ps_code code = ps_publish_recover(output->fd, output->path, &saved, &first);
    if (code != PS_OK && (here = ps_path_resolve(".", slash ? slash + 1 : output->path)))
        code = ps_publish_recover(output->fd, here, &saved, &second);
    if (code == PS_OK)
        ps_log(PS_LOG_ERROR, "%s has no name any more; all that was written is saved as %s: give it its name back, then --resume goes on",
               output->path, saved);
    else
        ps_log(PS_LOG_ERROR, "%s has no name any more, and what was written could not be saved: %s", output->path, first.text);
    free(saved);
    free(here);
}
