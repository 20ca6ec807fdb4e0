/* Writing into an output file: all ranks hold it open through MPI-IO and write raw data only, each frame's state last.
 *
 * Every rank also holds a POSIX descriptor of the file: to bring its data to disk (fdatasync) and to read back what it wrote. */
#include "store/output.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/log.h"
#include "hdf5/lock.h"
#include "hdf5/write.h"
#include "store/internal.h"
#include "store/layout.h"
#include "store/presence.h"
#include "store/process.h"

static const char *const result_names[] = {
#define X(id, name, type) name,
    PS_RESULTS(X)
#undef X
};
static const size_t result_element_bytes[] = {
#define X(id, name, type) sizeof(type),
    PS_RESULTS(X)
#undef X
};
static const char *const column_names[] = {
#define NUMBER(id, name, type, file_type) "frames/" name,
#define TEXT(id, name, width) "frames/" name,
    PS_COLUMNS(NUMBER, TEXT)
#undef NUMBER
#undef TEXT
};

const char *ps_result_name(ps_result result) {
    return result_names[result];
}
const char *ps_column_name(ps_column column) {
    return column_names[column];
}

ps_code ps_output_agree(MPI_Comm communicator, ps_code code, ps_error *error) {
    struct {
        int failed, rank;
    } mine = {code != PS_OK, 0}, first;
    MPI_Comm_rank(communicator, &mine.rank);
    MPI_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MAXLOC, communicator);
    if (!first.failed) return PS_OK;
    ps_error told = {0};
    if (mine.rank == first.rank) {
        if (error && error->code != PS_OK) told = *error;
        told.code = code;
    }
    told.file = NULL;
    MPI_Bcast(&told, (int)sizeof told, MPI_BYTE, first.rank, communicator);
    return code != PS_OK ? code : PS_FAIL(error, told.code, "%s (rank %d)", told.text, first.rank);
}

/* ---- opening ---- */

static ps_code open_mpi_file(ps_output *output, ps_error *error) {
    ps_code code = PS_OK;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0 || H5Pset_fapl_mpio(access, output->communicator, MPI_INFO_NULL) < 0 ||
        (output->file = H5Fopen(output->path, H5F_ACC_RDWR, access)) < 0)
        code = ps_h5_fail(error, "%s: cannot open for writing through MPI-IO", output->path);
    ps_h5_close(&access);
    return code;
}

/* Collective. Closing waits for all ranks: where one could not open the file, the others leave it open and end without closing HDF5. */
static ps_code open_together(ps_output *output, ps_error *error) {
    ps_code code = open_mpi_file(output, error);
    int opened = code == PS_OK, all, any;
    MPI_Allreduce(&opened, &all, 1, MPI_INT, MPI_MIN, output->communicator);
    MPI_Allreduce(&opened, &any, 1, MPI_INT, MPI_MAX, output->communicator);
    if (any && !all) {
        ps_hdf5_mark_broken();
        output->file = H5I_INVALID_HID;
    }
    return ps_output_agree(output->communicator, code, error);
}

/* Outputs of earlier versions can be resumed without these. */
static bool is_optional(int column) {
    switch (column) {
#define NUMBER(id, name, type, file_type) case id:
        PS_COLUMNS_SEEN(NUMBER)
#undef NUMBER
    case PS_COLUMN_ATTEMPTS: return true;
    default: return false;
    }
}

static ps_code open_rows(ps_output *output, ps_error *error) {
    bool present;
    output->entry = H5Gopen2(output->file, "entry", H5P_DEFAULT);
    if (output->entry < 0) return ps_h5_fail(error, "%s: no /entry: not an output of this program", output->path);
    for (int i = 0; i < PS_N_RESULTS; i++) {
        PS_TRY(ps_rows_open(output->entry, result_names[i], &output->results[i], &present, error));
        if (present && output->results[i].element_bytes != result_element_bytes[i])
            return PS_FAIL(error, PS_E_HDF5, "%s: /entry/%s has elements of %zu bytes, expected %zu", output->path, result_names[i],
                           output->results[i].element_bytes, result_element_bytes[i]);
    }
    for (int i = 0; i < PS_N_COLUMNS; i++) {
        PS_TRY(ps_rows_open(output->entry, column_names[i], &output->columns[i], &present, error));
        if (!present && !is_optional(i))
            return PS_FAIL(error, PS_E_HDF5, "%s: no /entry/%s: not an output of this program", output->path, column_names[i]);
    }
    PS_TRY(ps_rows_open(output->entry, "frames/seconds", &output->seconds, &present, error));
    if (!present || output->seconds.row_bytes != PS_N_STAGES * sizeof(double))
        return PS_FAIL(error, PS_E_HDF5, "%s: /entry/frames/seconds does not have %d stages", output->path, PS_N_STAGES);
    return PS_OK;
}

