#include "tasks/fit/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"

enum { MOST_NAME = 64 };

int64_t ps_fit_record_elements(const ps_view *view, const char *name) {
    if (!ps_view_has(view, name)) return 0;
    hid_t dataset = H5Dopen2(view->entry, name, H5P_DEFAULT), space = dataset < 0 ? H5I_INVALID_HID : H5Dget_space(dataset);
    int64_t n = space < 0 ? 0 : (int64_t)H5Sget_simple_extent_npoints(space);
    ps_h5_close(&space);
    ps_h5_close(&dataset);
    return n;
}

ps_code ps_fit_record_count(const ps_view *view, int64_t *n, ps_error *error) {
    double count = 0.0;
    PS_TRY(ps_view_numbers(view, "fit/n_fits", 1, &count, error));
    *n = (int64_t)count;
    return PS_OK;
}

static void name_of(int64_t index, const char *part, char name[MOST_NAME]) {
    snprintf(name, MOST_NAME, "fit/fit_%lld/%s", (long long)index, part);
}

static ps_code read_numbers(const ps_view *view, int64_t index, const char *part, int64_t n, double *values, ps_error *error) {
    char name[MOST_NAME];
    name_of(index, part, name);
    return ps_view_numbers(view, name, n, values, error);
}

static ps_code read_parameters(const ps_view *view, int64_t index, ps_fit_record *r, ps_error *error) {
    char name[MOST_NAME];
    name_of(index, "parameter", name);
    r->n = ps_fit_record_elements(view, name);
    if (r->n == 0) return PS_OK;
    PS_TRY(ps_view_texts(view, name, r->n, &r->names, error));
    name_of(index, "unit", name);
    PS_TRY(ps_view_texts(view, name, r->n, &r->units, error));
    size_t n = (size_t)r->n;
    r->values = malloc(n * sizeof *r->values);
    r->errors = malloc(n * sizeof *r->errors);
    r->correlation = malloc(n * n * sizeof *r->correlation);
    if (!r->values || !r->errors || !r->correlation) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %zu parameters", n);
    PS_TRY(read_numbers(view, index, "value", r->n, r->values, error));
    PS_TRY(read_numbers(view, index, "error", r->n, r->errors, error));
    return read_numbers(view, index, "correlation", r->n * r->n, r->correlation, error);
}

static ps_code read_texts(const ps_view *view, int64_t index, ps_fit_record *r, ps_error *error) {
    char name[MOST_NAME];
    name_of(index, "failure", name);
    r->failure = ps_view_text(view, name);
    name_of(index, "optics_after", name);
    r->optics = ps_view_text(view, name);
    if (!r->failure || !r->optics) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a text");
    name_of(index, "notes", name);
    r->n_notes = ps_fit_record_elements(view, name);
    return r->n_notes > 0 ? ps_view_texts(view, name, r->n_notes, &r->notes, error) : PS_OK;
}

static ps_code read_all(const ps_view *view, int64_t index, ps_fit_record *r, ps_error *error) {
    PS_TRY(read_parameters(view, index, r, error));
    PS_TRY(read_texts(view, index, r, error));
    PS_TRY(read_numbers(view, index, "frame", 1, &r->frame, error));
    PS_TRY(read_numbers(view, index, "explained_before", 1, &r->before, error));
    PS_TRY(read_numbers(view, index, "explained_after", 1, &r->after, error));
    PS_TRY(read_numbers(view, index, "explained_by_twin", 1, &r->twin, error));
    PS_TRY(read_numbers(view, index, "seconds", 1, &r->seconds, error));
    PS_TRY(read_numbers(view, index, "evaluations", 1, &r->evaluations, error));
    PS_TRY(read_numbers(view, index, "n_frequencies", 1, &r->n_frequencies, error));
    return read_numbers(view, index, "n_pixels", 1, &r->n_pixels, error);
}

ps_code ps_fit_record_read(const ps_view *view, int64_t index, ps_fit_record *record, ps_error *error) {
    *record = (ps_fit_record){0};
    ps_code code = read_all(view, index, record, error);
    if (code != PS_OK) ps_fit_record_free(record);
    return code;
}

void ps_fit_record_free(ps_fit_record *r) {
    if (r->names) ps_view_free_texts(r->names, r->n);
    if (r->units) ps_view_free_texts(r->units, r->n);
    if (r->notes) ps_view_free_texts(r->notes, r->n_notes);
    void *arrays[] = {r->values, r->errors, r->correlation, r->failure, r->optics};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    memset(r, 0, sizeof *r);
}
