#include "tasks/tasks.h"

#include <stdio.h>
#include <string.h>

#include "hdf5/write.h"
#include "store/info.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define X(name) &ps_task_##name,
static const ps_task *const tasks[] = {PS_TASK_LIST(X)};
#undef X
#define X(name) &ps_kind_##name,
static const ps_job_kind *const kinds[] = {PS_TASK_LIST(X)};
#undef X
static const ps_job_planned planned[] = {PS_PLANNED_TASKS};

static const ps_task_table table = {tasks, COUNT(tasks)};
static const ps_job_kinds job_kinds = {kinds, COUNT(kinds), planned, COUNT(planned)};

const ps_task_table *ps_tasks(void) {
    return &table;
}

const ps_job_kinds *ps_task_job_kinds(void) {
    return &job_kinds;
}

const ps_task *ps_task_of_job(const ps_job *job) {
    size_t i = 0;
    while (job->kind != kinds[i]) i++;
    return tasks[i];
}

/* mark: "entry/group"; each step must be there before the next may be asked for. */
static bool has_mark(hid_t file, const char *mark) {
    char path[64];
    for (size_t n = 0; mark[n]; n += mark[n] == '/') {
        n += strcspn(mark + n, "/");
        snprintf(path, sizeof path, "%.*s", (int)n, mark);
        if (H5Lexists(file, path, H5P_DEFAULT) <= 0) return false;
    }
    return true;
}

const ps_task *ps_task_of_output(const char *path) {
    const ps_task *found = NULL;
    hid_t file = H5I_INVALID_HID;
    if (!ps_output_is_output(path)) return NULL;
    bool is_open = ps_h5_open_read(path, &file, NULL) == PS_OK;
    for (size_t i = 0; i < COUNT(tasks); i++) {
        if (!tasks[i]->info) continue;
        if (!tasks[i]->output_mark && !found) found = tasks[i];
        if (is_open && tasks[i]->output_mark && has_mark(file, tasks[i]->output_mark)) found = tasks[i];
    }
    ps_h5_close(&file);
    return found;
}
