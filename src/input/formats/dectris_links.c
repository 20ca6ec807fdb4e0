#include "input/formats/dectris_links.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "hdf5/behind.h"
#include "hdf5/failure.h"
#include "hdf5/linked_file.h"
#include "hdf5/util.h"
#include "input/file_list.h"
#include "input/formats/image_numbers.h"
#include "input/name_list.h"
#include "input/series.h"

bool ps_dectris_is_numbered(const char *name) {
    static const char prefix[] = "data_";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) return false;
    const char *digits = name + sizeof prefix - 1;
    return *digits && strspn(digits, "0123456789") == strlen(digits);
}

static herr_t collect_name(hid_t group, const char *name, const H5L_info_t *info, void *list) {
    (void)group, (void)info;
    return ps_name_list_add(list, name) == PS_OK ? 0 : -1;
}

/* Names in /entry/data in natural order; the numbered ones alone where there are any. */
static ps_code list_links(const char *path, hid_t file, ps_name_list *names, ps_error *error) {
    if (H5Literate_by_name(file, PS_DECTRIS_DATA, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, collect_name, names, H5P_DEFAULT) < 0)
        return ps_hdf5_fail(error, "%s: cannot list %s", path, PS_DECTRIS_DATA);
    int64_t n_numbered = 0;
    for (int64_t i = 0; i < names->n; i++) n_numbered += ps_dectris_is_numbered(names->names[i]);
    if (n_numbered > 0) ps_name_list_filter(names, ps_dectris_is_numbered);
    ps_name_list_sort(names, ps_natural_compare);
    return PS_OK;
}

typedef struct {
    ps_hdf5_reader *reader;
    const ps_reader_options *options;
    hid_t file, group;
    ps_image_list list; /* in the order of the links' names */
} links;

/* The data that was just added, or a file that is missing. */
static ps_code note_piece(links *l, const char *link, const char *file, int64_t first_segment, int64_t first_position, ps_error *error) {
    const ps_segments *segments = &l->reader->segments;
    bool there = segments->n_segments > first_segment;
    ps_image_piece piece = {.link = strdup(link),
                            .file = strdup(file),
                            .first_segment = first_segment,
                            .n_segments = segments->n_segments - first_segment,
                            .n = segments->n_positions - first_position,
                            .low = there ? segments->image_low : 0,
                            .high = there ? segments->image_high : 0};
    return ps_image_list_add(&l->list, &piece, error);
}

/* Reads an external link into malloc'd names; the path is NULL when the file is not found. */
static ps_code read_external(const links *l, const char *link, size_t value_bytes, char **linked, char **path, char **dataset,
                             ps_error *error) {
    ps_code code = PS_OK;
    char *name = ps_text_format("%s/%s", PS_DECTRIS_DATA, link), *value = malloc(value_bytes + 1);
    const char *file_name = NULL, *dataset_name = NULL;
    unsigned flags = 0;
    PS_GO_ALLOC(error, name);
    PS_GO_ALLOC(error, value);
    if (H5Lget_val(l->file, name, value, value_bytes, H5P_DEFAULT) < 0 ||
        H5Lunpack_elink_val(value, value_bytes, &flags, &file_name, &dataset_name) < 0) {
        code = ps_hdf5_fail(error, "%s: cannot read the link %s", l->reader->base.path, name);
        goto done;
    }
    *linked = strdup(file_name);
    *dataset = strdup(dataset_name);
    PS_GO_ALLOC(error, *linked);
    PS_GO_ALLOC(error, *dataset);
    *path = ps_linked_file_find(l->reader->base.path, file_name);
done:
    free(value);
    free(name);
    return code;
}

static ps_code add_external(links *l, const char *link, size_t value_bytes, ps_error *error) {
    ps_code code = PS_OK;
    ps_segments *segments = &l->reader->segments;
    char *linked = NULL, *path = NULL, *dataset = NULL;
    int64_t first_segment = segments->n_segments, first_position = segments->n_positions;
    PS_GO(read_external(l, link, value_bytes, &linked, &path, &dataset, error));
    if (!path && !l->options->allow_partial) {
        code = PS_FAIL(error, PS_E_INPUT,
                       "%s: the data file %s (link %s/%s) is missing; it would hold patterns from %" PRId64
                       " on; series.allow_partial fills what is missing",
                       l->reader->base.path, linked, PS_DECTRIS_DATA, link, segments->n_positions);
        goto done;
    }
    if (path)
        PS_GO(ps_segments_add(segments, path, dataset, &l->reader->base.info, error));
    else
        PS_GO(ps_file_list_add(&l->reader->base.files, linked, error)); /* missing: part of what the recording is */
    PS_GO(note_piece(l, link, linked, first_segment, first_position, error));
done:
    free(linked);
    free(path);
    free(dataset);
    return code;
}

static ps_code add_internal(links *l, const char *link, ps_error *error) {
    ps_code code = PS_OK;
    ps_hdf5_reader *r = l->reader;
    int64_t first_segment = r->segments.n_segments, first_position = r->segments.n_positions;
    char *name = ps_text_format("%s/%s", PS_DECTRIS_DATA, link);
    H5O_info_t info;
    PS_GO_ALLOC(error, name);
    bool exists = ps_hdf5_exists(l->file, name);
    const char *refused = exists ? NULL : ps_hdf5_refused_link();
    bool is_dataset = exists && ps_hdf5_note_lack(H5Oget_info_by_name2(l->file, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0) &&
                      info.type == H5O_TYPE_DATASET;
    if (is_dataset) {
        PS_GO(ps_segments_add(&r->segments, r->base.path, name, &r->base.info, error));
        PS_GO(note_piece(l, link, r->base.path, first_segment, first_position, error));
    } else if (refused)
        code = PS_FAIL(error, PS_E_INPUT, "%s:%s: behind a link: %s", r->base.path, name, refused);
    else if (ps_dectris_is_numbered(link))
        code = PS_FAIL(error, PS_E_INPUT, "%s: %s is no dataset or does not exist", r->base.path, name);
done:
    free(name);
    return code;
}

/* Size of an external link's value; 0: the link is of another kind. */
static size_t external_bytes(hid_t group, const char *link) {
    H5L_info_t info;
    return ps_hdf5_note_lack(H5Lget_info(group, link, &info, H5P_DEFAULT) >= 0) && info.type == H5L_TYPE_EXTERNAL ? info.u.val_size : 0;
}

ps_code ps_dectris_add_data(ps_hdf5_reader *reader, hid_t master, const ps_reader_options *options, int64_t promised, ps_error *error) {
    ps_code code = PS_OK;
    ps_name_list names = {0};
    links l = {.reader = reader, .options = options, .file = master};
    l.group = H5Gopen2(master, PS_DECTRIS_DATA, H5P_DEFAULT);
    ps_hdf5_note_lack(l.group >= 0);
    PS_GO(list_links(reader->base.path, master, &names, error));
    for (int64_t i = 0; i < names.n; i++) {
        size_t bytes = external_bytes(l.group, names.names[i]);
        PS_GO(bytes ? add_external(&l, names.names[i], bytes, error) : add_internal(&l, names.names[i], error));
    }
    PS_GO(ps_image_list_arrange(&l.list, reader, promised, error));
    if (!reader->segments.is_written)
        code = PS_FAIL(error, PS_E_INPUT, "%s: no data in or linked from %s", reader->base.path, PS_DECTRIS_DATA);
done:
    if (l.group >= 0) H5Gclose(l.group);
    ps_name_list_free(&names);
    ps_image_list_free(&l.list);
    return code;
}
