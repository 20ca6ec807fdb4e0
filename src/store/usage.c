#include "store/usage.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "hdf5/write.h"
#include "store/create_parts.h"

enum { N_RANGE = 2 };

/* What the group holds beside its text: name, unit or NULL, rank and length of its axes, and where it stands in usage_numbers. */
typedef struct {
    double n_ranks, start_s, work_s, idle, processor_s;
    double busy_s[PS_N_RESOURCES], stage_s[PS_N_STAGES];
    double share[PS_N_RESOURCES], range[PS_N_RESOURCES][N_RANGE], most_rank[PS_N_RESOURCES];
} usage_numbers;

typedef struct {
    const char *name, *units;
    bool whole; /* integers in the file; doubles here, all the same */
    int rank;
    hsize_t dims[2];
    size_t offset, bytes;
} place;

#define PLACE(name, units, whole, rank, rows, columns, member) \
    { name, units, whole, rank, {rows, columns}, offsetof(usage_numbers, member), sizeof(((usage_numbers *)0)->member) }

static const place places[] = {
    PLACE("n_ranks", NULL, true, 0, 0, 0, n_ranks),
    PLACE("start_seconds", "s", false, 0, 0, 0, start_s),
    PLACE("work_seconds", "s", false, 0, 0, 0, work_s),
    PLACE("processor_seconds", "s", false, 0, 0, 0, processor_s),
    PLACE("idle", NULL, false, 0, 0, 0, idle),
    PLACE("busy", NULL, false, 1, PS_N_RESOURCES, 0, share),
    PLACE("busy_range", NULL, false, 2, PS_N_RESOURCES, N_RANGE, range),
    PLACE("busiest_rank", NULL, true, 1, PS_N_RESOURCES, 0, most_rank),
    PLACE("busy_seconds", "s", false, 1, PS_N_RESOURCES, 0, busy_s),
    PLACE("stage_seconds", "s", false, 1, PS_N_STAGES, 0, stage_s),
};
enum { N_PLACES = sizeof places / sizeof *places };

/* ---- creating ---- */

static ps_code name_axis(hid_t group, const char *dataset_name, const char *attribute, const char *const *names, int n, ps_error *error) {
    hid_t dataset = H5Dopen2(group, dataset_name, H5P_DEFAULT);
    ps_code code =
        dataset < 0 ? ps_h5_fail(error, "cannot open usage/%s", dataset_name) : ps_h5_attribute_texts(dataset, attribute, names, n, error);
    ps_h5_close(&dataset);
    return code;
}

static ps_code create_place(hid_t group, const place *p, ps_error *error) {
    if (p->whole) return ps_h5_dataset(group, p->name, H5T_STD_I64LE, H5T_NATIVE_INT64, p->rank, p->dims, NULL, error);
    return ps_create_f64(group, p->name, p->rank, p->dims, NULL, p->units, error);
}

ps_code ps_usage_create(hid_t process, ps_error *error) {
    const char *resources[PS_N_RESOURCES], *stages[PS_N_STAGES];
    static const char *const of_resources[] = {"busy", "busy_range", "busiest_rank", "busy_seconds"};
    ps_code code = PS_OK;
    hid_t group = H5I_INVALID_HID;
    for (int i = 0; i < PS_N_RESOURCES; i++) resources[i] = ps_resource_name((ps_resource)i);
    for (int i = 0; i < PS_N_STAGES; i++) stages[i] = ps_stage_name((ps_stage)i);
    PS_GO(ps_h5_group(process, "usage", "NXcollection", &group, error));
    PS_GO(ps_h5_text(group, "text", PS_USAGE_TEXT, "", error));
    for (int i = 0; i < N_PLACES; i++) PS_GO(create_place(group, &places[i], error));
    for (size_t i = 0; i < sizeof of_resources / sizeof *of_resources; i++)
        PS_GO(name_axis(group, of_resources[i], "resources", resources, PS_N_RESOURCES, error));
    PS_GO(name_axis(group, "stage_seconds", "stages", stages, PS_N_STAGES, error));
done:
    ps_h5_close(&group);
    return code;
}

/* ---- writing ---- */