static ps_code read_states(ps_output *output, ps_error *error) {
    const ps_rows *state = &output->columns[PS_COLUMN_STATE], *attempts = &output->columns[PS_COLUMN_ATTEMPTS];
    output->n_frames = (int64_t)state->dims[0];
    output->states = malloc((size_t)output->n_frames);
    output->written = calloc((size_t)output->n_frames, 1);
    output->attempts = calloc((size_t)output->n_frames, sizeof *output->attempts);
    output->begun = calloc((size_t)output->n_frames, sizeof *output->begun);
    if (!output->states || !output->written || !output->attempts || !output->begun)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for frame states");
    for (int64_t i = 0; i < output->n_frames; i++) {
        PS_TRY(ps_rows_read(state, output->fd, i, &output->states[i], error));
        if (attempts->dataset >= 0) PS_TRY(ps_rows_read(attempts, output->fd, i, &output->attempts[i], error));
    }
    return PS_OK;
}

void ps_output_forget(ps_output *output) {
    for (int i = 0; i < PS_N_RESULTS; i++) ps_rows_close(&output->results[i]);
    for (int i = 0; i < PS_N_COLUMNS; i++) ps_rows_close(&output->columns[i]);
    ps_rows_close(&output->seconds);
    ps_h5_close(&output->entry);
}

void ps_output_discard(ps_output *output) {
    if (!output) return;
    ps_output_forget(output);
    if (output->file >= 0 && H5Fclose(output->file) < 0) ps_hdf5_mark_broken();
    if (output->fd >= 0) close(output->fd);
    ps_lock_release(&output->lock);
    if (output->communicator != MPI_COMM_NULL) MPI_Comm_free(&output->communicator);
    free(output->states);
    free(output->written);
    free(output->attempts);
    free(output->begun);
    free(output->path);
    free(output);
}

static ps_output *new_output(const char *path) {
    ps_output *output = calloc(1, sizeof *output);
    if (!output) return NULL;
    output->file = output->entry = output->seconds.dataset = output->seconds.type = H5I_INVALID_HID;
    for (int i = 0; i < PS_N_RESULTS; i++) output->results[i].dataset = output->results[i].type = H5I_INVALID_HID;
    for (int i = 0; i < PS_N_COLUMNS; i++) output->columns[i].dataset = output->columns[i].type = H5I_INVALID_HID;
    output->fd = -1;
    output->lock = PS_LOCK_NONE;
    output->communicator = MPI_COMM_NULL;
    output->write_limit = PS_WRITE_LIMIT;
    output->path = strdup(path);
    gethostname(output->host, sizeof output->host - 1);
    return output;
}

