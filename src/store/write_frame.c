/* Writing a frame: raw data only, independently on each rank, the frame's state last. */
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/busy.h"
#include "core/log.h"
#include "hdf5/write.h"
#include "store/internal.h"
#include "store/parts.h"
#include "store/presence.h"

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

static ps_code reopen_frame(ps_output *output, int64_t frame, ps_error *error) {
    if (output->states[frame] == PS_FRAME_PENDING) return PS_OK;
    PS_TRY(ps_output_write_state(output, frame, PS_FRAME_PENDING, error));
    return ps_output_sync(output, error);
}

ps_code ps_output_crc(const ps_output *output, int64_t frame, uint32_t *crc, ps_error *error) {
    *crc = 0;
    for (int i = 0; i < output->n_results; i++)
        if (output->results[i].dataset >= 0) PS_TRY(ps_rows_crc(&output->results[i], output->fd, frame, crc, error));
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

/* Brings one number to disk, not the images that are being written beside it: what waits for it would wait for those too. The number is
 * written once more for that, with the same bytes. */
static ps_code sync_number(const ps_output *output, ps_column column, int64_t frame, const void *value, ps_error *error) {
    const ps_rows *rows = &output->columns[column];
    const struct iovec bytes = {.iov_base = (void *)value, .iov_len = rows->row_bytes}; /* only read from */
    ssize_t n = pwritev2(output->fd, &bytes, 1, (off_t)(rows->offset + (uint64_t)frame * rows->row_bytes), RWF_DSYNC);
    if (n == (ssize_t)rows->row_bytes) return PS_OK;
    bool cannot = n >= 0 || errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL || errno == EINTR;
    return cannot ? ps_output_sync(output, error) : ps_io_fail(error, errno, "%s: cannot bring data to disk", output->path);
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
    if (code == PS_OK) code = sync_number(output, PS_COLUMN_ATTEMPTS, frame, &attempts, error);
    ps_busy_end(PS_RESOURCE_OUTPUT);
    return code;
}

/* A frame that ends, well or not, is no suspect any more; one that was failed for its count without being begun keeps it. */
static ps_code end_attempts(const ps_output *output, int64_t frame, ps_error *error) {
    int32_t none = 0;
    return output->begun[frame] ? write_number(output, PS_COLUMN_ATTEMPTS, frame, &none, error) : PS_OK;
}

/* A frame that is written once more is pending, on disk, before its data changes. */
static ps_code begin_frame(ps_output *output, ps_frame_parts *parts, ps_error *error) {
    if (parts->is_begun) return PS_OK;
    PS_TRY(ps_presence_check(output, error));
    PS_TRY(reopen_frame(output, parts->frame, error));
    parts->is_begun = true;
    return PS_OK;
}

static ps_code write_image(ps_output *output, ps_frame_parts *parts, const ps_image_place *place, const float *image, ps_error *error) {
    double start = ps_seconds();
    PS_TRY(check_frame(output, parts->frame, error));
    PS_TRY(ps_parts_check_image(output, parts, place, image, error));
    PS_TRY(begin_frame(output, parts, error));
    PS_TRY(ps_parts_write_image(output, parts, place, image, error));
    parts->seconds += ps_seconds() - start;
    return PS_OK;
}

ps_code ps_output_write_image(ps_output *output, ps_frame_parts *parts, const ps_image_place *place, const float *image, ps_error *error) {
    return PS_BUSY(PS_RESOURCE_OUTPUT, write_image(output, parts, place, image, error));
}

static ps_code finish_frame(ps_output *output, ps_frame_parts *parts, const ps_frame_result *result, double start, ps_error *error) {
    ps_frame_result timed = *result;
    uint32_t crc = 0;
    int64_t frame = parts->frame;
    PS_TRY(check_frame(output, frame, error));
    PS_TRY(ps_parts_check_rest(output, parts, result, error));
    PS_TRY(begin_frame(output, parts, error));
    PS_TRY(ps_parts_write_rest(output, parts, result, &crc, error));
    timed.seconds[PS_STAGE_WRITE] += parts->seconds + ps_seconds() - start;
    PS_TRY(write_row(output, frame, &timed, crc, error));
    PS_TRY(end_attempts(output, frame, error));
    PS_TRY(ps_output_sync(output, error));
    PS_TRY(ps_output_write_state(output, frame, PS_FRAME_DONE, error));
    return ps_presence_check(output, error);
}

ps_code ps_output_finish_frame(ps_output *output, ps_frame_parts *parts, const ps_frame_result *result, ps_error *error) {
    double start = ps_seconds();
    PS_TRY(PS_BUSY(PS_RESOURCE_OUTPUT, finish_frame(output, parts, result, start, error)));
    for (int s = 0; s < PS_N_STAGES; s++) output->stage_s[s] += result->seconds[s];
    output->stage_s[PS_STAGE_WRITE] += parts->seconds + ps_seconds() - start;
    return PS_OK;
}

const double *ps_output_stage_seconds(const ps_output *output) {
    return output->stage_s;
}

ps_code ps_output_write_frame(ps_output *output, int64_t frame, const ps_frame_result *result, ps_error *error) {
    ps_frame_parts *parts = NULL;
    PS_TRY(ps_frame_parts_create(output, &parts, error));
    ps_frame_parts_begin(parts, frame);
    ps_code code = ps_output_finish_frame(output, parts, result, error);
    ps_frame_parts_destroy(parts);
    return code;
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