static usage_numbers pack(const ps_usage *usage) {
    usage_numbers numbers = {.n_ranks = usage->n_ranks,
                             .start_s = usage->start_s,
                             .work_s = usage->work_s,
                             .idle = usage->idle,
                             .processor_s = usage->processor_s};
    for (int r = 0; r < PS_N_RESOURCES; r++) {
        numbers.busy_s[r] = usage->busy_s[r];
        numbers.share[r] = usage->share[r].mean;
        numbers.range[r][0] = usage->share[r].least;
        numbers.range[r][1] = usage->share[r].most;
        numbers.most_rank[r] = usage->share[r].most_rank;
    }
    memcpy(numbers.stage_s, usage->stage_s, sizeof numbers.stage_s);
    return numbers;
}

static void unpack(const usage_numbers *numbers, ps_usage *usage) {
    *usage = (ps_usage){.n_ranks = (int)numbers->n_ranks,
                        .start_s = numbers->start_s,
                        .work_s = numbers->work_s,
                        .idle = numbers->idle,
                        .processor_s = numbers->processor_s};
    for (int r = 0; r < PS_N_RESOURCES; r++) {
        usage->busy_s[r] = numbers->busy_s[r];
        usage->share[r] = (ps_usage_share){numbers->share[r], numbers->range[r][0], numbers->range[r][1], (int)numbers->most_rank[r]};
    }
    memcpy(usage->stage_s, numbers->stage_s, sizeof usage->stage_s);
}

static ps_code write_whole(hid_t group, const char *name, hid_t type, const void *values, ps_error *error) {
    ps_code code = PS_OK;
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
    if (dataset < 0 || H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        code = ps_h5_fail(error, "cannot write usage/%s", name);
    ps_h5_close(&dataset);
    return code;
}

ps_code ps_usage_write(hid_t process, const ps_usage *usage, ps_error *error) {
    ps_code code = PS_OK;
    char text[PS_USAGE_TEXT] = "", padded[PS_USAGE_TEXT];
    usage_numbers numbers = pack(usage);
    hid_t group = H5I_INVALID_HID, type = H5I_INVALID_HID;
    if (H5Lexists(process, "usage", H5P_DEFAULT) <= 0) return PS_OK;
    group = H5Gopen2(process, "usage", H5P_DEFAULT);
    type = ps_h5_text_type(PS_USAGE_TEXT);
    if (group < 0 || type < 0) {
        code = ps_h5_fail(error, "cannot open process/usage");
        goto done;
    }
    ps_usage_describe(usage, text);
    ps_h5_pad_text(padded, sizeof padded, text);
    for (int i = 0; i < N_PLACES; i++)
        PS_GO(write_whole(group, places[i].name, H5T_NATIVE_DOUBLE, (const double *)&numbers + places[i].offset / sizeof(double), error));
    PS_GO(write_whole(group, "text", type, padded, error));
done:
    ps_h5_close(&type);
    ps_h5_close(&group);
    return code;
}

/* ---- reading ---- */

static int64_t length_of(const ps_view *view, const char *group, const char *name) {
    char path[96];
    snprintf(path, sizeof path, "%s/%s", group, name);
    hid_t dataset = H5Dopen2(view->entry, path, H5P_DEFAULT), space = dataset < 0 ? H5I_INVALID_HID : H5Dget_space(dataset);
    int64_t n = space < 0 ? 0 : (int64_t)H5Sget_simple_extent_npoints(space);
    ps_h5_close(&space);
    ps_h5_close(&dataset);
    return n;
}

/* Another version may know other resources or stages. */
static bool has_these_lists(const ps_view *view, const char *group) {
    return length_of(view, group, "busy") == PS_N_RESOURCES && length_of(view, group, "stage_seconds") == PS_N_STAGES;
}

ps_code ps_usage_read(const ps_view *view, int64_t number, ps_usage *usage, bool *present, ps_error *error) {
    usage_numbers numbers = {0};
    char group[48], name[96];
    *present = false;
    snprintf(group, sizeof group, "process_%lld/usage", (long long)number);
    if (!ps_view_has(view, group) || !has_these_lists(view, group)) return PS_OK;
    for (int i = 0; i < N_PLACES; i++) {
        snprintf(name, sizeof name, "%s/%s", group, places[i].name);
        PS_TRY(ps_view_numbers(view, name, (int64_t)(places[i].bytes / sizeof(double)),
                               (double *)&numbers + places[i].offset / sizeof(double), error));
    }
    *present = numbers.n_ranks > 0;
    if (*present) unpack(&numbers, usage);
    return PS_OK;
}
