/* /entry/optics_N: what was given and used, its pixels, and room for what preparing it comes to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"
#include "store/create_parts.h"
#include "store/layout.h"

static ps_code create_optics_numbers(hid_t group, const ps_output_optics *optics, ps_error *error) {
    const ps_plan *plan = optics->plan;
    const ps_system_desc *desc = &plan->desc;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"upsampling", desc->upsampling},
                   {"scan_rows", desc->scan_rows},
                   {"scan_columns", desc->scan_columns},
                   {"n_active", desc->n_active},
                   {"n_bright", plan->n_bright},
                   {"n_left_out", plan->n_left_out},
                   {"n_frequencies", desc->n_frequencies},
                   {"n_aliases", desc->n_aliases},
                   {"n_bad_file", optics->n_bad_file},
                   {"n_bad_mask", optics->n_bad_mask},
                   {"n_bad_hot", optics->n_bad_hot},
                   {"n_bad_dead", optics->n_bad_dead},
                   {"full_plane_aliases", plan->full_plane_aliases}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) PS_TRY(ps_h5_integer(group, numbers[i].name, numbers[i].value, error));
    return ps_h5_number(group, "wavelength", desc->probe.wavelength_A, "angstrom", error);
}

/* [n, 2] row, column; absent where there are none. */
static ps_code create_hot_pixels(hid_t group, const ps_output_optics *optics, ps_error *error) {
    enum { HOT = 4 }; /* the bit in bad */
    const ps_system_desc *desc = &optics->plan->desc;
    ps_code code = PS_OK;
    hsize_t dims[2] = {(hsize_t)optics->n_bad_hot, 2};
    if (optics->n_bad_hot == 0) return PS_OK;
    int32_t *pixels = calloc(2 * (size_t)optics->n_bad_hot, sizeof *pixels);
    PS_GO_ALLOC(error, pixels);
    for (int64_t i = 0, n = 0; i < desc->detector_rows * desc->detector_columns && n < optics->n_bad_hot; i++) {
        if (!(optics->bad[i] & HOT)) continue;
        pixels[2 * n] = (int32_t)(i / desc->detector_columns);
        pixels[2 * n++ + 1] = (int32_t)(i % desc->detector_columns);
    }
    PS_GO(ps_h5_dataset(group, "hot_pixels", H5T_STD_I32LE, H5T_NATIVE_INT32, 2, dims, pixels, error));
    PS_GO(ps_h5_describe(group, "hot_pixels", "long_name", "detector row, column", error));
done:
    free(pixels);
    return code;
}

static ps_code create_optics_arrays(hid_t group, const ps_output_optics *optics, ps_error *error) {
    const ps_plan *plan = optics->plan;
    const ps_system_desc *desc = &plan->desc;
    hsize_t n_active = (hsize_t)desc->n_active, n_counts = PS_MAX_ALIASES + 1;
    hsize_t detector[2] = {(hsize_t)desc->detector_rows, (hsize_t)desc->detector_columns};
    PS_TRY(ps_h5_dataset(group, "active", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, &n_active, desc->active, error));
    PS_TRY(ps_h5_describe(group, "active", "long_name", "detector_row * detector_columns + detector_column", error));
    PS_TRY(ps_h5_dataset(group, "alias_histogram", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n_counts, plan->alias_histogram, error));
    PS_TRY(ps_h5_dataset(group, "bad", H5T_STD_U8LE, H5T_NATIVE_UINT8, 2, detector, optics->bad, error));
    PS_TRY(ps_h5_describe(group, "bad", "long_name", "why a pixel is left out: 1 the recording's mask, 2 the mask file, 4 hot, 8 dead",
                          error));
    PS_TRY(create_hot_pixels(group, optics, error));
    if (optics->needs_mean_pattern) {
        PS_TRY(ps_create_f64(group, "mean_pattern", 2, detector, optics->mean_pattern, "counts", error));
        PS_TRY(ps_h5_describe(group, "mean_pattern", "long_name", "mean pattern that weights and hot pixels come from", error));
    }
    return ps_create_f64(group, "weights", 1, &n_active, NULL, NULL, error);
}

static ps_code create_scales(hid_t group, const ps_method_set *methods, ps_error *error) {
    for (int64_t i = 0; i < methods->n; i++)
        for (int s = 0; s < methods->items[i].method->n_scales; s++)
            PS_TRY(ps_h5_number(group, methods->items[i].method->scales[s], 0, "", error));
    return PS_OK;
}

/* Only of a group whose first frame cannot be read: else it is that one. */
static ps_code create_first_frame(hid_t group, const ps_output_spec *spec, int64_t index, ps_error *error) {
    int64_t first = spec->optics[index].first_frame, lowest = 0;
    while (lowest < spec->n_frames && spec->frames[lowest].optics != index) lowest++;
    return first > lowest ? ps_h5_integer(group, "first_frame", first, error) : PS_OK;
}

ps_code ps_create_optics(hid_t entry, const ps_output_spec *spec, int64_t index, ps_error *error) {
    const ps_output_optics *optics = &spec->optics[index];
    char name[32];
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    snprintf(name, sizeof name, "optics_%lld", (long long)index);
    PS_GO(ps_h5_group(entry, name, "NXcollection", &group, error));
    PS_GO(ps_h5_text(group, "given", strlen(optics->given), optics->given, error));
    PS_GO(ps_h5_text(group, "used", strlen(optics->used), optics->used, error));
    const char *origin = optics->origin ? optics->origin : "{}";
    PS_GO(ps_h5_text(group, "origin", strlen(origin), origin, error));
    PS_GO(create_optics_numbers(group, optics, error));
    PS_GO(create_optics_arrays(group, optics, error));
    PS_GO(create_first_frame(group, spec, index, error));
    PS_GO(ps_h5_number(group, "dose", 0, "", error));
    PS_GO(create_scales(group, &spec->job->methods, error));
    PS_GO(ps_h5_text(group, "doubt", PS_WIDTH_DOUBT, "", error));
    PS_GO(ps_h5_number(group, "doubt_seconds", 0, "s", error));
    PS_GO(ps_h5_integer(group, "doubt_looked", 0, error));
    PS_GO(ps_h5_text(group, "backend", PS_WIDTH_BACKEND, "", error));
    PS_GO(ps_h5_text(group, "precision", PS_WIDTH_PRECISION, "", error));
done:
    ps_h5_close(&group);
    return code;
}
