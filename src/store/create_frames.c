/* /entry/frames: where frames come from, and room for what a run says of each. */
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"
#include "store/create_parts.h"
#include "store/layout.h"
#include "store/source_files.h"

typedef const char *(*source_text)(const ps_output_frame_source *frame);
static const char *text_of_source(const ps_output_frame_source *frame) {
    return frame->source;
}
static const char *text_of_time(const ps_output_frame_source *frame) {
    return frame->acquisition_time ? frame->acquisition_time : "";
}

static ps_code create_source_texts(hid_t group, const char *name, source_text text, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    size_t width = 1;
    const char **texts = malloc((size_t)spec->n_frames * sizeof *texts);
    PS_GO_ALLOC(error, texts);
    for (int64_t i = 0; i < spec->n_frames; i++) {
        texts[i] = text(&spec->frames[i]);
        if (strlen(texts[i]) > width) width = strlen(texts[i]);
    }
    PS_GO(ps_h5_texts(group, name, width, spec->n_frames, texts, error));
done:
    free(texts);
    return code;
}

static ps_code create_source_numbers(hid_t group, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hsize_t n = (hsize_t)spec->n_frames;
    int64_t *values = malloc(4 * n * sizeof *values);
    PS_GO_ALLOC(error, values);
    for (hsize_t i = 0; i < n; i++) {
        values[i] = spec->frames[i].bytes;
        values[n + i] = spec->frames[i].mtime_ns;
        values[2 * n + i] = (int64_t)spec->frames[i].checksum;
        values[3 * n + i] = spec->frames[i].optics;
    }
    PS_GO(ps_h5_dataset(group, "source_bytes", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n, values, error));
    PS_GO(ps_h5_dataset(group, "source_mtime_ns", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n, values + n, error));
    PS_GO(ps_h5_dataset(group, "source_crc32", H5T_STD_U32LE, H5T_NATIVE_INT64, 1, &n, values + 2 * n, error));
    PS_GO(ps_h5_dataset(group, "optics", H5T_STD_I32LE, H5T_NATIVE_INT64, 1, &n, values + 3 * n, error));
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
    PS_GO(create_source_texts(group, "source", text_of_source, spec, error));
    PS_GO(create_source_texts(group, "acquisition_time", text_of_time, spec, error));
    PS_GO(create_source_numbers(group, spec, error));
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
