#include "store/new_file.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "hdf5/write.h"
#include "store/info.h"
#include "store/layout.h"
#include "store/publish.h"

ps_code ps_new_file_begin(const char *path, bool overwrite, int64_t bytes, ps_new_file *file, ps_error *error) {
    *file = (ps_new_file){.path = path, .overwrite = overwrite, .lock = PS_LOCK_NONE};
    ps_h5_quiet();
    signal(SIGXFSZ, SIG_IGN);
    PS_TRY(ps_lock_take(path, &file->lock, error));
    ps_publish_sweep(path);
    if (!overwrite && access(path, F_OK) == 0) return ps_publish_exists(path, error);
    PS_TRY(ps_publish_temporary(path, &file->temporary, error));
    return ps_publish_try_space(file->temporary, bytes, error);
}

static ps_code create_root(hid_t file, const char *path, ps_error *error) {
    char now[PS_WIDTH_TIME];
    const char *slash = strrchr(path, '/');
    ps_output_time_now(now);
    PS_TRY(ps_h5_attribute_text(file, "NX_class", "NXroot", error));
    PS_TRY(ps_h5_attribute_text(file, "default", "entry", error));
    PS_TRY(ps_h5_attribute_text(file, "creator", "ptyseries", error));
    PS_TRY(ps_h5_attribute_text(file, "file_name", slash ? slash + 1 : path, error));
    return ps_h5_attribute_text(file, "file_time", now, error);
}

ps_code ps_new_file_write(const ps_new_file *file, ps_new_file_fill fill, const void *spec, ps_error *error) {
    ps_code code = PS_OK;
    hid_t id = H5I_INVALID_HID, access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0 || H5Pset_file_locking(access, false, true) < 0 ||
        (id = H5Fcreate(file->temporary, H5F_ACC_TRUNC, H5P_DEFAULT, access)) < 0) {
        code = ps_h5_fail(error, "%s: cannot create", file->temporary);
        goto done;
    }
    PS_GO(create_root(id, file->path, error));
    PS_GO(fill(id, spec, error));
    if (H5Fflush(id, H5F_SCOPE_GLOBAL) < 0) code = ps_h5_fail(error, "%s: cannot write", file->temporary);
done:
    ps_code closed = ps_h5_close_written(&id, file->temporary, error);
    ps_h5_close(&access);
    return code == PS_OK ? closed : code;
}

ps_code ps_new_file_publish(ps_new_file *file, char **kept, ps_error *error) {
    *kept = NULL;
    PS_TRY(ps_publish_sync(file->temporary, error));
    if (file->overwrite) PS_TRY(ps_publish_keep(file->path, kept, error));
    ps_code code = ps_publish_rename(file->temporary, file->path, file->overwrite, error);
    if (code != PS_OK) {
        ps_publish_restore(file->path, *kept);
        free(*kept);
        *kept = NULL;
        return code;
    }
    free(file->temporary);
    file->temporary = NULL;
    return PS_OK;
}

bool ps_new_file_kept_own(const char *path, const char *kept) {
    if (!kept || ps_output_is_output(kept)) return kept != NULL;
    ps_log(PS_LOG_WARNING, "%s: what stood there is no output of ptyseries and is kept as %s", path, kept);
    return false;
}

void ps_new_file_end(ps_new_file *file) {
    if (file->temporary) unlink(file->temporary);
    free(file->temporary);
    file->temporary = NULL;
    ps_lock_release(&file->lock);
}
