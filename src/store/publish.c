#include "store/publish.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"
#include "hdf5/write.h"

/* All bytes, in as many pieces as the kernel likes: a signal, or less written than asked, is no full disk. 0, or an errno. */
static int write_all(int fd, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t wrote = write(fd, bytes, n);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return errno;
        if (wrote == 0) return ENOSPC;
        bytes += wrote;
        n -= (size_t)wrote;
    }
    return 0;
}

ps_code ps_publish_copy_bytes(int from, int to, const char *name, ps_error *error) {
    enum { PIECE = 4 << 20 };
    ps_code code = PS_OK;
    char *piece = malloc(PIECE);
    PS_GO_ALLOC(error, piece);
    for (;;) {
        ssize_t got = read(from, piece, PIECE);
        if (got == 0) break;
        if (got < 0 && errno == EINTR) continue;
        int problem = got < 0 ? errno : write_all(to, piece, (size_t)got);
        if (problem) {
            code = ps_io_fail(error, problem, "%s: cannot copy", name);
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
        code = ps_publish_copy_bytes(source, target, from, error);
    if (source >= 0) close(source);
    if (target >= 0) close(target);
    return code;
}

/* File systems that cannot reserve are left to fail when they are written. */
static ps_code reserve(int fd, const char *name, int64_t bytes, ps_error *error) {
    int result;
    do result = fallocate(fd, 0, 0, bytes);
    while (result != 0 && errno == EINTR);
    if (result == 0 || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) return PS_OK;
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

static int sync_file(int fd) {
    int result;
    do result = fsync(fd);
    while (result != 0 && errno == EINTR);
    return result;
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
    if (sync_file(fd) != 0) code = ps_io_fail(error, errno, "%s: cannot write to disk", temporary);
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
    if (fd < 0 || (sync_file(fd) != 0 && errno != EINVAL))
        code = ps_io_fail(error, errno, "%s: cannot write the directory to disk", directory);
done:
    if (fd >= 0) close(fd);
    free(directory);
    return code;
}

/* ---- what stood there before ---- */

static bool links_unknown(int errnum) {
    return errnum == EPERM || errnum == EOPNOTSUPP || errnum == ENOSYS || errnum == EMLINK || errnum == EXDEV || errnum == EINVAL;
}

/* Where the file system knows no links the old file loses its name for a moment; it is whole under the other one. */
static int give_second_name(const char *path, const char *name) {
    if (link(path, name) == 0) return 0;
    if (!links_unknown(errno)) return errno;
    if (renameat2(AT_FDCWD, path, AT_FDCWD, name, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    if (access(name, F_OK) == 0) return EEXIST;
    return rename(path, name) == 0 ? 0 : errno;
}

ps_code ps_publish_keep(const char *path, char **kept, ps_error *error) {
    int problem = EEXIST;
    *kept = NULL;
    if (access(path, F_OK) != 0) return PS_OK;
    for (int number = 1; problem == EEXIST && number < INT_MAX; number++) {
        char *name = ps_text_format("%s.previous-%d", path, number);
        if (!name) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a file name");
        problem = give_second_name(path, name);
        if (problem == 0)
            *kept = name;
        else
            free(name);
    }
    return problem == 0 ? PS_OK : ps_io_fail(error, problem, "%s: cannot keep it beside its replacement", path);
}

void ps_publish_restore(const char *path, const char *kept) {
    if (!kept) return;
    if (renameat2(AT_FDCWD, kept, AT_FDCWD, path, RENAME_NOREPLACE) != 0 && errno == EEXIST) unlink(kept);
}

int ps_publish_forget(const char *path, bool (*is_own)(const char *path)) {
    int n_removed = 0;
    const char *slash = strrchr(path, '/');
    char *folder = ps_path_directory(path), *prefix = ps_text_format("%s.previous-", slash ? slash + 1 : path);
    DIR *directory = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; directory && prefix && (entry = readdir(directory));) {
        const char *number = entry->d_name + strlen(prefix);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || !*number || number[strspn(number, "0123456789")]) continue;
        char *name = ps_text_format("%s/%s", folder, entry->d_name);
        if (name && is_own(name) && unlink(name) == 0) n_removed++;
        free(name);
    }
    if (directory) closedir(directory);
    free(prefix);
    free(folder);
    return n_removed;
}

ps_code ps_publish_recover(int fd, const char *path, char **saved, ps_error *error) {
    ps_code code = PS_OK;
    char *name = NULL;
    int to = -1;
    for (int number = 1; to < 0 && number < 10000; number++) {
        free(name);
        name = ps_text_format("%s.recovered-%d", path, number);
        PS_GO_ALLOC(error, name);
        to = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (to < 0 && errno != EEXIST) break;
    }
    if (to < 0 || lseek(fd, 0, SEEK_SET) != 0) {
        code = ps_io_fail(error, errno, "%s: cannot be saved", name);
        goto done;
    }
    PS_GO(ps_publish_copy_bytes(fd, to, name, error));
    if (sync_file(to) != 0) code = ps_io_fail(error, errno, "%s: cannot write to disk", name);
done:
    if (to >= 0) close(to);
    if (code != PS_OK && to >= 0) unlink(name);
    if (code == PS_OK) {
        *saved = name;
        name = NULL;
    }
    free(name);
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
    return ps_io_fail(error, errno, "%s: cannot create", path);
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
