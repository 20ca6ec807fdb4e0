#include "bench/measure_decode.h"

#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "hdf5/bslz4.h"
#include "hdf5/util.h"
#include "input/open.h"
#include "input/reader.h"
#include "tasks/simulate/master_writer.h"

enum { SIDE = 192, PIXELS = SIDE * SIDE, QUICK_FRAMES = 256, FRAMES = 2048, DIFFERENT_FRAMES = 16 };

typedef struct {
    char *folder, *master, *data; /* files made */
    int64_t n_frames;
    size_t stored_bytes;
    uint16_t *counts; /* [n_frames, SIDE, SIDE] */
    ps_reader *reader;
    hid_t file, dataset; /* of the data file, for the library */
} decode_case;

/* Pattern number f of the recording: [PIXELS], a mean of 10 with its noise. */
static void make_frame(int64_t f, uint16_t *counts) {
    uint64_t random = (uint64_t)(f % DIFFERENT_FRAMES) + 1;
    for (int i = 0; i < PIXELS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        counts[i] = (uint16_t)__builtin_popcount((uint32_t)(random >> 40) & 0xfffffu);
    }
}

static ps_code write_frames(decode_case *c, ps_master_writer *writer, ps_error *error) {
    size_t room = ps_bslz4_bound(PIXELS, sizeof(uint16_t)), bytes = 0;
    uint8_t *stream = malloc(room);
    ps_code code = PS_OK;
    PS_GO_ALLOC(error, stream);
    for (int64_t f = 0; f < c->n_frames; f++) {
        make_frame(f, c->counts);
        PS_GO(ps_bslz4_encode(c->counts, PIXELS, sizeof(uint16_t), stream, room, &bytes, error));
        PS_GO(ps_master_append(writer, stream, bytes, error));
        c->stored_bytes += bytes;
    }
done:
    free(stream);
    return code;
}

