#include "input/adapters/partial.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"

int64_t ps_positions_needed(const ps_reader_options *o) {
    int64_t repeats = o->repeats > 1 ? o->repeats : 1, row = 0, all = 0;
    if (o->scan_rows <= 0 || o->scan_columns <= 0) return 0;
    bool fits = !__builtin_add_overflow(o->scan_columns, o->flyback, &row) && !__builtin_mul_overflow(row, o->scan_rows, &all) &&
                !__builtin_mul_overflow(all, repeats, &all) && !__builtin_add_overflow(all, o->skip_leading, &all) &&
                !__builtin_add_overflow(all, o->skip_trailing, &all);
    return fits ? all : 0;
}

static void close_reader(ps_reader *reader) {
    free(reader);
}

static ps_code read_counts(ps_reader *reader, int64_t first, int64_t n, void *counts, ps_error *error) {
    const ps_recording *info = &reader->inner->info;
    size_t frame = (size_t)(info->detector_rows * info->detector_columns) * ps_dtype_bytes(info->dtype);
    int64_t there = first >= info->n_positions ? 0 : info->n_positions - first < n ? info->n_positions - first : n;
    uint8_t *to = counts;
    if (there == 0) first = info->n_positions - 1, there = 1;
    PS_TRY(ps_reader_read(reader->inner, first, there, to, error));
    for (int64_t i = there; i < n; i++) memcpy(to + (size_t)i * frame, to + (size_t)(i - 1) * frame, frame);
    return PS_OK;
}

static const ps_reader_ops partial_ops = {.name = "partial", .close = close_reader, .read = read_counts};

ps_code ps_partial_wrap(ps_reader **reader, int64_t needed, ps_error *error) {
    PS_ASSERT(needed >= 0);
    const ps_recording *info = &(*reader)->info;
    if (info->n_positions >= needed) return PS_OK;
    ps_reader *r = calloc(1, sizeof *r);
    if (!r) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a reader");
    *r = (ps_reader){.ops = &partial_ops, .info = *info, .path = (*reader)->path, .inner = *reader};
    r->info.n_positions = needed;
    r->info.n_missing += needed - info->n_positions;
    ps_reader_note(*reader, "warning: %" PRId64 " of %" PRId64 " patterns are missing at the end; they are filled with the last one",
                   needed - info->n_positions, needed);
    *reader = r;
    return PS_OK;
}
