/* An output file open for looking at, also while it is being written. Rank-local; no locks. */
#ifndef PS_STORE_VIEW_H
#define PS_STORE_VIEW_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "method/method.h"

/* What the file holds of one method. */
typedef struct {
    const ps_method *method;
    bool present, automatic;
    int64_t n_strengths;     /* 1 for methods without strengths and automatic ones */
    double *strengths;       /* [n_strengths]; NULL: a method without strengths */
    double *amplitudes;      /* [n_strengths]; NULL: strengths are no pairs */
    int64_t n_curve;         /* 0: it leaves no curves */
    double *curve_strengths; /* [n_curve] */
} ps_view_method;

typedef struct {
    char *path;
    hid_t file, entry;
    int64_t n_frames;
    uint8_t *states; /* [n_frames] ps_frame_state */
    int64_t n_by_state[3];
    int64_t rows, columns; /* of an image */
    double step_A[2];      /* of its pixels */
    int64_t n_optics, n_processes;
    ps_view_method methods[PS_MOST_METHODS]; /* [ps_n_methods] as the table has them, present or not */
} ps_view;

ps_code ps_view_open(const char *path, ps_view *view, ps_error *error);
void ps_view_close(ps_view *view);

/* image: [rows, columns]; name below /entry, such as "phase/phase". */
ps_code ps_view_image(const ps_view *view, const char *name, int64_t frame, int64_t strength, float *image, ps_error *error);
/* Whole datasets below /entry, of any shape with n elements; PS_E_HDF5 when it is not there or has another size. */
ps_code ps_view_numbers(const ps_view *view, const char *name, int64_t n, double *values, ps_error *error);
/* texts: [n] malloc'd strings in one malloc'd array, to be freed with ps_view_free_texts. A scalar counts as n = 1. */
ps_code ps_view_texts(const ps_view *view, const char *name, int64_t n, char ***texts, ps_error *error);
void ps_view_free_texts(char **texts, int64_t n);
/* One text, malloc'd; "" when there is no such dataset; NULL: out of memory. */
char *ps_view_text(const ps_view *view, const char *name);
bool ps_view_has(const ps_view *view, const char *name);
/* name: of a method's result below /entry, as this file calls it; false: the file does not have it. */
bool ps_view_result(const ps_view *view, const ps_method *method, const ps_result_desc *result, char name[64]);

#endif
