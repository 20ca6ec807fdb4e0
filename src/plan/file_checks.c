#include "plan/file_checks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "cluster/stop.h"
#include "cluster/watchdog.h"
#include "core/log.h"
#include "core/text.h"
#include "store/provenance.h"

enum { SMALL_BYTES = 1 << 20, BLOCK_BYTES = 16 << 10, N_BLOCKS = 8 };

/* ---- one file ---- */

/* Continues *crc with bytes [from, from + n) of the file; errno's value when they cannot be read. */
static int add_range(int descriptor, int64_t from, int64_t n, uint32_t *crc) {
    unsigned char buffer[65536];
    while (n > 0) {
        ssize_t got = pread(descriptor, buffer, n < (int64_t)sizeof buffer ? (size_t)n : sizeof buffer, (off_t)from);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) return EIO; /* shorter than it said */
        *crc = (uint32_t)crc32_z(*crc, buffer, (size_t)got);
        from += got;
        n -= got;
    }
    return 0;
}

static int add_samples(int descriptor, int64_t bytes, uint32_t *crc) {
    if (bytes <= SMALL_BYTES) return add_range(descriptor, 0, bytes, crc);
    for (int64_t i = 0; i < N_BLOCKS; i++) {
        int64_t last = bytes - BLOCK_BYTES, from = i == N_BLOCKS - 1 ? last : last / (N_BLOCKS - 1) * i;
        int problem = add_range(descriptor, from, BLOCK_BYTES, crc);
        if (problem) return problem;
    }
    return 0;
}

static uint32_t not_zero(uint32_t crc) {
    return crc ? crc : 1;
} /* 0 says that there is none */

static int read_checksums(int descriptor, bool whole, ps_output_file *file) {
    struct stat status;
    uint32_t samples = 0, all = 0;
    if (fstat(descriptor, &status) != 0) return errno;
    if (!S_ISREG(status.st_mode)) return EINVAL;
    file->bytes = status.st_size;
    file->mtime_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
    int problem = add_samples(descriptor, file->bytes, &samples);
    if (!problem && whole) problem = add_range(descriptor, 0, file->bytes, &all);
    if (problem) return problem;
    file->samples = not_zero(samples);
    file->whole = whole ? not_zero(all) : 0;
    return 0;
}

void ps_file_check(const char *path, bool whole, ps_output_file *file, int *problem) {
    *file = (ps_output_file){.path = path};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe with nobody at the other end does not hold us up */
    *problem = descriptor < 0 ? errno : read_checksums(descriptor, whole, file);
    if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        file->bytes = -1;
        *problem = 0;
    }
    if (descriptor >= 0) close(descriptor);
}

/* ---- every file once ---- */

/* What one file comes to, as ranks tell each other; zeros from those that did not look at it. */
enum { BYTES, MTIME_NS, SAMPLES, WHOLE, PROBLEM, N_NUMBERS };

typedef struct {
    int64_t n_places, n_unique;
    const char **paths;            /* [n_unique] */
    int64_t *unique_of;            /* [n_places] */
    int64_t (*numbers)[N_NUMBERS]; /* [n_unique] */
} file_table;

typedef struct {
    const char *path;
    int64_t place;
} named_place;

static int compare_places(const void *a, const void *b) {
    return strcmp(((const named_place *)a)->path, ((const named_place *)b)->path);
}

static void free_table(file_table *table) {
    free(table->paths);
    free(table->unique_of);
    free(table->numbers);
}

/* A file that several recordings are read from (datasets of one file, one source of many) is looked at once. */
static ps_code make_table(const ps_run_plan *run, const ps_file_checks *checks, file_table *table, ps_error *error) {
    ps_code code = PS_OK;
    size_t n = (size_t)checks->first[run->series.n_items];
    named_place *places = malloc((n + 1) * sizeof *places);
    table->n_places = (int64_t)n;
    table->paths = malloc((n + 1) * sizeof *table->paths);
    table->unique_of = malloc((n + 1) * sizeof *table->unique_of);
    PS_GO_ALLOC(error, places);
    PS_GO_ALLOC(error, table->paths);
    PS_GO_ALLOC(error, table->unique_of);
    for (size_t i = 0; i < n; i++) places[i] = (named_place){checks->files[i].path, (int64_t)i};
    qsort(places, n, sizeof *places, compare_places);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(places[i].path, places[i - 1].path) != 0) table->paths[table->n_unique++] = places[i].path;
        table->unique_of[places[i].place] = table->n_unique - 1;
    }
    table->numbers = calloc((size_t)table->n_unique + 1, sizeof *table->numbers);
    PS_GO_ALLOC(error, table->numbers);
    if (table->n_unique > INT_MAX / N_NUMBERS) code = PS_FAIL(error, PS_E_INPUT, "more than %d data files", INT_MAX / N_NUMBERS);
done:
    free(places);
    return code;
}

