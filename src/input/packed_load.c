#include "input/packed_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "input/open.h"

/* What one recording's loading holds. */
typedef struct {
    const ps_packed_request *request;
    ps_frame *frame;
    ps_reader *reader;
    ps_packed_recording *recording;
    int64_t n_positions, n_pixels;
    uint8_t *looks, *refused, *notes;
    ps_unpack_tally *packed_tally;
    void *pattern;
    int32_t *bad;
    int64_t n_bad;
} loading;

static void release(loading *l) {
    ps_packed_close(l->recording);
    ps_reader_close(l->reader);
    void *arrays[] = {l->looks, l->refused, l->notes, l->packed_tally, l->pattern, l->bad};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

static ps_code allocate(loading *l, ps_error *error) {
    size_t positions = (size_t)l->n_positions, pixels = (size_t)l->n_pixels;
    l->looks = malloc(pixels);
    l->refused = malloc(positions);
    l->notes = calloc(positions, 1);
    l->packed_tally = malloc(positions * sizeof *l->packed_tally);
    l->pattern = malloc(pixels * ps_dtype_bytes(l->request->shape->dtype));
    l->bad = malloc((pixels + 1) * sizeof *l->bad);
    if (!l->looks || !l->refused || !l->notes || !l->packed_tally || !l->pattern || !l->bad)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory to read packed patterns");
    for (size_t i = 0; l->request->bad && i < pixels; i++)
        if (l->request->bad[i]) l->bad[l->n_bad++] = (int32_t)i;
    ps_patterns_looks(l->n_pixels, l->request->bad, l->looks);
    return PS_OK;
}

/* *usable false: read as counts. */
static ps_code open_recording(loading *l, bool *usable, char why[PS_PACKED_WHY], ps_error *error) {
    const ps_packed_request *r = l->request;
    *usable = ps_unpack_takes(r->shape->dtype, l->n_pixels) && ps_backend_unpacks(r->ops, PS_PACKED_BSLZ4, r->shape->dtype, l->n_pixels);
    if (!*usable) return snprintf(why, PS_PACKED_WHY, "the backend does not unpack"), PS_OK;
    PS_TRY(ps_reader_open(r->source, &r->shape->options, &l->reader, error));
    PS_TRY(ps_loader_check_shape(r->shape, l->reader, error));
    PS_TRY(ps_packed_open(l->reader, &l->recording, why, error));
    *usable = l->recording && ps_backend_unpacks(r->ops, ps_packed_packing(l->recording), r->shape->dtype, l->n_pixels);
    return PS_OK;
}

static ps_code look_at_counts(loading *l, int64_t position, ps_pattern_tally *tally, ps_error *error) {
    PS_TRY(ps_reader_read(l->reader, position, 1, l->pattern, error));
    ps_patterns_tally(l->request->shape->dtype, l->pattern, 1, l->n_pixels, l->bad, l->n_bad, tally);
    return PS_OK;
}

/* A pattern that the device did not take, through the reader, which says what is wrong with it. */
static ps_code put_counts(loading *l, int64_t position, ps_pattern_tally *tally, ps_error *error) {
    PS_TRY(look_at_counts(l, position, tally, error));
    return ps_frame_upload(l->frame, position, 1, l->pattern, error);
}

/* A pattern of one value throughout has all pixels lit, and is even or packs well: rare enough to be looked at as counts. */
static bool may_be_flat(const loading *l, int64_t position) {
    size_t pattern_bytes = (size_t)l->n_pixels * ps_dtype_bytes(l->request->shape->dtype);
    const ps_unpack_tally *t = &l->packed_tally[position];
    bool may_be = l->notes[position] & PS_PACKED_EVEN || ps_packed_is_short(l->recording, position, pattern_bytes);
    return may_be && t->lit[1] == l->n_pixels - l->n_bad;
}

static ps_code take_tallies(loading *l, ps_pattern_tally *tally, ps_loader_findings *found, ps_error *error) {
    int64_t n_limited = 0;
    for (int64_t i = 0; i < l->n_positions; i++) {
        if (l->refused[i] || l->notes[i] & PS_PACKED_TOO_LARGE) {
            PS_TRY(put_counts(l, i, &tally[i], error));
            continue;
        }
        if (may_be_flat(l, i)) {
            PS_TRY(look_at_counts(l, i, &tally[i], error));
        } else
            tally[i] = ps_patterns_choose(l->packed_tally[i].lit, l->packed_tally[i].marked, l->n_pixels);
        n_limited += l->packed_tally[i].n_limited;
    }
    *found = (ps_loader_findings){
        .invalid = ps_reader_invalid(l->reader), .n_missing = l->reader->info.n_missing, .n_pixels = l->n_pixels - l->n_bad};
    found->invalid.n_saturated += n_limited;
    return PS_OK;
}

static ps_code put_recording(loading *l, ps_pattern_tally *tally, ps_packed_outcome *outcome, ps_error *error) {
    ps_unpack_rules rules = {
        .limit = ps_packed_limit(l->recording), .looks = l->looks, .big_endian = ps_packed_is_big_endian(l->recording)};
    ps_error reason = {0};
    int64_t n_refused = 0;
    PS_TRY(ps_frame_unpack_begin(l->frame, &rules, error));
    ps_code code = ps_packed_put(l->recording, l->frame, l->request->n_threads, &l->request->watch, l->looks, l->notes, &reason);
    outcome->is_taken = code != PS_E_INPUT && code != PS_E_IO;
    outcome->is_packed = !ps_packed_is_left(l->recording);
    if (!outcome->is_taken) return snprintf(outcome->why, sizeof outcome->why, "%.150s", reason.text), PS_OK;
    if (code != PS_OK) return PS_FAIL(error, code, "%s", reason.text);
    PS_TRY(ps_frame_unpack_end(l->frame, l->refused, &n_refused, l->packed_tally, error));
    return take_tallies(l, tally, &outcome->found, error);
}

ps_code ps_packed_load(const ps_packed_request *request, ps_frame *frame, ps_pattern_tally *tally, ps_packed_outcome *outcome,
                       ps_error *error) {
    const ps_loader_shape *shape = request->shape;
    loading l = {
        .request = request, .frame = frame, .n_positions = shape->n_positions, .n_pixels = shape->detector_rows * shape->detector_columns};
    double begin_s = ps_seconds();
    ps_code code = PS_OK;
    bool usable = false;
    *outcome = (ps_packed_outcome){0};
    PS_GO(open_recording(&l, &usable, outcome->why, error));
    if (!usable) goto done;
    outcome->is_packed = true;
    PS_GO(allocate(&l, error));
    PS_GO(put_recording(&l, tally, outcome, error));
done:
    release(&l);
    outcome->seconds = ps_seconds() - begin_s;
    return code;
}
