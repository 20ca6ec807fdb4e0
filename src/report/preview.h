/* Pictures of an output file: PNG images, contact sheets, and one self-contained HTML report. */
#ifndef PS_REPORT_PREVIEW_H
#define PS_REPORT_PREVIEW_H

#include <stdint.h>

#include "core/error.h"

typedef struct {
    const char *directory; /* where to write; NULL: OUT.preview beside the file */
    int64_t frame;         /* -1: all done frames */
    double clip_percent;   /* of pixels clipped at each end of the grey scale */
    int64_t sheet_columns; /* 0: chosen from the number of frames */
} ps_preview_options;

/* Writes, for every done frame, method and strength, one 8-bit grey PNG; a contact sheet of the series per method; one of the sweep
 * (frames down, strengths across); report.html. n_written: images written. */
ps_code ps_preview(const char *path, const ps_preview_options *options, int64_t *n_written, ps_error *error);

#endif
