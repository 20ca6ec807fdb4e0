/* Creates an output file at its full size under a temporary name and gives it its name when it is complete on disk. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "hdf5/write.h"
#include "store/fingerprint.h"
#include "store/info.h"
#include "store/layout.h"
#include "store/lock.h"
#include "store/process.h"
#include "store/publish.h"
#include "store/slots.h"
#include "store/source_files.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "rows are verified as they stand in the file, which is little endian");

const char *ps_stage_name(ps_stage stage) {
    static const char *const names[] = {
#define X(id, name) name,
        PS_STAGES(X)
#undef X
    };
    return stage >= 0 && stage < PS_N_STAGES ? names[stage] : "unknown";
}

void ps_output_time_now(char text[PS_WIDTH_TIME]) {
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, PS_WIDTH_TIME, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* ---- axes and signals ---- */

static ps_code create_f32(hid_t parent, const char *name, int rank, const hsize_t *dims, const char *units, ps_error *error) {
    PS_TRY(ps_h5_dataset(parent, name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, rank, dims, NULL, error));
    return *units ? ps_h5_describe(parent, name, "units", units, error) : PS_OK;
}

static ps_code create_f64(hid_t parent, const char *name, int rank, const hsize_t *dims, const double *values, const char *units,
                          ps_error *error) {
    PS_TRY(ps_h5_dataset(parent, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, rank, dims, values, error));
    return *units ? ps_h5_describe(parent, name, "units", units, error) : PS_OK;
}

/* values[i] = i * step */
static ps_code create_position_axis(hid_t parent, const char *name, int64_t n, double step_A, ps_error *error) {
    ps_code code = PS_OK;
    double *values = malloc((size_t)n * sizeof *values);
    PS_GO_ALLOC(error, values);
    for (int64_t i = 0; i < n; i++) values[i] = (double)i * step_A;
    PS_GO(create_f64(parent, name, 1, &(hsize_t){(hsize_t)n}, values, "angstrom", error));
done:
    free(values);
    return code;
}

static ps_code create_frame_axis(hid_t parent, int64_t n, ps_error *error) {
    ps_code code = PS_OK;
    int64_t *values = malloc((size_t)n * sizeof *values);
    PS_GO_ALLOC(error, values);
    for (int64_t i = 0; i < n; i++) values[i] = i;
    PS_GO(ps_h5_dataset(parent, "frame", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &(hsize_t){(hsize_t)n}, values, error));
done:
    free(values);
    return code;
}

static ps_code create_image_axes(hid_t group, const ps_output_spec *spec, ps_error *error) {
    PS_TRY(create_frame_axis(group, spec->n_frames, error));
    PS_TRY(create_position_axis(group, "row", spec->image_rows, spec->image_step_A[0], error));
    return create_position_axis(group, "column", spec->image_columns, spec->image_step_A[1], error);
}

/* A method's strengths as its axis: the numbers asked for; for an automatic strength one entry 0, each frame's own in chosen_strength. */
static ps_code create_strength_axes(hid_t group, const ps_job_method *method, bool is_complex, ps_error *error) {
    ps_code code = PS_OK;
    hsize_t n = (hsize_t)method->n_strengths;
    double *values = calloc((size_t)n, sizeof *values);
    PS_GO_ALLOC(error, values);
    for (hsize_t i = 0; i < n && !method->automatic; i++) values[i] = method->strengths[i].phase;
    PS_GO(create_f64(group, "strength", 1, &n, values, "", error));
    if (method->automatic) PS_GO(ps_h5_describe(group, "strength", "long_name", "automatic: see chosen_strength", error));
    if (!is_complex) goto done;
    for (hsize_t i = 0; i < n && !method->automatic; i++) values[i] = method->strengths[i].amplitude;
    PS_GO(create_f64(group, "strength_amplitude", 1, &n, values, "", error));
done:
    free(values);
    return code;
}

