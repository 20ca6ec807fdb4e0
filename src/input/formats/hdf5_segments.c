#include "input/formats/hdf5_segments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/file_list.h"
#include "hdf5/virtual.h"

enum { PIECE_BYTES = 64 << 20 }; /* of all channels held at once while one is picked */

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

/* As the file has it. */
static const char *name_type(ps_dtype dtype, ps_stored stored) {
    return stored == PS_FROM_I64 ? "int64" : stored == PS_FROM_U64 ? "uint64" : ps_dtype_name(dtype);
}

static ps_code check_like_first(const ps_segments *list, const ps_hdf5_dataset *dataset, const ps_recording *info, ps_error *error) {
    if (dataset->rows == info->detector_rows && dataset->columns == info->detector_columns && dataset->dtype == info->dtype &&
        dataset->stored == info->stored)
        return PS_OK;
    const ps_segment *first = list->segments;
    while (!first->path) first++;
    return PS_FAIL(error, PS_E_INPUT,
                   "%s:%s: holds frames of %" PRId64 " x %" PRId64 " %s, but %s:%s of the same recording holds %" PRId64 " x %" PRId64
                   " %s",
                   dataset->path, dataset->name, dataset->rows, dataset->columns, name_type(dataset->dtype, dataset->stored), first->path,
                   first->name, info->detector_rows, info->detector_columns, name_type(info->dtype, info->stored));
}

static ps_code check_channel(const ps_segments *list, const ps_hdf5_dataset *dataset, ps_error *error) {
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
    *list = (ps_segments){.allow_partial = list->allow_partial, .channels = list->channels, .channel = list->channel};
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

/* Positions source_first ... of an opened dataset that is not virtual, or that only HDF5 can read; n < 0: all. */
static ps_code add_opened(ps_segments *list, const ps_hdf5_dataset *dataset, const char *path, const char *name, int64_t source_first,
                          int64_t n, ps_recording *info, ps_error *error) {
    ps_segment *segment = NULL;
    int64_t all = list->channels ? dataset->lead[0] : dataset->n_positions;
    PS_TRY(check_channel(list, dataset, error));
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
                       "%s:%s: holds %" PRId64 " frames, but a virtual dataset takes %" PRId64 " from frame %" PRId64 " on", dataset->path,
                       dataset->name, all, n, source_first);
    if (list->files) PS_TRY(ps_file_list_add_dataset(list->files, dataset, error));
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
    info->data_bytes += dataset->data_bytes;
    return PS_OK;
}

static ps_code add_piece(ps_segments *list, const ps_hdf5_dataset *from, const ps_virtual_piece *piece, ps_recording *info,
                         ps_error *error) {
    ps_hdf5_dataset *source = NULL;
    if (list->files) PS_TRY(ps_file_list_add(list->files, piece->path, error));
    if (!piece->exists) {
        if (list->allow_partial) return ps_segments_add_missing(list, piece->n, info, error);
        return PS_FAIL(error, PS_E_INPUT,
                       "%s:%s: the source file %s of the virtual dataset is missing; it would hold detector frames %" PRId64 " to %" PRId64,
                       from->path, from->name, piece->path, list->n_positions, list->n_positions + piece->n - 1);
    }
    ps_code code = ps_hdf5_dataset_open(piece->path, piece->name, &source, error);
    if (code == PS_OK && piece->whole_source && source->n_positions != piece->n)
        code = PS_FAIL(error, PS_E_INPUT, "%s:%s: holds %" PRId64 " detector frames, but the virtual dataset of %s takes %" PRId64,
                       piece->path, piece->name, source->n_positions, from->path, piece->n);
    if (code == PS_OK) code = add_opened(list, source, piece->path, piece->name, piece->source_first, piece->n, info, error);
    ps_hdf5_dataset_close(source);
    return code;
}

/* A gap between the sources of a virtual dataset. */
static ps_code add_gap(ps_segments *list, const ps_hdf5_dataset *dataset, int64_t n, ps_recording *info, ps_error *error) {
    if (n <= 0) return PS_OK;
    if (list->allow_partial) return ps_segments_add_missing(list, n, info, error);
    return PS_FAIL(error, PS_E_INPUT, "%s:%s: a virtual dataset without a source for detector frames %" PRId64 " to %" PRId64,
                   dataset->path, dataset->name, list->n_positions, list->n_positions + n - 1);
}

