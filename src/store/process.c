#include "store/process.h"

#include <cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hdf5/write.h"
#include "store/layout.h"
#include "store/publish.h"
#include "store/slots.h"
#include "store/usage.h"

enum { LONGEST_KEY = 128 };

/* A note's key as the name of a dataset: "/" has a meaning to HDF5. */
static void dataset_name(const char *key, char name[LONGEST_KEY]) {
    snprintf(name, LONGEST_KEY, "%s", key);
    for (char *c = name; *c; c++)
        if (*c == '/') *c = '_';
    if (!name[0] || strcmp(name, ".") == 0) snprintf(name, LONGEST_KEY, "_");
}

static bool is_own_key(const char *name) {
    static const char *const own[] = {"state", "start_time",    "end_time", "n_pending",      "n_done", "n_failed",
                                      "job",   "job_effective", "more",     "sequence_index", "usage"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i], name) == 0) return true;
    return false;
}

static size_t capacity_for(const char *value) {
    size_t twice = value ? 2 * strlen(value) : 0;
    return twice > PS_WIDTH_NOTE ? twice : PS_WIDTH_NOTE;
}

static ps_code create_notes(hid_t group, const ps_output_spec *spec, ps_error *error) {
    for (int64_t i = 0; i < spec->n_notes; i++) {
        char name[LONGEST_KEY];
        dataset_name(spec->notes[i].key, name);
        if (is_own_key(name) || H5Lexists(group, name, H5P_DEFAULT) > 0) continue;
        PS_TRY(ps_h5_text(group, name, capacity_for(spec->notes[i].value), "", error));
    }
    return PS_OK;
}

static void slot_name(int number, char name[32]) {
    snprintf(name, 32, "process_%d", number);
}

static ps_code create_slot(hid_t entry, int number, const ps_output_spec *spec, ps_error *error) {
    static const char *const counts[] = {"n_pending", "n_done", "n_failed"};
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    char name[32];
    slot_name(number, name);
    PS_GO(ps_h5_group(entry, name, "NXprocess", &group, error));
    PS_GO(ps_h5_text(group, "state", PS_WIDTH_STATE, "unused", error));
    PS_GO(ps_h5_integer(group, "sequence_index", number, error));
    PS_GO(ps_h5_text(group, "start_time", PS_WIDTH_TIME, "", error));
    PS_GO(ps_h5_text(group, "end_time", PS_WIDTH_TIME, "", error));
    for (int i = 0; i < 3; i++) PS_GO(ps_h5_integer(group, counts[i], 0, error));
    PS_GO(ps_h5_text(group, "job", capacity_for(spec->job->text), "", error));
    PS_GO(ps_h5_text(group, "job_effective", capacity_for(spec->job->effective_text), "", error));
    PS_GO(ps_h5_text(group, "more", PS_WIDTH_MORE, "", error));
    PS_GO(create_notes(group, spec, error));
    PS_GO(ps_usage_create(group, error));
done:
    ps_h5_close(&group);
    return code;
}

static ps_code create_slots(hid_t entry, int first, const ps_output_spec *spec, ps_error *error) {
    for (int number = first; number < first + PS_PROCESS_SLOTS; number++) PS_TRY(create_slot(entry, number, spec, error));
    return PS_OK;
}

ps_code ps_process_create_slots(hid_t entry, const ps_output_spec *spec, ps_error *error) {
    PS_TRY(create_slots(entry, 1, spec, error));
    return ps_process_fill(entry, 1, spec, error);
}

ps_code ps_process_create_only(hid_t entry, const ps_output_spec *spec, ps_error *error) {
    PS_TRY(create_slot(entry, 1, spec, error));
    return ps_process_fill(entry, 1, spec, error);
}

static ps_code hide_slots(int fd, hid_t entry, int first, ps_error *error) {
    bool done = true;
    for (int number = first; done; number++) {
        char name[32];
        slot_name(number, name);
        PS_TRY(ps_slots_hide(fd, entry, name, &done, error));
    }
    return PS_OK;
}

ps_code ps_process_hide_reserve(const char *path, int first, ps_error *error) {
    ps_code code = PS_OK;
    hid_t file = H5I_INVALID_HID, entry = H5I_INVALID_HID;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    PS_GO(ps_h5_open_read(path, &file, error));
    if (fd < 0 || (entry = H5Gopen2(file, "entry", H5P_DEFAULT)) < 0) {
        code = ps_h5_fail(error, "%s: cannot open /entry", path);
        goto done;
    }
    PS_GO(hide_slots(fd, entry, first, error));
done:
    ps_h5_close(&entry);
    ps_h5_close(&file);
    if (fd >= 0) close(fd);
    return code;
}

/* ---- writing into what stands there ---- */

