/* Dectris masters: /entry/data holds links data_000001, data_000002 ... to data files beside the master, or the data itself.
 * What the master says of the detector (mask, saturation) and the beam is read from where Eiger and Arina write it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "input/hdf5_util.h"
#include "input/linked_file.h"
#include "input/name_list.h"
#include "input/partial.h"
#include "input/probe_list.h"
#include "input/reader_formats.h"
#include "input/reader_hdf5_common.h"
#include "input/series.h"

#define DATA_GROUP "/entry/data"
#define DETECTOR "/entry/instrument/detector"
#define SPECIFIC DETECTOR "/detectorSpecific"

static bool is_numbered(const char *name) {
    static const char prefix[] = "data_";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return false;
    const char *digits = name + sizeof prefix - 1;
    return *digits && strspn(digits, "0123456789") == strlen(digits);
}

static herr_t look_for_numbered(hid_t group, const char *name, const H5L_info_t *info, void *found) {
    (void)group, (void)info;
    *(bool *)found |= is_numbered(name);
    return *(bool *)found;
}

static bool probe(const char *path, const char *dataset) {
    if (dataset || !ps_hdf5_is_file(path)) return false;
    bool found = false;
    ps_hdf5_lock();
    hid_t file = -1;
    if (ps_hdf5_open(path, &file, NULL) == PS_OK && ps_hdf5_exists(file, DATA_GROUP)) {
        H5Literate_by_name(file, DATA_GROUP, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, look_for_numbered, &found, H5P_DEFAULT);
        found |= ps_hdf5_exists(file, SPECIFIC);
    }
    if (file >= 0) H5Fclose(file);
    ps_hdf5_unlock();
    return found;
}

static herr_t collect_name(hid_t group, const char *name, const H5L_info_t *info, void *list) {
    (void)group, (void)info;
    return ps_name_list_add(list, name) == PS_OK ? 0 : -1;
}

/* Names in /entry/data in natural order; the numbered ones alone where there are any. */
static ps_code list_links(const char *path, hid_t file, ps_name_list *names, ps_error *error) {
    if (H5Literate_by_name(file, DATA_GROUP, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, collect_name, names, H5P_DEFAULT) < 0)
        return PS_FAIL(error, PS_E_INPUT, "%s: cannot list %s", path, DATA_GROUP);
    int64_t n_numbered = 0;
    for (int64_t i = 0; i < names->n; i++) n_numbered += is_numbered(names->names[i]);
    if (n_numbered > 0) ps_name_list_filter(names, is_numbered);
    ps_name_list_sort(names, ps_natural_compare);
    return PS_OK;
}

/* What is known when the links are followed. */
typedef struct {
    ps_hdf5_reader *reader;
    const ps_reader_options *options;
    hid_t file;
    int64_t promised; /* detector frames: images times triggers, else what the job's scan needs; 0: not known */
    int64_t n_links;
    int64_t per_file; /* frames in the first data file that is there */
} master;

static int64_t promised_frames(const master *m) {
    double images = 0, triggers = 0;
    enum { MOST = 1 << 30 };
    bool said = ps_hdf5_number(m->file, SPECIFIC "/nimages", &images) && ps_hdf5_number(m->file, SPECIFIC "/ntrigger", &triggers);
    if (said && images >= 1 && triggers >= 1 && images < MOST && triggers < MOST) return (int64_t)images * (int64_t)triggers;
    return ps_positions_needed(m->options);
}

/* A data file that is not there: an error, or a piece without data as long as its neighbours (the last one: what is left). */
static ps_code add_missing_file(master *m, int64_t index, const char *linked, const char *link, ps_error *error) {
    ps_hdf5_reader *r = m->reader;
    if (!m->options->allow_partial)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: the data file %s (link %s/%s) is missing; it would hold detector frames from %" PRId64
                       " on; series.allow_partial fills what is missing",
                       r->base.path, linked, DATA_GROUP, link, r->segments.n_positions);
    bool last = index == m->n_links - 1;
    int64_t n = last && m->promised > 0 ? m->promised - r->segments.n_positions : m->per_file;
    if (n <= 0)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: the data file %s (link %s/%s) is missing, and nothing tells how many detector frames it held", r->base.path,
                       linked, DATA_GROUP, link);
    ps_reader_note(&r->base,
                   "warning: the data file %s is missing: detector frames %" PRId64 " to %" PRId64 " are filled from the nearest one",
                   linked, r->segments.n_positions, r->segments.n_positions + n - 1);
    return ps_segments_add_missing(&r->segments, n, &r->base.info, error);
}

