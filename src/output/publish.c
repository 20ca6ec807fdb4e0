#include "output/publish.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"
#include "output/h5.h"

static ps_code copy_bytes(int from, int to, const char *name, ps_error *error) {
    enum { PIECE = 4 << 20 };
    ps_code code = PS_OK;
    char *piece = malloc(PIECE);
    PS_GO_ALLOC(error, piece);
    for (;;) {
        errno = 0;
        ssize_t got = read(from, piece, PIECE);
        if (got == 0) break;
        if (got < 0 || write(to, piece, (size_t)got) != got) {
            code = ps_io_fail(error, errno ? errno : ENOSPC, "%s: cannot copy", name);
            break;
        }
    }
done:
    free(piece);
    return code;
}

ps_code ps_publish_copy(const char *from, const char *to, ps_error *error) {
    ps_code code = PS_OK;
    int source = open(from, O_RDONLY | O_CLOEXEC), target = open(to, O_WRONLY | O_CLOEXEC);
    if (source < 0 || target < 0)
        code = ps_io_fail(error, errno, "%s: cannot copy to %s", from, to);
    else
        code = copy_bytes(source, target, from, error);
    if (source >= 0) close(source);
    if (target >= 0) close(target);
    return code;
}

/* File systems that cannot reserve are left to fail when they are written. */
static ps_code reserve(int fd, const char *name, int64_t bytes, ps_error *error) {
    if (fallocate(fd, 0, 0, bytes) == 0 || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return PS_OK;
    return ps_io_fail(error, errno, "%s: cannot reserve %.3f GiB for the output", name, (double)bytes / 1073741824.0);
}

ps_code ps_publish_try_space(const char *temporary, int64_t bytes, ps_error *error) {
    int fd = open(temporary, O_RDWR | O_CLOEXEC);
    if (fd < 0) return ps_io_fail(error, errno, "%s: cannot open", temporary);
    ps_code code = reserve(fd, temporary, bytes, error);
    if (ftruncate(fd, 0) != 0 && code == PS_OK) code = ps_io_fail(error, errno, "%s: cannot truncate", temporary);
    close(fd);
    return code;
}

ps_code ps_publish_sync(const char *temporary, ps_error *error) {
    ps_code code = PS_OK;
    struct stat status;
    int fd = open(temporary, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        code = ps_io_fail(error, errno, "%s: cannot open", temporary);
        goto done;
    }
    PS_GO(reserve(fd, temporary, status.st_size, error));
    if (fsync(fd) != 0)
        code = ps_io_fail(error, errno, "%s: cannot write to disk", temporary);
done:
    if (fd >= 0) close(fd);
    return code;
}

ps_code ps_publish_exists(const char *path, ps_error *error) {
    return PS_FAIL(error, PS_E_ARGUMENT, "%s exists already; --resume goes on with it, --overwrite replaces it", path);
}

/* Never replaces a file: renameat2 where the file system knows it, else link, else a check just before the rename. */
static ps_code rename_new(const char *temporary, const char *path, ps_error *error) {
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return PS_OK;
    if (errno == EEXIST) return ps_publish_exists(path, error);
    if (link(temporary, path) == 0) {
        unlink(temporary);
        return PS_OK;
    }
    if (errno == EEXIST || access(path, F_OK) == 0) return ps_publish_exists(path, error);
    if (rename(temporary, path) != 0) return ps_io_fail(error, errno, "%s: cannot rename to %s", temporary, path);
    return PS_OK;
}

ps_code ps_publish_rename(const char *temporary, const char *path, bool overwrite, ps_error *error) {
    ps_code code = PS_OK;
    char *directory = ps_path_directory(path);
    int fd = -1;
    PS_GO_ALLOC(error, directory);
    if (!overwrite)
        PS_GO(rename_new(temporary, path, error));
    else if (rename(temporary, path) != 0) {
        code = ps_io_fail(error, errno, "%s: cannot rename to %s", temporary, path);
        goto done;
    }
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL)) code = ps_io_fail(error, errno, "%s: cannot write the directory to disk", directory);
done:
    if (fd >= 0) close(fd);
    free(directory);
    return code;
}

ps_code ps_publish_temporary(const char *path, char **temporary, ps_error *error) {
    for (int attempt = 0; attempt < 16; attempt++) {
        uint32_t number = (uint32_t)getpid();
        if (getrandom(&number, sizeof number, 0) < 0) number += (uint32_t)time(NULL) + (uint32_t)attempt;
        char *name = ps_text_format("%s.partial-%08x", path, number);
        if (!name) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a file name");
        int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            close(fd);
            *temporary = name;
            return PS_OK;
        }
        free(name);
        if (errno != EEXIST) break;
    }
    return ps_io_fail(error, errno, "%s: cannot create the output", path);
}

void ps_publish_sweep(const char *path) {
    const char *slash = strrchr(path, '/');
    char *directory_name = ps_path_directory(path), *prefix = ps_text_format("%s.partial-", slash ? slash + 1 : path);
    DIR *directory = directory_name ? opendir(directory_name) : NULL;
    for (struct dirent *entry; directory && prefix && (entry = readdir(directory));)
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory) closedir(directory);
    free(prefix);
    free(directory_name);
}
