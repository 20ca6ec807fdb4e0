#include "tasks/histogram/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "hdf5/write.h"
#include "store/fingerprint.h"
#include "store/output.h"
#include "store/view.h"
#include "tasks/histogram/fingerprint.h"

enum { MOST_DIFFERENCES = 12 };

/* Takes the lines of frames out of both signatures that have nothing to compare: recordings that could not be read then, or cannot now. */
static void drop_unreadable(const ps_histogram_plan *plan, char *recorded, char *wanted) {
    for (int64_t i = 0; i < plan->run.series.n_items; i++) {
        char key[48], line[96];
        snprintf(key, sizeof key, "frame %lld", (long long)i);
        snprintf(line, sizeof line, "\n%s=%s\n", key, PS_HISTOGRAM_UNREADABLE);
        bool now = plan->run.frames[i].unreadable != NULL;
        if (!now && !strstr(recorded, line)) continue;
        if (now && !strstr(recorded, line))
            ps_log(PS_LOG_WARNING, "frame %lld was counted and stays; its recording cannot be read now and is not compared: %s",
                   (long long)i, plan->run.frames[i].unreadable);
        ps_fingerprint_drop(recorded, key);
        ps_fingerprint_drop(wanted, key);
    }
}

/* *wanted: what this job would record, in the way in which the file has it. */
static ps_code sign(const ps_histogram_plan *plan, const char *recorded, char **wanted, ps_error *error) {
    const char *first = strstr(recorded, "\nframe 0=");
    size_t length = first ? strcspn(first + 1, "\n") + 1 : 0;
    bool of_names = length > 3 && memcmp(first + length - 3, " ns", 3) == 0;
    if (!of_names) return ps_histogram_fingerprint(plan, wanted, error);
    ps_log(PS_LOG_WARNING,
           "%s was made by an earlier version: of its recordings, only the places, sizes and times of the named files are compared",
           plan->job->output_file);
    return ps_histogram_fingerprint_of_names(plan, wanted, error);
}

ps_code ps_histogram_look_at_existing(const ps_histogram_plan *plan, const ps_run_options *options, ps_histogram_existing *found,
                                      ps_error *error) {
    ps_code code = PS_OK;
    ps_view view = {.file = H5I_INVALID_HID, .entry = H5I_INVALID_HID};
    char *wanted = NULL, *signature = NULL, *differences = NULL;
    if (!options->resume || access(plan->job->output_file, F_OK) != 0) return PS_OK;
    PS_GO(ps_view_open(plan->job->output_file, &view, error));
    PS_GO_ALLOC(error, signature = ps_view_text(&view, "signature"));
    PS_GO(sign(plan, signature, &wanted, error));
    drop_unreadable(plan, signature, wanted);
    found->n_failed = view.n_by_state[PS_FRAME_FAILED];
    found->complete = found->n_failed == 0 || !options->retry_failed;
    if (strcmp(wanted, signature) == 0) goto done;
    PS_GO(ps_fingerprint_differences(signature, wanted, MOST_DIFFERENCES, &differences, error));
    code =
        PS_FAIL(error, PS_E_ARGUMENT, "%s was made by a job that differs from this one, or from other files; --overwrite replaces it\n%s",
                plan->job->output_file, differences);
done:
    ps_view_close(&view);
    free(wanted);
    free(signature);
    free(differences);
    return code;
}
