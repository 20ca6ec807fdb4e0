#include "store/resume.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "hdf5/write.h"
#include "store/fingerprint.h"
#include "store/internal.h"
#include "store/measured.h"
#include "store/process.h"
#include "store/publish.h"
#include "store/sources.h"

enum { DIFFERENCES_SHOWN = 8 };

/* ---- the same science ---- */

/* text: malloc'd, the signature kept in the file. */
static ps_code read_fingerprint(const char *path, char **text, ps_error *error) {
    ps_code code = PS_OK;
    hid_t file = H5I_INVALID_HID, dataset = H5I_INVALID_HID, type = H5I_INVALID_HID;
    PS_GO(ps_h5_open_read(path, &file, error));
    dataset = H5Dopen2(file, "entry/signature", H5P_DEFAULT);
    if (dataset < 0 || (type = H5Dget_type(dataset)) < 0) {
        code = ps_h5_fail(error, "%s: no /entry/signature: not an output of this program", path);
        goto done;
    }
    *text = calloc(H5Tget_size(type) + 1, 1);
    PS_GO_ALLOC(error, *text);
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, *text) < 0)
        code = ps_h5_fail(error, "%s: cannot read /entry/signature", path);
done:
    ps_h5_close(&type);
    ps_h5_close(&dataset);
    ps_h5_close(&file);
    return code;
}

/* Lines to one line, for a message. */
static void join_lines(char *text) {
    size_t length = strlen(text);
    if (length > 0 && text[length - 1] == '\n') text[length - 1] = '\0';
    for (char *newline; (newline = strchr(text, '\n'));) *newline = ';';
}

/* Signatures of earlier versions do not have this line. */
static void drop_what_was_not_recorded(const char *before, char *after) {
    static const char key[] = "series.bad_pixels.hot_sigma";
    if (!strstr(before, key)) ps_fingerprint_drop(after, key);
}

static void say_what_was_not_compared(const char *path, const ps_sources_report *sources) {
    if (sources->n_old > 0)
        ps_log(
            PS_LOG_WARNING,
            "%s was made by an earlier version, which recorded the files that the job names and no others: for %lld frames, whether data "
            "files behind them (linked, virtual, raw) are still the same cannot be told",
            path, (long long)sources->n_old);
    if (sources->n_unwhole > 0)
        ps_log(PS_LOG_WARNING, "%s: series.verify is \"whole\", but the file was made with samples only: those of %lld files were compared",
               path, (long long)sources->n_unwhole);
}

static ps_code same_science(const char *path, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    char *before = NULL, *after = NULL, *differences = NULL;
    ps_sources_report sources = {0};
    PS_GO(read_fingerprint(path, &before, error));
    PS_GO(ps_output_fingerprint(spec, &after, error));
    PS_GO(ps_sources_compare(path, spec, &sources, error));
    drop_what_was_not_recorded(before, after);
    ps_fingerprint_drop_names(before, sources.compared, spec->n_frames);
    ps_fingerprint_drop_names(after, sources.compared, spec->n_frames);
    PS_GO(ps_fingerprint_differences(before, after, DIFFERENCES_SHOWN, &differences, error));
    join_lines(differences);
    join_lines(sources.differences);
    if (differences[0] || sources.differences[0])
        code = PS_FAIL(error, PS_E_ARGUMENT, "%s was made %s and cannot be resumed: %s%s%s", path,
                       differences[0] ? "with other science" : "from other files", differences,
                       differences[0] && sources.differences[0] ? ";" : "", sources.differences);
    else
        say_what_was_not_compared(path, &sources);
done:
    ps_sources_report_free(&sources);
    free(differences);
    free(after);
    free(before);
    return code;
}

/* ---- the frames ---- */

