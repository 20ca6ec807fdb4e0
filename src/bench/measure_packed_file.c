#include "bench/measure_packed_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/text.h"
#include "hdf5/util.h"
#include "input/open.h"
#include "input/packed.h"
#include "tasks/simulate/master_writer.h"

enum { POSITIONS_PER_FILE = 32768 };

struct ps_bench_master {
    char *folder, *path;
    int64_t n_files, n_positions;
};

static ps_code name_files(struct ps_bench_master *m, ps_error *error) {
    const char *temporary = getenv("TMPDIR");
    m->folder = ps_text_format("%s/ptyseries-bench-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!m->folder || !mkdtemp(m->folder)) return PS_FAIL(error, PS_E_IO, "%s: cannot create a folder: %s", m->folder, strerror(errno));
    m->path = ps_text_format("%s/packed_master.h5", m->folder);
    return m->path ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for names");
}

static ps_code append_all(ps_master_writer *writer, const ps_packed *packed, ps_error *error) {
    for (int64_t i = 0; i < packed->n_positions; i++)
        PS_TRY(ps_master_append(writer, packed->bytes + packed->patterns[i].offset, packed->patterns[i].bytes, error));
    return PS_OK;
}

static ps_code write_files(struct ps_bench_master *m, const ps_system_desc *desc, const ps_packed *packed, ps_error *error) {
    ps_master_writer *writer = NULL;
    const ps_master_spec spec = {.master_path = m->path,
                                 .scan_rows = desc->scan_rows,
                                 .scan_columns = desc->scan_columns,
                                 .detector_rows = desc->detector_rows,
                                 .detector_columns = desc->detector_columns,
                                 .dtype = PS_U16,
                                 .positions_per_file = POSITIONS_PER_FILE,
                                 .voltage_V = 3e5,
                                 .description = "made-up counts",
                                 .job_text = "",
                                 .science = ""};
    m->n_positions = packed->n_positions;
    m->n_files = (m->n_positions + POSITIONS_PER_FILE - 1) / POSITIONS_PER_FILE;
    ps_hdf5_lock();
    ps_code code = ps_master_create(&spec, &writer, error);
    if (code == PS_OK && (code = append_all(writer, packed, error)) == PS_OK)
        code = ps_master_finish(writer, error);
    else
        ps_master_abandon(writer);
    ps_hdf5_unlock();
    return code;
}

ps_code ps_bench_master_write(const ps_system_desc *desc, const ps_packed *packed, ps_bench_master **master, ps_error *error) {
    ps_code code = PS_OK;
    struct ps_bench_master *m = calloc(1, sizeof *m);
    PS_GO_ALLOC(error, m);
    PS_GO(name_files(m, error));
    PS_GO(write_files(m, desc, packed, error));
    *master = m;
    m = NULL;
done:
    ps_bench_master_remove(m);
    return code;
}

void ps_bench_master_remove(ps_bench_master *m) {
    if (!m) return;
    for (int64_t i = 1; m->path && i <= m->n_files; i++) {
        char *data = ps_master_data_path(m->path, i);
        if (data) unlink(data);
        free(data);
    }
    if (m->path) unlink(m->path);
    if (m->folder) rmdir(m->folder);
    free(m->path);
    free(m->folder);
    free(m);
}

ps_code ps_bench_master_put(const ps_bench_master *m, ps_frame *frame, int n_threads, double *open_s, ps_error *error) {
    ps_reader *reader = NULL;
    ps_packed_recording *recording = NULL;
    char why[PS_PACKED_WHY];
    ps_code code = PS_OK;
    double begin_s = ps_seconds();
    uint8_t *notes = malloc((size_t)m->n_positions);
    PS_GO_ALLOC(error, notes);
    PS_GO(ps_reader_open(m->path, NULL, &reader, error));
    PS_GO(ps_packed_open(reader, &recording, why, error));
    if (!recording) PS_GO(PS_FAIL(error, PS_E_INTERNAL, "%s: is not read packed: %s", m->path, why));
    *open_s = ps_seconds() - begin_s;
    PS_GO(ps_packed_put(recording, frame, n_threads, NULL, NULL, notes, error));
    if (memchr(notes, PS_PACKED_TOO_LARGE, (size_t)m->n_positions)) PS_GO(PS_FAIL(error, PS_E_INTERNAL, "a pattern fits into no room"));
done:
    ps_packed_close(recording);
    ps_reader_close(reader);
    free(notes);
    return code;
}
