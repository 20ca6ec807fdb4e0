#include "input/adapters/clean.h"

#include <math.h>
#include <stdlib.h>

#include "core/assert.h"
#include "core/busy.h"

typedef struct {
    ps_reader base;
    ps_invalid_counts found;
} clean_reader;

/* The lowest integer count that is saturated; one above the invalid-count value when there is none. */
static uint64_t integer_limit(double saturation) {
    if (!(saturation > 0) || saturation > UINT32_MAX) return UINT64_C(1) << 32;
    return (uint64_t)ceil(saturation);
}

#define CLEAN_UNSIGNED(type, invalid_value)                                                    \
    {                                                                                          \
        type *values = counts;                                                                 \
        uint64_t limit = integer_limit(saturation);                                            \
        if (limit >= (invalid_value)) return;                                                  \
        _Pragma("omp parallel for reduction(+ : saturated)") for (int64_t i = 0; i < n; i++) { \
            bool is = values[i] >= limit && values[i] != (invalid_value);                      \
            saturated += is;                                                                   \
            values[i] = is ? (invalid_value) : values[i];                                      \
        }                                                                                      \
    }

#define CLEAN_SIGNED(type, unsigned_type, invalid_value)                                                 \
    {                                                                                                    \
        type *values = counts;                                                                           \
        uint64_t limit = integer_limit(saturation);                                                      \
        _Pragma("omp parallel for reduction(+ : saturated, negative)") for (int64_t i = 0; i < n; i++) { \
            bool below = values[i] < 0, above = !below && (uint64_t)values[i] >= limit;                  \
            negative += below;                                                                           \
            saturated += above;                                                                          \
            ((unsigned_type *)counts)[i] = below || above ? (invalid_value) : (unsigned_type)values[i];  \
        }                                                                                                \
    }

#define CLEAN_FLOATING(type)                                                                              \
    {                                                                                                     \
        type *values = counts;                                                                            \
        _Pragma("omp parallel for reduction(+ : saturated, nonfinite)") for (int64_t i = 0; i < n; i++) { \
            bool finite = isfinite(values[i]), above = finite && values[i] >= saturation;                 \
            nonfinite += !finite;                                                                         \
            saturated += above;                                                                           \
            if (!finite || above) values[i] = (type)NAN;                                                  \
        }                                                                                                 \
    }

void ps_counts_clean(void *counts, int64_t n, ps_dtype dtype, double saturation, ps_invalid_counts *found) {
    PS_ASSERT(n >= 0 && (counts || n == 0));
    int64_t saturated = 0, negative = 0, nonfinite = 0;
    switch (dtype) {
    case PS_U8: CLEAN_UNSIGNED(uint8_t, UINT8_MAX) break;
    case PS_U16: CLEAN_UNSIGNED(uint16_t, UINT16_MAX) break;
    case PS_U32: CLEAN_UNSIGNED(uint32_t, UINT32_MAX) break;
    case PS_I8: CLEAN_SIGNED(int8_t, uint8_t, UINT8_MAX) break;
    case PS_I16: CLEAN_SIGNED(int16_t, uint16_t, UINT16_MAX) break;
    case PS_I32: CLEAN_SIGNED(int32_t, uint32_t, UINT32_MAX) break;
    case PS_F32: CLEAN_FLOATING(float) break;
    default: CLEAN_FLOATING(double)
    }
    found->n_saturated += saturated;
    found->n_negative += negative;
    found->n_nonfinite += nonfinite;
}

static void close_reader(ps_reader *reader) {
    free(reader);
}

static ps_code read_counts(ps_reader *reader, int64_t first, int64_t n, void *counts, ps_error *error) {
    clean_reader *r = (clean_reader *)reader;
    const ps_recording *info = &r->base.inner->info;
    PS_TRY(ps_reader_read(r->base.inner, first, n, counts, error));
    ps_busy_begin(PS_RESOURCE_DECODE);
    ps_invalid_values_clean(counts, n, info->detector_rows * info->detector_columns, info, &r->found);
    ps_counts_clean(counts, n * info->detector_rows * info->detector_columns, info->dtype, info->saturation, &r->found);
    ps_busy_end(PS_RESOURCE_DECODE);
    return PS_OK;
}

static ps_invalid_counts count_invalid(const ps_reader *reader) {
    return ((const clean_reader *)reader)->found;
}

static const ps_reader_ops clean_ops = {.name = "clean", .close = close_reader, .read = read_counts, .invalid = count_invalid};

/* Whether other values than the type's own may mean that there is no count: a narrower depth's all ones, or those of 16 bits in a copy. */
static bool has_other_markers(const ps_recording *info) {
    bool narrower = info->bit_depth > 0 && info->bit_depth < 8 * (int)ps_dtype_bytes(info->dtype);
    bool may_be_copied = info->dtype == PS_U32 && info->bit_depth == 0;
    return narrower || may_be_copied;
}

bool ps_clean_is_limit(const ps_reader *reader, uint32_t *limit) {
    const ps_recording *info = &reader->info;
    if (reader->ops != &clean_ops || reader->inner->info.dtype != info->dtype || ps_dtype_invalid_value(info->dtype) == 0) return false;
    uint64_t found = integer_limit(reader->inner->info.saturation);
    *limit = (uint32_t)found;
    return !has_other_markers(info) && found < ps_dtype_invalid_value(info->dtype);
}

static ps_dtype unsigned_of(ps_dtype dtype) {
    switch (dtype) {
    case PS_I8: return PS_U8;
    case PS_I16: return PS_U16;
    case PS_I32: return PS_U32;
    default: return dtype;
    }
}

ps_code ps_clean_wrap(ps_reader **reader, ps_error *error) {
    const ps_recording *info = &(*reader)->info;
    bool is_unsigned = ps_dtype_invalid_value(info->dtype) != 0;
    if (is_unsigned && !has_other_markers(info) && integer_limit(info->saturation) >= ps_dtype_invalid_value(info->dtype)) return PS_OK;
    clean_reader *r = calloc(1, sizeof *r);
    if (!r) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a reader");
    r->base = (ps_reader){.ops = &clean_ops, .info = *info, .path = (*reader)->path, .inner = *reader};
    r->base.info.dtype = unsigned_of(info->dtype);
    *reader = &r->base;
    return PS_OK;
}
