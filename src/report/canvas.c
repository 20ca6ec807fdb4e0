#include "report/canvas.h"

#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/write.h"
#include "report/font.h"

enum { MOST_SAMPLES = 65536 };

ps_code ps_canvas_create(int64_t width, int64_t height, uint8_t background, ps_canvas *canvas, ps_error *error) {
    *canvas = (ps_canvas){width, height, malloc((size_t)width * (size_t)height)};
    if (!canvas->grey)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a picture of %lld x %lld", (long long)width, (long long)height);
    memset(canvas->grey, background, (size_t)width * (size_t)height);
    return PS_OK;
}

void ps_canvas_free(ps_canvas *canvas) {
    free(canvas->grey);
    *canvas = (ps_canvas){0};
}

void ps_canvas_box(ps_canvas *canvas, int64_t x, int64_t y, int64_t width, int64_t height, uint8_t grey) {
    int64_t right = x + width < canvas->width ? x + width : canvas->width,
            bottom = y + height < canvas->height ? y + height : canvas->height;
    for (int64_t row = y < 0 ? 0 : y; row < bottom; row++)
        for (int64_t column = x < 0 ? 0 : x; column < right; column++) canvas->grey[row * canvas->width + column] = grey;
}

void ps_canvas_text(ps_canvas *canvas, int64_t x, int64_t y, int64_t scale, uint8_t grey, const char *text) {
    for (; *text; text++) {
        if (((unsigned char)*text & 0xC0) == 0x80) continue; /* inside a UTF-8 character */
        const uint8_t *glyph = ps_font_glyph(*text);
        for (int column = 0; column < PS_FONT_COLUMNS; column++)
            for (int row = 0; row < PS_FONT_ROWS; row++)
                if (glyph[column] >> row & 1) ps_canvas_box(canvas, x + column * scale, y + row * scale, scale, scale, grey);
        x += PS_FONT_ADVANCE * scale;
    }
}

int64_t ps_canvas_text_width(const char *text, int64_t scale) {
    int64_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n * PS_FONT_ADVANCE * scale;
}

/* Mean of the finite values in [row0, row1) x [column0, column1), parts of pixels included; NAN when there are none. */
static double area_mean(const float *image, int64_t rows, int64_t columns, double row0, double row1, double column0, double column1) {
    double sum = 0, weight = 0;
    for (int64_t r = (int64_t)row0; r < rows && (double)r < row1; r++) {
        double height = fmin(row1, (double)r + 1) - fmax(row0, (double)r);
        for (int64_t c = (int64_t)column0; c < columns && (double)c < column1; c++) {
            double value = image[r * columns + c], area = height * (fmin(column1, (double)c + 1) - fmax(column0, (double)c));
            if (!isfinite(value)) continue;
            sum += area * value;
            weight += area;
        }
    }
    return weight > 0 ? sum / weight : NAN;
}

static uint8_t to_grey(double value, ps_range range) {
    double level = 255.0 * (value - range.low) / (range.high - range.low);
    if (!(level > 0)) return 0;
    return level >= 255 ? 255 : (uint8_t)(level + 0.5);
}

void ps_canvas_image(ps_canvas *canvas, int64_t x, int64_t y, int64_t width, int64_t height, const float *image, int64_t rows,
                     int64_t columns, ps_range range) {
    bool as_it_is = width == columns && height == rows;
    double down = (double)rows / (double)height, across = (double)columns / (double)width;
    for (int64_t r = 0; r < height && y + r < canvas->height; r++)
        for (int64_t c = 0; c < width && x + c < canvas->width; c++) {
            double mean = as_it_is ? (double)image[r * columns + c]
                                   : area_mean(image, rows, columns, (double)r * down, (double)(r + 1) * down, (double)c * across,
                                               (double)(c + 1) * across);
            canvas->grey[(y + r) * canvas->width + x + c] = to_grey(mean, range);
        }
}

