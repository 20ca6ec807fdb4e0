#include "tasks/fit/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/text.h"
#include "hdf5/write.h"
#include "optics/optics_json.h"
#include "store/crate.h"
#include "store/layout.h"
#include "store/process.h"
#include "store/publish.h"
#include "store/source_files.h"
#include "tasks/series.h"

enum { FORMAT_VERSION = 1, ERROR_WIDTH = 512, DEVICE_WIDTH = 128 }; /* of a fit's layout */

/* ---- what makes two fits the same ---- */

static char *content_line(const ps_run_plan *run, const ps_file_checks *checks, int64_t frame) {
    int64_t bytes = 0;
    uint32_t crc = 0;
    if (run->frames[frame].unreadable) return ps_text_format("frame %lld=unreadable\n", (long long)frame);
    for (int64_t i = checks->first[frame]; i < checks->first[frame + 1]; i++) {
        uint32_t sums[2] = {checks->files[i].samples, checks->files[i].whole};
        crc = (uint32_t)crc32_z(crc, (const Bytef *)sums, sizeof sums);
        bytes += checks->files[i].bytes > 0 ? checks->files[i].bytes : 0;
    }
    return ps_text_format("frame %lld=%lld files, %lld bytes, CRC-32 %08x\n", (long long)frame,
                          (long long)(checks->first[frame + 1] - checks->first[frame]), (long long)bytes, crc);
}

static void append(char **text, char *line) {
    char *longer = *text && line ? ps_text_format("%s%s", *text, line) : NULL;
    free(*text);
    free(line);
    *text = longer;
}

static char *entry_line(const ps_job *job, const char *entry) {
    char *value = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(job->json, entry));
    char *line = ps_text_format("%s=%s\n", entry, value ? value : "");
    cJSON_free(value);
    return line;
}

ps_code ps_fit_signature(const ps_job *job, const ps_run_plan *run, const ps_file_checks *checks, char **text, ps_error *error) {
    *text = strdup("task=fit\n");
    append(text, entry_line(job, "fit"));
    append(text, entry_line(job, "series"));
    if (job->g_storage == PS_JOB_G_COMPACT) append(text, strdup("g=compact\n"));
    for (int64_t g = 0; g < run->n_groups; g++) append(text, ps_text_format("optics %lld=%s\n", (long long)g, run->groups[g].used));
    for (int64_t i = 0; i < run->series.n_items; i++) append(text, content_line(run, checks, i));
    return *text ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the fingerprint");
}

/* ---- one fit ---- */

static ps_code create_numbers(hid_t group, const char *name, int64_t n, const double *values, const char *long_name, ps_error *error) {
    PS_TRY(ps_h5_dataset(group, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &(hsize_t){(hsize_t)n}, values, error));
    return ps_h5_describe(group, name, "long_name", long_name, error);
}

static const char *unit_of(const ps_fit_parameter *p) {
    size_t length = strlen(p->name);
    if (length > 2 && strcmp(p->name + length - 2, "_A") == 0) return "angstrom";
    if (length > 4 && strcmp(p->name + length - 4, "_deg") == 0) return "degree";
    if (length > 5 && strcmp(p->name + length - 5, "_mrad") == 0) return "milliradian";
    return length > 3 && strcmp(p->name + length - 3, "_px") == 0 ? "pixel" : "1";
}

static ps_code create_parameters(hid_t group, const ps_fit_result *r, ps_error *error) {
    const char *names[PS_FIT_MOST_PARAMETERS], *units[PS_FIT_MOST_PARAMETERS];
    double sizes[PS_FIT_MOST_PARAMETERS];
    uint8_t known[PS_FIT_MOST_PARAMETERS];
    int n = r->parameters.n;
    hsize_t square[2] = {(hsize_t)n, (hsize_t)n};
    for (int i = 0; i < n; i++) {
        names[i] = r->parameters.items[i].name;
        units[i] = unit_of(&r->parameters.items[i]);
        sizes[i] = r->parameters.items[i].size;
        known[i] = r->curvature.is_known[i];
    }
    PS_TRY(ps_h5_texts(group, "parameter", PS_FIT_NAME, n, names, error));
    PS_TRY(ps_h5_texts(group, "unit", 16, n, units, error));
    PS_TRY(create_numbers(group, "value", n, r->values, "what was found, in the parameters' units", error));
    PS_TRY(create_numbers(group, "error", n, r->curvature.error, "standard errors from the curvature; 0 where is_known is 0", error));
    PS_TRY(create_numbers(group, "natural_size", n, sizes, "for aberrations, 1 rad of phase at the aperture's rim", error));
    PS_TRY(ps_h5_dataset(group, "is_known", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, square, known, error));
    PS_TRY(ps_h5_describe(group, "is_known", "long_name", "0: at a bound, or not told by the data at all", error));
    return ps_h5_dataset(group, "correlation", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, square, r->curvature.correlation, error);
}

