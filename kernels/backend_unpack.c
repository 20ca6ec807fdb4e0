/* Packed patterns between callers and backends: checks, order, and the default, which unpacks on the host. */
#include "kernels/backend_unpack.h"

#include <stdlib.h>

#include "core/busy.h"
#include "kernels/backend_check.h"

struct ps_unpack_state {
    uint8_t *is_packed; /* [n_positions] put packed */
    /* of the default alone */
    ps_unpack_rules rules;
    uint8_t *looks;         /* what rules.looks points to */
    uint8_t *refused;       /* [n_positions] */
    ps_unpack_tally *tally; /* [n_positions] */
    uint8_t *elements;      /* one pattern */
};

static void free_state(struct ps_unpack_state *state) {
    if (!state) return;
    free(state->is_packed);
    free(state->looks);
    free(state->refused);
    free(state->tally);
    free(state->elements);
    free(state);
}

bool ps_backend_unpacks(const ps_backend_ops *ops, ps_packing packing, ps_dtype dtype, int64_t n_pixels) {
    return ops->unpack && ps_unpack_takes(dtype, n_pixels) && ops->unpack->takes(packing, dtype, n_pixels);
}

static bool allocate_default(const ps_frame *frame, const ps_unpack_rules *rules, struct ps_unpack_state *state) {
    size_t positions = (size_t)frame->system->n_positions, pixels = (size_t)frame->system->n_pixels;
    state->refused = calloc(positions, 1);
    state->tally = calloc(positions, sizeof *state->tally);
    state->elements = malloc(pixels * ps_dtype_bytes(frame->dtype));
    if (rules) state->rules = *rules;
    if (!state->rules.looks) return state->refused && state->tally && state->elements;
    state->looks = malloc(pixels);
    if (state->looks) memcpy(state->looks, rules->looks, pixels);
    state->rules.looks = state->looks;
    return state->refused && state->tally && state->elements && state->looks;
}

static ps_code check_rules(const ps_frame *frame, const ps_unpack_rules *rules, ps_error *error) {
    if (!ps_unpack_takes(frame->dtype, frame->system->n_pixels))
        return PS_FAIL(error, PS_E_ARGUMENT, "patterns of %lld pixels of %s are not unpacked here", (long long)frame->system->n_pixels,
                       ps_dtype_name(frame->dtype));
    uint32_t invalid_value = ps_dtype_invalid_value(frame->dtype);
    if (rules && rules->limit > invalid_value)
        return PS_FAIL(error, PS_E_ARGUMENT, "a limit of %u for counts of %s, expected at most %u", rules->limit,
                       ps_dtype_name(frame->dtype), invalid_value);
    return PS_OK;
}

ps_code ps_frame_unpack_begin(ps_frame *frame, const ps_unpack_rules *rules, ps_error *error) {
    PS_CHECK_POINTER(frame);
    if (frame->unpacking) return PS_FAIL(error, PS_E_ARGUMENT, "unpacking began twice");
    PS_TRY(check_rules(frame, rules, error));
    ps_code code = PS_OK;
    const ps_unpack_ops *ops = frame->ops->unpack;
    struct ps_unpack_state *state = calloc(1, sizeof *state);
    PS_GO_ALLOC(error, state);
    state->is_packed = calloc((size_t)frame->system->n_positions, 1);
    PS_GO_ALLOC(error, state->is_packed);
    if (ops)
        PS_GO(ops->begin(frame, rules, error));
    else
        PS_GO_ALLOC(error, allocate_default(frame, rules, state));
    frame->unpacking = state;
    state = NULL;
done:
    free_state(state);
    return code;
}

static ps_code check_unpacking(const ps_frame *frame, ps_error *error) {
    return frame->unpacking ? PS_OK : PS_FAIL(error, PS_E_ARGUMENT, "packed patterns before ps_frame_unpack_begin");
}

ps_code ps_frame_unpack_room(ps_frame *frame, uint8_t **room, size_t *bytes, ps_error *error) {
    PS_CHECK_POINTER(frame);
    PS_CHECK_POINTER(room);
    PS_CHECK_POINTER(bytes);
    *room = NULL;
    *bytes = 0;
    PS_TRY(check_unpacking(frame, error));
    return frame->ops->unpack ? frame->ops->unpack->room(frame, room, bytes, error) : PS_OK;
}