static ps_code open_local(ps_output *output, int rank, ps_error *error) {
    if (!output || !output->path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the output");
    output->rank = rank;
    if (rank == 0) PS_TRY(ps_lock_take(output->path, &output->lock, error));
    output->fd = open(output->path, O_RDWR | O_CLOEXEC);
    if (output->fd < 0) return ps_io_fail(error, errno, "%s: cannot open for writing", output->path);
    return ps_presence_note(output, error);
}

ps_code ps_output_open(const char *path, MPI_Comm communicator, ps_output **opened, ps_error *error) {
    ps_code code = PS_OK;
    *opened = NULL;
    ps_h5_quiet();
    signal(SIGXFSZ, SIG_IGN);
    int rank;
    MPI_Comm_rank(communicator, &rank);
    ps_output *output = new_output(path);
    PS_GO(ps_output_agree(communicator, open_local(output, rank, error), error));
    MPI_Comm_dup(communicator, &output->communicator);
    PS_GO(open_together(output, error));
    code = open_rows(output, error);
    if (code == PS_OK) code = read_states(output, error);
    if (code == PS_OK) code = ps_process_last(output->entry, &output->process, error);
    PS_GO(ps_output_agree(communicator, code, error));
    MPI_Bcast(&output->process, 1, MPI_INT, 0, communicator);
    *opened = output;
    output = NULL;
done:
    ps_output_discard(output);
    return code;
}

void ps_output_limit_writes(ps_output *output, size_t bytes) {
    output->write_limit = bytes;
}

/* ---- one frame ---- */

typedef const void *result_values[PS_N_RESULTS];

static void gather_method(const ps_method_result *method, int first, bool is_complex, result_values values) {
    if (!method) return;
    int next = first;
    values[next++] = method->phase;
    if (is_complex) values[next++] = method->log_amplitude;
    values[next++] = method->residual;
    values[next++] = method->effective_dof;
    values[next++] = method->gcv;
    values[next] = &method->chosen_strength;
}

static void gather_results(const ps_frame_result *result, result_values values) {
    memset(values, 0, sizeof(result_values));
    gather_method(result->phase, PS_RESULT_PHASE, false, values);
    gather_method(result->complex_, PS_RESULT_COMPLEX, true, values);
    values[PS_RESULT_SSB] = result->ssb_phase;
    if (result->ssb_phase && !isnan(result->ssb_loss)) values[PS_RESULT_SSB_LOSS] = &result->ssb_loss;
    values[PS_RESULT_DOSE] = &result->dose;
    values[PS_RESULT_DATA_NORM] = &result->data_norm;
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
    for (int i = 0; i < PS_N_RESULTS; i++) {
        const ps_rows *rows = &output->results[i];
        bool has_place = rows->dataset >= 0;
        if (has_place != (values[i] != NULL))
            return PS_FAIL(error, PS_E_INTERNAL, "frame %lld: %s was %scomputed, but the file has %splace for it", (long long)frame,
                           result_names[i], values[i] ? "" : "not ", has_place ? "a " : "no ");
        if (!has_place) continue;
        size_t n = rows->row_bytes / rows->element_bytes;
        bool finite = rows->element_bytes == sizeof(float) ? all_finite_f32(values[i], n) : all_finite_f64(values[i], n);
        if (!finite)
            return PS_FAIL(error, PS_E_NUMERIC, "frame %lld: %s holds a value that is not finite", (long long)frame, result_names[i]);
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
    for (int i = 0; i < PS_N_RESULTS; i++) {
        if (!values[i]) continue;
        PS_TRY(ps_rows_write(&output->results[i], frame, values[i], output->write_limit, error));
        *crc = (uint32_t)crc32_z(*crc, values[i], output->results[i].row_bytes);
    }
    return PS_OK;
}

ps_code ps_output_crc(const ps_output *output, int64_t frame, uint32_t *crc, ps_error *error) {
    *crc = 0;
    for (int i = 0; i < PS_N_RESULTS; i++)
        if (output->results[i].dataset >= 0) PS_TRY(ps_rows_crc(&output->results[i], output->fd, frame, crc, error));
    return PS_OK;
}

/* What stands in the file is what was in memory: some MPI-IO layers have lost data on some file systems. */
static ps_code read_back(const ps_output *output, int64_t frame, result_values values, ps_error *error) {
    for (int i = 0; i < PS_N_RESULTS; i++) {
        bool same;
        if (!values[i]) continue;
        PS_TRY(ps_rows_compare(&output->results[i], output->fd, frame, values[i], &same, error));
        if (!same)
            return PS_FAIL(error, PS_E_IO,
                           "%s: frame %lld of %s does not read back as it was written: MPI-IO or the file system lost data; "
                           "OMPI_MCA_io=romio321 takes another way",
                           output->path, (long long)frame, result_names[i]);
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
        return PS_FAIL(error, PS_E_HDF5, "%s: /entry/%s is %zu bytes wide, expected at most %zu", output->path, column_names[column],
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
    PS_TRY(write_number(output, PS_COLUMN_ATTEMPTS, frame, &attempts, error));
    return ps_output_sync(output, error);
}

/* A frame that ends, well or not, is no suspect any more; one that was failed for its count without being begun keeps it. */
static ps_code end_attempts(const ps_output *output, int64_t frame, ps_error *error) {
    int32_t none = 0;
    return output->begun[frame] ? write_number(output, PS_COLUMN_ATTEMPTS, frame, &none, error) : PS_OK;
}

ps_code ps_output_write_frame(ps_output *output, int64_t frame, const ps_frame_result *result, ps_error *error) {
    ps_frame_result timed = *result;
    result_values values;
    uint32_t crc = 0;
    double start = ps_seconds();
    gather_results(result, values);
    PS_TRY(check_frame(output, frame, error));
    PS_TRY(check_results(output, frame, values, error));
    PS_TRY(ps_presence_check(output, error));
    PS_TRY(reopen_frame(output, frame, error));
    PS_TRY(write_results(output, frame, values, &crc, error));
    PS_TRY(read_back(output, frame, values, error));
    timed.seconds[PS_STAGE_WRITE] += ps_seconds() - start;
    PS_TRY(write_row(output, frame, &timed, crc, error));
    PS_TRY(end_attempts(output, frame, error));
    PS_TRY(ps_output_sync(output, error));
    PS_TRY(ps_output_write_state(output, frame, PS_FRAME_DONE, error));
    return ps_presence_check(output, error);
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
            PS_TRY(write_number(output, entries[i].column, frame, entries[i].value, error));
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

/* ---- prepared optics ---- */

static ps_code write_whole(hid_t group, const char *name, const void *values, const char *text, ps_error *error) {
    ps_code code = PS_OK;
    char padded[256];
    hid_t type = H5I_INVALID_HID, dataset = H5Dopen2(group, name, H5P_DEFAULT);
    if (dataset < 0 || (type = H5Dget_type(dataset)) < 0) {
        code = ps_h5_fail(error, "cannot open optics/%s", name);
        goto done;
    }
    if (text) {
        size_t capacity = H5Tget_size(type);
        ps_h5_pad_text(padded, capacity < sizeof padded ? capacity : sizeof padded, text);
        values = padded;
    }
    if (H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
        code = ps_h5_fail(error, "cannot write optics/%s", name);
        ps_hdf5_mark_broken();
    }
done:
    ps_h5_close(&type);
    ps_h5_close(&dataset);
    return code;
}

ps_code ps_output_write_prepared(ps_output *output, int64_t optics, const ps_output_prepared *prepared, ps_error *error) {
    const struct {
        const char *name;
        double value;
    } scales[] = {{"scale_phase", prepared->scale_phase},
                  {"scale_complex_amplitude", prepared->scale_complex_amplitude},
                  {"scale_complex_phase", prepared->scale_complex_phase}};
    ps_code code = PS_OK;
    char name[32];
    snprintf(name, sizeof name, "optics_%lld", (long long)optics);
    hid_t group = H5Gopen2(output->entry, name, H5P_DEFAULT);
    if (group < 0) return ps_h5_fail(error, "%s: cannot open /entry/%s", output->path, name);
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (H5Lexists(group, scales[i].name, H5P_DEFAULT) > 0) PS_GO(write_whole(group, scales[i].name, &scales[i].value, NULL, error));
    PS_GO(write_whole(group, "weights", prepared->weights, NULL, error));
    PS_GO(write_whole(group, "dose", &prepared->dose, NULL, error));
    PS_GO(write_whole(group, "backend", NULL, prepared->backend, error));
    PS_GO(write_whole(group, "precision", NULL, prepared->precision, error));
done:
    ps_h5_close(&group);
    return code;
}

ps_code ps_output_states(const char *path, int64_t *n, uint8_t **states, ps_error *error) {
    ps_code code = PS_OK;
    hid_t file = H5I_INVALID_HID, dataset = H5I_INVALID_HID, space = H5I_INVALID_HID;
    *states = NULL;
    ps_h5_quiet();
    PS_GO(ps_h5_open_read(path, &file, error));
    dataset = H5Dopen2(file, "entry/frames/state", H5P_DEFAULT);
    if (dataset < 0 || (space = H5Dget_space(dataset)) < 0) {
        code = ps_h5_fail(error, "%s: no /entry/frames/state: not an output of this program", path);
        goto done;
    }
    *n = (int64_t)H5Sget_simple_extent_npoints(space);
    *states = malloc((size_t)*n);
    PS_GO_ALLOC(error, *states);
    if (H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, *states) < 0)
        code = ps_h5_fail(error, "%s: cannot read frame states", path);
done:
    if (code != PS_OK) {
        free(*states);
        *states = NULL;
    }
    ps_h5_close(&space);
    ps_h5_close(&dataset);
    ps_h5_close(&file);
    return code;
}
