#include "input/adapters/scan_hint.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_FLYBACK = 32 };

/* Flyback positions per row that make up the difference, the last row's there or not; 0: none do. */
static int64_t flyback_that_fits(int64_t n_frames, int64_t rows, int64_t columns) {
    for (int64_t f = 1; f <= MOST_FLYBACK; f++) {
        int64_t all = rows * (columns + f);
        if (n_frames == all || (rows > 1 && n_frames == all - f)) return f;
    }
    return 0;
}

void ps_scan_hint(int64_t n_frames, int64_t rows, int64_t columns, char *text, size_t bytes) {
    enum { LARGEST = 1 << 24 };
    text[0] = '\0';
    if (n_frames < 1 || rows < 1 || columns < 1 || rows > LARGEST || columns > LARGEST) return;
    int64_t product = rows * columns, flyback = flyback_that_fits(n_frames, rows, columns), more = n_frames - product;
    if (n_frames % product == 0)
        snprintf(text, bytes, "%" PRId64 " patterns at each position? then series.repeats is %" PRId64, n_frames / product,
                 n_frames / product);
    else if (flyback)
        snprintf(text, bytes,
                 "%" PRId64 " more position%s in each row, %" PRId64 " x (%" PRId64 " + %" PRId64
                 "), as the beam flies back? then series.flyback is %" PRId64,
                 flyback, flyback == 1 ? "" : "s", rows, columns, flyback, flyback);
    else if (more > 0 && more <= product / 2)
        snprintf(text, bytes, "%" PRId64 " patterns too many; series.skip_leading and series.skip_trailing leave patterns out", more);
    else if (more < 0 && -more <= product / 2)
        snprintf(text, bytes, "%" PRId64 " patterns are missing: was the recording stopped early?", -more);
}

void ps_square_hint(int64_t n_frames, char *text, size_t bytes) {
    text[0] = '\0';
    for (int64_t f = 1; f <= MOST_FLYBACK; f++) {
        int64_t rows = 1;
        while (rows * (rows + f) < n_frames) rows++;
        int64_t all = rows * (rows + f);
        if (rows <= f || (n_frames != all && n_frames != all - f)) continue;
        snprintf(text, bytes,
                 "a square scan with flyback, %" PRId64 " x (%" PRId64 " + %" PRId64 ")? then give series.scan_shape and series.flyback",
                 rows, rows, f);
        return;
    }
}
