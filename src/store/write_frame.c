/* Writing a frame: raw data only, independently on each rank, the frame's state last. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/busy.h"
#include "core/log.h"
#include "hdf5/write.h"
#include "store/internal.h"
#include "store/presence.h"

/* ---- results ---- */

typedef const void *result_values[PS_MOST_RESULTS];

/* In the order of the layout's list; NULL for what was not computed. */
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

/* Everything the file has a place for is there, nothing else is, and all of it is finite. */
static ps_code check_results(const ps_output *output, int64_t frame, result_values values, ps_error *error) {
    for (int i = 0; i < output->n_results; i++) {
        const ps_rows *rows = &output->results[i];
        bool has_place = rows->dataset >= 0;
        if (has_place != (values[i] != NULL))
            return PS_FAIL(error, PS_E_INTERNAL, "frame %lld: %s was %scomputed, but the file has %splace for it", (long long)frame,
                           output->places[i].name, values[i] ? "" : "not ", has_place ? "a " : "no ");
        if (!has_place) continue;
        size_t n = rows->row_bytes / rows->element_bytes;
        bool finite = rows->element_bytes == sizeof(float) ? all_finite_f32(values[i], n) : all_finite_f64(values[i], n);
        if (!finite)
            return PS_FAIL(error, PS_E_NUMERIC, "frame %lld: %s holds a value that is not finite", (long long)frame,
                           output->places[i].name);
    }
    return PS_OK;
}

static ps_code check_frame(const ps_output *output, int64_t frame, ps_error *error) {
    if (frame >= 0 && frame < output->n_frames) return PS_OK;
    return PS_FAIL(error, PS_E_INTERNAL, "%s: frame %lld of %lld", output->path, (long long)frame, (long long)output->n_frames);
}

ps_code ps_output_sync(const ps_output *output, ps_error *error) {
    if (fdatasync(output->fd) == 0 || errno == EINVAL || errno == ENOSYS) return PS_OK;
    return ps_io_fail(error, errno, "%s: cannot bring data to disk", output->path);
}

ps_code ps_output_write_state(ps_output *output, int64_t frame, ps_frame_state state, ps_error *error) {
    uint8_t value = (uint8_t)state;
    PS_TRY(ps_rows_write(&output->columns[PS_COLUMN_STATE], frame, &value, output->write_limit, error));
    output->states[frame] = value;
    output->written[frame] = (uint8_t)(value + 1);
    return PS_OK;
}

/* A frame that is written once more is pending, on disk, before its data changes. */
static ps_code reopen_frame(ps_output *output, int64_t frame, ps_error *error) {
    if (output->states[frame] == PS_FRAME_PENDING) return PS_OK;
    PS_TRY(ps_output_write_state(output, frame, PS_FRAME_PENDING, error));
    return ps_output_sync(output, error);
}

static ps_code write_results(const ps_output *output, int64_t frame, result_values values, uint32_t *crc, ps_error *error) {
    for (int i = 0; i < output->n_results; i++) {
        if (!values[i]) continue;
        PS_TRY(ps_rows_write(&output->results[i], frame, values[i], output->write_limit, error));
        *crc = (uint32_t)crc32_z(*crc, values[i], output->results[i].row_bytes);
    }
    return PS_OK;
}

ps_code ps_output_crc(const ps_output *output, int64_t frame, uint32_t *crc, ps_error *error) {
    *crc = 0;
    for (int i = 0; i < output->n_results; i++)
        if (output->results[i].dataset >= 0) PS_TRY(ps_rows_crc(&output->results[i], output->fd, frame, crc, error));
    return PS_OK;
}

/* What stands in the file is what was in memory: some MPI-IO layers have lost data on some file systems. */
static ps_code read_back(const ps_output *output, int64_t frame, result_values values, ps_error *error) {
    for (int i = 0; i < output->n_results; i++) {
        bool same;
        if (!values[i]) continue;
        PS_TRY(ps_rows_compare(&output->results[i], output->fd, frame, values[i], &same, error));
        if (!same)
            return PS_FAIL(error, PS_E_IO,
                           "%s: frame %lld of %s does not read back as it was written: MPI-IO or the file system lost data; "
                           "OMPI_MCA_io=romio321 takes another way",
                           output->path, (long long)frame, output->places[i].name);
    }
    return PS_OK;
}

static ps_code write_number(const ps_output *output, ps_column column, int64_t frame, const void *value, ps_error *error) {
    return ps_rows_write(&output->columns[column], frame, value, output->write_limit, error);
}

static ps_code write_text(const ps_output *output, ps_column column, int64_t frame, const char *text, ps_error *error) {
    char padded[512];
    size_t capacity = output->columns[column].row_bytes;
    if (capacity > sizeof padded)
        return PS_FAIL(error, PS_E_HDF5, "%s: /entry/%s is %zu bytes wide, expected at most %zu", output->path, ps_column_name(column),
                       capacity, sizeof padded);
    ps_h5_pad_text(padded, capacity, text);
    return ps_rows_write(&output->columns[column], frame, padded, output->write_limit, error);
}

/* The columns every written frame has, done or failed. */
static ps_code write_who(const ps_output *output, int64_t frame, const char *device, const char *note, const char *reason,
                         ps_error *error) {
    int32_t process = output->process, rank = output->rank;
    char now[PS_WIDTH_TIME];
    ps_output_time_now(now);
    PS_TRY(write_number(output, PS_COLUMN_PROCESS, frame, &process, error));
    PS_TRY(write_number(output, PS_COLUMN_RANK, frame, &rank, error));
    PS_TRY(write_text(output, PS_COLUMN_HOST, frame, output->host, error));
    PS_TRY(write_text(output, PS_COLUMN_DEVICE, frame, device, error));
    PS_TRY(write_text(output, PS_COLUMN_TIME, frame, now, error));
    PS_TRY(write_text(output, PS_COLUMN_NOTE, frame, note, error));
    return write_text(output, PS_COLUMN_ERROR, frame, reason, error);
}

