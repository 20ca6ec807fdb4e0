/* The end of a run's writing: end time and counts, closing, and whether what was written is still there. */
#include <stdlib.h>

#include "core/log.h"
#include "hdf5/lock.h"
#include "hdf5/write.h"
#include "store/crate.h"
#include "store/info.h"
#include "store/internal.h"
#include "store/presence.h"
#include "store/process.h"
#include "store/publish.h"

/* counts: [3]; valid on rank 0. What other ranks wrote is asked from them, not from the file system's cache. */
static void count_states(ps_output *output, int64_t counts[3]) {
    uint8_t *all = output->rank == 0 ? malloc((size_t)output->n_frames) : NULL;
    int can_count = output->rank != 0 || all != NULL;
    MPI_Bcast(&can_count, 1, MPI_INT, 0, output->communicator);
    counts[0] = counts[1] = counts[2] = 0;
    if (!can_count) return;
    MPI_Reduce(output->written, all, (int)output->n_frames, MPI_UINT8_T, MPI_MAX, 0, output->communicator);
    for (int64_t i = 0; output->rank == 0 && i < output->n_frames; i++) {
        int state = all[i] ? all[i] - 1 : output->states[i];
        if (state >= 0 && state < 3) counts[state]++;
    }
    free(all);
}

/* Everything of the new result is there: what --overwrite kept has had its time. */
static void drop_previous(const ps_output *output, const int64_t counts[3]) {
    if (counts[PS_FRAME_DONE] != output->n_frames) return;
    int n = ps_publish_forget(output->path, ps_output_is_output);
    if (n > 0)
        ps_log(PS_LOG_INFO, "%s: every frame is done; removed %d earlier result%s kept beside it", output->path, n, n == 1 ? "" : "s");
}

ps_code ps_output_write_usage(ps_output *output, const ps_usage *usage, ps_error *error) {
    ps_code code = ps_process_write_usage(output->entry, output->process, usage, error);
    if (code != PS_OK) ps_hdf5_mark_broken();
    return code;
}

/* Collective: something was not written. What HDF5 holds open stays open, which the program's end knows. */
static ps_code give_up(ps_output *output, ps_code code, bool lost) {
    ps_hdf5_mark_broken();
    if (lost && output->rank == 0) ps_presence_save(output);
    ps_lock_release(&output->lock);
    return code;
}

/* Collective. *lost: by any rank's look the file is no longer there, or not whole; then that is the reason. */
static ps_code write_end(ps_output *output, int64_t counts[3], bool *lost, ps_error *error) {
    ps_error reason = {0};
    *lost = ps_output_agree(output->communicator, ps_presence_check(output, &reason), &reason) != PS_OK;
    count_states(output, counts);
    ps_code code = output->rank == 0 ? ps_process_finish(output->entry, output->process, counts, error) : PS_OK;
    if (code != PS_OK) ps_hdf5_mark_broken();
    if (ps_hdf5_is_broken() && code == PS_OK)
        code = PS_FAIL(error, PS_E_IO, "%s: could not be written to the end; what it says of its frames is true, and --resume goes on",
                       output->path);
    code = ps_output_agree(output->communicator, code, error);
    if (code != PS_OK && *lost && error) *error = reason;
    return code;
}

ps_code ps_output_close(ps_output *output, ps_error *error) {
    if (!output) return PS_OK;
    int64_t counts[3];
    bool lost;
    ps_code code = write_end(output, counts, &lost, error);
    if (code != PS_OK) return give_up(output, code, lost);
    ps_output_forget(output);
    if (H5Fclose(output->file) < 0) {
        code = ps_h5_fail(error, "%s: cannot close", output->path);
        ps_hdf5_mark_broken();
    }
    output->file = H5I_INVALID_HID;
    if (code == PS_OK) code = ps_output_sync(output, error);
    if (code == PS_OK) code = ps_presence_check(output, error);
    code = ps_output_agree(output->communicator, code, error);
    if (output->rank == 0 && code == PS_OK) ps_crate_tell(output->path);
    if (output->rank == 0 && code == PS_OK) drop_previous(output, counts);
    if (output->rank == 0 && code != PS_OK) ps_presence_save(output);
    ps_output_discard(output);
    return code;
}
