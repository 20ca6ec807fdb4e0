#include "input/adapters/positions.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"

enum { PIECE_BYTES = 32 << 20 }; /* of patterns held at once while they are turned round or summed */

typedef struct {
    ps_reader base;
    int64_t skip, flyback, repeats;
    bool serpentine;
} mapped_reader;

bool ps_positions_asked(const ps_reader_options *options) {
    return options->skip_leading || options->skip_trailing || options->flyback || options->repeats > 1 || options->serpentine;
}

ps_dtype ps_positions_sum_dtype(ps_dtype dtype, int64_t repeats) {
    PS_ASSERT(repeats >= 1);
    if (repeats <= 1) return dtype;
    switch (dtype) {
    case PS_U8: return repeats * (UINT8_MAX - 1) < UINT16_MAX ? PS_U16 : PS_U32; /* the invalid-count value is no count */
    case PS_U16: return repeats * (UINT16_MAX - 1) < UINT32_MAX ? PS_U32 : PS_F64;
    case PS_I8: return repeats * -INT8_MIN <= INT16_MAX ? PS_I16 : PS_I32;
    case PS_I16: return repeats * -INT16_MIN <= INT32_MAX ? PS_I32 : PS_F64;
    case PS_U32:
    case PS_I32: return PS_F64;
    default: return dtype;
    }
}

static void close_reader(ps_reader *reader) {
    free(reader);
}

/* Pattern of the recording in which position (row, column) begins. */
static int64_t first_frame(const mapped_reader *r, int64_t row, int64_t column) {
    int64_t in_time = r->serpentine && row % 2 ? r->base.info.scan_columns - 1 - column : column;
    return r->skip + (row * (r->base.info.scan_columns + r->flyback) + in_time) * r->repeats;
}

/* Sums n values of one type into another; a invalid-count value stays a invalid-count value. NAN is the invalid-count value of floating
 * sums and passes by itself. */
#define ADD_VALUES(from_type, to_type, has_invalid_value, from_invalid_value, to_invalid_value)                     \
    for (size_t i = 0; i < n; i++) {                                                                                \
        from_type value = ((const from_type *)from)[i];                                                             \
        to_type *sum = &((to_type *)to)[i];                                                                         \
        if (has_invalid_value && (value == (from_type)(from_invalid_value) || *sum == (to_type)(to_invalid_value))) \
            *sum = (to_type)(to_invalid_value);                                                                     \
        else                                                                                                        \
            *sum = (to_type)(*sum + (to_type)value);                                                                \
    }

static void add_frame(const void *from, ps_dtype from_dtype, size_t n, void *to, ps_dtype to_dtype) {
    switch (from_dtype) {
    case PS_U8:
        if (to_dtype == PS_U16)
            ADD_VALUES(uint8_t, uint16_t, true, UINT8_MAX, UINT16_MAX)
        else
            ADD_VALUES(uint8_t, uint32_t, true, UINT8_MAX, UINT32_MAX)
        break;
    case PS_U16:
        if (to_dtype == PS_U32)
            ADD_VALUES(uint16_t, uint32_t, true, UINT16_MAX, UINT32_MAX)
        else
            ADD_VALUES(uint16_t, double, value == UINT16_MAX, UINT16_MAX, NAN)
        break;
    case PS_U32: ADD_VALUES(uint32_t, double, value == UINT32_MAX, UINT32_MAX, NAN) break;
    case PS_I8:
        if (to_dtype == PS_I16)
            ADD_VALUES(int8_t, int16_t, false, 0, 0)
        else
            ADD_VALUES(int8_t, int32_t, false, 0, 0)
        break;
    case PS_I16:
        if (to_dtype == PS_I32)
            ADD_VALUES(int16_t, int32_t, false, 0, 0)
        else
            ADD_VALUES(int16_t, double, false, 0, 0)
        break;
    case PS_I32: ADD_VALUES(int32_t, double, false, 0, 0) break;
    case PS_F32: ADD_VALUES(float, float, false, 0, 0) break;
    default: ADD_VALUES(double, double, false, 0, 0)
    }
}

/* Positions of one scan row, columns [column, column + n), through a buffer. counts: [n, rows, columns] of info.dtype */
static ps_code read_piece(mapped_reader *r, int64_t row, int64_t column, int64_t n, uint8_t *frames, uint8_t *counts, ps_error *error) {
    const ps_recording *info = &r->base.info;
    size_t pixels = (size_t)(info->detector_rows * info->detector_columns);
    size_t inner_bytes = pixels * ps_dtype_bytes(r->base.inner->info.dtype), frame_bytes = pixels * ps_dtype_bytes(info->dtype);
    bool backwards = r->serpentine && row % 2;
    int64_t begin = first_frame(r, row, backwards ? column + n - 1 : column);
    PS_TRY(ps_reader_read(r->base.inner, begin, n * r->repeats, frames, error));
    if (r->repeats > 1) memset(counts, 0, (size_t)n * frame_bytes);
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *from = frames + (size_t)((backwards ? n - 1 - i : i) * r->repeats) * inner_bytes;
        uint8_t *to = counts + (size_t)i * frame_bytes;
        if (r->repeats == 1)
            memcpy(to, from, frame_bytes);
        else
            for (int64_t k = 0; k < r->repeats; k++)
                add_frame(from + (size_t)k * inner_bytes, r->base.inner->info.dtype, pixels, to, info->dtype);
    }
    return PS_OK;
}

