#include "input/formats/hdf5_segments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/virtual.h"
#include "input/file_list.h"

static void describe_first(const ps_segments *list, const ps_hdf5_dataset *dataset, ps_recording *info) {
    info->detector_rows = dataset->rows;
    info->detector_columns = dataset->columns;
    info->dtype = dataset->dtype;
    info->stored = dataset->stored;
    info->big_endian = dataset->big_endian;
    memcpy(info->compression, dataset->compression, sizeof info->compression);
    if (dataset->rank == 4 && !list->channels) {
        info->scan_rows = dataset->lead[0];
        info->scan_columns = dataset->lead[1];
        snprintf(info->scan_place, sizeof info->scan_place, "shape of the dataset");
    }
}

const char *ps_stored_name(ps_dtype dtype, ps_stored stored) {
    return stored == PS_FROM_I64 ? "int64" : stored == PS_FROM_U64 ? "uint64" : ps_dtype_name(dtype);
}

static ps_code check_like_first(const ps_segments *list, const ps_hdf5_dataset *dataset, const ps_recording *info, ps_error *error) {
    if (dataset->rows == info->detector_rows && dataset->columns == info->detector_columns && dataset->dtype == info->dtype &&
        dataset->stored == info->stored)
        return PS_OK;
    const ps_segment *first = list->segments;
    while (!first->path) first++;
    return PS_FAIL(error, PS_E_INPUT,
                   "%s:%s: holds patterns of %" PRId64 " x %" PRId64 " %s, but %s:%s of the same recording holds %" PRId64 " x %" PRId64
                   " %s",
                   dataset->path, dataset->name, dataset->rows, dataset->columns, ps_stored_name(dataset->dtype, dataset->stored),
                   first->path, first->name, info->detector_rows, info->detector_columns, ps_stored_name(info->dtype, info->stored));
}

ps_code ps_segments_check_channel(const ps_segments *list, const ps_hdf5_dataset *dataset, ps_error *error) {
    int64_t n = dataset->rank == 4 ? dataset->lead[1] : 1;
    if (!list->channels || (n == 1 && list->channel <= 1) || (list->channel >= 1 && list->channel <= n)) return PS_OK;
    if (list->channel == 0)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s:%s: holds %" PRId64 " channels (image, channel, row, column); choose one with series.channel, 1 to %" PRId64,
                       dataset->path, dataset->name, n, n);
    return PS_FAIL(error, PS_E_INPUT, "%s:%s: series.channel is %" PRId64 ", but the data has channels 1 to %" PRId64, dataset->path,
                   dataset->name, list->channel, n);
}

/* Room for one more segment, all zero. */
static ps_code append(ps_segments *list, int64_t n, ps_recording *info, ps_segment **segment, ps_error *error) {
    if (list->n_segments == list->room) {
        int64_t room = list->room ? 2 * list->room : 8;
        ps_segment *larger = realloc(list->segments, (size_t)room * sizeof *larger);
        if (!larger) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %" PRId64 " data files", room);
        list->segments = larger;
        list->room = room;
    }
    *segment = &list->segments[list->n_segments++];
    **segment = (ps_segment){.first = list->n_positions, .n = n};
    list->n_positions += n;
    info->n_positions = list->n_positions;
    return PS_OK;
}

ps_code ps_segments_add_missing(ps_segments *list, int64_t n, ps_recording *info, ps_error *error) {
    ps_segment *segment = NULL;
    if (n <= 0) return PS_OK;
    PS_TRY(append(list, n, info, &segment, error));
    info->n_missing += n;
    return PS_OK;
}

void ps_segments_begin_again(ps_segments *list, ps_recording *info) {
    *list = (ps_segments){
        .is_written = list->is_written, .allow_partial = list->allow_partial, .channels = list->channels, .channel = list->channel};
    info->n_positions = info->n_missing = 0;
}

