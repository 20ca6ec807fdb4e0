#include "store/parts.h"

#include <fcntl.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- the list of what is written ---- */

/* Most of a rank's threads read and decode the next frames meanwhile. */
static int n_check_threads(void) {
    int n = omp_get_max_threads() / 4;
    return n < 1 ? 1 : n < PS_PART_CHECK_MOST ? n : PS_PART_CHECK_MOST;
}

ps_code ps_frame_parts_create(const ps_output *output, ps_frame_parts **created, ps_error *error) {
    ps_code code = PS_OK;
    ps_frame_parts *parts = calloc(1, sizeof *parts);
    *created = NULL;
    PS_GO_ALLOC(error, parts);
    for (int i = 0; i < output->n_results; i++) {
        parts->first[i] = parts->n_parts;
        parts->n_parts += output->results[i].dataset < 0 ? 0 : ps_rows_parts(&output->results[i]);
    }
    parts->is_written = calloc((size_t)parts->n_parts + 1, sizeof *parts->is_written);
    parts->crc = calloc((size_t)parts->n_parts + 1, sizeof *parts->crc);
    PS_GO_ALLOC(error, parts->is_written);
    PS_GO_ALLOC(error, parts->crc);
    PS_GO(ps_part_check_create(n_check_threads(), &parts->check, error));
    *created = parts;
    parts = NULL;
done:
    ps_frame_parts_destroy(parts);
    return code;
}

void ps_frame_parts_destroy(ps_frame_parts *parts) {
    if (!parts) return;
    free(parts->is_written);
    free(parts->crc);
    ps_part_check_destroy(parts->check);
    free(parts);
}

void ps_frame_parts_begin(ps_frame_parts *parts, int64_t frame) {
    parts->frame = frame;
    parts->is_begun = false;
    parts->seconds = 0;
    memset(parts->is_written, 0, (size_t)parts->n_parts * sizeof *parts->is_written);
}

/* ---- numbers ---- */

/* By exponents: compilers turn this into vector code, which isfinite with an early way out does not become. */
static bool all_finite_f32(const float *values, size_t n) {
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return !bad;
}

