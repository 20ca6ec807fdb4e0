#include "tasks/simulate/existing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "hdf5/write.h"
#include "tasks/simulate/master_writer.h"

enum { NAMES_TEXT = 512 };

static bool has_object(const char *path, const char *group, const char *name) {
    hid_t file = H5I_INVALID_HID;
    ps_h5_quiet();
    if (access(path, R_OK) != 0 || H5Fis_hdf5(path) <= 0 || ps_h5_open_read(path, &file, NULL) != PS_OK) return false;
    bool found =
        H5Lexists(file, "entry", H5P_DEFAULT) > 0 && H5Lexists(file, group, H5P_DEFAULT) > 0 && H5Lexists(file, name, H5P_DEFAULT) > 0;
    H5Fclose(file);
    return found;
}

/* The first of the frame's files that is there; malloc'd; NULL: none. */
static char *find_any(const ps_simulate_paths *paths) {
    char *found = NULL;
    const char *const names[] = {paths->master, paths->truth, paths->optics};
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        if (access(names[i], F_OK) == 0) found = strdup(names[i]);
    for (int64_t number = 1; number <= paths->n_data && !found; number++) {
        char *data = ps_master_data_path(paths->master, number);
        if (data && access(data, F_OK) == 0)
            found = data;
        else
            free(data);
    }
    return found;
}

/* "a.previous-1" or "a.previous-1 and 3 more". */
static const char *name_leftovers(const ps_frame_leftovers *left, char text[NAMES_TEXT]) {
    if (left->n > 1)
        snprintf(text, NAMES_TEXT, "%s and %" PRId64 " more", left->first, left->n - 1);
    else
        snprintf(text, NAMES_TEXT, "%s", left->first);
    return text;
}

static ps_code refuse_existing(const char *found, const ps_frame_leftovers *left, ps_error *error) {
    char names[NAMES_TEXT];
    if (left->n == 0) return PS_FAIL(error, PS_E_ARGUMENT, "%s: exists already; --overwrite replaces it, --resume goes on", found);
    return PS_FAIL(error, PS_E_ARGUMENT,
                   "%s: %s; a run that was killed while it replaced this recording left %s, of the recording before (to have that again, "
                   "give all of these their names without .previous-N); --overwrite replaces it, --resume goes on",
                   found ? found : left->first, found ? "exists already" : "is kept", name_leftovers(left, names));
}

/* What may not be taken for this simulation's own. found: something that stands there. */
static ps_code check_own(const ps_simulate_paths *paths, const char *found, const ps_frame_leftovers *left, bool whole, ps_error *error) {
    static const char group[] = "entry/truth", phase[] = "entry/truth/phase";
    if (whole && !has_object(paths->master, "entry/simulation", "entry/simulation/science"))
        return PS_FAIL(error, PS_E_ARGUMENT,
                       "%s: holds no /entry/simulation/science, so no simulation made it, and it is neither replaced nor resumed",
                       paths->master);
    if (!whole && !has_object(paths->truth, group, phase) && !(left->truth && has_object(left->truth, group, phase)))
        return PS_FAIL(error, PS_E_ARGUMENT, "%s: stands there without %s, so no simulation made it, and it is not replaced", found,
                       paths->truth);
    return PS_OK;
}

static void say_leftovers(const ps_simulate_paths *paths, const ps_frame_leftovers *left, bool kept) {
    char names[NAMES_TEXT];
    if (left->n == 0) return;
    if (kept)
        ps_log(PS_LOG_WARNING,
               "%s: left by a run that was killed while it replaced %s, which is whole; nothing reads it any more, it may be removed",
               name_leftovers(left, names), paths->master);
    else
        ps_log(PS_LOG_WARNING,
               "%s: of the recording before, kept by a run that was killed while it replaced %s; removed when that is made again",
               name_leftovers(left, names), paths->master);
}

ps_code ps_simulate_look(const ps_simulate_paths *paths, const ps_run_options *options, ps_leftovers *leftovers, bool *whole,
                         ps_error *error) {
    ps_code code = PS_OK;
    ps_frame_leftovers left = {0};
    char *found = NULL;
    PS_GO(ps_leftovers_read(leftovers, paths->directory, error));
    PS_GO(ps_frame_leftovers_find(leftovers, paths->master, &left, error));
    found = find_any(paths);
    /* A master gets its second name last and loses it last: without that, files that are gone from beside it have not been replaced. */
    *whole = access(paths->master, F_OK) == 0 && (left.of_master || !left.displaced);
    if (!found && left.n == 0) goto done;
    if (!options->overwrite && !options->resume)
        PS_GO(refuse_existing(found, &left, error));
    else
        PS_GO(check_own(paths, found ? found : left.first, &left, *whole, error));
    say_leftovers(paths, &left, *whole && options->resume);
done:
    free(found);
    ps_frame_leftovers_free(&left);
    return code;
}
