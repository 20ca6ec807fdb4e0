#include "reconstruct/sample_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "reconstruct/mean_pattern.h"

enum { SAMPLE_BYTES = 64 << 20, MOST_PIECES = 64 };

static ps_code allocate(const ps_reader *reader, ps_pattern_sample *sample, ps_error *error) {
    sample->detector_rows = reader->info.detector_rows;
    sample->detector_columns = reader->info.detector_columns;
    size_t n_pixels = (size_t)(sample->detector_rows * sample->detector_columns);
    sample->mean = calloc(n_pixels, sizeof *sample->mean);
    sample->n_marked = calloc(n_pixels, sizeof *sample->n_marked);
    return sample->mean && sample->n_marked ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a mean pattern");
}

/* Positions [begin, end) of the recording belong to piece `at` of n_pieces; the first `length` of them are read. */
static int64_t piece_begin(int64_t n_positions, int64_t n_pieces, int64_t at) {
    return n_positions / n_pieces * at + n_positions % n_pieces * at / n_pieces;
}

static ps_code read_pieces(ps_reader *reader, ps_pattern_sample *sample, ps_error *error) {
    ps_code code = PS_OK;
    int64_t n_pixels = sample->detector_rows * sample->detector_columns, all = reader->info.n_positions;
    size_t pattern_bytes = (size_t)n_pixels * ps_dtype_bytes(reader->info.dtype);
    int64_t wanted = (int64_t)(SAMPLE_BYTES / pattern_bytes);
    wanted = wanted < 1 ? 1 : wanted > all ? all : wanted;
    int64_t n_pieces = wanted < MOST_PIECES ? wanted : MOST_PIECES, length = (wanted + n_pieces - 1) / n_pieces;
    void *counts = malloc((size_t)length * pattern_bytes);
    PS_GO_ALLOC(error, counts);
    for (int64_t i = 0; i < n_pieces; i++) {
        int64_t begin = piece_begin(all, n_pieces, i), end = piece_begin(all, n_pieces, i + 1);
        int64_t n = end - begin < length ? end - begin : length;
        PS_GO(ps_reader_read(reader, begin, n, counts, error));
        ps_pattern_add(reader->info.dtype, counts, n, n_pixels, sample->mean, sample->n_marked);
        sample->n_positions += n;
    }
    ps_pattern_mean(sample->n_positions, n_pixels, sample->n_marked, sample->mean);
done:
    free(counts);
    return code;
}

ps_code ps_sample_pattern(const char *source, const ps_reader_options *options, ps_pattern_sample *sample, ps_error *error) {
    ps_code code = PS_OK;
    ps_reader *reader = NULL;
    *sample = (ps_pattern_sample){0};
    PS_GO(ps_reader_open(source, options, &reader, error));
    PS_GO(allocate(reader, sample, error));
    PS_GO(read_pieces(reader, sample, error));
done:
    ps_reader_close(reader);
    return code;
}

void ps_pattern_sample_free(ps_pattern_sample *sample) {
    free(sample->mean);
    free(sample->n_marked);
    *sample = (ps_pattern_sample){0};
}