static bool all_finite_f64(const double *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

static ps_code check_finite(const ps_output *output, int64_t frame, int i, const void *values, size_t bytes, ps_error *error) {
    size_t n = bytes / output->results[i].element_bytes;
    bool finite = output->results[i].element_bytes == sizeof(float) ? all_finite_f32(values, n) : all_finite_f64(values, n);
    if (finite) return PS_OK;
    return PS_FAIL(error, PS_E_NUMERIC, "frame %lld: %s holds a value that is not finite", (long long)frame, output->places[i].name);
}

/* Bringing the frame to disk at its end then has less to wait for. Where it cannot be done, that waits for all of it. */
static void begin_writeback(const ps_output *output, const ps_rows *rows, int64_t frame, int64_t part) {
#ifdef SYNC_FILE_RANGE_WRITE
    off_t offset = (off_t)ps_rows_part_offset(rows, frame, part);
    (void)!sync_file_range(output->fd, offset, (off_t)ps_rows_part_bytes(rows), SYNC_FILE_RANGE_WRITE);
#endif
}

/* Writes a part and holds it against the file: some MPI-IO layers have lost data on some file systems. */
static ps_code write_part(const ps_output *output, ps_frame_parts *parts, int i, int64_t part, const void *values, ps_error *error) {
    bool same;
    const ps_rows *rows = &output->results[i];
    PS_TRY(ps_rows_write_part(rows, parts->frame, part, values, output->write_limit, error));
    begin_writeback(output, rows, parts->frame, part);
    PS_TRY(
        ps_part_check_run(parts->check, rows, output->fd, parts->frame, part, values, &parts->crc[parts->first[i] + part], &same, error));
    if (!same)
        return PS_FAIL(error, PS_E_IO,
                       "%s: frame %lld of %s does not read back as it was written: MPI-IO or the file system lost data; "
                       "OMPI_MCA_io=romio321 takes another way",
                       output->path, (long long)parts->frame, output->places[i].name);
    parts->is_written[parts->first[i] + part] = true;
    return PS_OK;
}

/* ---- one image ---- */

ps_code ps_parts_check_image(const ps_output *output, const ps_frame_parts *parts, const ps_image_place *place, const float *image,
                             ps_error *error) {
    int i = ps_layout_index(place->method, place->result);
    const ps_rows *rows = &output->results[i];
    bool fits = rows->dataset >= 0 && place->part >= 0 && place->part < ps_rows_parts(rows);
    if (!fits || parts->is_written[parts->first[i] + place->part])
        return PS_FAIL(error, PS_E_INTERNAL, "frame %lld: image %lld of %s %s", (long long)parts->frame, (long long)place->part,
                       output->places[i].name, fits ? "is written twice" : "has no place in the file");
    return check_finite(output, parts->frame, i, image, ps_rows_part_bytes(rows), error);
}

ps_code ps_parts_write_image(const ps_output *output, ps_frame_parts *parts, const ps_image_place *place, const float *image,
                             ps_error *error) {
    return write_part(output, parts, ps_layout_index(place->method, place->result), place->part, image, error);
}

/* ---- the rest ---- */

typedef const void *result_values[PS_MOST_RESULTS];

/* In the order of the layout's list; NULL for what was not computed, or written before. */
static void gather_results(const ps_frame_result *result, result_values values) {
    const ps_method_set *set = result->methods->set;
    int next = 0;
    int64_t item = 0;
    for (int i = 0; i < ps_n_methods; i++) {
        bool asked = item < set->n && set->items[item].method == ps_method_table[i];
        for (int r = 0; r < ps_method_table[i]->n_results; r++) values[next++] = asked ? result->methods->values[item][r] : NULL;
        item += asked;
    }
    values[next++] = &result->dose;
    values[next] = &result->data_norm;
}

static int64_t count_written(const ps_output *output, const ps_frame_parts *parts, int i) {
    int64_t n = 0;
    for (int64_t part = 0; part < ps_rows_parts(&output->results[i]); part++) n += parts->is_written[parts->first[i] + part];
    return n;
}

static ps_code check_result(const ps_output *output, const ps_frame_parts *parts, int i, const void *values, ps_error *error) {
    const ps_rows *rows = &output->results[i];
    bool has_place = rows->dataset >= 0;
    int64_t n_written = has_place ? count_written(output, parts, i) : 0, n = has_place ? ps_rows_parts(rows) : 0;
    bool is_there = values || (n_written > 0 && n_written == n);
    if (has_place != is_there || (values && n_written > 0))
        return PS_FAIL(error, PS_E_INTERNAL, "frame %lld: %s was %scomputed (%lld of %lld written), but the file has %splace for it",
                       (long long)parts->frame, output->places[i].name, is_there ? "" : "not ", (long long)n_written, (long long)n,
                       has_place ? "a " : "no ");
    return values ? check_finite(output, parts->frame, i, values, rows->row_bytes, error) : PS_OK;
}

ps_code ps_parts_check_rest(const ps_output *output, const ps_frame_parts *parts, const ps_frame_result *result, ps_error *error) {
    result_values values;
    gather_results(result, values);
    for (int i = 0; i < output->n_results; i++) PS_TRY(check_result(output, parts, i, values[i], error));
    return PS_OK;
}

ps_code ps_parts_write_rest(const ps_output *output, ps_frame_parts *parts, const ps_frame_result *result, uint32_t *crc, ps_error *error) {
    result_values values;
    gather_results(result, values);
    *crc = 0;
    for (int i = 0; i < output->n_results; i++) {
        const ps_rows *rows = &output->results[i];
        if (rows->dataset < 0) continue;
        size_t bytes = ps_rows_part_bytes(rows);
        for (int64_t part = 0; part < ps_rows_parts(rows); part++) {
            if (values[i]) PS_TRY(write_part(output, parts, i, part, (const char *)values[i] + (size_t)part * bytes, error));
            *crc = (uint32_t)crc32_combine(*crc, parts->crc[parts->first[i] + part], (z_off_t)bytes);
        }
    }
    return PS_OK;
}
