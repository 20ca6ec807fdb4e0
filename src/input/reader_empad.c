/* EMPAD recordings: an .xml file that names a .raw file of float32 frames, 130 x 128 of which 128 x 128 are the detector (first generation)
 * or 128 x 128 (second). The .xml or the .raw may be named; the .raw needs its .xml in the same folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/regular.h"
#include "core/text.h"
#include "input/empad.h"
#include "input/file_list.h"
#include "input/file_read.h"
#include "input/reader_formats.h"

enum { SIDE = 128, FIRST_ROWS = 130, MAX_XML_BYTES = 4 << 20 };

typedef struct {
    ps_reader base;
    char *raw_path;
    int descriptor;
    int64_t stored_rows;
} empad_reader;

/* Whether the file is an XML file of an EMPAD recording; fills metadata. */
static bool read_metadata(const char *path, ps_empad_metadata *metadata, ps_error *error) {
    char start[64] = "", *text = NULL;
    size_t n = 0;
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > MAX_XML_BYTES) return false;
    ps_file_start(path, start, sizeof start - 1);
    if (start[strspn(start, "\xef\xbb\xbf \t\r\n")] != '<') return false;
    bool good = ps_text_read_file(path, &text, &n, error) == PS_OK && ps_empad_parse(path, text, n, metadata, error) == PS_OK;
    free(text);
    return good;
}

/* The .xml file in the folder of a raw file that names it; malloc'd, NULL: none. */
static char *find_xml(const char *raw_path) {
    char *folder = ps_path_directory(raw_path), *found = NULL;
    const char *slash = strrchr(raw_path, '/'), *name = slash ? slash + 1 : raw_path;
    DIR *directory = folder ? opendir(folder) : NULL;
    for (struct dirent *entry; directory && !found && (entry = readdir(directory));) {
        const char *dot = strrchr(entry->d_name, '.');
        ps_empad_metadata metadata;
        char *path = dot && strcasecmp(dot, ".xml") == 0 ? ps_text_format("%s/%s", folder, entry->d_name) : NULL;
        if (path && read_metadata(path, &metadata, NULL) && strcmp(metadata.raw_file, name) == 0)
            found = path;
        else
            free(path);
    }
    if (directory) closedir(directory);
    free(folder);
    return found;
}

static bool probe(const char *path, const char *dataset) {
    ps_empad_metadata metadata;
    if (dataset) return false;
    if (read_metadata(path, &metadata, NULL)) return true;
    const char *dot = strrchr(path, '.');
    char *xml = dot && strcasecmp(dot, ".raw") == 0 ? find_xml(path) : NULL;
    free(xml);
    return xml != NULL;
}

static void close_reader(ps_reader *reader) {
    empad_reader *r = (empad_reader *)reader;
    if (r->descriptor >= 0) close(r->descriptor);
    free(r->raw_path);
    free(r->base.path);
    free(r);
}

static ps_code open_raw(empad_reader *r, const char *xml_path, const ps_empad_metadata *m, ps_error *error) {
    struct stat status;
    char *folder = ps_path_directory(xml_path);
    r->raw_path = folder ? ps_text_format("%s/%s", folder, m->raw_file) : NULL;
    free(folder);
    if (!r->raw_path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    const char *special = ps_special_file(r->raw_path);
    if (special)
        return PS_FAIL(error, PS_E_INPUT, "%s: the raw file it names, %s, is %s, expected a regular file", xml_path, r->raw_path, special);
    r->descriptor = open(r->raw_path, O_RDONLY | O_CLOEXEC);
    if (r->descriptor < 0 || fstat(r->descriptor, &status) != 0)
        return PS_FAIL(error, PS_E_INPUT, "%s: the raw file it names, %s, cannot be opened: %s", xml_path, r->raw_path, strerror(errno));
    r->stored_rows = m->second_generation ? SIDE : FIRST_ROWS;
    int64_t frame = r->stored_rows * SIDE * (int64_t)sizeof(float);
    if (status.st_size == 0 || status.st_size % frame != 0)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: %lld bytes are not a whole number of frames of %" PRId64 " x %d float32 (%" PRId64 " bytes): the file is cut "
                       "off or no EMPAD recording",
                       r->raw_path, (long long)status.st_size, r->stored_rows, SIDE, frame);
    r->base.info.n_positions = status.st_size / frame;
    r->base.info.data_bytes = status.st_size;
    return PS_OK;
}