/* How many positions from (row, column) on lie one after the other in the recording, at most n. */
static int64_t straight_run(const mapped_reader *r, int64_t column, int64_t n) {
    if (r->flyback == 0 && !r->serpentine) return n;
    int64_t left = r->base.info.scan_columns - column;
    return left < n ? left : n;
}

static ps_code read_counts(ps_reader *reader, int64_t first, int64_t n, void *counts, ps_error *error) {
    mapped_reader *r = (mapped_reader *)reader;
    const ps_recording *info = &reader->info;
    size_t pixels = (size_t)(info->detector_rows * info->detector_columns), frame_bytes = pixels * ps_dtype_bytes(info->dtype);
    size_t position_bytes = pixels * ps_dtype_bytes(r->base.inner->info.dtype) * (size_t)r->repeats;
    int64_t most = (int64_t)(PIECE_BYTES / position_bytes);
    if (most < 1) most = 1;
    if (most > info->scan_columns) most = info->scan_columns;
    ps_code code = PS_OK;
    uint8_t *frames = NULL;
    for (int64_t done = 0; done < n;) {
        int64_t row = (first + done) / info->scan_columns, column = (first + done) % info->scan_columns,
                run = straight_run(r, column, n - done);
        uint8_t *to = (uint8_t *)counts + (size_t)done * frame_bytes;
        if (r->repeats == 1 && !(r->serpentine && row % 2)) {
            PS_GO(ps_reader_read(r->base.inner, first_frame(r, row, column), run, to, error));
        } else {
            if (!frames) frames = malloc((size_t)most * position_bytes);
            PS_GO_ALLOC(error, frames);
            if (run > info->scan_columns - column) run = info->scan_columns - column;
            if (run > most) run = most;
            PS_GO(read_piece(r, row, column, run, frames, to, error));
        }
        done += run;
    }
done:
    free(frames);
    return code;
}

static const ps_reader_ops mapped_ops = {.name = "positions", .close = close_reader, .read = read_counts};

static ps_code does_not_fit(const ps_reader *inner, const ps_reader_options *o, int64_t rows, int64_t columns, int64_t repeats,
                            ps_error *error) {
    int64_t left = inner->info.n_positions - o->skip_leading - o->skip_trailing;
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: %" PRId64 " patterns, less %" PRId64 " leading and %" PRId64 " trailing ones, leave %" PRId64 "; a scan of %" PRId64
                   " rows of %" PRId64 " positions and %" PRId64 " flyback positions, %" PRId64 " patterns each, has %" PRId64
                   " (or %" PRId64 " without flyback behind the last row)",
                   inner->path, inner->info.n_positions, o->skip_leading, o->skip_trailing, left, rows, columns, o->flyback, repeats,
                   rows * (columns + o->flyback) * repeats, (rows * (columns + o->flyback) - o->flyback) * repeats);
}

static int64_t repeats_of(const ps_reader_options *o) {
    return o->repeats > 1 ? o->repeats : 1;
}

bool ps_positions_fit(const ps_reader_options *o, int64_t rows, int64_t columns, int64_t n) {
    int64_t row = 0, all = 0, left = n - o->skip_leading - o->skip_trailing;
    if (__builtin_mul_overflow(columns + o->flyback, repeats_of(o), &row) || __builtin_mul_overflow(rows, row, &all)) return false;
    return left == all || left == all - o->flyback * repeats_of(o);
}

static ps_code check_fit(const ps_reader *inner, const ps_reader_options *o, int64_t rows, int64_t columns, ps_error *error) {
    enum { MOST = 1 << 30 }; /* keeps the products below 2^63 */
    int64_t repeats = repeats_of(o), row = 0, all = 0;
    bool sane = o->skip_leading >= 0 && o->skip_trailing >= 0 && o->flyback >= 0 && o->repeats >= 0 && o->skip_leading < MOST &&
                o->skip_trailing < MOST && o->flyback < MOST && repeats < MOST;
    if (!sane)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: skip_leading %" PRId64 ", skip_trailing %" PRId64 ", flyback %" PRId64 ", repeats %" PRId64
                       ": expected numbers from 0 to %d",
                       inner->path, o->skip_leading, o->skip_trailing, o->flyback, o->repeats, MOST);
    if (rows <= 0 || columns <= 0)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: skipped, flyback, repeated or serpentine positions need the scan's shape: give series.scan_shape", inner->path);
    if (__builtin_mul_overflow(columns + o->flyback, repeats, &row) || __builtin_mul_overflow(rows, row, &all))
        return PS_FAIL(error, PS_E_INPUT, "%s: a scan of %" PRId64 " x %" PRId64 " is too large", inner->path, rows, columns);
    if (ps_positions_fit(o, rows, columns, inner->info.n_positions)) return PS_OK;
    return does_not_fit(inner, o, rows, columns, repeats, error);
}