static ps_code check_packed(const ps_packed *packed, ps_error *error) {
    PS_CHECK_POINTER(packed->bytes);
    PS_CHECK_POINTER(packed->patterns);
    if (packed->packing != PS_PACKED_PLAIN && packed->packing != PS_PACKED_BSLZ4 && packed->packing != PS_PACKED_LZ4)
        return PS_FAIL(error, PS_E_ARGUMENT, "unknown packing %d", (int)packed->packing);
    if (packed->n_bytes > UINT32_MAX)
        return PS_FAIL(error, PS_E_ARGUMENT, "%zu packed bytes at once, expected below 4 GiB", packed->n_bytes);
    for (int64_t i = 0; i < packed->n_positions; i++) {
        const ps_packed_pattern *p = &packed->patterns[i];
        if (p->offset > packed->n_bytes || p->bytes > packed->n_bytes - p->offset)
            return PS_FAIL(error, PS_E_ARGUMENT, "packed pattern %lld is bytes %u to %llu of %zu", (long long)i, p->offset,
                           (unsigned long long)p->offset + p->bytes, packed->n_bytes);
    }
    return PS_OK;
}

static ps_code put_default(ps_frame *frame, const ps_packed *packed, ps_error *error) {
    struct ps_unpack_state *state = frame->unpacking;
    for (int64_t i = 0; i < packed->n_positions; i++) {
        const ps_packed_pattern *p = &packed->patterns[i];
        int64_t position = packed->first_position + i;
        bool good = ps_unpack_pattern(packed->packing, frame->dtype, frame->system->n_pixels, &state->rules, packed->bytes + p->offset,
                                      p->bytes, state->elements, &state->tally[position]);
        state->refused[position] = !good;
        if (good) PS_TRY(frame->ops->frame_upload(frame, position, 1, state->elements, error));
    }
    return PS_OK;
}

ps_code ps_frame_unpack_put(ps_frame *frame, const ps_packed *packed, ps_error *error) {
    PS_CHECK_POINTER(frame);
    PS_CHECK_POINTER(packed);
    PS_TRY(check_unpacking(frame, error));
    PS_TRY(ps_check_positions(frame, packed->first_position, packed->n_positions, error));
    if (packed->n_positions == 0) return frame->ops->unpack ? frame->ops->unpack->put(frame, packed, error) : PS_OK;
    PS_TRY(check_packed(packed, error));
    memset(frame->is_put + packed->first_position, 1, (size_t)packed->n_positions);
    memset(frame->unpacking->is_packed + packed->first_position, 1, (size_t)packed->n_positions);
    frame->n_put += packed->n_positions;
    if (!frame->ops->unpack) return put_default(frame, packed, error);
    return PS_BUSY(PS_RESOURCE_BUS, frame->ops->unpack->put(frame, packed, error));
}

/* Refused positions are to be put again. */
static int64_t take_back(ps_frame *frame, uint8_t *refused) {
    int64_t n = 0;
    for (int64_t i = 0; i < frame->system->n_positions; i++) {
        refused[i] = refused[i] && frame->unpacking->is_packed[i];
        if (!refused[i]) continue;
        frame->is_put[i] = 0;
        n++;
    }
    frame->n_put -= n;
    return n;
}

ps_code ps_frame_unpack_end(ps_frame *frame, uint8_t *refused, int64_t *n_refused, ps_unpack_tally *tally, ps_error *error) {
    PS_CHECK_POINTER(frame);
    PS_CHECK_POINTER(refused);
    PS_CHECK_POINTER(n_refused);
    PS_TRY(check_unpacking(frame, error));
    struct ps_unpack_state *state = frame->unpacking;
    size_t n = (size_t)frame->system->n_positions;
    ps_code code = PS_OK;
    if (frame->ops->unpack)
        code = PS_BUSY(PS_RESOURCE_BUS, frame->ops->unpack->end(frame, refused, tally, error));
    else {
        memcpy(refused, state->refused, n);
        if (tally) memcpy(tally, state->tally, n * sizeof *tally);
    }
    if (code == PS_OK) *n_refused = take_back(frame, refused);
    free_state(state);
    frame->unpacking = NULL;
    return code;
}

void ps_unpack_abandon(ps_frame *frame) {
    if (!frame->unpacking) return;
    if (frame->ops->unpack) frame->ops->unpack->end(frame, NULL, NULL, NULL);
    free_state(frame->unpacking);
    frame->unpacking = NULL;
}
