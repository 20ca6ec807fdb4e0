#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "input/formats/hdf5_segments.h"

enum { PIECE_BYTES = 64 << 20 }; /* of all channels held at once while one is picked */

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
        return PS_FAIL(error, PS_E_INPUT, "%s:%s: changed while it was in use: holds %" PRId64 " patterns now, held at least %" PRId64,
                       segment->path, segment->name, all, needed);
    if (d->rows != segment->rows || d->columns != segment->columns || d->dtype != segment->dtype || d->stored != segment->stored)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s:%s: changed while it was in use: holds patterns of %" PRId64 " x %" PRId64 " %s now, held %" PRId64 " x %" PRId64
                       " %s",
                       segment->path, segment->name, d->rows, d->columns, ps_stored_name(d->dtype, d->stored), segment->rows,
                       segment->columns, ps_stored_name(segment->dtype, segment->stored));
    return ps_segments_check_channel(list, d, error);
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

ps_code ps_segments_use(ps_segments *list, int64_t i, ps_error *error) {
    return use_segment(list, &list->segments[i], error);
}

ps_code ps_segments_bytes(ps_segments *list, int64_t *bytes, ps_error *error) {
    *bytes = 0;
    for (int64_t i = 0; i < list->n_segments; i++) {
        if (!list->segments[i].path) continue;
        PS_TRY(use_segment(list, &list->segments[i], error));
        *bytes += ps_hdf5_dataset_bytes(list->segments[i].opened);
    }
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

/* Looks from `position` on in steps of `step` for a pattern that has data. *found: false when there is none that way. */
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

/* Fills missing patterns from the nearest one before, else after; the same whatever the chunks in which positions are read. */
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
        if (!found) return PS_FAIL(error, PS_E_INPUT, "no pattern of the recording has data");
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
