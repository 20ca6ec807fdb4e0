#include "core/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *name_kind(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFREG: return NULL;
    case S_IFDIR: return "a folder";
    case S_IFIFO: return "a FIFO (named pipe)";
    case S_IFSOCK: return "a socket";
    default: return "a device";
    }
}

const char *ps_special_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? name_kind(status.st_mode) : NULL;
}

static ps_code refuse(const char *path, const char *kind, ps_code code, ps_error *error) {
    return PS_FAIL(error, code, "%s: is %s, expected a regular file", path, kind);
}

ps_code ps_regular_check(const char *path, ps_error *error) {
    const char *kind = ps_special_file(path);
    return kind ? refuse(path, kind, PS_E_INPUT, error) : PS_OK;
}

ps_code ps_regular_open(const char *path, ps_code code, int *descriptor, ps_error *error) {
    struct stat status;
    const char *special = ps_special_file(path); /* opening some devices does something */
    *descriptor = -1;
    if (special) return refuse(path, special, code, error);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return PS_FAIL(error, code, "%s: cannot open: %s", path, strerror(errno));
    int known = fstat(file, &status);
    special = known == 0 ? name_kind(status.st_mode) : NULL;
    if (known == 0 && !special) {
        *descriptor = file;
        return PS_OK;
    }
    close(file);
    return special ? refuse(path, special, code, error) : PS_FAIL(error, code, "%s: cannot stat: %s", path, strerror(errno));
}