static ps_code create_summary(hid_t group, const ps_fit_item *item, ps_error *error) {
    const ps_fit_result *r = &item->result;
    static const char *const rules[] = {"skewness", "given", "convention"};
    const struct {
        const char *name, *units;
        double value;
    } numbers[] = {{"explained_before", "", r->before},
                   {"explained_after", "", r->after},
                   {"explained_by_twin", "", r->twin},
                   {"explained_by_wrong_optics", "", r->floor},
                   {"noise_per_datum", "", r->noise_per_datum},
                   {"dose", "", item->dose},
                   {"skewness", "", item->skewness},
                   {"skewness_error", "", item->skewness_error},
                   {"seconds", "s", item->seconds},
                   {"load_seconds", "s", item->load_seconds},
                   {"start_curl_trust", "", r->curl.trust},
                   {"start_curl_rotation", "degree", r->curl.rotation_deg[r->curl.transpose]},
                   {"start_curl", "", r->curl.curl[r->curl.transpose]},
                   {"start_shifts_trust", "", r->shifts.trust},
                   {"start_shifts_rotation", "degree", r->shifts.rotation_deg},
                   {"start_shifts_C10", "angstrom", r->shifts.C10_A},
                   {"start_shifts_C12_cos", "angstrom", r->shifts.C12_cos_A},
                   {"start_shifts_C12_sin", "angstrom", r->shifts.C12_sin_A}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        PS_TRY(ps_h5_number(group, numbers[i].name, isfinite(numbers[i].value) ? numbers[i].value : 0.0, numbers[i].units, error));
    PS_TRY(ps_h5_integer(group, "start_curl_transpose", r->curl.transpose, error));
    PS_TRY(ps_h5_integer(group, "start_shifts_transpose", r->shifts.transpose, error));
    PS_TRY(ps_h5_integer(group, "frame", item->frame, error));
    PS_TRY(ps_h5_integer(group, "was_refitted", item->was_refitted, error));
    PS_TRY(ps_h5_integer(group, "is_outlier", item->is_outlier, error));
    PS_TRY(ps_h5_integer(group, "optics", item->group, error));
    PS_TRY(ps_h5_integer(group, "evaluations", r->n_evaluations, error));
    PS_TRY(ps_h5_integer(group, "n_frequencies", item->n_frequencies, error));
    PS_TRY(ps_h5_integer(group, "n_pixels", item->n_pixels, error));
    return ps_h5_text(group, "twin_told_by", 16, rules[item->rule], error);
}

static ps_code create_optics_text(hid_t group, const char *name, const ps_optics *optics, ps_error *error) {
    cJSON *json = ps_optics_to_json(optics);
    char *text = json ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    if (!text) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics");
    ps_code code = ps_h5_text(group, name, strlen(text), text, error);
    cJSON_free(text);
    return code;
}

static ps_code create_landscape(hid_t group, const ps_fit_result *r, ps_error *error) {
    hsize_t square[2] = {PS_FIT_LANDSCAPE, PS_FIT_LANDSCAPE};
    double rotations[PS_FIT_LANDSCAPE], defoci[PS_FIT_LANDSCAPE];
    for (int i = 0; i < PS_FIT_LANDSCAPE; i++) {
        rotations[i] = r->landscape.rotation_deg[0] + i * r->landscape.rotation_step_deg;
        defoci[i] = r->landscape.C10_A[0] + i * r->landscape.C10_step_A;
    }
    PS_TRY(ps_h5_dataset(group, "landscape", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, square, r->landscape_values, error));
    PS_TRY(ps_h5_describe(group, "landscape", "long_name", "explained power over rotation and C10, all else as it was found", error));
    PS_TRY(create_numbers(group, "landscape_rotation", PS_FIT_LANDSCAPE, rotations, "degree", error));
    return create_numbers(group, "landscape_C10", PS_FIT_LANDSCAPE, defoci, "angstrom", error);
}

static ps_code create_pictures(hid_t group, const ps_run_plan *run, const ps_fit_pictures *pictures, ps_error *error) {
    hsize_t scan[2] = {(hsize_t)run->scan_rows, (hsize_t)run->scan_columns};
    hsize_t detector[2] = {(hsize_t)run->detector_rows, (hsize_t)run->detector_columns};
    const struct {
        const char *name, *long_name;
        const float *values;
        const hsize_t *dims;
    } all[] = {{"phase_before", "phase method, strength 0.1, no upsampling, at the start", pictures->before, scan},
               {"phase_after", "the same at the fitted optics", pictures->after, scan},
               {"residual_phase", "phase between data and model at each pixel of the aperture", pictures->residual, detector}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!all[i].values) continue;
        PS_TRY(ps_h5_dataset(group, all[i].name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, all[i].dims, all[i].values, error));
        PS_TRY(ps_h5_describe(group, all[i].name, "long_name", all[i].long_name, error));
        PS_TRY(ps_h5_describe(group, all[i].name, "units", "radian", error));
    }
    return PS_OK;
}

