#include <math.h>

#include "core/assert.h"

#include "input/adapters/clean.h"

enum { SMALLEST_DEPTH = 8, SIXTEEN_ONES = 65535 };

/* All ones of the stated bit depth where a type of so many bits holds more; 0: none. */
static uint64_t depth_invalid_value(const ps_recording *info, int type_bits) {
    int depth = info->bit_depth;
    return depth >= SMALLEST_DEPTH && depth < type_bits ? (UINT64_C(1) << depth) - 1 : 0;
}

/* largest: a invalid-count value too; 0: none. What is marked becomes -1: all ones of an unsigned type; negative, and so no count, in
 * others. The number of values that were marked. */
#define DEFINE_MARK_INTEGERS(name, type)                                                                \
    static int64_t name(type *values, int64_t n, uint64_t ones, type largest) {                         \
        int64_t marked = 0;                                                                             \
        if (ones == 0 && largest == 0) return 0;                                                        \
        _Pragma("omp parallel for reduction(+ : marked)") for (int64_t i = 0; i < n; i++) {             \
            bool none = (ones > 0 && values[i] == (type)ones) || (largest > 0 && values[i] == largest); \
            marked += none;                                                                             \
            values[i] = none ? (type)-1 : values[i];                                                    \
        }                                                                                               \
        return marked;                                                                                  \
    }
DEFINE_MARK_INTEGERS(mark_u16, uint16_t)
DEFINE_MARK_INTEGERS(mark_u32, uint32_t)
DEFINE_MARK_INTEGERS(mark_i8, int8_t)
DEFINE_MARK_INTEGERS(mark_i16, int16_t)
DEFINE_MARK_INTEGERS(mark_i32, int32_t)

/* What invalid-count values of 31, 32, 63 and 64 ones become in a floating type. */
#define IS_WIDE_MARKER(value, type) \
    ((value) >= (type)INT32_MAX &&  \
     ((value) == (type)INT32_MAX || (value) == (type)UINT32_MAX || (value) == (type)INT64_MAX || (value) == (type)UINT64_MAX))

/* A pattern of a type wider than 16 bits, without a stated depth, in which 65535 stands alone: all else is below half of it, or the
 * type's own invalid-count value. The number of values that were marked. */
#define DEFINE_MARK_ALONE(name, type, largest)                                                                   \
    static int64_t name(type *counts, int64_t n_frames, int64_t pixels) {                                        \
        int64_t marked = 0;                                                                                      \
        _Pragma("omp parallel for reduction(+ : marked)") for (int64_t f = 0; f < n_frames; f++) {               \
            type *values = counts + f * pixels;                                                                  \
            int64_t n_ones = 0, n_others = 0;                                                                    \
            for (int64_t i = 0; i < pixels; i++) {                                                               \
                n_ones += values[i] == SIXTEEN_ONES;                                                             \
                n_others += values[i] > SIXTEEN_ONES / 2 && values[i] != SIXTEEN_ONES && values[i] != (largest); \
            }                                                                                                    \
            if (n_ones == 0 || n_others > 0) continue;                                                           \
            for (int64_t i = 0; i < pixels; i++) values[i] = values[i] == SIXTEEN_ONES ? (type)-1 : values[i];   \
            marked += n_ones;                                                                                    \
        }                                                                                                        \
        return marked;                                                                                           \
    }
DEFINE_MARK_ALONE(mark_alone_u32, uint32_t, UINT32_MAX)
DEFINE_MARK_ALONE(mark_alone_i32, int32_t, INT32_MAX)

/* stands_alone: whether 65535 is there, and all else in the pattern is below half of it. is_copy: whether the pattern is one of integers,
 * of which -1, an invalid-count value of theirs, is the only negative number. mark: the number of values that were marked; *negative: of
 * int64, counted and marked too. */
