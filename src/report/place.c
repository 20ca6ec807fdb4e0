#include "report/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/regular.h"
#include "core/text.h"
#include "hdf5/write.h"
#include "store/publish.h"

/* ---- the directory ---- */

static ps_code make_directory(const char *directory, ps_error *error) {
    static const char cure[] = "expected a directory for the pictures; --to DIR names one";
    struct stat found;
    if (!*directory) return PS_FAIL(error, PS_E_ARGUMENT, "--to: found an empty name, expected a directory for the pictures");
    if (mkdir(directory, 0777) == 0) return PS_OK;
    int problem = errno;
    if (problem != EEXIST) return ps_io_fail(error, problem, "%s: cannot create this directory for the pictures", directory);
    if (stat(directory, &found) != 0)
        return PS_FAIL(error, PS_E_ARGUMENT, "%s: is a symbolic link that leads nowhere (%s), %s", directory, strerror(errno), cure);
    if (S_ISDIR(found.st_mode)) return PS_OK;
    const char *kind = ps_special_file(directory);
    return PS_FAIL(error, PS_E_ARGUMENT, "%s: is %s, %s", directory, kind ? kind : "a file", cure);
}

ps_code ps_place_open(const char *directory, const char *output, ps_place *place, ps_error *error) {
    ps_code code = PS_OK;
    struct stat found;
    *place = (ps_place){.directory = directory ? strdup(directory) : ps_text_format("%s.preview", output), .output = strdup(output)};
    PS_GO_ALLOC(error, place->directory && place->output);
    if (stat(output, &found) != 0) {
        code = ps_io_fail(error, errno, "%s: cannot stat", output);
        goto done;
    }
    place->device = found.st_dev;
    place->inode = found.st_ino;
    PS_GO(make_directory(place->directory, error));
done:
    return code;
}

void ps_place_free(ps_place *place) {
    free(place->directory);
    free(place->output);
    *place = (ps_place){0};
}

/* ---- what stands there ---- */

/* Whether a regular file holds nothing, or begins as previews' files do. */
static ps_code look_inside(const char *path, bool *own, ps_error *error) {
    static const char png[] = "\x89PNG\r\n\x1a\n", page[] = "<!doctype html>\n<html lang=\"en\">";
    char start[sizeof page] = "";
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, start, sizeof page - 1) : -1;
    int problem = errno;
    if (fd >= 0) close(fd);
    if (n < 0) return ps_io_fail(error, problem, "%s: stands where a picture or page goes, but cannot be read", path);
    *own = n == 0 || strncmp(start, png, strlen(png)) == 0 || strcmp(start, page) == 0;
    return PS_OK;
}

ps_code ps_place_check(const ps_place *place, const char *path, ps_error *error) {
    static const char cure[] = "and is not replaced; --to DIR names another directory for the pictures";
    struct stat itself, target;
    bool own = false;
    if (lstat(path, &itself) != 0) return errno == ENOENT ? PS_OK : ps_io_fail(error, errno, "%s: cannot stat", path);
    if (stat(path, &target) == 0 && target.st_dev == place->device && target.st_ino == place->inode)
        return PS_FAIL(error, PS_E_ARGUMENT, "%s: is the output that is shown, %s, %s", path, place->output, cure);
    if (S_ISLNK(itself.st_mode)) return PS_OK;
    if (!S_ISREG(itself.st_mode)) return PS_FAIL(error, PS_E_ARGUMENT, "%s: is %s, %s", path, ps_special_file(path), cure);
    PS_TRY(look_inside(path, &own, error));
    return own ? PS_OK : PS_FAIL(error, PS_E_ARGUMENT, "%s: is no PNG picture and no page of a preview %s", path, cure);
}

/* ---- files ---- */

static void forget(ps_place_file *file) {
    free(file->path);
    free(file->temporary);
    *file = (ps_place_file){0};
}

ps_code ps_place_create(const ps_place *place, const char *path, ps_place_file *file, ps_error *error) {
    ps_code code = PS_OK;
    *file = (ps_place_file){0};
    PS_TRY(ps_place_check(place, path, error));
    file->path = strdup(path);
    PS_GO_ALLOC(error, file->path);
    PS_GO(ps_publish_temporary(path, &file->temporary, error));
    file->stream = fopen(file->temporary, "wb");
    if (file->stream) return PS_OK;
    code = ps_io_fail(error, errno, "%s: cannot open", file->temporary);
    unlink(file->temporary);
done:
    forget(file);
    return code;
}

ps_code ps_place_finish(ps_place_file *file, ps_code code, ps_error *error) {
    if (code == PS_OK && ferror(file->stream)) code = ps_io_fail(error, errno, "%s: cannot write", file->path);
    if (fclose(file->stream) != 0 && code == PS_OK) code = ps_io_fail(error, errno, "%s: cannot write", file->path);
    if (code == PS_OK && rename(file->temporary, file->path) != 0)
        code = ps_io_fail(error, errno, "%s: cannot rename it to %s", file->temporary, file->path);
    if (code != PS_OK) unlink(file->temporary);
    forget(file);
    return code;
}