static ps_code write_text(hid_t group, const char *name, const char *text, bool *fits, ps_error *error) {
    ps_code code = PS_OK;
    char *padded = NULL;
    hid_t type = H5I_INVALID_HID, dataset = H5Dopen2(group, name, H5P_DEFAULT);
    if (dataset < 0 || (type = H5Dget_type(dataset)) < 0) {
        code = ps_h5_fail(error, "cannot open process/%s", name);
        goto done;
    }
    size_t capacity = H5Tget_size(type);
    if (fits) *fits = strlen(text) <= capacity;
    if (fits && !*fits) goto done;
    padded = malloc(capacity);
    PS_GO_ALLOC(error, padded);
    ps_h5_pad_text(padded, capacity, text);
    if (H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, padded) < 0) code = ps_h5_fail(error, "cannot write process/%s", name);
done:
    free(padded);
    ps_h5_close(&type);
    ps_h5_close(&dataset);
    return code;
}

static ps_code write_integer(hid_t group, const char *name, int64_t value, ps_error *error) {
    ps_code code = PS_OK;
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    if (dataset < 0 || H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0)
        code = ps_h5_fail(error, "cannot write process/%s", name);
    ps_h5_close(&dataset);
    return code;
}

/* Writes one note to its own dataset, or into `more` when there is none or it is too long for it. */
static ps_code write_note(hid_t group, const ps_output_note *note, cJSON *more, ps_error *error) {
    char name[LONGEST_KEY];
    const char *value = note->value ? note->value : "";
    bool fits = false;
    dataset_name(note->key, name);
    if (H5Lexists(group, name, H5P_DEFAULT) > 0) PS_TRY(write_text(group, name, value, &fits, error));
    if (!fits && !cJSON_AddStringToObject(more, name, value)) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for notes");
    return PS_OK;
}

static ps_code write_more(hid_t group, const cJSON *more, ps_error *error) {
    if (cJSON_GetArraySize(more) == 0) return write_text(group, "more", "", NULL, error);
    char *text = cJSON_Print(more);
    if (!text) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for notes");
    ps_code code = write_text(group, "more", text, NULL, error);
    cJSON_free(text);
    return code;
}

static ps_code open_slot(hid_t entry, int number, hid_t *group, ps_error *error) {
    char name[32];
    slot_name(number, name);
    *group = H5Gopen2(entry, name, H5P_DEFAULT);
    return *group < 0 ? ps_h5_fail(error, "cannot open /entry/%s", name) : PS_OK;
}

/* *fd: of the file that entry lies in, for what HDF5 is not asked for; to be closed. */
static ps_code open_beside(hid_t entry, int *fd, ps_error *error) {
    char path[PATH_MAX] = "";
    *fd = H5Fget_name(entry, path, sizeof path) > 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
    return *fd < 0 ? ps_io_fail(error, errno, "%s: cannot open", path) : PS_OK;
}

/* Opens a slot that readers see, or a hidden one, which *slot then tells. */
static ps_code open_any_slot(hid_t entry, int number, int *fd, ps_slot *slot, hid_t *group, ps_error *error) {
    char name[32];
    slot_name(number, name);
    if (H5Lexists(entry, name, H5P_DEFAULT) > 0) return open_slot(entry, number, group, error);
    PS_TRY(open_beside(entry, fd, error));
    PS_TRY(ps_slots_find(*fd, entry, name, slot, error));
    if (slot->hidden) *group = H5Oopen_by_addr(entry, slot->address);
    return *group < 0 ? ps_h5_fail(error, "cannot open /entry/%s", name) : PS_OK;
}

static ps_code write_notes(hid_t group, const ps_output_spec *spec, ps_error *error) {
    const ps_output_note job[] = {{"job", spec->job->text}, {"job_effective", spec->job->effective_text}};
    ps_code code = PS_OK;
    cJSON *more = cJSON_CreateObject();
    PS_GO_ALLOC(error, more);
    for (int i = 0; i < 2; i++) PS_GO(write_note(group, &job[i], more, error));
    for (int64_t i = 0; i < spec->n_notes; i++) PS_GO(write_note(group, &spec->notes[i], more, error));
    PS_GO(write_more(group, more, error));
done:
    cJSON_Delete(more);
    return code;
}

ps_code ps_process_fill(hid_t entry, int number, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    char now[PS_WIDTH_TIME];
    hid_t group = H5I_INVALID_HID;
    ps_slot slot = {0};
    int fd = -1;
    ps_output_time_now(now);
    PS_GO(open_any_slot(entry, number, &fd, &slot, &group, error));
    PS_GO(write_notes(group, spec, error));
    PS_GO(write_text(group, "start_time", now, NULL, error));
    PS_GO(write_text(group, "state", "running", NULL, error));
    ps_h5_close(&group);
    if (slot.hidden) PS_GO(ps_slots_show(fd, &slot, error));
done:
    ps_h5_close(&group);
    if (fd >= 0) close(fd);
    return code;
}