#define DEFINE_MARK_FLOATING(mark, stands_alone, is_copy, type)                                                                  \
    static bool stands_alone(const type *frame, int64_t pixels) {                                                                \
        bool there = false, others = false;                                                                                      \
        for (int64_t i = 0; i < pixels; i++) {                                                                                   \
            bool is = frame[i] == SIXTEEN_ONES;                                                                                  \
            there |= is;                                                                                                         \
            others |= !is && isfinite(frame[i]) && 2 * frame[i] >= SIXTEEN_ONES && !IS_WIDE_MARKER(frame[i], type);              \
        }                                                                                                                        \
        return there && !others;                                                                                                 \
    }                                                                                                                            \
    static bool is_copy(const type *frame, int64_t pixels) {                                                                     \
        bool there = false;                                                                                                      \
        for (int64_t i = 0; i < pixels; i++) {                                                                                   \
            bool is_whole = !isfinite(frame[i]) || frame[i] == (type)rint((double)frame[i]);                                     \
            if (!is_whole || frame[i] < -1) return false;                                                                        \
            there |= frame[i] == -1;                                                                                             \
        }                                                                                                                        \
        return there;                                                                                                            \
    }                                                                                                                            \
    static int64_t mark(type *frame, int64_t pixels, const ps_recording *info, int64_t *negative) {                              \
        int64_t marked = 0;                                                                                                      \
        uint64_t ones = depth_invalid_value(info, 64);                                                                           \
        if (info->bit_depth == 0 && stands_alone(frame, pixels)) ones = SIXTEEN_ONES;                                            \
        bool minus_one = info->stored != PS_FROM_I64 && is_copy(frame, pixels);                                                  \
        for (int64_t i = 0; i < pixels; i++) {                                                                                   \
            bool below = info->stored == PS_FROM_I64 && frame[i] < 0;                                                            \
            bool none = (ones > 0 && frame[i] == (type)ones) || (minus_one && frame[i] == -1) || IS_WIDE_MARKER(frame[i], type); \
            *negative += below;                                                                                                  \
            marked += none;                                                                                                      \
            if (below || none) frame[i] = (type)NAN;                                                                             \
        }                                                                                                                        \
        return marked;                                                                                                           \
    }
DEFINE_MARK_FLOATING(mark_f32, stands_alone_f32, is_copy_f32, float)
DEFINE_MARK_FLOATING(mark_f64, stands_alone_f64, is_copy_f64, double)

static void clean_integers(void *counts, int64_t n_frames, int64_t pixels, const ps_recording *info, ps_invalid_counts *found) {
    int64_t n = n_frames * pixels;
    if (info->bit_depth == 0 && info->dtype == PS_U32) mark_alone_u32(counts, n_frames, pixels);
    if (info->bit_depth == 0 && info->dtype == PS_I32) found->n_negative -= mark_alone_i32(counts, n_frames, pixels);
    switch (info->dtype) {
    case PS_U16: mark_u16(counts, n, depth_invalid_value(info, 16), 0); break;
    case PS_U32: mark_u32(counts, n, depth_invalid_value(info, 32), 0); break;
    case PS_I8: found->n_negative -= mark_i8(counts, n, 0, INT8_MAX); break;
    case PS_I16: found->n_negative -= mark_i16(counts, n, depth_invalid_value(info, 15), INT16_MAX); break;
    case PS_I32: found->n_negative -= mark_i32(counts, n, depth_invalid_value(info, 31), INT32_MAX); break;
    default: break;
    }
}

static void clean_floating(void *counts, int64_t n_frames, int64_t pixels, const ps_recording *info, ps_invalid_counts *found) {
    int64_t negative = 0, marked = 0;
    bool is_single = info->dtype == PS_F32;
#pragma omp parallel for reduction(+ : negative, marked)
    for (int64_t i = 0; i < n_frames; i++) {
        int64_t below = 0;
        marked += is_single ? mark_f32((float *)counts + i * pixels, pixels, info, &below)
                            : mark_f64((double *)counts + i * pixels, pixels, info, &below);
        negative += below;
    }
    found->n_negative += negative;
    found->n_nonfinite -= marked + negative; /* what ps_counts_clean will take them for */
}

void ps_invalid_values_clean(void *counts, int64_t n_frames, int64_t pixels, const ps_recording *info, ps_invalid_counts *found) {
    PS_ASSERT(n_frames >= 0 && pixels > 0 && (counts || n_frames == 0));
    if (info->dtype == PS_F32 || info->dtype == PS_F64)
        clean_floating(counts, n_frames, pixels, info, found);
    else
        clean_integers(counts, n_frames, pixels, info, found);
}
