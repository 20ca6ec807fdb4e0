/* EMPAD recordings: an .xml file that names a .raw file of float32 patterns, 130 x 128 of which 128 x 128 are the detector (first
 * generation) or 128 x 128 (second). The .xml or the .raw may be named. A .raw without its .xml in the same folder is read as one of the
 * first generation when the job's scan accounts for its size. */
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

#include "core/file_read.h"
#include "core/regular.h"
#include "core/text.h"
#include "input/adapters/positions.h"
#include "input/file_list.h"
#include "input/formats/empad_scan.h"
#include "input/formats/empad_xml.h"
#include "input/formats/formats.h"

enum { SIDE = PS_EMPAD_SIDE, FIRST_ROWS = PS_EMPAD_ROWS, MAX_XML_BYTES = 4 << 20 };

typedef struct {
    ps_reader base;
    char *raw_path;
    int descriptor;
    int64_t stored_rows;
} empad_reader;

static bool begins_as_xml(const char *path) {
    char start[64] = "";
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > MAX_XML_BYTES) return false;
    ps_file_start(path, start, sizeof start - 1);
    return start[strspn(start, "\xef\xbb\xbf \t\r\n")] == '<';
}

static ps_code read_metadata(const char *path, ps_empad_metadata *metadata, ps_error *error) {
    char *text = NULL;
    size_t n = 0;
    ps_code code = ps_text_read_file(path, &text, &n, error);
    if (code == PS_OK) code = ps_empad_parse(path, text, n, metadata, error);
    free(text);
    return code;
}

static bool names_raw(const char *path, const char *raw_name) {
    ps_empad_metadata metadata;
    return begins_as_xml(path) && read_metadata(path, &metadata, NULL) == PS_OK && strcmp(metadata.raw_file, raw_name) == 0;
}

/* Without the ending: "scan" for "scan.xml". */
static bool same_stem(const char *a, const char *b) {
    const char *dot_a = strrchr(a, '.'), *dot_b = strrchr(b, '.');
    return dot_a && dot_b && dot_a - a == dot_b - b && memcmp(a, b, (size_t)(dot_a - a)) == 0;
}

/* The .xml file in the folder of a raw file that names it: malloc'd, NULL: none. Of several, the one with the raw file's own name; else
 * the second one goes into *other. */
static char *find_xml(const char *raw_path, char **other) {
    char *folder = ps_path_directory(raw_path), *found = NULL, *own = NULL;
    const char *slash = strrchr(raw_path, '/'), *name = slash ? slash + 1 : raw_path;
    DIR *directory = folder ? opendir(folder) : NULL;
    *other = NULL;
    for (struct dirent *entry; directory && !own && (entry = readdir(directory));) {
        const char *dot = strrchr(entry->d_name, '.');
        char *path = dot && strcasecmp(dot, ".xml") == 0 ? ps_text_format("%s/%s", folder, entry->d_name) : NULL;
        bool good = path && names_raw(path, name);
        char **keep = !good ? NULL : same_stem(entry->d_name, name) ? &own : !found ? &found : !*other ? other : NULL;
        if (keep)
            *keep = path;
        else
            free(path);
    }
    if (directory) closedir(directory);
    free(folder);
    if (!own) return found;
    free(found);
    free(*other);
    *other = NULL;
    return own;
}

static bool is_named_raw(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot, ".raw") == 0;
}

/* Whole patterns of the first generation that begin with numbers a detector may give. */
static bool looks_like_frames(const char *path) {
    enum { LOOKED_AT = 1024 };
    static const float largest = 1e12f;
    float values[LOOKED_AT];
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0 || status.st_size % PS_EMPAD_FRAME_BYTES != 0)
        return false;
    if (ps_file_start(path, values, sizeof values) != sizeof values) return false;
    for (int i = 0; i < LOOKED_AT; i++)
        if (!(fabsf(values[i]) <= largest)) return false;
    return true;
}

static bool probe(const char *path, const char *dataset) {
    return !dataset && (begins_as_xml(path) || is_named_raw(path) || looks_like_frames(path));
}

static void close_reader(ps_reader *reader) {
    empad_reader *r = (empad_reader *)reader;
    if (r->descriptor >= 0) close(r->descriptor);
    free(r->raw_path);
    free(r->base.path);
    free(r);
}

/* Takes raw_path. named_by: the file that names it, or itself. */
static ps_code open_raw(empad_reader *r, char *raw_path, const char *named_by, bool second_generation, ps_error *error) {
    struct stat status;
    r->raw_path = raw_path;
    if (!raw_path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    const char *special = ps_special_file(raw_path);
    if (special)
        return PS_FAIL(error, PS_E_INPUT, "%s: the raw file it names, %s, is %s, expected a regular file", named_by, raw_path, special);
    r->descriptor = open(r->raw_path, O_RDONLY | O_CLOEXEC);
    if (r->descriptor < 0 || fstat(r->descriptor, &status) != 0)
        return PS_FAIL(error, PS_E_INPUT, "%s: the raw file it names, %s, cannot be opened: %s", named_by, r->raw_path, strerror(errno));
    r->stored_rows = second_generation ? SIDE : FIRST_ROWS;
    int64_t frame = r->stored_rows * SIDE * (int64_t)sizeof(float);
    if (status.st_size == 0 || status.st_size % frame != 0)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: %lld bytes are not a whole number of patterns of %" PRId64 " x %d float32 (%" PRId64 " bytes): the file is cut "
                       "off or no EMPAD recording",
                       r->raw_path, (long long)status.st_size, r->stored_rows, SIDE, frame);
    r->base.info.n_positions = status.st_size / frame;
    r->base.info.data_bytes = status.st_size;
    return PS_OK;
}