/* Reads an external link into malloc'd names; the file's is NULL when it is not found. */
static ps_code read_external(const master *m, const char *link, size_t value_bytes, char **linked, char **path, char **dataset,
                             ps_error *error) {
    ps_code code = PS_OK;
    char *name = ps_text_format("%s/%s", DATA_GROUP, link), *value = malloc(value_bytes + 1);
    const char *file_name = NULL, *dataset_name = NULL;
    unsigned flags = 0;
    PS_GO_ALLOC(error, name);
    PS_GO_ALLOC(error, value);
    if (H5Lget_val(m->file, name, value, value_bytes, H5P_DEFAULT) < 0 ||
        H5Lunpack_elink_val(value, value_bytes, &flags, &file_name, &dataset_name) < 0) {
        code = PS_FAIL(error, PS_E_INPUT, "%s: cannot read the link %s", m->reader->base.path, name);
        goto done;
    }
    *linked = strdup(file_name);
    *dataset = strdup(dataset_name);
    PS_GO_ALLOC(error, *linked);
    PS_GO_ALLOC(error, *dataset);
    *path = ps_linked_file_find(m->reader->base.path, file_name);
done:
    free(value);
    free(name);
    return code;
}

static ps_code add_external(master *m, int64_t index, const char *link, size_t value_bytes, ps_error *error) {
    ps_code code = PS_OK;
    char *linked = NULL, *path = NULL, *dataset = NULL;
    PS_GO(read_external(m, link, value_bytes, &linked, &path, &dataset, error));
    if (path)
        PS_GO(ps_segments_add(&m->reader->segments, path, dataset, &m->reader->base.info, error));
    else
        PS_GO(add_missing_file(m, index, linked, link, error));
done:
    free(linked);
    free(path);
    free(dataset);
    return code;
}

static ps_code add_internal(master *m, const char *link, ps_error *error) {
    ps_hdf5_reader *r = m->reader;
    char *name = ps_text_format("%s/%s", DATA_GROUP, link);
    H5O_info_t info;
    if (!name) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a name");
    ps_code code = PS_OK;
    bool is_dataset = H5Oget_info_by_name(m->file, name, &info, H5P_DEFAULT) >= 0 && info.type == H5O_TYPE_DATASET;
    if (is_dataset)
        code = ps_segments_add(&r->segments, r->base.path, name, &r->base.info, error);
    else if (is_numbered(link))
        code = PS_FAIL(error, PS_E_INPUT, "%s: %s is no dataset or does not exist", r->base.path, name);
    free(name);
    return code;
}

