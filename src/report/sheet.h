/* A contact sheet: small pictures in rows, each with a label above it. */
#ifndef PS_REPORT_SHEET_H
#define PS_REPORT_SHEET_H

#include "report/canvas.h"

typedef struct {
    ps_canvas canvas;
    int64_t columns, tile_width, tile_height;
} ps_sheet;

/* Room for n pictures that are `width` x `height` in full; columns 0: chosen so that the sheet is about as wide as high. Tiles shrink until
 * the sheet is at most 2400 pixels wide. The title is on top. */
ps_code ps_sheet_create(const char *title, int64_t n, int64_t columns, int64_t width, int64_t height, ps_sheet *sheet, ps_error *error);
void ps_sheet_free(ps_sheet *sheet);

void ps_sheet_image(ps_sheet *sheet, int64_t index, const float *image, int64_t rows, int64_t image_columns, ps_range range,
                    const char *label);
/* A dark tile with a word instead of an image. */
void ps_sheet_blank(ps_sheet *sheet, int64_t index, const char *word, const char *label);

#endif
