/* An 8-bit grey picture to draw on, and how numbers become grey. */
#ifndef PS_REPORT_CANVAS_H
#define PS_REPORT_CANVAS_H

#include <stdint.h>
#include <stdio.h>

#include "core/error.h"
#include "report/place.h"

typedef struct {
    int64_t width, height;
    uint8_t *grey; /* [height, width]; owned: ps_canvas_free */
} ps_canvas;

typedef struct {
    double low, high; /* black and white */
} ps_range;

ps_code ps_canvas_create(int64_t width, int64_t height, uint8_t background, ps_canvas *canvas, ps_error *error);
void ps_canvas_free(ps_canvas *canvas);

/* What reaches over the edge is cut. */
void ps_canvas_box(ps_canvas *canvas, int64_t x, int64_t y, int64_t width, int64_t height, uint8_t grey);
/* x, y: upper left corner of the first letter; each dot is scale x scale pixels. */
void ps_canvas_text(ps_canvas *canvas, int64_t x, int64_t y, int64_t scale, uint8_t grey, const char *text);
int64_t ps_canvas_text_width(const char *text, int64_t scale);
/* image: [rows, columns], drawn into width x height pixels by area averages; values that are not finite do not count, pixels without any
 * finite value become black. */
void ps_canvas_image(ps_canvas *canvas, int64_t x, int64_t y, int64_t width, int64_t height, const float *image, int64_t rows,
                     int64_t columns, ps_range range);
/* Black bar of a round length, at most a quarter of width_px, with its label behind it; returns the x behind the label. */
int64_t ps_canvas_scale_bar(ps_canvas *canvas, int64_t x, int64_t y, int64_t scale, int64_t width_px, double width_A);

/* The range that leaves clip_percent of the finite values outside at each end; from at most 65536 of them, evenly spread. Never empty. */
ps_range ps_range_of(const float *values, int64_t n, double clip_percent);

/* description goes into the PNG as text. The stream stays open. */
ps_code ps_canvas_write_png(const ps_canvas *canvas, FILE *stream, const char *description, ps_error *error);
ps_code ps_canvas_save_png(const ps_canvas *canvas, const ps_place *place, const char *path, const char *description, ps_error *error);

#endif
