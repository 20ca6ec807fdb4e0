#include "report/sheet.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDEST = 2400, WIDEST_TILE = 400, GAP = 6, LABEL = 14, TITLE = 18 };

ps_code ps_sheet_create(const char *title, int64_t n, int64_t columns, int64_t width, int64_t height, ps_sheet *sheet, ps_error *error) {
    if (columns < 1) columns = (int64_t)ceil(sqrt((double)n * (double)height / (double)width));
    if (columns > n) columns = n;
    double fit = fmin(fmin(1, (double)WIDEST_TILE / (double)width), ((double)WIDEST / (double)columns - GAP) / (double)width);
    int64_t tile_width = (int64_t)fmax(8, floor(fit * (double)width)), tile_height = (int64_t)fmax(1, round(fit * (double)height));
    int64_t rows = (n + columns - 1) / columns;
    *sheet = (ps_sheet){.columns = columns, .tile_width = tile_width, .tile_height = tile_height};
    PS_TRY(ps_canvas_create(columns * (tile_width + GAP) + GAP, TITLE + rows * (tile_height + LABEL) + GAP, 255, &sheet->canvas, error));
    ps_canvas_text(&sheet->canvas, GAP, GAP, 1, 0, title);
    return PS_OK;
}

void ps_sheet_free(ps_sheet *sheet) {
    ps_canvas_free(&sheet->canvas);
}

/* Upper left corner of the tile; the label, cut to the tile's width, is drawn above it. */
static void place_tile(ps_sheet *sheet, int64_t index, const char *label, int64_t *x, int64_t *y) {
    char cut[256];
    *x = GAP + index % sheet->columns * (sheet->tile_width + GAP);
    *y = index / sheet->columns * (sheet->tile_height + LABEL) + TITLE + LABEL;
    snprintf(cut, sizeof cut, "%s", label);
    while (*cut && ps_canvas_text_width(cut, 1) > sheet->tile_width) cut[strlen(cut) - 1] = '\0';
    ps_canvas_text(&sheet->canvas, *x, *y - 9, 1, 0, cut);
}

void ps_sheet_image(ps_sheet *sheet, int64_t index, const float *image, int64_t rows, int64_t image_columns, ps_range range,
                    const char *label) {
    int64_t x, y;
    place_tile(sheet, index, label, &x, &y);
    ps_canvas_image(&sheet->canvas, x, y, sheet->tile_width, sheet->tile_height, image, rows, image_columns, range);
}

void ps_sheet_blank(ps_sheet *sheet, int64_t index, const char *word, const char *label) {
    int64_t x, y, width = ps_canvas_text_width(word, 1);
    place_tile(sheet, index, label, &x, &y);
    ps_canvas_box(&sheet->canvas, x, y, sheet->tile_width, sheet->tile_height, 60);
    if (width <= sheet->tile_width)
        ps_canvas_text(&sheet->canvas, x + (sheet->tile_width - width) / 2, y + sheet->tile_height / 2 - 3, 1, 255, word);
}