static ps_code create_curves(hid_t group, const ps_job_method *method, const ps_output_spec *spec, ps_error *error) {
    static const char *const axes[] = {"frame", "curve_strength"};
    static const struct {
        const char *name, *long_name;
    } curves[] = {{"residual", "weighted squared residual, summed over all frequencies but zero"},
                  {"influence", "trace of the influence matrix, summed over all frequencies but zero"},
                  {"gcv", "generalized cross-validation"}};
    ps_code code = PS_OK;
    int64_t n = method->automatic ? spec->n_curve_strengths : method->n_strengths;
    hsize_t dims[2] = {(hsize_t)spec->n_frames, (hsize_t)n};
    double *values = malloc((size_t)n * sizeof *values);
    PS_GO_ALLOC(error, values);
    for (int64_t i = 0; i < n; i++) values[i] = method->automatic ? spec->curve_strengths[i] : method->strengths[i].phase;
    PS_GO(create_f64(group, "curve_strength", 1, &dims[1], values, "", error));
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
        PS_GO(create_f64(group, curves[i].name, 2, dims, NULL, "", error));
        PS_GO(ps_h5_describe(group, curves[i].name, "long_name", curves[i].long_name, error));
    }
    PS_GO(create_f64(group, "chosen_strength", 1, dims, NULL, "", error));
    hid_t gcv = H5Dopen2(group, "gcv", H5P_DEFAULT);
    code = ps_h5_attribute_texts(gcv, "axes", axes, 2, error);
    ps_h5_close(&gcv);
done:
    free(values);
    return code;
}

static ps_code create_method(hid_t entry, const char *name, const ps_job_method *method, bool is_complex, const ps_output_spec *spec,
                             ps_error *error) {
    static const char *const axes[] = {"frame", "strength", "row", "column"}, *const auxiliary[] = {"log_amplitude"};
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    hsize_t dims[4] = {(hsize_t)spec->n_frames, (hsize_t)method->n_strengths, (hsize_t)spec->image_rows, (hsize_t)spec->image_columns};
    PS_GO(ps_h5_group(entry, name, "NXdata", &group, error));
    PS_GO(ps_h5_attribute_text(group, "signal", "phase", error));
    PS_GO(ps_h5_attribute_texts(group, "axes", axes, 4, error));
    PS_GO(create_image_axes(group, spec, error));
    PS_GO(create_strength_axes(group, method, is_complex, error));
    PS_GO(create_f32(group, "phase", 4, dims, "rad", error));
    PS_GO(ps_h5_describe(group, "phase", "long_name", "phase of the object", error));
    if (is_complex) {
        PS_GO(create_f32(group, "log_amplitude", 4, dims, "", error));
        PS_GO(ps_h5_attribute_texts(group, "auxiliary_signals", auxiliary, 1, error));
    }
    PS_GO(create_curves(group, method, spec, error));
done:
    ps_h5_close(&group);
    return code;
}

static ps_code create_ssb(hid_t entry, const ps_output_spec *spec, ps_error *error) {
    static const char *const axes[] = {"frame", "row", "column"};
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    hsize_t dims[3] = {(hsize_t)spec->n_frames, (hsize_t)spec->image_rows, (hsize_t)spec->image_columns};
    PS_GO(ps_h5_group(entry, "ssb", "NXdata", &group, error));
    PS_GO(ps_h5_attribute_text(group, "signal", "phase", error));
    PS_GO(ps_h5_attribute_texts(group, "axes", axes, 3, error));
    PS_GO(create_image_axes(group, spec, error));
    PS_GO(create_f32(group, "phase", 3, dims, "rad", error));
    if (spec->job->ssb_estimator == PS_SSB_PHASE) PS_GO(create_f64(group, "loss", 1, dims, NULL, "rad^2", error));
done:
    ps_h5_close(&group);
    return code;
}

/* ---- frames ---- */

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
    PS_TRY(create_f64(group, "dose", 1, &n, NULL, "", error));
    return create_f64(group, "power", 1, &n, NULL, "", error);
}

static ps_code create_frames(hid_t entry, const ps_output_spec *spec, ps_error *error) {
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
    PS_GO(create_f64(group, "seconds", 2, seconds, NULL, "s", error));
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

/* ---- optics ---- */

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
        PS_TRY(create_f64(group, "mean_pattern", 2, detector, optics->mean_pattern, "counts", error));
        PS_TRY(ps_h5_describe(group, "mean_pattern", "long_name", "mean pattern that weights and hot pixels come from", error));
    }
    return create_f64(group, "weights", 1, &n_active, NULL, "", error);
}