static ps_code create_item(hid_t fit, const ps_fit_file_spec *spec, int64_t index, ps_error *error) {
    const ps_fit_item *item = &spec->items[index];
    const char *notes[PS_FIT_MOST_NOTES];
    char name[32];
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    snprintf(name, sizeof name, "fit_%lld", (long long)index);
    PS_GO(ps_h5_group(fit, name, "NXcollection", &group, error));
    PS_GO(create_summary(group, item, error));
    PS_GO(ps_h5_text(group, "failure", ERROR_WIDTH, item->reason, error));
    if (item->code != PS_OK) goto done;
    PS_GO(create_optics_text(group, "optics_before", &item->result.start, error));
    PS_GO(create_optics_text(group, "optics_after", &item->result.optics, error));
    PS_GO(create_parameters(group, &item->result, error));
    PS_GO(create_landscape(group, &item->result, error));
    for (int i = 0; i < item->result.n_notes; i++) notes[i] = item->result.notes[i];
    if (item->result.n_notes > 0) PS_GO(ps_h5_texts(group, "notes", PS_FIT_NOTE, item->result.n_notes, notes, error));
    PS_GO(create_pictures(group, spec->run, &spec->pictures[index], error));
done:
    ps_h5_close(&group);
    return code;
}

/* What changes from fit to fit, one value each; 0 where a fit failed. */
static ps_code create_curves(hid_t fit, const ps_fit_file_spec *spec, ps_error *error) {
    enum { CURVES = 6 };
    static const char *const names[CURVES] = {"frame", "explained", "rotation", "C10", "C12_cos", "C12_sin"};
    static const char *const units[CURVES] = {"index", "part of the power", "degree", "angstrom", "angstrom", "angstrom"};
    ps_code code = PS_OK;
    size_t n = (size_t)spec->n_items;
    double *values = calloc(CURVES * n, sizeof *values);
    PS_GO_ALLOC(error, values);
    for (size_t i = 0; i < n; i++) {
        const ps_optics *optics = &spec->items[i].result.optics;
        values[i] = (double)spec->items[i].frame;
        if (spec->items[i].code != PS_OK) continue;
        values[n + i] = spec->items[i].result.after;
        values[2 * n + i] = optics->rotation_deg;
        values[3 * n + i] = optics->C_A[0];
        values[4 * n + i] = optics->C_A[1] * cos(2.0 * optics->angle_rad[1]);
        values[5 * n + i] = optics->C_A[1] * sin(2.0 * optics->angle_rad[1]);
    }
    for (int c = 0; c < CURVES; c++) PS_GO(create_numbers(fit, names[c], spec->n_items, values + (size_t)c * n, units[c], error));
done:
    free(values);
    return code;
}

