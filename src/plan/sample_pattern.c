#include "plan/sample_pattern.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "input/odd_patterns.h"
#include "input/open.h"
#include "plan/mean_pattern.h"

enum { SAMPLE_BYTES = 64 << 20, MOST_PIECES = 64 };

static ps_code allocate(const ps_reader *reader, ps_pattern_sample *sample, ps_error *error) {
    sample->detector_rows = reader->info.detector_rows;
    sample->detector_columns = reader->info.detector_columns;
    size_t n_pixels = (size_t)(sample->detector_rows * sample->detector_columns);
    sample->mean = calloc(n_pixels, sizeof *sample->mean);
    sample->n_marked = calloc(n_pixels, sizeof *sample->n_marked);
    return sample->mean && sample->n_marked ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a mean pattern");
}

/* Positions [begin, end) of the recording belong to piece `at` of n_pieces; the first ones of them are read. */
static int64_t piece_begin(int64_t n_positions, int64_t n_pieces, int64_t at) {
    return n_positions / n_pieces * at + n_positions % n_pieces * at / n_pieces;
}

/* Takes a pattern that turned out odd out of the sums again. */
static ps_code take_out(ps_reader *reader, int64_t position, void *pattern, double *sum, int64_t *marked, ps_pattern_sample *sample,
                        ps_error *error) {
    int64_t n_pixels = sample->detector_rows * sample->detector_columns;
    memset(sum, 0, (size_t)n_pixels * sizeof *sum);
    memset(marked, 0, (size_t)n_pixels * sizeof *marked);
    PS_TRY(ps_reader_read(reader, position, 1, pattern, error));
    ps_pattern_add(reader->info.dtype, pattern, 1, n_pixels, sum, marked);
    for (int64_t k = 0; k < n_pixels; k++) {
        sample->mean[k] -= sum[k];
        sample->n_marked[k] -= marked[k];
    }
    sample->n_positions--;
    return PS_OK;
}

/* Which positions a sample consists of. */
typedef struct {
    bool scattered; /* pieces lie anywhere in their parts of the recording, not at the beginning */
    int64_t all, n_pieces, length, n;
    int64_t *where;          /* [n] */
    ps_pattern_tally *tally; /* [n] */
    uint8_t *kind;           /* [n] */
} piece_list;

static ps_code leave_out_odd(ps_reader *reader, const piece_list *list, int64_t n_bad, ps_pattern_sample *sample, ps_error *error) {
    ps_code code = PS_OK;
    size_t n_pixels = (size_t)(sample->detector_rows * sample->detector_columns);
    double *sum = malloc(n_pixels * sizeof *sum);
    int64_t *marked = malloc(n_pixels * sizeof *marked);
    void *pattern = malloc(n_pixels * ps_dtype_bytes(reader->info.dtype));
    PS_GO_ALLOC(error, sum && marked && pattern);
    PS_GO(ps_patterns_judge(list->tally, list->n, (int64_t)n_pixels - n_bad, list->kind, &sample->n_empty, &sample->n_marked_patterns,
                            error));
    for (int64_t i = 0; i < list->n; i++)
        if (list->kind[i] != PS_PATTERN_GOOD) PS_GO(take_out(reader, list->where[i], pattern, sum, marked, sample, error));
done:
    free(sum);
    free(marked);
    free(pattern);
    return code;
}

static ps_code plan_pieces(const ps_reader *reader, size_t most_bytes, size_t pattern_bytes, piece_list *list, ps_error *error) {
    int64_t wanted = (int64_t)(most_bytes / pattern_bytes);
    list->all = reader->info.n_positions;
    wanted = wanted < 1 ? 1 : wanted > list->all ? list->all : wanted;
    list->n_pieces = wanted < MOST_PIECES ? wanted : MOST_PIECES;
    list->length = (wanted + list->n_pieces - 1) / list->n_pieces;
    size_t room = (size_t)(list->n_pieces * list->length);
    list->where = malloc(room * sizeof *list->where);
    list->tally = malloc(room * sizeof *list->tally);
    list->kind = malloc(room);
    return list->where && list->tally && list->kind ? PS_OK
                                                    : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a sample of patterns");
}