/* The largest of 1, 2, 5 times a power of ten that is not above most. */
static double round_length(double most) {
    double power = pow(10, floor(log10(most)));
    return most >= 5 * power ? 5 * power : most >= 2 * power ? 2 * power : power;
}

int64_t ps_canvas_scale_bar(ps_canvas *canvas, int64_t x, int64_t y, int64_t scale, int64_t width_px, double width_A) {
    char label[32];
    if (!(width_A > 0)) return x;
    double length_A = round_length(width_A / 4);
    int64_t length_px = (int64_t)lround(length_A / width_A * (double)width_px);
    ps_canvas_box(canvas, x, y + 2 * scale, length_px, 3 * scale, 0);
    if (length_A >= 10)
        snprintf(label, sizeof label, "%g nm", length_A / 10);
    else
        snprintf(label, sizeof label, "%g A", length_A);
    x += length_px + 4 * scale;
    ps_canvas_text(canvas, x, y, scale, 0, label);
    return x + ps_canvas_text_width(label, scale);
}

/* ---- contrast ---- */

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

ps_range ps_range_of(const float *values, int64_t n, double clip_percent) {
    int64_t stride = n / MOST_SAMPLES + 1, used = 0;
    float *samples = malloc((size_t)(n / stride + 1) * sizeof *samples);
    for (int64_t i = 0; samples && i < n; i += stride)
        if (isfinite(values[i])) samples[used++] = values[i];
    ps_range range = {0, 0};
    if (used > 0) {
        qsort(samples, (size_t)used, sizeof *samples, compare_floats);
        int64_t outside = (int64_t)(clip_percent / 100 * (double)(used - 1));
        if (2 * outside >= used) outside = (used - 1) / 2;
        range = (ps_range){samples[outside], samples[used - 1 - outside]};
    }
    free(samples);
    double room = 1e-6 * fmax(fabs(range.low), fabs(range.high));
    if (range.high - range.low <= room) { /* one value: middle grey */
        range.low -= room > 0 ? room : 0.5;
        range.high += room > 0 ? room : 0.5;
    }
    return range;
}

/* ---- PNG ---- */

static void fail_png(png_structp png, png_const_charp message) {
    ps_error *error = png_get_error_ptr(png);
    PS_FAIL(error, PS_E_IO, "libpng: %s", message);
    png_longjmp(png, 1);
}

static void write_png(png_structp png, png_infop info, const ps_canvas *canvas, const char *description) {
    png_text comment = {.compression = PNG_TEXT_COMPRESSION_NONE, .key = (png_charp) "Description", .text = (png_charp)description};
    png_set_IHDR(png, info, (png_uint_32)canvas->width, (png_uint_32)canvas->height, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, 4); /* noise hardly packs better at 6, which takes twice as long */
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
    png_set_text(png, info, &comment, 1);
    png_write_info(png, info);
    for (int64_t row = 0; row < canvas->height; row++) png_write_row(png, canvas->grey + row * canvas->width);
    png_write_end(png, info);
}

ps_code ps_canvas_write_png(const ps_canvas *canvas, FILE *stream, const char *description, ps_error *error) {
    ps_error own = {0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &own, fail_png, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a PNG");
    }
    if (setjmp(png_jmpbuf(png)) == 0) {
        png_init_io(png, stream);
        write_png(png, info, canvas, description);
    }
    png_destroy_write_struct(&png, &info);
    return own.code == PS_OK ? PS_OK : PS_FAIL(error, own.code, "%s", own.text);
}

ps_code ps_canvas_save_png(const ps_canvas *canvas, const ps_place *place, const char *path, const char *description, ps_error *error) {
    ps_place_file file;
    ps_error own = {0};
    PS_TRY(ps_place_create(place, path, &file, error));
    ps_code code = ps_canvas_write_png(canvas, file.stream, description, &own);
    if (code != PS_OK && ferror(file.stream))
        ps_io_fail(error, errno, "%s: cannot write", path); /* libpng does not say why */
    else if (code != PS_OK)
        PS_FAIL(error, code, "%s: %s", path, own.text);
    return ps_place_finish(&file, code, error);
}
