#include "contract/stored_case.h"

#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "optics/optics_json.h"

static char *read_text(hid_t file, const char *name) {
    hid_t attribute = H5Aopen(file, name, H5P_DEFAULT), type = H5Aget_type(attribute);
    char *text = NULL, *copy;
    if (H5Tis_variable_str(type) > 0) {
        H5Aread(attribute, type, &text);
        copy = strdup(text);
        H5free_memory(text);
    } else {
        copy = calloc(H5Tget_size(type) + 1, 1);
        H5Aread(attribute, type, copy);
    }
    H5Tclose(type);
    H5Aclose(attribute);
    return copy;
}

double stored_case_attribute(const stored_case *c, const char *object, const char *name) {
    double value = NAN;
    if (H5Aexists_by_name(c->file, object, name, H5P_DEFAULT) <= 0) return value;
    hid_t attribute = H5Aopen_by_name(c->file, object, name, H5P_DEFAULT, H5P_DEFAULT), type = H5Aget_type(attribute);
    if (H5Tget_class(type) == H5T_ENUM) { /* how h5py stores a bool */
        int8_t flag = 0;
        H5Aread(attribute, type, &flag);
        value = flag;
    } else {
        H5Aread(attribute, H5T_NATIVE_DOUBLE, &value);
    }
    H5Tclose(type);
    H5Aclose(attribute);
    return value;
}

static bool exists(hid_t file, const char *path) {
    char part[256];
    for (const char *slash = strchr(path, '/');; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", slash ? (int)(slash - path) : (int)strlen(path), path);
        if (H5Lexists(file, part, H5P_DEFAULT) <= 0) return false;
        if (!slash) return true;
    }
}

double *stored_case_read(const stored_case *c, const char *path, int64_t *n) {
    if (!exists(c->file, path)) return NULL;
    hid_t set = H5Dopen2(c->file, path, H5P_DEFAULT), space = H5Dget_space(set), type = H5Dget_type(set);
    bool pairs = H5Tget_class(type) == H5T_COMPOUND;
    int64_t values = H5Sget_simple_extent_npoints(space) * (pairs ? 2 : 1);
    double *data = malloc((size_t)(values + 1) * sizeof *data);
    hid_t memory = H5T_NATIVE_DOUBLE;
    if (pairs) {
        memory = H5Tcreate(H5T_COMPOUND, 2 * sizeof(double));
        H5Tinsert(memory, "r", 0, H5T_NATIVE_DOUBLE);
        H5Tinsert(memory, "i", sizeof(double), H5T_NATIVE_DOUBLE);
    }
    if (H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0) fail_msg("%s: cannot read %s", c->name, path);
    if (pairs) H5Tclose(memory);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(set);
    if (n) *n = values;
    return data;
}

static void read_counts(stored_case *c, hsize_t shape[4]) {
    hid_t set = H5Dopen2(c->file, "counts", H5P_DEFAULT), space = H5Dget_space(set), type = H5Dget_type(set);
    assert_int_equal(H5Sget_simple_extent_ndims(space), 4);
    H5Sget_simple_extent_dims(space, shape, NULL);
    c->dtype = H5Tget_size(type) == 2 ? PS_U16 : PS_U32;
    hid_t memory = c->dtype == PS_U16 ? H5T_NATIVE_UINT16 : H5T_NATIVE_UINT32;
    c->counts = malloc(shape[0] * shape[1] * shape[2] * shape[3] * ps_dtype_bytes(c->dtype));
    assert_true(H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, c->counts) >= 0);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(set);
}

static void read_optics(stored_case *c) {
    ps_error error = {0};
    char *text = read_text(c->file, "optics_json");
    cJSON *json = cJSON_Parse(text);
    if (!json) fail_msg("%s: optics_json is not JSON", c->name);
    if (ps_optics_from_json(json, c->name, &c->optics, &error) != PS_OK) fail_msg("%s", error.text);
    cJSON_Delete(json);
    free(text);
}

static void build_plan(stored_case *c, const hsize_t shape[4]) {
    ps_error error = {0};
    int64_t n_bad = 0;
    double smoothness = stored_case_attribute(c, ".", "smoothness_inv_A"), *mask = stored_case_read(c, "bad", &n_bad);
    uint8_t *bad = calloc((size_t)n_bad + 1, 1);
    for (int64_t i = 0; i < n_bad; i++) bad[i] = mask[i] != 0.0;
    ps_plan_options options = {.scan_rows = (int64_t)shape[0],
                               .scan_columns = (int64_t)shape[1],
                               .detector_rows = (int64_t)shape[2],
                               .detector_columns = (int64_t)shape[3],
                               .upsampling = (int64_t)stored_case_attribute(c, ".", "upsampling"),
                               .smoothness_phase_inv_A = smoothness,
                               .smoothness_complex_inv_A = smoothness,
                               .bad = n_bad ? bad : NULL,
                               .mirrored_probe = stored_case_attribute(c, ".", "mirrored_probe") == 1.0};
    if (ps_plan_build(&c->optics, &options, &c->plan, &error) != PS_OK) fail_msg("%s: %s", c->name, error.text);
    free(mask);
    free(bad);
}

void stored_case_open(const char *path, stored_case *c) {
    memset(c, 0, sizeof *c);
    const char *slash = strrchr(path, '/');
    snprintf(c->name, sizeof c->name, "%s", slash ? slash + 1 : path);
    c->file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (c->file < 0) fail_msg("cannot open %s", path);
    hsize_t shape[4];
    read_counts(c, shape);
    read_optics(c);
    char *weights = read_text(c->file, "weights");
    c->poisson = strcmp(weights, "poisson") == 0;
    free(weights);
    build_plan(c, shape);
}

void stored_case_close(stored_case *c) {
    ps_plan_free(&c->plan);
    free(c->counts);
    H5Fclose(c->file);
}

int stored_cases_visit(const char *directory, void (*visit)(const char *path)) {
    char pattern[1024];
    snprintf(pattern, sizeof pattern, "%s/*.h5", directory);
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0) return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) visit(found.gl_pathv[i]);
    int n = (int)found.gl_pathc;
    globfree(&found);
    return n;
}
