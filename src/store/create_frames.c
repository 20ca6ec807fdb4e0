/* /entry/frames: where frames come from, and room for what a run says of each. */
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"
#include "store/create_parts.h"
#include "store/layout.h"
#include "store/source_files.h"

/* Which optics group each frame is in. */
static ps_code create_group_column(hid_t group, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hsize_t n = (hsize_t)spec->n_frames;
    int64_t *values = malloc(n * sizeof *values);
    PS_GO_ALLOC(error, values);
    for (hsize_t i = 0; i < n; i++) values[i] = spec->frames[i].optics;
    PS_GO(ps_h5_dataset(group, "optics", H5T_STD_I32LE, H5T_NATIVE_INT64, 1, &n, values, error));
done:
    free(values);
    return code;
}

static ps_code create_columns(hid_t group, const ps_output_spec *spec, ps_error *error) {
    hsize_t n = (hsize_t)spec->n_frames;
#define NUMBER(id, name, type, file_type) PS_TRY(ps_h5_dataset(group, name, file_type, file_type, 1, &n, NULL, error));
#define TEXT(id, name, width) PS_TRY(ps_h5_texts(group, name, width, spec->n_frames, NULL, error));
    PS_COLUMNS(NUMBER, TEXT)
#undef NUMBER
#undef TEXT
    PS_TRY(ps_create_f64(group, "dose", 1, &n, NULL, NULL, error));
    PS_TRY(ps_create_f64(group, "data_norm", 1, &n, NULL, NULL, error));
    return ps_create_former_name(group, "data_norm", "power", error);
}

ps_code ps_create_frames(hid_t entry, const ps_output_spec *spec, ps_error *error) {
    static const char *const states[] = {"pending", "done", "failed"};
    const char *stages[PS_N_STAGES];
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID, dataset = H5I_INVALID_HID;
    hsize_t seconds[2] = {(hsize_t)spec->n_frames, PS_N_STAGES};
    for (int i = 0; i < PS_N_STAGES; i++) stages[i] = ps_stage_name((ps_stage)i);
    PS_GO(ps_h5_group(entry, "frames", "NXcollection", &group, error));
    PS_GO(ps_frame_sources_create(group, spec->n_frames, spec->frames, error));
    PS_GO(create_group_column(group, spec, error));
    PS_GO(ps_file_columns_create(group, spec, error));
    PS_GO(create_columns(group, spec, error));
    PS_GO(ps_create_f64(group, "seconds", 2, seconds, NULL, "s", error));
    dataset = H5Dopen2(group, "seconds", H5P_DEFAULT);
    PS_GO(ps_h5_attribute_texts(dataset, "stages", stages, PS_N_STAGES, error));
    ps_h5_close(&dataset);
    dataset = H5Dopen2(group, "state", H5P_DEFAULT);
    PS_GO(ps_h5_attribute_texts(dataset, "values", states, 3, error));
done:
    ps_h5_close(&dataset);
    ps_h5_close(&group);
    return code;
}
