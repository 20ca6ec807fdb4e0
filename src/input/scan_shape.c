#include "input/scan_shape.h"

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

/* What a number of frames that does not fit probably means. text: "" or a sentence that names the option of the job that would fit:
 * repeats, flyback, skipped frames, a recording that was stopped. */
static void find_hint(int64_t n_frames, int64_t rows, int64_t columns, char *text, size_t bytes) {
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

/* The same when no shape is known: a square scan with flyback. */
static void find_square_hint(int64_t n_frames, char *text, size_t bytes) {
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

/* "1 x 12, 2 x 6, 3 x 4": pairs whose product is n, the squarest last; as many as fit. */
static void factor_pairs(int64_t n, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = '\0';
    int64_t pairs = 0, shown = 0;
    for (int64_t a = 1; a * a <= n; a++) pairs += n % a == 0;
    for (int64_t a = 1; a * a <= n; a++) {
        if (n % a != 0 || pairs-- > 8) continue; /* the eight squarest are enough */
        int wrote = snprintf(text + used, bytes - used, "%s%" PRId64 " x %" PRId64, shown++ ? ", " : "", a, n / a);
        if (wrote < 0 || (size_t)wrote >= bytes - used) return;
        used += (size_t)wrote;
    }
}

static ps_code check_shape(const ps_reader *reader, int64_t rows, int64_t columns, const char *who, ps_error *error) {
    int64_t product = 0, n = reader->info.n_positions;
    if (!__builtin_mul_overflow(rows, columns, &product) && product == n) return PS_OK;
    char pairs[320], hint[200];
    factor_pairs(n, pairs, sizeof pairs);
    find_hint(n, rows, columns, hint, sizeof hint);
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: %s says a scan of %" PRId64 " x %" PRId64 " = %" PRId64 " positions, but the recording has %" PRId64
                   " patterns; scans that would fit (either way round): %s%s%s",
                   reader->path, who, rows, columns, product, n, pairs, hint[0] ? "; " : "", hint);
}

static int64_t exact_square_root(int64_t n) {
    int64_t root = 0;
    for (int64_t bit = INT64_C(1) << 31; bit; bit >>= 1)
        if ((root + bit) <= n / (root + bit)) root += bit;
    return root * root == n ? root : 0;
}

ps_code ps_reader_scan_shape(const ps_reader *reader, const ps_reader_options *options, int64_t *rows, int64_t *columns, ps_error *error) {
    const ps_recording *info = &reader->info;
    if (options && options->scan_rows > 0 && options->scan_columns > 0) {
        *rows = options->scan_rows;
        *columns = options->scan_columns;
        return check_shape(reader, *rows, *columns, "the job", error);
    }
    if (info->scan_rows > 0 && info->scan_columns > 0) {
        *rows = info->scan_rows;
        *columns = info->scan_columns;
        return check_shape(reader, *rows, *columns, "the file", error);
    }
    *rows = *columns = info->scan_doubt[0] ? 0 : exact_square_root(info->n_positions);
    if (*rows > 0) return PS_OK;
    char pairs[320], hint[200];
    if (info->scan_doubt[0]) {
        factor_pairs(info->n_positions, pairs, sizeof pairs);
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: the scan shape is not known: the recording holds %" PRId64
                       " patterns, but %s; give series.scan_shape (and series.allow_partial where patterns are missing); scans that "
                       "would fit what is there (either way round): %s",
                       reader->path, info->n_positions, info->scan_doubt, pairs);
    }
    factor_pairs(info->n_positions, pairs, sizeof pairs);
    find_square_hint(info->n_positions, hint, sizeof hint);
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: the file does not say its scan shape and its %" PRId64 " patterns are no square; give "
                   "series.scan_shape; scans that would fit (either way round): %s%s%s",
                   reader->path, info->n_positions, pairs, hint[0] ? "; " : "", hint);
}
