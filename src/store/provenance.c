#include "store/provenance.h"

#include <cJSON.h>
#include <errno.h>
#include <expat.h>
#include <fftw3.h>
#include <hdf5.h>
#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "core/regular.h"
#include "core/text.h"
#include "core/version.h"
#include "input/source.h"

extern char **environ;

char *ps_library_versions(void) {
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    unsigned major = 0, minor = 0, release = 0;
    MPI_Get_library_version(mpi, &length);
    mpi[strcspn(mpi, "\n")] = '\0';
    H5get_libversion(&major, &minor, &release);
    return ps_text_format("MPI: %s\nHDF5: %u.%u.%u\nFFTW: %s\ncJSON: %s\nexpat: %s\nLZ4: %s\nzlib: %s", mpi, major, minor, release,
                          fftw_version, cJSON_Version(), XML_ExpatVersion(), LZ4_versionString(), zlibVersion());
}

void ps_notes_add(ps_notes *notes, const char *key, char *value) {
    if (!value) return;
    if (notes->n >= PS_MAX_NOTES)
        free(value);
    else
        notes->notes[notes->n++] = (ps_output_note){key, value};
}

/* Slurm's variables, "NAME=value" a line each; NULL outside of a job. */
static char *slurm_variables(void) {
    char *all = NULL;
    for (char **variable = environ; *variable; variable++) {
        if (strncmp(*variable, "SLURM_", 6) != 0) continue;
        char *longer = all ? ps_text_format("%s\n%s", all, *variable) : strdup(*variable);
        free(all);
        all = longer;
        if (!all) return NULL;
    }
    return all;
}

static char *now_text(void) {
    char text[32];
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return strdup(text);
}

ps_code ps_notes_gather(const ps_cluster *cluster, const ps_job *job, const char *command_line, const char *device,
                        const char *device_versions, ps_notes *notes, ps_error *error) {
    char line[512], cores[512], *ranks = NULL, *placed = NULL;
    *notes = (ps_notes){0};
    snprintf(line, sizeof line, "rank %d: host %s, process %ld, %s", cluster->rank, cluster->host, (long)getpid(), device);
    snprintf(cores, sizeof cores, "rank %d: %s", cluster->rank, cluster->cores[0] ? cluster->cores : "not known");
    PS_TRY(ps_cluster_gather_lines(cluster, line, &ranks, error));
    PS_TRY(ps_cluster_gather_lines(cluster, cores, &placed, error));
    ps_notes_add(notes, "program", strdup("ptyseries"));
    ps_notes_add(notes, "version", strdup(ps_version()));
    ps_notes_add(notes, "commit", strdup(ps_commit()));
    ps_notes_add(notes, "build", strdup(ps_build_text()));
    ps_notes_add(notes, "numerics_version", strdup(PS_NUMERICS_VERSION));
    ps_notes_add(notes, "libraries", ps_library_versions());
    ps_notes_add(notes, "backend_versions", strdup(device_versions));
    ps_notes_add(notes, "command_line", strdup(command_line));
    ps_notes_add(notes, "job_path", strdup(job->path ? job->path : "given as text"));
    ps_notes_add(notes, "job_directory", strdup(job->base_directory));
    ps_notes_add(notes, "working_directory", getcwd(NULL, 0));
    ps_notes_add(notes, "start_time", now_text());
    ps_notes_add(notes, "mpi_layout", ps_text_format("%d ranks on %d nodes", cluster->n_ranks, cluster->n_nodes));
    ps_notes_add(notes, "ranks", ranks ? ranks : strdup(line));
    ps_notes_add(notes, "cores", placed ? placed : strdup(cores));
    ps_notes_add(notes, "slurm", slurm_variables());
    return PS_OK;
}

void ps_notes_free(ps_notes *notes) {
    for (int64_t i = 0; i < notes->n; i++) free((char *)notes->notes[i].value);
    *notes = (ps_notes){0};
}

static ps_code add_range(int file, const char *path, off_t from, size_t bytes, uLong *crc, ps_error *error) {
    unsigned char buffer[65536];
    while (bytes > 0) {
        ssize_t got = pread(file, buffer, bytes < sizeof buffer ? bytes : sizeof buffer, from);
        if (got < 0) return PS_FAIL(error, PS_E_IO, "%s: cannot read: %s", path, strerror(errno));
        if (got == 0) return PS_FAIL(error, PS_E_IO, "%s: ended while it was read", path);
        *crc = crc32(*crc, buffer, (uInt)got);
        from += got;
        bytes -= (size_t)got;
    }
    return PS_OK;
}

static ps_code checksum_file(const char *path, uint32_t *checksum, ps_error *error) {
    const off_t end_bytes = (off_t)1 << 20;
    ps_code code = PS_OK;
    uLong crc = crc32(0, NULL, 0);
    struct stat status;
    int file = -1;
    PS_TRY(ps_regular_open(path, PS_E_IO, &file, error));
    if (fstat(file, &status) != 0) PS_GO(PS_FAIL(error, PS_E_IO, "%s: cannot stat: %s", path, strerror(errno)));
    off_t first = status.st_size < end_bytes ? status.st_size : end_bytes;
    off_t last = status.st_size - first < end_bytes ? status.st_size - first : end_bytes;
    PS_GO(add_range(file, path, 0, (size_t)first, &crc, error));
    PS_GO(add_range(file, path, status.st_size - last, (size_t)last, &crc, error));
    *checksum = (uint32_t)crc;
done:
    close(file);
    return code;
}

ps_code ps_source_checksum(const char *source, uint32_t *checksum, ps_error *error) {
    ps_source parts;
    PS_TRY(ps_source_split(source, &parts, error));
    ps_code code = checksum_file(parts.path, checksum, error);
    ps_source_free(&parts);
    return code;
}