/* Size of an external link's value; 0: the link is of another kind. */
static size_t external_bytes(hid_t group, const char *link) {
    H5L_info_t info;
    return H5Lget_info(group, link, &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_EXTERNAL ? info.u.val_size : 0;
}

/* Frames in the first linked file that is there, so that a missing one in front of it has a length. */
static int64_t frames_per_file(master *m, hid_t group, const ps_name_list *names) {
    int64_t n = 0;
    for (int64_t i = 0; i < names->n && n == 0; i++) {
        char *linked = NULL, *path = NULL, *dataset = NULL;
        ps_hdf5_dataset *opened = NULL;
        size_t bytes = external_bytes(group, names->names[i]);
        if (bytes && read_external(m, names->names[i], bytes, &linked, &path, &dataset, NULL) == PS_OK && path &&
            ps_hdf5_dataset_open(path, dataset, &opened, NULL) == PS_OK)
            n = opened->lead[0];
        ps_hdf5_dataset_close(opened);
        free(linked);
        free(path);
        free(dataset);
    }
    return n;
}

/* Data that ends before the number of frames the master promised. */
static ps_code check_promise(master *m, ps_error *error) {
    ps_hdf5_reader *r = m->reader;
    int64_t found = r->segments.n_positions;
    if (m->promised == 0 || found == m->promised) return PS_OK;
    ps_reader_note(&r->base, "warning: %" PRId64 " detector frames were to be recorded, the data files hold %" PRId64, m->promised, found);
    if (!m->options->allow_partial || found > m->promised) return PS_OK; /* the scan's shape is checked against what is there */
    return ps_segments_add_missing(&r->segments, m->promised - found, &r->base.info, error);
}

static ps_code add_data(master *m, ps_error *error) {
    ps_code code = PS_OK;
    ps_name_list names = {0};
    const char *path = m->reader->base.path;
    hid_t group = H5Gopen2(m->file, DATA_GROUP, H5P_DEFAULT);
    PS_GO(list_links(path, m->file, &names, error));
    m->n_links = names.n;
    m->promised = promised_frames(m);
    if (m->options->allow_partial) m->per_file = frames_per_file(m, group, &names);
    for (int64_t i = 0; i < names.n; i++) {
        size_t bytes = external_bytes(group, names.names[i]);
        PS_GO(bytes ? add_external(m, i, names.names[i], bytes, error) : add_internal(m, names.names[i], error));
    }
    if (m->reader->base.info.data_bytes == 0) {
        code = PS_FAIL(error, PS_E_INPUT, "%s: no data in or linked from %s", path, DATA_GROUP);
        goto done;
    }
    PS_GO(check_promise(m, error));
done:
    if (group >= 0) H5Gclose(group);
    ps_name_list_free(&names);
    return code;
}

/* The first of these datasets that is a number above 0; place: where it was. */
static void read_positive(hid_t file, const char *const *paths, int n_paths, double *value, char place[80]) {
    for (int i = 0; i < n_paths; i++) {
        double found = NAN;
        if (!ps_hdf5_number(file, paths[i], &found) || !(found > 0)) continue;
        *value = found;
        if (place) snprintf(place, 80, "%s", paths[i]);
        return;
    }
}

static void read_metadata(ps_hdf5_reader *r, hid_t file) {
    ps_recording *info = &r->base.info;
    static const char *const energies[] = {"/entry/instrument/beam/incident_energy", SPECIFIC "/photon_energy", DETECTOR "/photon_energy"};
    static const char *const saturations[] = {DETECTOR "/saturation_value"};
    static const char *const masks[] = {DETECTOR "/pixel_mask", SPECIFIC "/pixel_mask"};
    static const char *const dates[] = {SPECIFIC "/data_collection_date", DETECTOR "/data_collection_date", "/entry/start_time"};
    read_positive(file, energies, 3, &info->voltage_V, info->voltage_place);
    read_positive(file, saturations, 1, &info->saturation, NULL);
    for (int i = 0; i < 2 && !r->mask_dataset; i++)
        if (ps_hdf5_exists(file, masks[i])) r->mask_dataset = strdup(masks[i]);
    for (int i = 0; i < 3 && !info->acquisition_time[0]; i++)
        ps_hdf5_text(file, dates[i], info->acquisition_time, sizeof info->acquisition_time);
}

/* The microscope's file beside the master of an Arina, NAME.h5 for NAME_master.h5, has the scan's shape. */
static void read_companion(ps_hdf5_reader *r) {
    static const char ending[] = "_master.h5", group[] = "/STEM Metadata";
    ps_recording *info = &r->base.info;
    size_t n = strlen(r->base.path), tail = sizeof ending - 1;
    double rows = 0, columns = 0, prescan = 0, pixel = 0;
    hid_t file = -1;
    if (n <= tail || strcmp(r->base.path + n - tail, ending) != 0) return;
    char *path = ps_text_format("%.*s.h5", (int)(n - tail), r->base.path);
    if (!path || access(path, R_OK) != 0 || ps_hdf5_open(path, &file, NULL) != PS_OK) goto done;
    if (isnan(info->voltage_V) && ps_hdf5_attribute_number(file, group, "High Tension", &info->voltage_V))
        snprintf(info->voltage_place, sizeof info->voltage_place, "High Tension in the microscope's file");
    bool said = ps_hdf5_attribute_number(file, group, "NumPixelsY", &rows) && ps_hdf5_attribute_number(file, group, "NumPixelsX", &columns);
    ps_hdf5_attribute_number(file, group, "NumPixelsPrescan", &prescan);
    if (said && rows * columns == (double)info->n_positions) {
        info->scan_rows = (int64_t)rows;
        info->scan_columns = (int64_t)columns;
        snprintf(info->scan_place, sizeof info->scan_place, "NumPixelsY and NumPixelsX in the microscope's file");
    } else if (said)
        ps_reader_note(&r->base,
                       "warning: %s says a scan of %g x %g with %g prescan pixels, which does not fit %" PRId64 " detector frames", path,
                       rows, columns, prescan, info->n_positions);
    if (ps_hdf5_attribute_number(file, group, "Pixel Size", &pixel))
        ps_reader_note(&r->base, "%s says a pixel size of %g without a unit: not used", path, pixel);
done:
    if (file >= 0) H5Fclose(file);
    free(path);
}

static ps_code open_master(const char *path, const char *dataset, const ps_reader_options *options, ps_reader **reader, ps_error *error) {
    (void)dataset;
    ps_code code = PS_OK;
    ps_hdf5_reader *r = NULL;
    master m = {.options = options, .file = -1};
    ps_hdf5_lock();
    PS_GO(ps_hdf5_reader_create(&ps_reader_dectris, path, &r, error));
    m.reader = r;
    r->segments.allow_partial = options->allow_partial;
    r->segments.channels = true;
    r->segments.channel = options->channel;
    snprintf(r->base.info.format, sizeof r->base.info.format, "Dectris master");
    PS_GO(ps_hdf5_open(path, &m.file, error));
    PS_GO(add_data(&m, error));
    ps_hdf5_note(path, 0, 0); /* data files were opened in between */
    read_metadata(r, m.file);
    read_companion(r);
    PS_GO(ps_probe_list_check(&r->base, m.file, options, error));
    *reader = &r->base;
    r = NULL;
done:
    if (m.file >= 0) H5Fclose(m.file);
    if (r) ps_reader_close(&r->base);
    ps_hdf5_unlock();
    return code;
}

const ps_reader_ops ps_reader_dectris = {
    .name = "Dectris master",
    .probe = probe,
    .open = open_master,
    .close = ps_hdf5_reader_close,
    .read = ps_hdf5_reader_read,
    .mask = ps_hdf5_reader_mask,
};
