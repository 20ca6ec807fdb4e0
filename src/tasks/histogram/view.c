#include "tasks/histogram/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"
#include "store/output.h"
#include "tasks/histogram/masks.h"

static ps_code read_shape(const ps_histogram_view *view, const char *name, int rank, hsize_t *dims, ps_error *error) {
    ps_code code = PS_OK;
    hid_t dataset = H5Dopen2(view->file.entry, name, H5P_DEFAULT), space = dataset < 0 ? H5I_INVALID_HID : H5Dget_space(dataset);
    if (space < 0 || H5Sget_simple_extent_ndims(space) != rank || H5Sget_simple_extent_dims(space, dims, NULL) < 0)
        code = PS_FAIL(error, PS_E_HDF5, "%s: no /entry/%s of rank %d", view->file.path, name, rank);
    ps_h5_close(&space);
    ps_h5_close(&dataset);
    return code;
}

static ps_code read_first(const ps_histogram_view *view, const char *axis, int64_t n, int64_t *first, ps_error *error) {
    double *values = malloc((size_t)n * sizeof *values);
    if (!values) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for an axis");
    ps_code code = ps_view_numbers(&view->file, axis, n, values, error);
    if (code == PS_OK) *first = (int64_t)values[0];
    free(values);
    return code;
}

ps_code ps_histogram_view_open(const char *path, ps_histogram_view *view, ps_error *error) {
    ps_code code = PS_OK;
    hsize_t dims[3], detector[2];
    *view = (ps_histogram_view){0};
    PS_TRY(ps_view_open(path, &view->file, error));
    PS_GO(read_shape(view, "histogram/histogram", 3, dims, error));
    PS_GO(read_shape(view, "histogram/mask", 2, detector, error));
    view->rows = (int64_t)dims[0], view->columns = (int64_t)dims[1], view->n_bins = (int64_t)dims[2];
    view->detector_rows = (int64_t)detector[0], view->detector_columns = (int64_t)detector[1];
    PS_GO(read_first(view, "histogram/row", view->rows, &view->first_row, error));
    PS_GO(read_first(view, "histogram/column", view->columns, &view->first_column, error));
    view->edges = malloc(((size_t)view->n_bins + 1) * sizeof *view->edges);
    PS_GO_ALLOC(error, view->edges);
    PS_GO(ps_view_numbers(&view->file, "histogram/edges", view->n_bins + 1, view->edges, error));
done:
    if (code != PS_OK) ps_histogram_view_close(view);
    return code;
}

void ps_histogram_view_close(ps_histogram_view *view) {
    ps_view_close(&view->file);
    free(view->edges);
    view->edges = NULL;
}

ps_code ps_histogram_view_map(const ps_histogram_view *view, const char *name, double *values, ps_error *error) {
    char path[64];
    snprintf(path, sizeof path, "histogram/%s", name);
    return ps_view_numbers(&view->file, path, view->rows * view->columns, values, error);
}

ps_code ps_histogram_view_mask(const ps_histogram_view *view, uint32_t *mask, ps_error *error) {
    ps_code code = PS_OK;
    double *whole = malloc((size_t)(view->detector_rows * view->detector_columns) * sizeof *whole);
    PS_GO_ALLOC(error, whole);
    PS_GO(ps_view_numbers(&view->file, "histogram/mask", view->detector_rows * view->detector_columns, whole, error));
    for (int64_t p = 0; p < view->rows * view->columns; p++) {
        int64_t row = view->first_row + p / view->columns, column = view->first_column + p % view->columns;
        mask[p] = (uint32_t)whole[row * view->detector_columns + column];
    }
done:
    free(whole);
    return code;
}

ps_code ps_histogram_view_pixel(const ps_histogram_view *view, int64_t row, int64_t column, double *counts, ps_error *error) {
    ps_code code = PS_OK;
    hsize_t start[3] = {(hsize_t)row, (hsize_t)column, 0}, size[3] = {1, 1, (hsize_t)view->n_bins};
    hid_t dataset = H5Dopen2(view->file.entry, "histogram/histogram", H5P_DEFAULT), memory = H5Screate_simple(1, &size[2], NULL);
    hid_t space = dataset < 0 ? H5I_INVALID_HID : H5Dget_space(dataset);
    if (space < 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL) < 0 ||
        H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, counts) < 0)
        code = ps_h5_fail(error, "%s: cannot read the histogram of pixel %lld, %lld", view->file.path, (long long)row, (long long)column);
    ps_h5_close(&space);
    ps_h5_close(&memory);
    ps_h5_close(&dataset);
    return code;
}

/* ---- info ---- */

static void print_text(const ps_histogram_view *view, const char *label, const char *name) {
    char *text = ps_view_text(&view->file, name);
    if (text && *text) printf("%-10s%s\n", label, text);
    free(text);
}

static void print_masked(const ps_histogram_view *view) {
    printf("masked    ");
    for (int kind = 0; kind < PS_MASK_KINDS; kind++) {
        char name[48];
        double n = 0;
        snprintf(name, sizeof name, "histogram/n_%s_pixels", ps_mask_names[kind]);
        ps_view_numbers(&view->file, name, 1, &n, NULL);
        printf("%s%.0f %s", kind ? ", " : "", n, ps_mask_names[kind]);
    }
    printf(" pixels\n");
}

ps_code ps_histogram_print_info(const char *path, ps_error *error) {
    ps_histogram_view view;
    PS_TRY(ps_histogram_view_open(path, &view, error));
    printf("%s\n", path);
    printf("frames    %lld: %lld done, %lld failed\n", (long long)view.file.n_frames, (long long)view.file.n_by_state[PS_FRAME_DONE],
           (long long)view.file.n_by_state[PS_FRAME_FAILED]);
    printf("histogram %lld x %lld pixels from (%lld, %lld) of a detector of %lld x %lld, %lld bins from %.9g to %.9g\n",
           (long long)view.rows, (long long)view.columns, (long long)view.first_row, (long long)view.first_column,
           (long long)view.detector_rows, (long long)view.detector_columns, (long long)view.n_bins, view.edges[0], view.edges[view.n_bins]);
    print_text(&view, "range", "histogram/range_source");
    print_text(&view, "centre", "histogram/centre_source");
    print_text(&view, "counts", "histogram/dtype");
    print_masked(&view);
    print_text(&view, "device", "frames/device");
    print_text(&view, "command", "process_1/command_line");
    print_text(&view, "finished", "process_1/end_time");
    ps_histogram_view_close(&view);
    return PS_OK;
}