/* Where in its part of the recording a piece begins; so that pieces do not all come from one column of the scan. */
static int64_t scatter(const piece_list *list, int64_t at, int64_t room) {
    uint64_t mixed = ((uint64_t)at + 1) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return list->scattered ? (int64_t)((mixed >> 33) % (uint64_t)(room + 1)) : 0;
}

static ps_code read_pieces(ps_reader *reader, piece_list *list, const int32_t *bad, int64_t n_bad, ps_pattern_sample *sample,
                           ps_error *error) {
    ps_code code = PS_OK;
    int64_t n_pixels = sample->detector_rows * sample->detector_columns;
    void *counts = malloc((size_t)(list->length * n_pixels) * ps_dtype_bytes(reader->info.dtype));
    PS_GO_ALLOC(error, counts);
    for (int64_t i = 0; i < list->n_pieces; i++) {
        int64_t begin = piece_begin(list->all, list->n_pieces, i), end = piece_begin(list->all, list->n_pieces, i + 1);
        int64_t n = end - begin < list->length ? end - begin : list->length;
        begin += scatter(list, i, end - begin - n);
        PS_GO(ps_reader_read(reader, begin, n, counts, error));
        ps_pattern_add(reader->info.dtype, counts, n, n_pixels, sample->mean, sample->n_marked);
        ps_patterns_tally(reader->info.dtype, counts, n, n_pixels, bad, n_bad, list->tally + list->n);
        for (int64_t k = 0; k < n; k++) list->where[list->n++] = begin + k;
    }
    sample->n_positions = list->n;
done:
    free(counts);
    return code;
}

static ps_code list_bad(const ps_pattern_sample *sample, const uint8_t *bad, int32_t **pixels, int64_t *n_bad, ps_error *error) {
    int64_t n_pixels = sample->detector_rows * sample->detector_columns;
    *n_bad = 0;
    *pixels = malloc((size_t)n_pixels * sizeof **pixels);
    if (!*pixels) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a list of bad pixels");
    for (int64_t i = 0; bad && i < n_pixels; i++)
        if (bad[i]) (*pixels)[(*n_bad)++] = (int32_t)i;
    return PS_OK;
}

static ps_code take_sample(const char *source, const ps_reader_options *options, size_t most_bytes, bool scattered, const uint8_t *bad,
                           ps_pattern_sample *sample, ps_error *error) {
    ps_code code = PS_OK;
    ps_reader *reader = NULL;
    piece_list list = {.scattered = scattered};
    int32_t *pixels = NULL;
    int64_t n_bad = 0;
    *sample = (ps_pattern_sample){0};
    PS_GO(ps_reader_open(source, options, &reader, error));
    PS_GO(allocate(reader, sample, error));
    int64_t n_pixels = sample->detector_rows * sample->detector_columns;
    PS_GO(list_bad(sample, bad, &pixels, &n_bad, error));
    PS_GO(plan_pieces(reader, most_bytes, (size_t)n_pixels * ps_dtype_bytes(reader->info.dtype), &list, error));
    PS_GO(read_pieces(reader, &list, pixels, n_bad, sample, error));
    PS_GO(leave_out_odd(reader, &list, n_bad, sample, error));
    ps_pattern_mean(sample->n_positions, n_pixels, sample->n_marked, sample->mean);
done:
    ps_reader_close(reader);
    free(pixels);
    free(list.where);
    free(list.tally);
    free(list.kind);
    return code;
}

ps_code ps_sample_pattern_of(const char *source, const ps_reader_options *options, size_t most_bytes, const uint8_t *bad,
                             ps_pattern_sample *sample, ps_error *error) {
    return take_sample(source, options, most_bytes, true, bad, sample, error);
}

ps_code ps_sample_pattern(const char *source, const ps_reader_options *options, ps_pattern_sample *sample, ps_error *error) {
    return take_sample(source, options, SAMPLE_BYTES, false, NULL, sample, error);
}

void ps_pattern_sample_free(ps_pattern_sample *sample) {
    free(sample->mean);
    free(sample->n_marked);
    *sample = (ps_pattern_sample){0};
}