static ps_code write_row(const ps_output *output, int64_t frame, const ps_frame_result *result, uint32_t crc, ps_error *error) {
    PS_TRY(write_number(output, PS_COLUMN_CRC, frame, &crc, error));
    PS_TRY(write_number(output, PS_COLUMN_EXCLUDED, frame, &result->n_excluded, error));
    PS_TRY(write_number(output, PS_COLUMN_SATURATED, frame, &result->n_saturated, error));
    PS_TRY(write_number(output, PS_COLUMN_NEGATIVE, frame, &result->n_negative, error));
    PS_TRY(write_number(output, PS_COLUMN_NONFINITE, frame, &result->n_nonfinite, error));
    PS_TRY(write_number(output, PS_COLUMN_MISSING, frame, &result->n_missing, error));
    PS_TRY(write_number(output, PS_COLUMN_MEMORY, frame, &result->peak_memory_bytes, error));
    PS_TRY(ps_rows_write(&output->seconds, frame, result->seconds, output->write_limit, error));
    return write_who(output, frame, result->device, result->note, "", error);
}

const int32_t *ps_output_attempts(const ps_output *output) {
    return output->attempts;
}

ps_code ps_output_write_attempts(ps_output *output, int64_t frame, int32_t attempts, ps_error *error) {
    PS_TRY(check_frame(output, frame, error));
    if (output->columns[PS_COLUMN_ATTEMPTS].dataset < 0) return PS_OK;
    output->begun[frame] = true;
    ps_busy_begin(PS_RESOURCE_OUTPUT);
    ps_code code = write_number(output, PS_COLUMN_ATTEMPTS, frame, &attempts, error);
    if (code == PS_OK) code = ps_output_sync(output, error);
    ps_busy_end(PS_RESOURCE_OUTPUT);
    return code;
}

/* A frame that ends, well or not, is no suspect any more; one that was failed for its count without being begun keeps it. */
static ps_code end_attempts(const ps_output *output, int64_t frame, ps_error *error) {
    int32_t none = 0;
    return output->begun[frame] ? write_number(output, PS_COLUMN_ATTEMPTS, frame, &none, error) : PS_OK;
}

static ps_code write_whole_frame(ps_output *output, int64_t frame, const ps_frame_result *result, double start_s, ps_error *error) {
    ps_frame_result timed = *result;
    result_values values;
    uint32_t crc = 0;
    gather_results(result, values);
    PS_TRY(check_frame(output, frame, error));
    PS_TRY(check_results(output, frame, values, error));
    PS_TRY(ps_presence_check(output, error));
    PS_TRY(reopen_frame(output, frame, error));
    PS_TRY(write_results(output, frame, values, &crc, error));
    PS_TRY(read_back(output, frame, values, error));
    timed.seconds[PS_STAGE_WRITE] += ps_seconds() - start_s;
    PS_TRY(write_row(output, frame, &timed, crc, error));
    PS_TRY(end_attempts(output, frame, error));
    PS_TRY(ps_output_sync(output, error));
    PS_TRY(ps_output_write_state(output, frame, PS_FRAME_DONE, error));
    return ps_presence_check(output, error);
}

ps_code ps_output_write_frame(ps_output *output, int64_t frame, const ps_frame_result *result, ps_error *error) {
    double start_s = ps_seconds();
    PS_TRY(PS_BUSY(PS_RESOURCE_OUTPUT, write_whole_frame(output, frame, result, start_s, error)));
    for (int s = 0; s < PS_N_STAGES; s++) output->stage_s[s] += result->seconds[s];
    output->stage_s[PS_STAGE_WRITE] += ps_seconds() - start_s;
    return PS_OK;
}

const double *ps_output_stage_seconds(const ps_output *output) {
    return output->stage_s;
}

ps_code ps_output_write_seen(ps_output *output, int64_t frame, const ps_frame_seen *seen, ps_error *error) {
    const struct {
        ps_column column;
        const void *value;
    } entries[] = {{PS_COLUMN_EMPTY, &seen->n_empty},
                   {PS_COLUMN_MARKED_PATTERNS, &seen->n_marked_patterns},
                   {PS_COLUMN_HOT, &seen->n_hot},
                   {PS_COLUMN_DEAD, &seen->n_dead},
                   {PS_COLUMN_DISC_ROW, &seen->disc_center_px[0]},
                   {PS_COLUMN_DISC_COLUMN, &seen->disc_center_px[1]},
                   {PS_COLUMN_DISC_RADIUS, &seen->disc_radius_px}};
    PS_TRY(check_frame(output, frame, error));
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (output->columns[entries[i].column].dataset >= 0)
            PS_TRY(PS_BUSY(PS_RESOURCE_OUTPUT, write_number(output, entries[i].column, frame, entries[i].value, error)));
    return PS_OK;
}

ps_code ps_output_fail_frame(ps_output *output, int64_t frame, const char *reason, ps_error *error) {
    PS_TRY(check_frame(output, frame, error));
    PS_TRY(ps_presence_check(output, error));
    PS_TRY(reopen_frame(output, frame, error));
    PS_TRY(write_who(output, frame, NULL, NULL, reason, error));
    PS_TRY(end_attempts(output, frame, error));
    PS_TRY(ps_output_sync(output, error));
    return ps_output_write_state(output, frame, PS_FRAME_FAILED, error);
}