/* intact: [n_frames], false for frames that are done but have not the CRC recorded for them. All cores; no HDF5. */
static ps_code verify_frames(const ps_output *output, bool *intact, ps_error *error) {
    ps_error first = {0};
#pragma omp parallel for schedule(dynamic)
    for (int64_t frame = 0; frame < output->n_frames; frame++) {
        uint32_t recorded = 0, found = 0;
        ps_error problem = {0};
        intact[frame] = true;
        if (output->states[frame] != PS_FRAME_DONE) continue;
        ps_code code = ps_rows_read(&output->columns[PS_COLUMN_CRC], output->fd, frame, &recorded, &problem);
        if (code == PS_OK) code = ps_output_crc(output, frame, &found, &problem);
        intact[frame] = found == recorded;
#pragma omp critical(ps_verify_frames)
        if (code != PS_OK && first.code == PS_OK) first = problem;
    }
    return first.code == PS_OK ? PS_OK : PS_FAIL(error, first.code, "%s: cannot verify: %s", output->path, first.text);
}

/* Sets back what has to be done again. */
static ps_code set_back(ps_output *output, const bool *intact, bool retry_failed, ps_error *error) {
    for (int64_t frame = 0; frame < output->n_frames; frame++) {
        if (!intact[frame]) ps_log(PS_LOG_WARNING, "%s: frame %lld is damaged and will be done again", output->path, (long long)frame);
        if (!intact[frame] || (retry_failed && output->states[frame] == PS_FRAME_FAILED))
            PS_TRY(ps_output_write_state(output, frame, PS_FRAME_PENDING, error));
        if (retry_failed && output->attempts[frame] > 0) PS_TRY(ps_output_write_attempts(output, frame, 0, error));
    }
    return ps_output_sync(output, error);
}

static ps_code check_frames(ps_output *output, bool retry_failed, ps_resume_report *report, ps_error *error) {
    ps_code code = PS_OK;
    bool *intact = malloc((size_t)output->n_frames * sizeof *intact);
    *report = (ps_resume_report){.n_frames = output->n_frames};
    PS_GO_ALLOC(error, intact);
    PS_GO(verify_frames(output, intact, error));
    PS_GO(set_back(output, intact, retry_failed, error));
    for (int64_t frame = 0; frame < output->n_frames; frame++) {
        report->n_damaged += !intact[frame];
        report->n_done += output->states[frame] == PS_FRAME_DONE;
        report->n_failed += output->states[frame] == PS_FRAME_FAILED;
    }
    report->n_pending = report->n_frames - report->n_done - report->n_failed;
done:
    free(intact);
    return code;
}

/* ---- the whole ---- */

/* Before anything in the file changes. */
static ps_code prepare(const char *path, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    ps_lock lock = PS_LOCK_NONE;
    PS_GO(ps_lock_take(path, &lock, error));
    PS_GO(same_science(path, spec, error));
    ps_publish_sweep(path);
    PS_GO(ps_process_make_room(path, spec, error));
done:
    ps_lock_release(&lock);
    return code;
}

ps_code ps_output_resume_report(const char *path, const ps_output_spec *spec, bool retry_failed, ps_resume_report *report,
                                ps_error *error) {
    ps_code code = PS_OK;
    ps_output *output = NULL;
    ps_resume_report found;
    ps_h5_quiet();
    PS_GO(prepare(path, spec, error));
    PS_GO(ps_output_open(path, MPI_COMM_SELF, &output, error));
    PS_GO(check_frames(output, retry_failed, &found, error));
    PS_GO(ps_sources_refresh(output, spec, error));
    PS_GO(ps_measured_add_patterns(output, spec, error));
    PS_GO(ps_process_fill(output->entry, output->process + 1, spec, error));
    ps_log(PS_LOG_INFO, "%s: going on with %lld of %lld frames done and verified, %lld failed, %lld to do", path, (long long)found.n_done,
           (long long)found.n_frames, (long long)found.n_failed, (long long)found.n_pending);
    if (report) *report = found;
done:
    ps_output_discard(output);
    return code;
}

ps_code ps_output_resume(const char *path, const ps_output_spec *spec, bool retry_failed, ps_error *error) {
    return ps_output_resume_report(path, spec, retry_failed, NULL, error);
}
