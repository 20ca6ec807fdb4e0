#include "store/layout.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/assert.h"
#include "hdf5/write.h"

static ps_result_place place_of(const char *group, const char *name, const char *former, size_t element_bytes) {
    ps_result_place place = {.element_bytes = element_bytes};
    snprintf(place.name, sizeof place.name, "%s/%s", group, name);
    if (former) snprintf(place.former, sizeof place.former, "%s/%s", group, former);
    return place;
}

ps_result_place ps_layout_result(const ps_method *method, const ps_result_desc *result) {
    return place_of(method->name, result->name, result->former, ps_result_element_bytes(result));
}

int ps_layout_results(ps_result_place *places) {
    int n = 0;
    for (int i = 0; i < ps_n_methods; i++)
        for (int r = 0; r < ps_method_table[i]->n_results; r++)
            places[n++] = ps_layout_result(ps_method_table[i], &ps_method_table[i]->results[r]);
    places[n++] = place_of("frames", "dose", NULL, sizeof(double));
    places[n++] = place_of("frames", "data_norm", "power", sizeof(double));
    return n;
}

int ps_layout_index(const ps_method *method, int result) {
    int before = 0, i = 0;
    for (; i < ps_n_methods && ps_method_table[i] != method; i++) before += ps_method_table[i]->n_results;
    PS_ASSERT(i < ps_n_methods && result >= 0 && result < method->n_results);
    return before + result;
}

/* name: "GROUP/DATASET" */
static bool is_in_file(hid_t entry, const char *name) {
    char group[64] = "";
    size_t length = strcspn(name, "/");
    if (length == 0 || length >= sizeof group) return false;
    memcpy(group, name, length);
    return H5Lexists(entry, group, H5P_DEFAULT) > 0 && H5Lexists(entry, name, H5P_DEFAULT) > 0;
}

const char *ps_layout_name(hid_t entry, const ps_result_place *place) {
    if (is_in_file(entry, place->name)) return place->name;
    return is_in_file(entry, place->former) ? place->former : NULL;
}

ps_code ps_layout_check_version(hid_t entry, const char *path, ps_error *error) {
    int64_t version = 0;
    if (H5Lexists(entry, "format_version", H5P_DEFAULT) <= 0) return PS_OK;
    hid_t dataset = H5Dopen2(entry, "format_version", H5P_DEFAULT);
    herr_t status = dataset < 0 ? -1 : H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &version);
    ps_h5_close(&dataset);
    if (status < 0) return ps_h5_fail(error, "%s: cannot read /entry/format_version", path);
    if (version <= PS_FORMAT_VERSION) return PS_OK;
    return PS_FAIL(error, PS_E_HDF5, "%s: /entry/format_version is %lld, expected at most %d: a later version of ptyseries made it", path,
                   (long long)version, PS_FORMAT_VERSION);
}

const char *ps_column_name(ps_column column) {
    static const char *const names[] = {
#define NUMBER(id, name, type, file_type) "frames/" name,
#define TEXT(id, name, width) "frames/" name,
        PS_COLUMNS(NUMBER, TEXT)
#undef NUMBER
#undef TEXT
    };
    return names[column];
}

void ps_output_time_now(char text[PS_WIDTH_TIME]) {
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, PS_WIDTH_TIME, "%Y-%m-%dT%H:%M:%SZ", &parts);
}
