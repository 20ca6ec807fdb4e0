/* Opening an output file for writing: all ranks hold it open through MPI-IO.
 *
 * Every rank also holds a POSIX descriptor of the file: to bring its data to disk (fdatasync) and to read back what it wrote. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hdf5/lock.h"
#include "hdf5/write.h"
#include "store/internal.h"
#include "store/presence.h"
#include "store/process.h"

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

/* Collective. Closing waits for all ranks: where one could not open the file, the others leave it open, and the program ends without
 * closing it. */
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

static ps_code open_result(ps_output *output, int index, ps_error *error) {
    const ps_result_place *place = &output->places[index];
    ps_rows *rows = &output->results[index];
    bool present;
    const char *name = ps_layout_name(output->entry, place);
    if (!name) return PS_OK;
    PS_TRY(ps_rows_open(output->entry, name, rows, &present, error));
    if (!present) return ps_h5_fail(error, "%s: cannot open /entry/%s", output->path, name);
    if (rows->element_bytes == place->element_bytes) return PS_OK;
    return PS_FAIL(error, PS_E_HDF5, "%s: /entry/%s has elements of %zu bytes, expected %zu", output->path, name, rows->element_bytes,
                   place->element_bytes);
}

static ps_code open_rows(ps_output *output, ps_error *error) {
    bool present;
    output->entry = H5Gopen2(output->file, "entry", H5P_DEFAULT);
    if (output->entry < 0) return ps_h5_fail(error, "%s: no /entry: not an output of this program", output->path);
    PS_TRY(ps_layout_check_version(output->entry, output->path, error));
    for (int i = 0; i < output->n_results; i++) PS_TRY(open_result(output, i, error));
    for (int i = 0; i < PS_N_COLUMNS; i++) {
        PS_TRY(ps_rows_open(output->entry, ps_column_name((ps_column)i), &output->columns[i], &present, error));
        if (!present && !is_optional(i))
            return PS_FAIL(error, PS_E_HDF5, "%s: no /entry/%s: not an output of this program", output->path, ps_column_name((ps_column)i));
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
    for (int i = 0; i < output->n_results; i++) ps_rows_close(&output->results[i]);
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
    output->n_results = ps_layout_results(output->places);
    for (int i = 0; i < output->n_results; i++) output->results[i].dataset = output->results[i].type = H5I_INVALID_HID;
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
