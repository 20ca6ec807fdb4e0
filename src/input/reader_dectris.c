/* Dectris masters: /entry/data holds links data_000001, data_000002 ... to data files beside the master, or the data itself.
 * What the master says of the detector (mask, saturation) and the beam is read from where Eiger and Arina write it. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "input/hdf5_util.h"
#include "input/name_list.h"
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

/* The linked file: as it stands when absolute, beside the master (beside what it is a link to, before beside the link), or, for an
 * absolute path that no longer exists, by its name beside the master. malloc'd; NULL: not found. */
static char *find_linked_file(const char *master, const char *linked) {
    char real[PATH_MAX];
    const char *slash = strrchr(linked, '/');
    char *beside = ps_path_directory(master), *behind = realpath(master, real) ? ps_path_directory(real) : NULL;
    char *candidates[4] = {
        linked[0] == '/' ? strdup(linked) : NULL,
        linked[0] != '/' && behind ? ps_text_format("%s/%s", behind, linked) : NULL,
        linked[0] != '/' ? ps_text_format("%s/%s", beside, linked) : NULL,
        linked[0] == '/' ? ps_text_format("%s/%s", beside, slash + 1) : NULL,
    };
    char *found = NULL;
    for (int i = 0; i < 4; i++) {
        if (!found && candidates[i] && access(candidates[i], F_OK) == 0)
            found = candidates[i];
        else
            free(candidates[i]);
    }
    free(beside);
    free(behind);
    return found;
}

static ps_code add_external(ps_hdf5_reader *r, hid_t file, const char *link, size_t value_bytes, ps_error *error) {
    ps_code code = PS_OK;
    char *name = ps_text_format("%s/%s", DATA_GROUP, link), *value = malloc(value_bytes), *path = NULL;
    const char *linked = NULL, *dataset = NULL;
    unsigned flags = 0;
    PS_GO_ALLOC(error, name);
    PS_GO_ALLOC(error, value);
    if (H5Lget_val(file, name, value, value_bytes, H5P_DEFAULT) < 0 ||
        H5Lunpack_elink_val(value, value_bytes, &flags, &linked, &dataset) < 0) {
        code = PS_FAIL(error, PS_E_INPUT, "%s: cannot read the link %s", r->base.path, name);
        goto done;
    }
    path = find_linked_file(r->base.path, linked);
    if (!path) {
        code = PS_FAIL(error, PS_E_INPUT, "%s: the data file %s (link %s) is missing; it would hold detector frames from %" PRId64 " on",
                       r->base.path, linked, name, r->segments.n_positions);
        goto done;
    }
    PS_GO(ps_segments_add(&r->segments, path, dataset, &r->base.info, error));
done:
    free(path);
    free(value);
    free(name);
    return code;
}

static ps_code add_internal(ps_hdf5_reader *r, hid_t file, const char *link, ps_error *error) {
    char *name = ps_text_format("%s/%s", DATA_GROUP, link);
    H5O_info_t info;
    if (!name) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a name");
    ps_code code = PS_OK;
    bool is_dataset = H5Oget_info_by_name(file, name, &info, H5P_DEFAULT) >= 0 && info.type == H5O_TYPE_DATASET;
    if (is_dataset)
        code = ps_segments_add(&r->segments, r->base.path, name, &r->base.info, error);
    else if (is_numbered(link))
        code = PS_FAIL(error, PS_E_INPUT, "%s: %s is no dataset or does not exist", r->base.path, name);
    free(name);
    return code;
}

static ps_code add_data(ps_hdf5_reader *r, hid_t file, ps_error *error) {
    ps_code code = PS_OK;
    ps_name_list names = {0};
    hid_t group = H5Gopen2(file, DATA_GROUP, H5P_DEFAULT);
    PS_GO(list_links(r->base.path, file, &names, error));
    for (int64_t i = 0; i < names.n; i++) {
        H5L_info_t info;
        bool external = H5Lget_info(group, names.names[i], &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_EXTERNAL;
        PS_GO(external ? add_external(r, file, names.names[i], info.u.val_size, error) : add_internal(r, file, names.names[i], error));
    }
    if (r->segments.n_segments == 0) code = PS_FAIL(error, PS_E_INPUT, "%s: no data in or linked from %s", r->base.path, DATA_GROUP);
done:
    if (group >= 0) H5Gclose(group);
    ps_name_list_free(&names);
    return code;
}

static void read_metadata(ps_hdf5_reader *r, hid_t file) {
    ps_recording *info = &r->base.info;
    static const char *const energies[] = {"/entry/instrument/beam/incident_energy", SPECIFIC "/photon_energy", DETECTOR "/photon_energy"};
    static const char *const masks[] = {DETECTOR "/pixel_mask", SPECIFIC "/pixel_mask"};
    static const char *const dates[] = {SPECIFIC "/data_collection_date", DETECTOR "/data_collection_date", "/entry/start_time"};
    for (int i = 0; i < 3 && isnan(info->voltage_V); i++)
        if (ps_hdf5_number(file, energies[i], &info->voltage_V) && !(info->voltage_V > 0)) info->voltage_V = NAN;
    for (int i = 0; i < 2 && !r->mask_dataset; i++)
        if (ps_hdf5_exists(file, masks[i])) r->mask_dataset = strdup(masks[i]);
    for (int i = 0; i < 3 && !info->acquisition_time[0]; i++)
        ps_hdf5_text(file, dates[i], info->acquisition_time, sizeof info->acquisition_time);
    if (ps_hdf5_number(file, DETECTOR "/saturation_value", &info->saturation) && !(info->saturation > 0)) info->saturation = NAN;
}

static ps_code open_master(const char *path, const char *dataset, const ps_reader_options *options, ps_reader **reader, ps_error *error) {
    (void)dataset, (void)options;
    ps_code code = PS_OK;
    ps_hdf5_reader *r = NULL;
    hid_t file = -1;
    ps_hdf5_lock();
    PS_GO(ps_hdf5_reader_create(&ps_reader_dectris, path, &r, error));
    snprintf(r->base.info.format, sizeof r->base.info.format, "Dectris master");
    PS_GO(ps_hdf5_open(path, &file, error));
    PS_GO(add_data(r, file, error));
    read_metadata(r, file);
    *reader = &r->base;
    r = NULL;
done:
    if (file >= 0) H5Fclose(file);
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