ps_code ps_process_finish(hid_t entry, int number, const int64_t counts[3], ps_error *error) {
    ps_code code = PS_OK;
    char now[PS_WIDTH_TIME];
    hid_t group = H5I_INVALID_HID;
    PS_GO(open_slot(entry, number, &group, error));
    ps_output_time_now(now);
    PS_GO(write_text(group, "end_time", now, NULL, error));
    PS_GO(write_integer(group, "n_pending", counts[PS_FRAME_PENDING], error));
    PS_GO(write_integer(group, "n_done", counts[PS_FRAME_DONE], error));
    PS_GO(write_integer(group, "n_failed", counts[PS_FRAME_FAILED], error));
    PS_GO(write_text(group, "state", counts[PS_FRAME_PENDING] ? "stopped" : "finished", NULL, error));
done:
    ps_h5_close(&group);
    return code;
}

ps_code ps_process_write_usage(hid_t entry, int number, const ps_usage *usage, ps_error *error) {
    hid_t group = H5I_INVALID_HID;
    PS_TRY(open_slot(entry, number, &group, error));
    ps_code code = ps_usage_write(group, usage, error);
    ps_h5_close(&group);
    return code;
}

static ps_code slot_is_used(hid_t group, bool *used, ps_error *error) {
    ps_code code = PS_OK;
    char state[PS_WIDTH_STATE + 1] = "";
    hid_t type = ps_h5_text_type(PS_WIDTH_STATE), dataset = H5Dopen2(group, "state", H5P_DEFAULT);
    if (dataset < 0 || H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, state) < 0)
        code = ps_h5_fail(error, "cannot read process/state");
    *used = strcmp(state, "unused") != 0;
    ps_h5_close(&dataset);
    ps_h5_close(&type);
    return code;
}

/* Goes through the slots there are: the last one that is used, and how many there are. */
static ps_code count_slots(hid_t entry, int *last_used, int *n_slots, ps_error *error) {
    *last_used = *n_slots = 0;
    for (;;) {
        char name[32];
        bool used = false;
        hid_t group = H5I_INVALID_HID;
        slot_name(*n_slots + 1, name);
        if (H5Lexists(entry, name, H5P_DEFAULT) <= 0) return PS_OK;
        PS_TRY(open_slot(entry, ++*n_slots, &group, error));
        ps_code code = slot_is_used(group, &used, error);
        ps_h5_close(&group);
        if (code != PS_OK) return code;
        if (used) *last_used = *n_slots;
    }
}

ps_code ps_process_last(hid_t entry, int *last, ps_error *error) {
    int n_slots;
    return count_slots(entry, last, &n_slots, error);
}

/* ---- more room ---- */

static ps_code has_hidden_slot(const char *path, hid_t entry, int number, bool *has, ps_error *error) {
    char name[32];
    ps_slot slot;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ps_io_fail(error, errno, "%s: cannot open", path);
    slot_name(number, name);
    ps_code code = ps_slots_find(fd, entry, name, &slot, error);
    *has = slot.hidden;
    close(fd);
    return code;
}

static ps_code room_left(const char *path, int *n_slots, bool *room, ps_error *error) {
    int last = 0;
    hid_t file = H5I_INVALID_HID;
    PS_TRY(ps_h5_open_read(path, &file, error));
    hid_t entry = H5Gopen2(file, "entry", H5P_DEFAULT);
    ps_code code = entry < 0 ? ps_h5_fail(error, "%s: no /entry", path) : count_slots(entry, &last, n_slots, error);
    *room = last < *n_slots;
    if (code == PS_OK && !*room) code = has_hidden_slot(path, entry, last + 1, room, error);
    ps_h5_close(&entry);
    ps_h5_close(&file);
    return code;
}

static ps_code add_slots(const char *path, int first, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    hid_t file = H5I_INVALID_HID, entry = H5I_INVALID_HID, access = H5Pcreate(H5P_FILE_ACCESS);
    if (H5Pset_file_locking(access, false, true) < 0 || (file = H5Fopen(path, H5F_ACC_RDWR, access)) < 0 ||
        (entry = H5Gopen2(file, "entry", H5P_DEFAULT)) < 0) {
        code = ps_h5_fail(error, "%s: cannot open", path);
        goto done;
    }
    PS_GO(create_slots(entry, first, spec, error));
done:
    ps_h5_close(&entry);
    ps_code closed = ps_h5_close_written(&file, path, error);
    ps_h5_close(&access);
    return code == PS_OK ? closed : code;
}

ps_code ps_process_make_room(const char *path, const ps_output_spec *spec, ps_error *error) {
    ps_code code = PS_OK;
    char *temporary = NULL;
    int n_slots = 0;
    bool room = false;
    PS_GO(room_left(path, &n_slots, &room, error));
    if (room) goto done;
    PS_GO(ps_publish_temporary(path, &temporary, error));
    PS_GO(ps_publish_copy(path, temporary, error));
    PS_GO(add_slots(temporary, n_slots + 1, spec, error));
    PS_GO(ps_process_hide_reserve(temporary, n_slots + 1, error));
    PS_GO(ps_publish_sync(temporary, error));
    PS_GO(ps_publish_rename(temporary, path, true, error));
done:
    if (code != PS_OK && temporary) unlink(temporary);
    free(temporary);
    return code;
}
