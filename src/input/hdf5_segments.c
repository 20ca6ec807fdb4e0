#include "input/hdf5_segments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void describe_first(const ps_hdf5_dataset *dataset, ps_recording *info) {
    info->detector_rows = dataset->rows;
    info->detector_columns = dataset->columns;
    info->dtype = dataset->dtype;
    info->big_endian = dataset->big_endian;
    memcpy(info->compression, dataset->compression, sizeof info->compression);
    if (dataset->rank == 4) {
        info->scan_rows = dataset->lead[0];
        info->scan_columns = dataset->lead[1];
    }
}

static ps_code check_like_first(const ps_hdf5_dataset *dataset, const ps_segment *first, const ps_recording *info, ps_error *error) {
    if (dataset->rows == info->detector_rows && dataset->columns == info->detector_columns && dataset->dtype == info->dtype) return PS_OK;
    return PS_FAIL(error, PS_E_INPUT,
                   "%s:%s: holds frames of %" PRId64 " x %" PRId64 " %s, but %s:%s of the same recording holds %" PRId64 " x %" PRId64
                   " %s",
                   dataset->path, dataset->name, dataset->rows, dataset->columns, ps_dtype_name(dataset->dtype), first->path, first->name,
                   info->detector_rows, info->detector_columns, ps_dtype_name(info->dtype));
}

static ps_code make_room(ps_segments *list, ps_error *error) {
    if (list->n_segments < list->room) return PS_OK;
    int64_t room = list->room ? 2 * list->room : 8;
    ps_segment *larger = realloc(list->segments, (size_t)room * sizeof *larger);
    if (!larger) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %" PRId64 " data files", room);
    list->segments = larger;
    list->room = room;
    return PS_OK;
}

static bool is_new_file(const ps_segments *list, const char *path) {
    for (int64_t i = list->n_segments - 1; i >= 0; i--)
        if (strcmp(list->segments[i].path, path) == 0) return false;
    return true;
}

ps_code ps_segments_add(ps_segments *list, const char *path, const char *name, ps_recording *info, ps_error *error) {
    ps_code code = PS_OK;
    ps_hdf5_dataset *dataset = NULL;
    ps_segment segment = {.first = list->n_positions};
    PS_GO(make_room(list, error));
    PS_GO(ps_hdf5_dataset_open(path, name, &dataset, error));
    if (list->n_segments == 0)
        describe_first(dataset, info);
    else
        PS_GO(check_like_first(dataset, &list->segments[0], info, error));
    if (list->n_segments > 0) info->scan_rows = info->scan_columns = 0; /* rank 4 in several pieces tells no scan shape */
    segment.n = dataset->n_positions;
    segment.path = strdup(path);
    segment.name = strdup(name);
    if (!segment.path || !segment.name) {
        free(segment.path);
        free(segment.name);
        code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the name of a data file");
        goto done;
    }
    info->n_files += is_new_file(list, path);
    info->data_bytes += dataset->data_bytes;
    info->n_positions = list->n_positions += segment.n;
    list->segments[list->n_segments++] = segment;
done:
    ps_hdf5_dataset_close(dataset);
    return code;
}

static void close_oldest(ps_segments *list) {
    ps_segment *oldest = NULL;
    for (int64_t i = 0; i < list->n_segments; i++) {
        ps_segment *s = &list->segments[i];
        if (s->opened && (!oldest || s->last_use < oldest->last_use)) oldest = s;
    }
    if (!oldest) return;
    ps_hdf5_dataset_close(oldest->opened);
    oldest->opened = NULL;
    list->n_open--;
}

/* Opens the segment unless it is open, and sees that it still holds what it held when the recording was opened. */
static ps_code use_segment(ps_segments *list, ps_segment *segment, size_t frame_bytes, ps_error *error) {
    segment->last_use = ++list->clock;
    if (segment->opened) return PS_OK;
    if (list->n_open >= PS_MAX_OPEN_SEGMENTS) close_oldest(list);
    PS_TRY(ps_hdf5_dataset_open(segment->path, segment->name, &segment->opened, error));
    list->n_open++;
    ps_hdf5_dataset *d = segment->opened;
    if (d->n_positions < segment->n || (size_t)(d->rows * d->columns) * ps_dtype_bytes(d->dtype) != frame_bytes)
        return PS_FAIL(error, PS_E_INPUT, "%s:%s: changed while it was in use: holds %" PRId64 " frames now, held %" PRId64, segment->path,
                       segment->name, d->n_positions, segment->n);
    return PS_OK;
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

ps_code ps_segments_read(ps_segments *list, int64_t first_position, int64_t n_positions, size_t frame_bytes, void *counts,
                         ps_error *error) {
    int64_t done = 0;
    for (int64_t i = find_segment(list, first_position); done < n_positions; i++) {
        ps_segment *segment = &list->segments[i];
        int64_t from = first_position + done - segment->first, n = segment->n - from;
        if (n > n_positions - done) n = n_positions - done;
        PS_TRY(use_segment(list, segment, frame_bytes, error));
        PS_TRY(ps_hdf5_dataset_read(segment->opened, from, n, segment->first, (uint8_t *)counts + (size_t)done * frame_bytes, error));
        done += n;
    }
    return PS_OK;
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
