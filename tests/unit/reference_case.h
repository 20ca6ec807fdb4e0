/* The stored cases of ../shared/data/reference: the optics they were made with, and their datasets. */
#ifndef PS_TESTS_REFERENCE_CASE_H
#define PS_TESTS_REFERENCE_CASE_H

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optics/optics.h"

#define REFERENCE_DIRECTORY PS_SOURCE_DIR "/../shared/data/reference"

static inline hid_t reference_open(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.h5", REFERENCE_DIRECTORY, name);
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    fclose(file);
    return H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
}

/* A whole dataset as doubles; shape: [rank], filled. malloc'd. */
static inline double *reference_read(hid_t file, const char *path, hsize_t *shape) {
    hid_t set = H5Dopen2(file, path, H5P_DEFAULT), space = H5Dget_space(set);
    H5Sget_simple_extent_dims(space, shape, NULL);
    double *values = malloc((size_t)H5Sget_simple_extent_npoints(space) * sizeof *values);
    if (H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
        free(values);
        values = NULL;
    }
    H5Sclose(space);
    H5Dclose(set);
    return values;
}

/* malloc'd text of a string attribute of the file's root. */
static inline char *reference_text(hid_t file, const char *name) {
    hid_t attribute = H5Aopen(file, name, H5P_DEFAULT), type = H5Aget_type(attribute);
    char *text = NULL;
    if (H5Tis_variable_str(type) > 0) {
        H5Aread(attribute, type, &text);
    } else {
        size_t size = H5Tget_size(type);
        text = calloc(size + 1, 1);
        H5Aread(attribute, type, text);
    }
    H5Tclose(type);
    H5Aclose(attribute);
    return text;
}

static inline ps_optics reference_optics_a(void) {
    return (ps_optics){.voltage_V = 300000,
                       .semiangle_mrad = 30,
                       .scan_step_A = {0.373, 0.4},
                       .detector_pitch_mrad = {1.9, 1.9},
                       .detector_center_px = {19.3, 20.1},
                       .rotation_deg = 37,
                       .C_A = {-80, 30, 900, 700, 20000},
                       .angle_rad = {0, 0.7, 0.3, -0.4}};
}

static inline ps_optics reference_optics_b(void) {
    return (ps_optics){.voltage_V = 200000,
                       .semiangle_mrad = 21,
                       .scan_step_A = {0.5, 0.42},
                       .detector_pitch_mrad = {1.5, 1.3},
                       .detector_center_px = {17.2, 22.4},
                       .rotation_deg = -123.4,
                       .C_A = {35, 18, 300, 0, 0, 3000, 0, 0, 0, 90000, 400000},
                       .angle_rad = {0, -1.1, 2.0, 0, 0, 0.2, 0, 0, 0, 0.1},
                       .tilt_mrad = {5.92, -0.07},
                       .thickness_A = 124};
}

/* The published problem S of docs/performance.md. */
static inline ps_optics reference_optics_s(void) {
    return (ps_optics){.voltage_V = 300000,
                       .semiangle_mrad = 30,
                       .scan_step_A = {0.373, 0.373},
                       .detector_pitch_mrad = {30 / 54.4, 30 / 54.4},
                       .detector_center_px = {95.5, 95.5},
                       .rotation_deg = 176.3,
                       .tilt_mrad = {5.92, -0.07},
                       .thickness_A = 124};
}

#endif