static ps_code write_recording(decode_case *c, ps_error *error) {
    const char *temporary = getenv("TMPDIR");
    ps_master_writer *writer = NULL;
    c->folder = ps_text_format("%s/ptyseries-bench-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!c->folder || !mkdtemp(c->folder)) return PS_FAIL(error, PS_E_IO, "%s: cannot create a folder: %s", c->folder, strerror(errno));
    c->master = ps_text_format("%s/decode_master.h5", c->folder);
    c->data = ps_text_format("%s/decode_data_000001.h5", c->folder);
    if (!c->master || !c->data) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for names");
    const ps_master_spec spec = {.master_path = c->master,
                                 .scan_rows = 1,
                                 .scan_columns = c->n_frames,
                                 .detector_rows = SIDE,
                                 .detector_columns = SIDE,
                                 .dtype = PS_U16,
                                 .positions_per_file = c->n_frames,
                                 .voltage_V = 3e5,
                                 .description = "made-up counts",
                                 .job_text = "",
                                 .science = ""};
    ps_hdf5_lock();
    ps_code code = ps_master_create(&spec, &writer, error);
    if (code == PS_OK && (code = write_frames(c, writer, error)) == PS_OK)
        code = ps_master_finish(writer, error);
    else
        ps_master_abandon(writer);
    ps_hdf5_unlock();
    return code;
}

static ps_code read_own(void *context, ps_error *error) {
    decode_case *c = context;
    return ps_reader_read(c->reader, 0, c->n_frames, c->counts, error);
}

static ps_code read_library(void *context, ps_error *error) {
    decode_case *c = context;
    ps_hdf5_lock();
    bool good = H5Dread(c->dataset, H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, c->counts) >= 0;
    ps_hdf5_unlock();
    return good ? PS_OK : PS_FAIL(error, PS_E_HDF5, "%s: HDF5 cannot read it", c->data);
}

/* Largest difference of what was read from what was written. */
static double worst_difference(const decode_case *c) {
    double worst = 0;
    uint16_t *expected = malloc(PIXELS * sizeof *expected);
    for (int64_t f = 0; expected && f < c->n_frames; f++) {
        make_frame(f, expected);
        for (int i = 0; i < PIXELS; i++) {
            double difference = abs((int)c->counts[f * PIXELS + i] - (int)expected[i]);
            if (difference > worst) worst = difference;
        }
    }
    free(expected);
    return expected ? worst : 1;
}

static ps_code measure(decode_case *c, const ps_bench_options *options, const char *name, ps_code (*read)(void *, ps_error *),
                       ps_bench_report *report, ps_error *error) {
    ps_bench_times times;
    memset(c->counts, 0xff, (size_t)c->n_frames * PIXELS * sizeof *c->counts);
    PS_TRY(read(c, error));
    PS_TRY(ps_bench_add_check(report, name, worst_difference(c), 0, error));
    PS_TRY(ps_bench_repeat(options->repeats, read, c, &times, error));
    ps_bench_row *row = ps_bench_add_row(report, "", name, &times, 0, 0);
    double bytes = (double)c->n_frames * PIXELS * sizeof *c->counts;
    if (row)
        snprintf(row->rate, sizeof row->rate, "%.2f GB/s unpacked, from %.2f GB/s", bytes / row->median_s * 1e-9,
                 (double)c->stored_bytes / row->median_s * 1e-9);
    return PS_OK;
}

static ps_code measure_own(decode_case *c, const ps_bench_options *options, ps_bench_report *report, ps_error *error) {
    int all = omp_get_max_threads(), wanted = options->n_threads > 0 ? options->n_threads : all;
    char name[96];
    PS_TRY(ps_reader_open(c->master, NULL, &c->reader, error));
    snprintf(name, sizeof name, "read bitshuffle-LZ4, %lld patterns 192 x 192 uint16, %d threads", (long long)c->n_frames, wanted);
    omp_set_num_threads(wanted);
    ps_code code = measure(c, options, name, read_own, report, error);
    omp_set_num_threads(1);
    if (code == PS_OK) code = measure(c, options, "the same, one thread", read_own, report, error);
    omp_set_num_threads(all);
    return code;
}

static ps_code measure_library(decode_case *c, const ps_bench_options *options, ps_bench_report *report, ps_error *error) {
    ps_hdf5_lock();
    bool plugin = H5Zfilter_avail(PS_FILTER_BITSHUFFLE) > 0;
    ps_code code = plugin ? ps_hdf5_open(c->data, &c->file, error) : PS_OK;
    if (plugin && code == PS_OK) c->dataset = H5Dopen2(c->file, "/entry/data/data", H5P_DEFAULT);
    ps_hdf5_unlock();
    if (!plugin || code != PS_OK) return code;
    if (c->dataset < 0) return PS_FAIL(error, PS_E_HDF5, "%s: HDF5 cannot open the counts", c->data);
    return measure(c, options, "the same, HDF5 library with its plugin", read_library, report, error);
}

static void release(decode_case *c) {
    ps_reader_close(c->reader);
    ps_hdf5_lock();
    if (c->dataset >= 0) H5Dclose(c->dataset);
    if (c->file >= 0) H5Fclose(c->file);
    ps_hdf5_unlock();
    if (c->data) unlink(c->data);
    if (c->master) unlink(c->master);
    if (c->folder) rmdir(c->folder);
    free(c->data);
    free(c->master);
    free(c->folder);
    free(c->counts);
}

ps_code ps_bench_decode(const ps_bench_options *options, ps_bench_report *report, ps_error *error) {
    decode_case c = {.n_frames = options->quick ? QUICK_FRAMES : FRAMES, .file = -1, .dataset = -1};
    ps_code code = PS_OK;
    c.counts = malloc((size_t)c.n_frames * PIXELS * sizeof *c.counts);
    PS_GO_ALLOC(error, c.counts);
    PS_GO(write_recording(&c, error));
    PS_GO(measure_own(&c, options, report, error));
    PS_GO(measure_library(&c, options, report, error));
done:
    release(&c);
    return code;
}