static ps_code add_virtual(ps_segments *list, const ps_hdf5_dataset *dataset, const char *path, const char *name, ps_recording *info,
                           ps_error *error) {
    ps_virtual_piece *pieces = NULL;
    int64_t n_pieces = 0, begin = list->n_positions;
    bool whole_frames = false, alone = list->n_segments == 0;
    ps_code code = PS_OK;
    if (list->files) PS_GO(ps_file_list_add(list->files, dataset->path, error));
    PS_GO(ps_virtual_list(dataset, &pieces, &n_pieces, &whole_frames, error));
    if (!whole_frames || list->channels) {
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

static void close_segment(ps_segments *list, ps_segment *segment) {
    ps_hdf5_dataset_close(segment->opened);
    segment->opened = NULL;
    list->n_open--;
}

static void close_oldest(ps_segments *list) {
    ps_segment *oldest = NULL;
    for (int64_t i = 0; i < list->n_segments; i++) {
        ps_segment *s = &list->segments[i];
        if (s->opened && (!oldest || s->last_use < oldest->last_use)) oldest = s;
    }
    if (oldest) close_segment(list, oldest);
}

/* The dataset that was opened again, against what was found when the recording was opened. */
static ps_code check_unchanged(const ps_segments *list, const ps_segment *segment, ps_error *error) {
    const ps_hdf5_dataset *d = segment->opened;
    int64_t all = list->channels ? d->lead[0] : d->n_positions, needed = segment->source_first + segment->n;
    if (all < needed)
        return PS_FAIL(error, PS_E_INPUT, "%s:%s: changed while it was in use: holds %" PRId64 " frames now, held at least %" PRId64,
                       segment->path, segment->name, all, needed);
    if (d->rows != segment->rows || d->columns != segment->columns || d->dtype != segment->dtype || d->stored != segment->stored)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s:%s: changed while it was in use: holds frames of %" PRId64 " x %" PRId64 " %s now, held %" PRId64 " x %" PRId64
                       " %s",
                       segment->path, segment->name, d->rows, d->columns, name_type(d->dtype, d->stored), segment->rows,
                       segment->columns, name_type(segment->dtype, segment->stored));
    return check_channel(list, d, error);
}

/* Opens the segment unless it is open, and sees that it still holds what it held when the recording was opened. */
static ps_code use_segment(ps_segments *list, ps_segment *segment, ps_error *error) {
    segment->last_use = ++list->clock;
    if (segment->opened) return PS_OK;
    if (list->n_open >= PS_MAX_OPEN_SEGMENTS) close_oldest(list);
    PS_TRY(ps_hdf5_dataset_open(segment->path, segment->name, &segment->opened, error));
    list->n_open++;
    ps_code code = check_unchanged(list, segment, error);
    if (code != PS_OK) close_segment(list, segment); /* or the next read would take it for checked */
    return code;
}

/* The segment that holds a position. */
static int64_t find_segment(const ps_segments *list, int64_t position) {
    int64_t low = 0, high = list->n_segments - 1;
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (list->segments[middle].first <= position)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* One channel of images read->first ..., through a buffer of all channels. */
static ps_code read_channel(ps_hdf5_dataset *dataset, int64_t channel, size_t frame_bytes, const ps_hdf5_read *read, ps_error *error) {
    int64_t n_channels = dataset->lead[1], most = (int64_t)(PIECE_BYTES / ((size_t)n_channels * frame_bytes));
    if (most < 1) most = 1;
    if (most > read->n) most = read->n;
    ps_code code = PS_OK;
    uint8_t *frames = malloc((size_t)(most * n_channels) * frame_bytes), *missing = calloc((size_t)(most * n_channels), 1);
    PS_GO_ALLOC(error, frames);
    PS_GO_ALLOC(error, missing);
    for (int64_t done = 0, n; done < read->n; done += n) {
        n = read->n - done < most ? read->n - done : most;
        ps_hdf5_read all = {.first = (read->first + done) * n_channels,
                            .n = n * n_channels,
                            .frame_offset = read->frame_offset * n_channels,
                            .counts = frames,
                            .missing = read->missing ? missing : NULL};
        memset(missing, 0, (size_t)(most * n_channels));
        PS_GO(ps_hdf5_dataset_read(dataset, &all, error));
        for (int64_t i = 0; i < n; i++) {
            int64_t from = i * n_channels + channel - 1;
            memcpy((uint8_t *)read->counts + (size_t)(done + i) * frame_bytes, frames + (size_t)from * frame_bytes, frame_bytes);
            if (read->missing) read->missing[done + i] = missing[from];
        }
    }
done:
    free(missing);
    free(frames);
    return code;
}

/* Positions of one segment into counts; missing: [n] or NULL */
static ps_code read_segment(ps_segments *list, ps_segment *segment, int64_t first, int64_t n, size_t frame_bytes, void *counts,
                            uint8_t *missing, ps_error *error) {
    if (!segment->path) {
        memset(missing, 1, (size_t)n); /* segments without data are only there when they may be */
        return PS_OK;
    }
    PS_TRY(use_segment(list, segment, error));
    ps_hdf5_read read = {.first = segment->source_first + first - segment->first,
                         .n = n,
                         .frame_offset = segment->first - segment->source_first,
                         .counts = counts,
                         .missing = missing};
    if (list->channels && segment->opened->rank == 4 && segment->opened->lead[1] > 1)
        return read_channel(segment->opened, list->channel, frame_bytes, &read, error);
    return ps_hdf5_dataset_read(segment->opened, &read, error);
}

/* Looks from `position` on in steps of `step` for a frame that has data. *found: false when there is none that way. */
static ps_code find_donor(ps_segments *list, int64_t position, int step, size_t frame_bytes, void *frame, bool *found, ps_error *error) {
    *found = false;
    while (position >= 0 && position < list->n_positions) {
        ps_segment *segment = &list->segments[find_segment(list, position)];
        uint8_t missing = 0;
        PS_TRY(read_segment(list, segment, position, 1, frame_bytes, frame, &missing, error));
        *found = !missing;
        if (*found) return PS_OK;
        if (segment->path)
            position += step;
        else
            position = step < 0 ? segment->first - 1 : segment->first + segment->n;
    }
    return PS_OK;
}

/* Fills missing frames from the nearest one before, else after; the same whatever the chunks in which positions are read. */
static ps_code fill_missing(ps_segments *list, int64_t first, int64_t n, size_t frame_bytes, uint8_t *counts, const uint8_t *missing,
                            ps_error *error) {
    for (int64_t i = 0; i < n; i++) {
        uint8_t *frame = counts + (size_t)i * frame_bytes;
        bool found = true;
        if (!missing[i]) continue;
        if (i > 0)
            memcpy(frame, frame - frame_bytes, frame_bytes);
        else {
            PS_TRY(find_donor(list, first - 1, -1, frame_bytes, frame, &found, error));
            if (!found) PS_TRY(find_donor(list, first + 1, 1, frame_bytes, frame, &found, error));
        }
        if (!found) return PS_FAIL(error, PS_E_INPUT, "no detector frame of the recording has data");
    }
    return PS_OK;
}

ps_code ps_segments_read(ps_segments *list, int64_t first_position, int64_t n_positions, size_t frame_bytes, void *counts,
                         ps_error *error) {
    ps_code code = PS_OK;
    uint8_t *missing = NULL;
    if (list->allow_partial) {
        missing = calloc((size_t)n_positions, 1);
        PS_GO_ALLOC(error, missing);
    }
    int64_t done = 0;
    for (int64_t i = find_segment(list, first_position); done < n_positions; i++) {
        ps_segment *segment = &list->segments[i];
        int64_t first = first_position + done, n = segment->first + segment->n - first;
        if (n > n_positions - done) n = n_positions - done;
        PS_GO(read_segment(list, segment, first, n, frame_bytes, (uint8_t *)counts + (size_t)done * frame_bytes,
                           missing ? missing + done : NULL, error));
        done += n;
    }
    if (missing) PS_GO(fill_missing(list, first_position, n_positions, frame_bytes, counts, missing, error));
done:
    free(missing);
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
