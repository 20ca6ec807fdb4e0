/* Creates an output file at its full size under a temporary name and gives it its name when it is complete on disk. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "hdf5/write.h"
#include "store/create_parts.h"
#include "store/fingerprint.h"
#include "store/info.h"
#include "store/layout.h"
#include "store/lock.h"
#include "store/process.h"
#include "store/publish.h"
#include "store/slots.h"
#include "store/source_files.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rows are verified as they stand in the file, which is little endian");

/* ---- the whole tree ---- */

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

enum { OTHER_LINKS = 8 }; /* of /entry, besides optics and runs, and a little more */

static ps_code create_entry(hid_t file, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    char *signature = NULL;
    hid_t entry = H5I_INVALID_HID;
    PS_GO(ps_slots_create_entry(file, spec->n_optics + PS_PROCESS_SLOTS + OTHER_LINKS, &entry, error));
    PS_GO(ps_h5_attribute_text(entry, "default", spec->job->methods.items[0].method->name, error));
    PS_GO(ps_h5_integer(entry, "format_version", PS_FORMAT_VERSION, error));
    PS_GO(ps_output_fingerprint(spec, &signature, error));
    PS_GO(ps_h5_text(entry, "signature", strlen(signature), signature, error));
    PS_GO(ps_create_methods(entry, spec, error));
    PS_GO(ps_create_frames(entry, spec, error));
    for (int64_t i = 0; i < spec->n_optics; i++) PS_GO(ps_create_optics(entry, spec, i, error));
    PS_GO(ps_process_create_slots(entry, spec, error));
done:
    free(signature);
    ps_h5_close(&entry);
    return code;
}

static ps_code write_tree(const char *temporary, const char *path, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hid_t file = H5I_INVALID_HID, access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0 || H5Pset_file_locking(access, false, true) < 0 ||
        (file = H5Fcreate(temporary, H5F_ACC_TRUNC, H5P_DEFAULT, access)) < 0) {
        code = ps_h5_fail(error, "%s: cannot create", temporary);
        goto done;
    }
    PS_GO(create_root(file, path, error));
    PS_GO(create_entry(file, spec, error));
    if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0) code = ps_h5_fail(error, "%s: cannot write", temporary);
done:
    ps_code closed = ps_h5_close_written(&file, temporary, error);
    ps_h5_close(&access);
    return code == PS_OK ? closed : code;
}

static ps_code check_spec(const ps_output_spec *spec, ps_error *error) {
    if (spec->n_frames < 1 || spec->n_optics < 1 || spec->image_rows < 1 || spec->image_columns < 1)
        return PS_FAIL(error, PS_E_INTERNAL, "output asked for with %lld frames, %lld optics, images of %lld x %lld",
                       (long long)spec->n_frames, (long long)spec->n_optics, (long long)spec->image_rows, (long long)spec->image_columns);
    if (spec->job->methods.n < 1) return PS_FAIL(error, PS_E_INTERNAL, "output asked for without a method");
    return PS_OK;
}

/* What the file will take, a little more rather than less. */
static int64_t estimate_bytes(const ps_output_spec *spec) {
    const ps_system_desc *desc = &spec->optics[0].plan->desc;
    int64_t n_images = ps_method_set_images(&spec->job->methods),
            per_optics = desc->detector_rows * desc->detector_columns + 16 * desc->n_active + 16384;
    if (spec->optics[0].needs_mean_pattern) per_optics += 8 * desc->detector_rows * desc->detector_columns;
    int64_t per_frame = n_images * spec->image_rows * spec->image_columns * (int64_t)sizeof(float) + 4096;
    return spec->n_frames * per_frame + ps_file_columns_bytes(spec) + spec->n_optics * per_optics + PS_PROCESS_SLOTS * PS_BYTES_PER_PROCESS;
}

static void say_kept(const char *path, const char *kept) {
    if (!kept) return;
    if (ps_output_is_output(kept))
        ps_log(PS_LOG_INFO, "%s: what stood there is kept as %s until every frame of the new one is done", path, kept);
    else
        ps_log(PS_LOG_WARNING, "%s: what stood there is no output of ptyseries and is kept as %s", path, kept);
}

ps_code ps_output_create(const char *path, bool overwrite, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    char *temporary = NULL, *kept = NULL;
    ps_lock lock = PS_LOCK_NONE;
    ps_h5_quiet();
    signal(SIGXFSZ, SIG_IGN);
    PS_GO(check_spec(spec, error));
    PS_GO(ps_lock_take(path, &lock, error));
    ps_publish_sweep(path);
    if (!overwrite && access(path, F_OK) == 0) {
        code = ps_publish_exists(path, error);
        goto done;
    }
    PS_GO(ps_publish_temporary(path, &temporary, error));
    PS_GO(ps_publish_try_space(temporary, estimate_bytes(spec), error));
    PS_GO(write_tree(temporary, path, spec, error));
    PS_GO(ps_process_hide_reserve(temporary, 2, error));
    PS_GO(ps_publish_sync(temporary, error));
    if (overwrite) PS_GO(ps_publish_keep(path, &kept, error));
    PS_GO(ps_publish_rename(temporary, path, overwrite, error));
    say_kept(path, kept);
done:
    if (code != PS_OK && temporary) unlink(temporary);
    if (code != PS_OK) ps_publish_restore(path, kept);
    free(kept);
    free(temporary);
    ps_lock_release(&lock);
    return code;
}
