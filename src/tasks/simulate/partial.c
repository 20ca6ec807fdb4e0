#include "tasks/simulate/partial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/text.h"
#include "hdf5/write.h"

char *ps_partial_path(const char *path) {
    return ps_text_format("%s.part", path);
}

ps_code ps_partial_create(const char *path, hid_t *file, ps_error *error) {
    ps_code code = PS_OK;
    char *partial = ps_partial_path(path);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    *file = H5I_INVALID_HID;
    PS_GO_ALLOC(error, partial);
    if (access < 0 || H5Pset_file_locking(access, 0, 1) < 0 || (*file = H5Fcreate(partial, H5F_ACC_TRUNC, H5P_DEFAULT, access)) < 0)
        code = ps_h5_fail(error, "%s: cannot create", partial);
done:
    ps_h5_close(&access);
    free(partial);
    return code;
}

ps_code ps_partial_close(const char *path, hid_t *file, ps_error *error) {
    ps_code code = PS_OK;
    char *partial = ps_partial_path(path);
    PS_GO_ALLOC(error, partial);
    PS_GO(ps_h5_close_written(file, partial, error));
done:
    free(partial);
    return code;
}

ps_code ps_partial_rename(const char *path, ps_error *error) {
    ps_code code = PS_OK;
    char *partial = ps_partial_path(path);
    PS_GO_ALLOC(error, partial);
    if (rename(partial, path) != 0) code = ps_io_fail(error, errno, "%s: cannot rename it to %s", partial, path);
done:
    free(partial);
    return code;
}

void ps_partial_remove(const char *path) {
    char *partial = ps_partial_path(path);
    if (partial) unlink(partial);
    free(partial);
}