/* Skipped patterns that are whole rows of the file's own scan. */
static bool skips_rows(const ps_reader_options *o, int64_t rows, int64_t columns) {
    if (o->skip_leading % columns != 0 || o->skip_trailing % columns != 0) return false;
    return rows - (o->skip_leading + o->skip_trailing) / columns == o->scan_rows;
}

/* Whether a file that says rows x columns means the options' scan. */
static bool means_the_same(const ps_recording *info, const ps_reader_options *o) {
    enum { MOST = 1 << 30 };
    int64_t rows = info->scan_rows, columns = info->scan_columns, repeats = repeats_of(o), line = 0;
    if (rows == o->scan_rows && columns == o->scan_columns) return true;
    if ((rows == 1 || columns == 1) && o->scan_rows > 1 && o->scan_columns > 1) return true; /* a list */
    if (o->flyback < 0 || o->flyback > MOST || __builtin_mul_overflow(o->scan_columns + o->flyback, repeats, &line)) return false;
    if (repeats > 1 && columns == repeats && rows == o->scan_rows * (o->scan_columns + o->flyback)) return true; /* one after the other */
    if (columns != line) return false;
    bool early_end = rows > o->scan_rows && ps_positions_fit(o, o->scan_rows, o->scan_columns, info->n_positions);
    return rows == o->scan_rows || skips_rows(o, rows, columns) || early_end || (o->allow_partial && rows < o->scan_rows);
}

static int64_t product(int64_t rows, int64_t columns) {
    int64_t n = 0;
    return __builtin_mul_overflow(rows, columns, &n) ? INT64_MAX : n;
}

ps_code ps_positions_check_shape(ps_reader *reader, const ps_reader_options *o, ps_error *error) {
    const ps_recording *info = &reader->info;
    if (o->scan_rows <= 0 || o->scan_columns <= 0 || info->scan_rows <= 0 || info->scan_columns <= 0 || means_the_same(info, o))
        return PS_OK;
    if (!o->shape_override)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: the job's series.scan_shape is %" PRId64 " x %" PRId64 " = %" PRId64 ", but the file says a scan of %" PRId64
                       " x %" PRId64 " = %" PRId64
                       " positions (%s); leave series.scan_shape out, or set series.scan_shape_override to true "
                       "if the file is wrong",
                       reader->path, o->scan_rows, o->scan_columns, product(o->scan_rows, o->scan_columns), info->scan_rows,
                       info->scan_columns, product(info->scan_rows, info->scan_columns), info->scan_place);
    ps_reader_note(reader,
                   "warning: the file says a scan of %" PRId64 " x %" PRId64 " (%s); the job's %" PRId64 " x %" PRId64
                   " is taken instead (series.scan_shape_override)",
                   info->scan_rows, info->scan_columns, info->scan_place, o->scan_rows, o->scan_columns);
    return PS_OK;
}

static void describe(mapped_reader *r, int64_t rows, int64_t columns) {
    r->base.info = r->base.inner->info;
    r->base.info.n_positions = rows * columns;
    r->base.info.scan_rows = rows;
    r->base.info.scan_columns = columns;
    r->base.info.dtype = ps_positions_sum_dtype(r->base.inner->info.dtype, r->repeats);
    if (r->repeats > 1) r->base.info.saturation = NAN; /* it held for single patterns */
    r->base.path = r->base.inner->path;
}

ps_code ps_positions_wrap(ps_reader **reader, const ps_reader_options *o, ps_error *error) {
    const ps_recording *info = &(*reader)->info;
    bool from_job = o->scan_rows > 0 && o->scan_columns > 0;
    int64_t rows = from_job ? o->scan_rows : info->scan_rows, columns = from_job ? o->scan_columns : info->scan_columns;
    PS_TRY(check_fit(*reader, o, rows, columns, error));
    mapped_reader *r = calloc(1, sizeof *r);
    if (!r) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a reader");
    r->base.ops = &mapped_ops;
    r->base.inner = *reader;
    r->skip = o->skip_leading;
    r->flyback = o->flyback;
    r->repeats = repeats_of(o);
    r->serpentine = o->serpentine;
    describe(r, rows, columns);
    ps_reader_note(*reader,
                   "positions: %" PRId64 " leading and %" PRId64 " trailing patterns skipped, %" PRId64
                   " flyback positions a row left out, %" PRId64 " patterns a position%s, rows %s",
                   o->skip_leading, o->skip_trailing, r->flyback, r->repeats, r->repeats > 1 ? " summed" : "",
                   r->serpentine ? "serpentine" : "in one direction");
    *reader = &r->base;
    return PS_OK;
}
