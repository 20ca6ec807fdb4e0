#include "store/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text.h"
#include "hdf5/write.h"
#include "store/layout.h"

typedef struct {
    char host[65], job[33], since[PS_WIDTH_TIME];
    long pid;
} owner;

static owner myself(void) {
    owner me = {.pid = (long)getpid(), .job = "-"};
    const char *job = getenv("SLURM_JOB_ID");
    gethostname(me.host, sizeof me.host - 1);
    if (job && *job) snprintf(me.job, sizeof me.job, "%s", job);
    ps_output_time_now(me.since);
    return me;
}

/* False when the file holds no complete owner: its writer was killed while it took the lock, or is just taking it. */
static bool read_owner(int fd, owner *other) {
    char text[256] = "";
    *other = (owner){.job = "-"};
    if (pread(fd, text, sizeof text - 1, 0) <= 0) return false;
    return sscanf(text, "host %64s pid %ld job %32s since %31s", other->host, &other->pid, other->job, other->since) == 4;
}

static ps_code write_owner(int fd, const char *path, ps_error *error) {
    owner me = myself();
    char text[256];
    int length = snprintf(text, sizeof text, "host %s pid %ld job %s since %s\n", me.host, me.pid, me.job, me.since);
    ssize_t wrote = -1;
    if (ftruncate(fd, 0) == 0) {
        do wrote = pwrite(fd, text, (size_t)length, 0); /* at most a block, so never in part */
        while (wrote < 0 && errno == EINTR);
    }
    if (wrote != length) return ps_io_fail(error, wrote < 0 ? errno : ENOSPC, "%s: cannot write the lock", path);
    return PS_OK;
}

static ps_code refuse(const char *path, int fd, ps_error *error) {
    owner other;
    if (!read_owner(fd, &other)) return PS_FAIL(error, PS_E_ARGUMENT, "%s: another run is about to write this output", path);
    return PS_FAIL(error, PS_E_ARGUMENT,
                   "%s: another run writes this output: host %s, process %ld, Slurm job %s, since %s; wait for it, or remove the file when "
                   "that run is gone",
                   path, other.host, other.pid, other.job, other.since);
}

static bool owner_is_gone(int fd) {
    owner other, me = myself();
    if (!read_owner(fd, &other)) return false;
    if (strcmp(other.host, me.host) == 0) return kill((pid_t)other.pid, 0) != 0 && errno == ESRCH;
    return strcmp(other.job, "-") != 0 && strcmp(other.job, me.job) == 0;
}

static bool locks_unknown(int errnum) {
    return errnum == ENOLCK || errnum == ENOSYS || errnum == EOPNOTSUPP || errnum == EINVAL;
}

/* The kernel's lock on the whole file, held by the open file where it can be, else by the process. 0, or an errno. */
static int lock_file(int fd) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &all) == 0) return 0;
    if (errno == EINVAL && fcntl(fd, F_SETLK, &all) == 0) return 0;
    return errno;
}

/* The file that was locked is still the one with this name: its former owner may have removed it in between. */
static bool is_still_there(int fd, const char *path) {
    struct stat mine, named;
    return fstat(fd, &mine) == 0 && stat(path, &named) == 0 && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
}

/* by_kernel: the kernel holds the lock, so that the text in the file only informs. */
static ps_code try_lock(const char *path, int *fd, bool *by_kernel, bool *again, ps_error *error) {
    bool created = false;
    *again = false;
    *fd = open(path, O_RDWR | O_CLOEXEC);
    if (*fd < 0 && errno == ENOENT) {
        *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        created = *fd >= 0;
        *again = *fd < 0 && errno == EEXIST;
        if (*again) return PS_OK;
    }
    if (*fd < 0) return ps_io_fail(error, errno, "%s: cannot create the output's lock", path);
    int problem = lock_file(*fd);
    *by_kernel = problem == 0;
    if (problem && !locks_unknown(problem)) return refuse(path, *fd, error);
    if (problem && !created && !owner_is_gone(*fd)) return refuse(path, *fd, error);
    *again = !is_still_there(*fd, path);
    return PS_OK;
}

ps_code ps_lock_take(const char *path, ps_lock *lock, ps_error *error) {
    ps_code code = PS_OK;
    int fd = -1;
    bool again = true, by_kernel = false;
    char *name = ps_text_format("%s.lock", path);
    PS_GO_ALLOC(error, name);
    for (int attempt = 0; again && attempt < 100; attempt++) {
        if (fd >= 0) close(fd);
        PS_GO(try_lock(name, &fd, &by_kernel, &again, error));
    }
    if (again) {
        code = PS_FAIL(error, PS_E_ARGUMENT, "%s: other runs keep taking the lock", name);
        goto done;
    }
    code = write_owner(fd, name, by_kernel ? NULL : error);
    if (code != PS_OK && by_kernel) code = PS_OK; /* a full disk does not end a run whose output has its blocks */
    if (code != PS_OK) {
        unlink(name);
        goto done;
    }
    *lock = (ps_lock){fd, name};
    fd = -1;
    name = NULL;
done:
    if (fd >= 0) close(fd);
    free(name);
    return code;
}

void ps_lock_release(ps_lock *lock) {
    if (lock->fd < 0) return;
    if (is_still_there(lock->fd, lock->path)) unlink(lock->path); /* else it is another run's, which found none here */
    close(lock->fd);
    free(lock->path);
    *lock = PS_LOCK_NONE;
}