ps_code ps_segments_take(ps_segments *list, ps_segment *segment, ps_recording *info, ps_error *error) {
    ps_segment *to = NULL;
    if (!segment->path) return ps_segments_add_missing(list, segment->n, info, error);
    PS_TRY(append(list, segment->n, info, &to, error));
    int64_t first = to->first;
    *to = *segment;
    to->first = first;
    *segment = (ps_segment){0};
    return PS_OK;
}

static bool is_new_file(const ps_segments *list, const char *path) {
    for (int64_t i = list->n_segments - 1; i >= 0; i--)
        if (list->segments[i].path && strcmp(list->segments[i].path, path) == 0) return false;
    return true;
}

static bool holds_data(const ps_segments *list) {
    for (int64_t i = 0; i < list->n_segments; i++)
        if (list->segments[i].path) return true;
    return false;
}

static ps_code note_written(ps_segments *list, ps_hdf5_dataset *dataset, ps_error *error) {
    bool empty = true;
    PS_TRY(ps_hdf5_dataset_is_empty(dataset, &empty, error));
    list->is_written = !empty;
    return PS_OK;
}

/* Positions source_first ... of an opened dataset that is not virtual, or that only HDF5 can read; n < 0: all. */
static ps_code add_opened(ps_segments *list, ps_hdf5_dataset *dataset, const char *path, const char *name, int64_t source_first, int64_t n,
                          ps_recording *info, ps_error *error) {
    ps_segment *segment = NULL;
    int64_t all = list->channels ? dataset->lead[0] : dataset->n_positions;
    PS_TRY(ps_segments_check_channel(list, dataset, error));
    bool first = !holds_data(list);
    if (first)
        describe_first(list, dataset, info);
    else
        PS_TRY(check_like_first(list, dataset, info, error));
    if (list->n_segments > 0) { /* rank 4 in several pieces tells no scan shape */
        info->scan_rows = info->scan_columns = 0;
        info->scan_place[0] = '\0';
    }
    if (n < 0) n = all;
    if (source_first > all || n > all - source_first)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s:%s: holds %" PRId64 " patterns, but a virtual dataset takes %" PRId64 " from pattern %" PRId64 " on",
                       dataset->path, dataset->name, all, n, source_first);
    if (list->files) PS_TRY(ps_file_list_add_dataset(list->files, dataset, error));
    if (!list->is_written) PS_TRY(note_written(list, dataset, error));
    bool new_file = is_new_file(list, path);
    PS_TRY(append(list, n, info, &segment, error));
    segment->source_first = source_first;
    segment->rows = dataset->rows;
    segment->columns = dataset->columns;
    segment->dtype = dataset->dtype;
    segment->stored = dataset->stored;
    segment->path = strdup(path);
    segment->name = strdup(name);
    if (!segment->path || !segment->name) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the name of a data file");
    info->n_files += new_file;
    return PS_OK;
}

static ps_code add_piece(ps_segments *list, const ps_hdf5_dataset *from, const ps_virtual_piece *piece, ps_recording *info,
                         ps_error *error) {
    ps_hdf5_dataset *source = NULL;
    if (list->files) PS_TRY(ps_file_list_add(list->files, piece->path, error));
    if (!piece->exists) {
        if (list->allow_partial) return ps_segments_add_missing(list, piece->n, info, error);
        return PS_FAIL(error, PS_E_INPUT,
                       "%s:%s: the source file %s of the virtual dataset is missing; it would hold patterns %" PRId64 " to %" PRId64,
                       from->path, from->name, piece->path, list->n_positions, list->n_positions + piece->n - 1);
    }
    ps_code code = ps_hdf5_dataset_open(piece->path, piece->name, &source, error);
    if (code == PS_OK && piece->whole_source && source->n_positions != piece->n)
        code = PS_FAIL(error, PS_E_INPUT, "%s:%s: holds %" PRId64 " patterns, but the virtual dataset of %s takes %" PRId64, piece->path,
                       piece->name, source->n_positions, from->path, piece->n);
    if (code == PS_OK) code = add_opened(list, source, piece->path, piece->name, piece->source_first, piece->n, info, error);
    ps_hdf5_dataset_close(source);
    return code;
}