/* Programs disagree on what the field of view of rectangular or rescaled scans means; only the plain case is taken. */
static void describe_step(empad_reader *r, const ps_empad_metadata *m) {
    ps_recording *info = &r->base.info;
    if (!(m->field_m[0] > 0) || !(m->field_m[1] > 0) || info->scan_rows <= 0) return;
    bool plain =
        info->scan_rows == info->scan_columns && m->field_m[0] == m->field_m[1] && !(m->scale_factor != 1 && !isnan(m->scale_factor));
    if (!plain) {
        ps_reader_note(&r->base,
                       "warning: the XML file gives a field of view of %g x %g m with factor %g for a scan of %" PRId64 " x %" PRId64
                       ", which programs read differently: not used, give the scan step in the optics",
                       m->field_m[0], m->field_m[1], m->scale_factor, info->scan_rows, info->scan_columns);
        return;
    }
    info->scan_step_A[0] = info->scan_step_A[1] = m->field_m[0] / (double)info->scan_rows * 1e10;
    snprintf(info->step_place, sizeof info->step_place, "field of view in the XML file");
}

static void describe_frames(empad_reader *r) {
    ps_recording *info = &r->base.info;
    snprintf(info->format, sizeof info->format, "EMPAD%s", r->stored_rows == SIDE ? "2" : "");
    snprintf(info->compression, sizeof info->compression, "none");
    info->detector_rows = info->detector_columns = SIDE;
    info->dtype = PS_F32;
    info->n_files = 1;
}

static void describe_instrument(empad_reader *r, const ps_empad_metadata *m) {
    ps_recording *info = &r->base.info;
    info->voltage_V = m->voltage_V;
    if (m->voltage_V > 0) snprintf(info->voltage_place, sizeof info->voltage_place, "iom_measurements in the XML file");
    info->detector_pitch_mrad[0] = info->detector_pitch_mrad[1] = m->pitch_mrad;
    if (m->pitch_mrad > 0) snprintf(info->pitch_place, sizeof info->pitch_place, "calibrated_diffraction_angle in the XML file");
    memcpy(info->acquisition_time, m->time, sizeof info->acquisition_time);
    describe_step(r, m);
}

static ps_code open_with_xml(empad_reader *r, const char *xml, const ps_reader_options *options, ps_error *error) {
    ps_empad_metadata metadata;
    PS_TRY(read_metadata(xml, &metadata, error));
    char *folder = ps_path_directory(xml), *raw = folder ? ps_text_format("%s/%s", folder, metadata.raw_file) : NULL;
    free(folder);
    PS_TRY(open_raw(r, raw, xml, metadata.second_generation, error));
    PS_TRY(ps_file_list_add(&r->base.files, xml, error)); /* in this order whichever of the two is named */
    PS_TRY(ps_file_list_add(&r->base.files, r->raw_path, error));
    describe_frames(r);
    PS_TRY(ps_empad_choose_scan(&r->base, &metadata, options, error));
    describe_instrument(r, &metadata);
    return PS_OK;
}

/* Nothing but the job's scan says what such a file is. */
static ps_code open_alone(empad_reader *r, const ps_reader_options *options, ps_error *error) {
    struct stat status;
    if (stat(r->base.path, &status) != 0) return PS_FAIL(error, PS_E_INPUT, "%s: cannot stat: %s", r->base.path, strerror(errno));
    PS_TRY(ps_empad_check_alone(r->base.path, (int64_t)status.st_size, options, error));
    PS_TRY(open_raw(r, strdup(r->base.path), r->base.path, false, error));
    describe_frames(r);
    ps_empad_take_name(&r->base, options);
    ps_reader_note(&r->base,
                   "no XML file beside it names it: patterns of %d x %d float32, of which %d x %d are the detector, as the size and the "
                   "job's scan say",
                   FIRST_ROWS, SIDE, SIDE, SIDE);
    return PS_OK;
}

static ps_code open_recording(const char *path, const char *dataset, const ps_reader_options *options, ps_reader **reader,
                              ps_error *error) {
    (void)dataset;
    ps_code code = PS_OK;
    char *xml = NULL, *other = NULL;
    empad_reader *r = calloc(1, sizeof *r);
    PS_GO_ALLOC(error, r);
    r->base.ops = &ps_reader_empad;
    r->descriptor = -1;
    r->base.path = strdup(path);
    PS_GO_ALLOC(error, r->base.path);
    ps_recording_clear(&r->base.info);
    xml = begins_as_xml(path) ? strdup(path) : find_xml(path, &other);
    if (other) {
        code = PS_FAIL(error, PS_E_INPUT, "%s: two XML files name it, %s and %s; name the right one instead", path, xml, other);
        goto done;
    }
    PS_GO(xml ? open_with_xml(r, xml, options, error) : open_alone(r, options, error));
    *reader = &r->base;
    r = NULL;
done:
    free(xml);
    free(other);
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

static bool find_plain(const ps_reader *reader, ps_reader_plain *plain) {
    const empad_reader *r = (const empad_reader *)reader;
    *plain =
        (ps_reader_plain){.path = r->raw_path, .descriptor = r->descriptor, .stride_bytes = r->stored_rows * SIDE * (int64_t)sizeof(float)};
    return true;
}

const ps_reader_ops ps_reader_empad = {
    .name = "EMPAD", .probe = probe, .open = open_recording, .close = close_reader, .read = read_counts, .plain = find_plain};