/* Only of a group whose first frame cannot be read: else it is that one. */
static ps_code create_first_frame(hid_t group, const ps_output_spec *spec, int64_t index, ps_error *error) {
    int64_t first = spec->optics[index].first_frame, lowest = 0;
    while (lowest < spec->n_frames && spec->frames[lowest].optics != index) lowest++;
    return first > lowest ? ps_h5_integer(group, "first_frame", first, error) : PS_OK;
}

static ps_code create_optics(hid_t entry, const ps_output_spec *spec, int64_t index, ps_error *error) {
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
    if (spec->job->phase.enabled) PS_GO(ps_h5_number(group, "scale_phase", 0, "", error));
    if (spec->job->complex_.enabled) {
        PS_GO(ps_h5_number(group, "scale_complex_amplitude", 0, "", error));
        PS_GO(ps_h5_number(group, "scale_complex_phase", 0, "", error));
    }
    PS_GO(ps_h5_text(group, "backend", PS_WIDTH_BACKEND, "", error));
    PS_GO(ps_h5_text(group, "precision", PS_WIDTH_PRECISION, "", error));
done:
    ps_h5_close(&group);
    return code;
}

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
    const ps_job *job = spec->job;
    ps_code code = PS_OK;
    char *signature = NULL;
    hid_t entry = H5I_INVALID_HID;
    PS_GO(ps_slots_create_entry(file, spec->n_optics + PS_PROCESS_SLOTS + OTHER_LINKS, &entry, error));
    PS_GO(ps_h5_attribute_text(entry, "default", job->phase.enabled ? "phase" : job->complex_.enabled ? "complex" : "ssb", error));
    PS_GO(ps_h5_integer(entry, "format_version", PS_FORMAT_VERSION, error));
    PS_GO(ps_output_fingerprint(spec, &signature, error));
    PS_GO(ps_h5_text(entry, "signature", strlen(signature), signature, error));
    if (job->phase.enabled) PS_GO(create_method(entry, "phase", &job->phase, false, spec, error));
    if (job->complex_.enabled) PS_GO(create_method(entry, "complex", &job->complex_, true, spec, error));
    if (job->ssb_enabled) PS_GO(create_ssb(entry, spec, error));
    PS_GO(create_frames(entry, spec, error));
    for (int64_t i = 0; i < spec->n_optics; i++) PS_GO(create_optics(entry, spec, i, error));
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
    const ps_job *job = spec->job;
    if (spec->n_frames < 1 || spec->n_optics < 1 || spec->image_rows < 1 || spec->image_columns < 1)
        return PS_FAIL(error, PS_E_INTERNAL, "output asked for with %lld frames, %lld optics, images of %lld x %lld",
                       (long long)spec->n_frames, (long long)spec->n_optics, (long long)spec->image_rows, (long long)spec->image_columns);
    if (!job->phase.enabled && !job->complex_.enabled && !job->ssb_enabled)
        return PS_FAIL(error, PS_E_INTERNAL, "output asked for without a method");
    bool automatic = (job->phase.enabled && job->phase.automatic) || (job->complex_.enabled && job->complex_.automatic);
    if (automatic && spec->n_curve_strengths < 1) return PS_FAIL(error, PS_E_INTERNAL, "automatic strength without points of its curve");
    return PS_OK;
}

/* What the file will take, a little more rather than less. */
static int64_t estimate_bytes(const ps_output_spec *spec) {
    const ps_job *job = spec->job;
    const ps_system_desc *desc = &spec->optics[0].plan->desc;
    int64_t n_images = job->ssb_enabled, per_optics = desc->detector_rows * desc->detector_columns + 16 * desc->n_active + 16384;
    if (spec->optics[0].needs_mean_pattern) per_optics += 8 * desc->detector_rows * desc->detector_columns;
    if (job->phase.enabled) n_images += job->phase.n_strengths;
    if (job->complex_.enabled) n_images += 2 * job->complex_.n_strengths;
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