/* A gap between the sources of a virtual dataset. */
static ps_code add_gap(ps_segments *list, const ps_hdf5_dataset *dataset, int64_t n, ps_recording *info, ps_error *error) {
    if (n <= 0) return PS_OK;
    if (list->allow_partial) return ps_segments_add_missing(list, n, info, error);
    return PS_FAIL(error, PS_E_INPUT, "%s:%s: a virtual dataset without a source for patterns %" PRId64 " to %" PRId64, dataset->path,
                   dataset->name, list->n_positions, list->n_positions + n - 1);
}

/* HDF5 reads zeros where a source is missing, or none is named. */
static ps_code check_whole(const ps_hdf5_dataset *dataset, const ps_virtual_piece *pieces, int64_t n_pieces, ps_error *error) {
    int64_t end = 0;
    for (int64_t i = 0; i < n_pieces; i++) {
        if (!pieces[i].exists)
            return PS_FAIL(error, PS_E_INPUT, "%s:%s: the source file %s of the virtual dataset is missing", dataset->path, dataset->name,
                           pieces[i].path);
        if (pieces[i].first != end) break;
        end += pieces[i].n;
    }
    if (end == dataset->n_positions) return PS_OK;
    return PS_FAIL(error, PS_E_INPUT, "%s:%s: a virtual dataset without a source for patterns from %" PRId64 " on", dataset->path,
                   dataset->name, end);
}

static ps_code add_virtual(ps_segments *list, ps_hdf5_dataset *dataset, const char *path, const char *name, ps_recording *info,
                           ps_error *error) {
    ps_virtual_piece *pieces = NULL;
    int64_t n_pieces = 0, begin = list->n_positions;
    bool whole_frames = false, alone = list->n_segments == 0, has_channels = list->channels && dataset->rank == 4;
    ps_code code = PS_OK;
    if (list->files) PS_GO(ps_file_list_add(list->files, dataset->path, error));
    PS_GO(ps_virtual_list(dataset, &pieces, &n_pieces, &whole_frames, error));
    if (!whole_frames || has_channels) {
        if (whole_frames) PS_GO(check_whole(dataset, pieces, n_pieces, error));
        PS_GO(add_opened(list, dataset, path, name, 0, -1, info, error));
        goto done;
    }
    for (int64_t i = 0; i < n_pieces; i++) {
        PS_GO(add_gap(list, dataset, begin + pieces[i].first - list->n_positions, info, error));
        PS_GO(add_piece(list, dataset, &pieces[i], info, error));
    }
    PS_GO(add_gap(list, dataset, begin + dataset->n_positions - list->n_positions, info, error));
    if (!holds_data(list)) {
        code = PS_FAIL(error, PS_E_INPUT, "%s:%s: a virtual dataset of which no source file is there", path, name);
        goto done;
    }
    if (alone && dataset->rank == 4) {
        info->scan_rows = dataset->lead[0];
        info->scan_columns = dataset->lead[1];
        snprintf(info->scan_place, sizeof info->scan_place, "shape of the virtual dataset");
    }
done:
    ps_virtual_free(pieces, n_pieces);
    return code;
}

ps_code ps_segments_add(ps_segments *list, const char *path, const char *name, ps_recording *info, ps_error *error) {
    ps_hdf5_dataset *dataset = NULL;
    ps_code code = ps_hdf5_dataset_open(path, name, &dataset, error);
    if (code == PS_OK) {
        list->image_low = dataset->image_low;
        list->image_high = dataset->image_high;
    }
    if (code == PS_OK)
        code = dataset->is_virtual ? add_virtual(list, dataset, path, name, info, error)
                                   : add_opened(list, dataset, path, name, 0, -1, info, error);
    ps_hdf5_dataset_close(dataset);
    return code;
}

void ps_segments_free(ps_segments *list) {
    for (int64_t i = 0; i < list->n_segments; i++) {
        ps_hdf5_dataset_close(list->segments[i].opened);
        free(list->segments[i].path);
        free(list->segments[i].name);
    }
    free(list->segments);
    *list = (ps_segments){0};
}
