#include "tasks/reconstruct/check_bound.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/log.h"
#include "core/text.h"
#include "input/odd_patterns.h"
#include "input/open.h"
#include "plan/memory.h"

enum { SAMPLE_BYTES = 64 << 20, PIECE_BYTES = 8 << 20 };
static const double most_s = 1;

static double larger(double a, double b) {
    return a > b ? a : b;
}

double ps_frame_period(const double *busy_s) {
    double reading = busy_s[PS_RESOURCE_FILE] + busy_s[PS_RESOURCE_DECODE];
    double computing = busy_s[PS_RESOURCE_BUS] + busy_s[PS_RESOURCE_DEVICE] + busy_s[PS_RESOURCE_CORES];
    bool share_cores = busy_s[PS_RESOURCE_CORES] > 0;
    double longest = larger(larger(reading, computing), busy_s[PS_RESOURCE_OUTPUT]);
    return larger(longest, share_cores ? computing + busy_s[PS_RESOURCE_DECODE] : 0);
}

/* ---- reading ---- */

/* Patterns from the first on, piece after piece. *n_read: how many. */
static ps_code read_pieces(ps_reader *reader, const ps_loader_shape *shape, int64_t *n_read, ps_error *error) {
    ps_code code = PS_OK;
    int64_t n_pixels = shape->detector_rows * shape->detector_columns;
    size_t each = (size_t)n_pixels * ps_dtype_bytes(shape->dtype);
    int64_t piece = each < PIECE_BYTES ? (int64_t)(PIECE_BYTES / each) : 1, most = each < SAMPLE_BYTES ? (int64_t)(SAMPLE_BYTES / each) : 1;
    if (most > shape->n_positions) most = shape->n_positions;
    if (piece > most) piece = most;
    const int32_t no_pixel = 0;
    double begin_s = ps_seconds();
    void *counts = malloc((size_t)piece * each);
    ps_pattern_tally *tally = malloc((size_t)piece * sizeof *tally);
    PS_GO_ALLOC(error, counts);
    PS_GO_ALLOC(error, tally);
    for (*n_read = 0; *n_read < most && ps_seconds() - begin_s < most_s;) {
        int64_t n = most - *n_read < piece ? most - *n_read : piece;
        PS_GO(ps_reader_read(reader, *n_read, n, counts, error));
        ps_busy_begin(PS_RESOURCE_DECODE);
        ps_patterns_tally(shape->dtype, counts, n, n_pixels, &no_pixel, 0, tally);
        ps_busy_end(PS_RESOURCE_DECODE);
        *n_read += n;
    }
done:
    free(counts);
    free(tally);
    return code;
}

ps_code ps_check_sample_reading(const ps_check_report *report, double *busy_s, ps_error *error) {
    const ps_loader_shape shape = ps_run_loader_shape(&report->job, &report->run);
    ps_reader *reader = NULL;
    int64_t first = 0, n_read = 0;
    while (first < report->run.series.n_items && report->run.frames[first].unreadable) first++;
    if (first == report->run.series.n_items) return PS_OK;
    PS_TRY(ps_reader_open(report->run.series.items[first].source, &shape.options, &reader, error));
    ps_busy_times begin = ps_busy_read();
    ps_code code = read_pieces(reader, &shape, &n_read, error);
    ps_busy_times sample = ps_busy_since(&begin);
    ps_reader_close(reader);
    PS_TRY(code);
    double more = n_read > 0 ? (double)shape.n_positions / (double)n_read : 0;
    busy_s[PS_RESOURCE_FILE] = more * sample.busy_s[PS_RESOURCE_FILE];
    busy_s[PS_RESOURCE_DECODE] = more * sample.busy_s[PS_RESOURCE_DECODE];
    return PS_OK;
}

/* ---- writing ---- */

/* What is done with a frame's results: written, summed, read back, brought to disk. */
static bool write_sample(int file, const unsigned char *bytes, unsigned char *back, size_t n) {
    size_t done = 0;
    for (ssize_t step = 1; done < n && step > 0; done += (size_t)(step > 0 ? step : 0))
        step = pwrite(file, bytes + done, n - done, (off_t)done);
    uLong sum = crc32_z(0, bytes, n);
    if (done < n || pread(file, back, n, 0) != (ssize_t)n || crc32_z(0, back, n) != sum) return false;
    return fdatasync(file) == 0;
}

static ps_code time_writing(int file, size_t n, double *seconds, ps_error *error) {
    ps_code code = PS_OK;
    unsigned char *bytes = malloc(n), *back = malloc(n);
    PS_GO_ALLOC(error, bytes);
    PS_GO_ALLOC(error, back);
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)(i * 7 + (i >> 8));
    double begin_s = ps_seconds();
    *seconds = write_sample(file, bytes, back, n) ? ps_seconds() - begin_s : 0;
done:
    free(bytes);
    free(back);
    return code;
}

ps_code ps_check_sample_writing(const ps_check_report *report, double *busy_s, ps_error *error) {
    size_t frame = (size_t)(report->output_bytes / report->run.series.n_items), n = frame < SAMPLE_BYTES ? frame : SAMPLE_BYTES;
    double seconds = 0;
    char *folder = ps_path_directory(report->job.output_file);
    if (!folder) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    free(folder);
    if (file < 0 || n == 0) return PS_OK;
    ps_code code = time_writing(file, n, &seconds, error);
    close(file);
    busy_s[PS_RESOURCE_OUTPUT] = seconds * (double)frame / (double)n;
    return code;
}