static ps_code create_fits(hid_t entry, const ps_fit_file_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hid_t fit = H5I_INVALID_HID;
    PS_GO(ps_h5_group(entry, "fit", "NXcollection", &fit, error));
    PS_GO(ps_h5_integer(fit, "n_fits", spec->n_items, error));
    PS_GO(create_curves(fit, spec, error));
    for (int64_t i = 0; i < spec->n_items; i++) PS_GO(create_item(fit, spec, i, error));
done:
    ps_h5_close(&fit);
    return code;
}

/* ---- /entry/frames ---- */

/* A frame's fit; NULL: it was not fitted. */
static const ps_fit_item *item_of(const ps_fit_file_spec *spec, int64_t frame) {
    for (int64_t i = 0; i < spec->n_items; i++)
        if (spec->items[i].frame == frame) return &spec->items[i];
    return NULL;
}

/* State and error of every frame: one that was not fitted is done with its group, or cannot be read. */
static ps_code create_states(hid_t group, const ps_fit_file_spec *spec, int64_t counts[3], ps_error *error) {
    int64_t n = spec->run->series.n_items;
    ps_code code = PS_OK;
    uint8_t *states = calloc((size_t)n, sizeof *states);
    const char **errors = calloc((size_t)n, sizeof *errors);
    PS_GO_ALLOC(error, states);
    PS_GO_ALLOC(error, errors);
    for (int64_t i = 0; i < n; i++) {
        const ps_run_frame *frame = &spec->run->frames[i];
        const ps_fit_item *item = item_of(spec, i);
        errors[i] = frame->unreadable             ? frame->unreadable
                    : frame->refused              ? frame->refused
                    : item && item->code != PS_OK ? item->reason
                                                  : "";
        states[i] = errors[i][0] ? PS_FRAME_FAILED : PS_FRAME_DONE;
        counts[states[i]]++;
    }
    PS_GO(ps_h5_dataset(group, "state", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, &(hsize_t){(hsize_t)n}, states, error));
    PS_GO(ps_h5_describe(group, "state", "values", "0 pending, 1 done, 2 failed", error));
    PS_GO(ps_h5_texts(group, "error", ERROR_WIDTH, n, errors, error));
done:
    free(states);
    free(errors);
    return code;
}

static ps_code create_frames(hid_t entry, const ps_fit_file_spec *spec, int64_t counts[3], ps_error *error) {
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    int64_t n = spec->run->series.n_items;
    ps_output_frame_source *frames = calloc((size_t)n, sizeof *frames);
    PS_GO_ALLOC(error, frames);
    PS_GO(ps_h5_group(entry, "frames", "NXcollection", &group, error));
    ps_series_describe(spec->run, spec->checks, frames);
    PS_GO(ps_frame_sources_create(group, n, frames, error));
    PS_GO(create_states(group, spec, counts, error));
    PS_GO(ps_h5_text(group, "device", DEVICE_WIDTH, spec->device, error));
done:
    free(frames);
    ps_h5_close(&group);
    return code;
}

/* ---- all of it ---- */

static ps_code create_entry(hid_t file, const void *whole_spec, ps_error *error) {
    const ps_fit_file_spec *spec = whole_spec;
    ps_code code = PS_OK;
    hid_t entry = H5I_INVALID_HID;
    int64_t counts[3] = {0};
    ps_output_spec process = {.job = spec->job, .n_notes = spec->notes->n, .notes = spec->notes->notes};
    PS_GO(ps_h5_group(file, "entry", "NXentry", &entry, error));
    PS_GO(ps_h5_integer(entry, "format_version", FORMAT_VERSION, error));
    PS_GO(ps_h5_text(entry, "signature", strlen(spec->signature), spec->signature, error));
    PS_GO(create_fits(entry, spec, error));
    PS_GO(create_frames(entry, spec, counts, error));
    PS_GO(ps_process_create_only(entry, &process, error));
    PS_GO(ps_process_finish(entry, 1, counts, error));
done:
    ps_h5_close(&entry);
    return code;
}

ps_code ps_fit_file_write(ps_new_file *file, const ps_fit_file_spec *spec, ps_error *error) {
    char *kept = NULL;
    PS_TRY(ps_new_file_write(file, create_entry, spec, error));
    PS_TRY(ps_publish_sync(file->temporary, error));
    PS_TRY(ps_new_file_publish(file, &kept, error));
    if (ps_new_file_kept_own(file->path, kept)) unlink(kept);
    free(kept);
    ps_crate_tell(file->path);
    return PS_OK;
}