/* Programs disagree on what the field of view of rectangular or rescaled scans means; only the plain case is taken. */
static void describe_step(empad_reader *r, const ps_empad_metadata *m) {
    ps_recording *info = &r->base.info;
    if (!(m->field_m[0] > 0) || !(m->field_m[1] > 0) || !(m->scan_rows > 0)) return;
    bool plain = m->scan_rows == m->scan_columns && m->field_m[0] == m->field_m[1] && !(m->scale_factor != 1 && !isnan(m->scale_factor));
    if (!plain) {
        ps_reader_note(&r->base,
                       "warning: the XML file gives a field of view of %g x %g m with factor %g for a scan of %" PRId64 " x %" PRId64
                       ", which programs read differently: not used, give the scan step in the optics",
                       m->field_m[0], m->field_m[1], m->scale_factor, m->scan_rows, m->scan_columns);
        return;
    }
    info->scan_step_A[0] = info->scan_step_A[1] = m->field_m[0] / (double)m->scan_rows * 1e10;
    snprintf(info->step_place, sizeof info->step_place, "field of view in the XML file");
}

static void describe(empad_reader *r, const ps_empad_metadata *m) {
    ps_recording *info = &r->base.info;
    snprintf(info->format, sizeof info->format, "EMPAD%s", m->second_generation ? "2" : "");
    snprintf(info->compression, sizeof info->compression, "none");
    info->detector_rows = info->detector_columns = SIDE;
    info->dtype = PS_F32;
    info->n_files = 1;
    if (m->n_series == 0 && m->scan_rows > 0 && m->scan_columns > 0) {
        info->scan_rows = m->scan_rows;
        info->scan_columns = m->scan_columns;
        snprintf(info->scan_place, sizeof info->scan_place, "the XML file");
    }
    info->voltage_V = m->voltage_V;
    if (m->voltage_V > 0) snprintf(info->voltage_place, sizeof info->voltage_place, "iom_measurements in the XML file");
    info->detector_pitch_mrad[0] = info->detector_pitch_mrad[1] = m->pitch_mrad;
    if (m->pitch_mrad > 0) snprintf(info->pitch_place, sizeof info->pitch_place, "calibrated_diffraction_angle in the XML file");
    memcpy(info->acquisition_time, m->time, sizeof info->acquisition_time);
    describe_step(r, m);
}

static ps_code open_recording(const char *path, const char *dataset, const ps_reader_options *options, ps_reader **reader,
                              ps_error *error) {
    (void)dataset, (void)options;
    ps_code code = PS_OK;
    ps_empad_metadata metadata;
    char *xml = NULL;
    empad_reader *r = calloc(1, sizeof *r);
    PS_GO_ALLOC(error, r);
    r->base.ops = &ps_reader_empad;
    r->descriptor = -1;
    r->base.path = strdup(path);
    PS_GO_ALLOC(error, r->base.path);
    xml = read_metadata(path, &metadata, NULL) ? strdup(path) : find_xml(path);
    if (!xml || !read_metadata(xml, &metadata, error)) {
        code = PS_FAIL(error, PS_E_INPUT, "%s: its XML file cannot be read", path);
        goto done;
    }
    ps_recording_clear(&r->base.info);
    PS_GO(open_raw(r, xml, &metadata, error));
    PS_GO(ps_file_list_add(&r->base.files, xml, error)); /* in this order whichever of the two is named */
    PS_GO(ps_file_list_add(&r->base.files, r->raw_path, error));
    describe(r, &metadata);
    *reader = &r->base;
    r = NULL;
done:
    free(xml);
    if (r) ps_reader_close(&r->base);
    return code;
}

static ps_code read_counts(ps_reader *reader, int64_t first, int64_t n, void *counts, ps_error *error) {
    empad_reader *r = (empad_reader *)reader;
    size_t wanted = (size_t)(SIDE * SIDE) * sizeof(float), stored = (size_t)(r->stored_rows * SIDE) * sizeof(float);
    if (wanted == stored) return ps_file_read(r->raw_path, r->descriptor, first * (int64_t)stored, (size_t)n * stored, counts, error);
    for (int64_t i = 0; i < n; i++)
        PS_TRY(
            ps_file_read(r->raw_path, r->descriptor, (first + i) * (int64_t)stored, wanted, (uint8_t *)counts + (size_t)i * wanted, error));
    return PS_OK;
}

const ps_reader_ops ps_reader_empad = {.name = "EMPAD", .probe = probe, .open = open_recording, .close = close_reader, .read = read_counts};
