/* Creates an output file at its full size under a temporary name and gives it its name when it is complete on disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "hdf5/write.h"
#include "store/create_parts.h"
#include "store/drift.h"
#include "store/fingerprint.h"
#include "store/layout.h"
#include "store/new_file.h"
#include "store/process.h"
#include "store/slots.h"
#include "store/source_files.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rows are verified as they stand in the file, which is little endian");

/* ---- the whole tree ---- */

enum { OTHER_LINKS = 10 }; /* of /entry, besides optics and runs, and a little more */

static ps_code create_entry(hid_t file, const void *whole_spec, ps_error *error) {
    const ps_output_spec *spec = whole_spec;
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
    PS_GO(ps_create_drift(entry, spec, error));
    PS_GO(ps_process_create_slots(entry, spec, error));
done:
    free(signature);
    ps_h5_close(&entry);
    return code;
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
    if (spec->job->aligns) n_images *= 2;
    int64_t per_frame = n_images * spec->image_rows * spec->image_columns * (int64_t)sizeof(float) + 4096;
    return spec->n_frames * per_frame + ps_file_columns_bytes(spec) + spec->n_optics * per_optics + PS_PROCESS_SLOTS * PS_BYTES_PER_PROCESS;
}

ps_code ps_output_create(const char *path, bool overwrite, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    char *kept = NULL;
    ps_new_file file = PS_NEW_FILE_NONE;
    PS_GO(check_spec(spec, error));
    PS_GO(ps_new_file_begin(path, overwrite, estimate_bytes(spec), &file, error));
    PS_GO(ps_new_file_write(&file, create_entry, spec, error));
    PS_GO(ps_process_hide_reserve(file.temporary, 2, error));
    PS_GO(ps_new_file_publish(&file, &kept, error));
    if (ps_new_file_kept_own(path, kept))
        ps_log(PS_LOG_INFO, "%s: what stood there is kept as %s until every frame of the new one is done", path, kept);
done:
    free(kept);
    ps_new_file_end(&file);
    return code;
}