/* Collective: a number that all ranks must have found. */
static ps_code agree_on_number(const ps_cluster *cluster, int64_t n, ps_error *error) {
    int64_t ends[2] = {n, -n};
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_INT64_T, MPI_MIN, cluster->communicator)));
    if (ends[0] == -ends[1]) return PS_OK;
    return PS_FAIL(error, PS_E_IO, "ranks see other data files than each other: %" PRId64 " on one, %" PRId64 " on another", ends[0],
                   -ends[1]);
}

static ps_code look_at_share(const ps_cluster *cluster, bool whole, const file_table *table, ps_error *error) {
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = cluster->rank; i < table->n_unique; i += cluster->n_ranks) {
        ps_output_file file;
        int problem;
        if (ps_stop_wanted()) continue;
        ps_watchdog_beat("checksums of data files", -1);
        ps_file_check(table->paths[i], whole, &file, &problem);
        int64_t *to = table->numbers[i];
        to[BYTES] = file.bytes;
        to[MTIME_NS] = file.mtime_ns;
        to[SAMPLES] = file.samples;
        to[WHOLE] = file.whole;
        to[PROBLEM] = problem;
    }
    return ps_stop_wanted()
               ? PS_FAIL(error, PS_E_INTERRUPTED, "stopped (%s) while the recordings were looked at; run again to go on", ps_stop_reason())
               : PS_OK;
}

/* ---- for the frames ---- */

static ps_code list_files(const ps_run_plan *run, ps_file_checks *checks, ps_error *error) {
    int64_t n = run->series.n_items, n_files = 0;
    checks->first = malloc((size_t)(n + 1) * sizeof *checks->first);
    checks->named = calloc((size_t)n, sizeof *checks->named);
    for (int64_t i = 0; i < n; i++) n_files += run->frames[i].files.n;
    checks->files = calloc((size_t)n_files + 1, sizeof *checks->files);
    if (!checks->first || !checks->named || !checks->files)
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %" PRId64 " data files", n_files);
    checks->first[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        const ps_name_list *files = &run->frames[i].files;
        for (int64_t k = 0; k < files->n; k++) checks->files[checks->first[i] + k].path = files->names[k];
        checks->first[i + 1] = checks->first[i] + files->n;
    }
    return PS_OK;
}

/* The named files' ends, as outputs of every version have them. Collective. */
static ps_code check_named(const ps_cluster *cluster, const ps_run_plan *run, ps_file_checks *checks, ps_error *error) {
    int64_t n = run->series.n_items;
    for (int64_t i = cluster->rank; i < n; i += cluster->n_ranks)
        if (!run->frames[i].unreadable) ps_source_checksum(run->series.items[i].source, &checks->named[i], NULL);
    return PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, checks->named, (int)n, MPI_UINT32_T, MPI_MAX, cluster->communicator));
}

static ps_code give_to_frames(const file_table *table, ps_run_plan *run, ps_file_checks *checks, ps_error *error) {
    for (int64_t i = 0; i < run->series.n_items; i++)
        for (int64_t k = checks->first[i]; k < checks->first[i + 1]; k++) {
            const int64_t *from = table->numbers[table->unique_of[k]];
            ps_output_file *file = &checks->files[k];
            file->bytes = from[BYTES];
            file->mtime_ns = from[MTIME_NS];
            file->samples = (uint32_t)from[SAMPLES];
            file->whole = (uint32_t)from[WHOLE];
            if (!from[PROBLEM] || run->frames[i].unreadable) continue;
            run->frames[i].unreadable = ps_text_format("%s: cannot be read: %s", file->path, strerror((int)from[PROBLEM]));
            if (!run->frames[i].unreadable) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for an error text");
            run->n_unreadable++;
        }
    return PS_OK;
}

ps_code ps_file_checks_make(const ps_cluster *cluster, const ps_job *job, ps_run_plan *run, ps_file_checks *checks, ps_error *error) {
    file_table table = {0};
    *checks = (ps_file_checks){0};
    ps_code code = list_files(run, checks, error);
    if (code == PS_OK) code = make_table(run, checks, &table, error);
    PS_GO(ps_cluster_agree(cluster, code, error));
    PS_GO(agree_on_number(cluster, table.n_unique, error));
    if (job->series.verify_whole && cluster->rank == 0)
        ps_log(PS_LOG_INFO, "series.verify is \"whole\": reading %" PRId64 " data files from end to end", table.n_unique);
    PS_GO(ps_cluster_agree(cluster, look_at_share(cluster, job->series.verify_whole, &table, error), error));
    PS_GO(PS_MPI(error,
                 MPI_Allreduce(MPI_IN_PLACE, table.numbers, (int)table.n_unique * N_NUMBERS, MPI_INT64_T, MPI_SUM, cluster->communicator)));
    PS_GO(check_named(cluster, run, checks, error));
    PS_GO(ps_cluster_agree(cluster, give_to_frames(&table, run, checks, error), error));
done:
    free_table(&table);
    return code;
}

void ps_file_checks_free(ps_file_checks *checks) {
    free(checks->files);
    free(checks->first);
    free(checks->named);
    *checks = (ps_file_checks){0};
}
