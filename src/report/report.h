/* One self-contained HTML page about an output file: pictures, curves, timings, frames, optics, provenance. */
#ifndef PS_REPORT_REPORT_H
#define PS_REPORT_REPORT_H

#include <stdio.h>

#include "report/place.h"
#include "store/view.h"

typedef struct {
    char *path, *title; /* of a PNG file */
} ps_report_picture;

typedef struct {
    int64_t n;
    ps_report_picture *pictures; /* [n]; owned: ps_report_pictures_free */
} ps_report_pictures;

/* Takes path, which is malloc'd, also on failure. */
ps_code ps_report_add(ps_report_pictures *pictures, char *path, const char *title, ps_error *error);
void ps_report_pictures_free(ps_report_pictures *pictures);

/* Parts that other pages use too: everything up to how many frames there are, and one picture, its file embedded. The page ends with
 * "</body></html>". */
void ps_report_begin(FILE *out, const ps_view *view);
ps_code ps_report_print_picture(FILE *out, const ps_report_picture *picture, ps_error *error);

/* The pictures' files are embedded. path lies in place. */
ps_code ps_report_write(const ps_view *view, const ps_report_pictures *pictures, const ps_place *place, const char *path, ps_error *error);

#endif
