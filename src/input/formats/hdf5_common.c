#include "input/formats/hdf5_common.h"

#include <stdlib.h>
#include <string.h>

#include "input/adapters/mask.h"

ps_code ps_hdf5_reader_create(const ps_reader_ops *ops, const char *path, ps_hdf5_reader **reader, ps_error *error) {
    *reader = calloc(1, sizeof **reader);
    char *copy = strdup(path);
    if (!*reader || !copy) {
        free(*reader);
        free(copy);
        *reader = NULL;
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a reader");
    }
    (*reader)->base.ops = ops;
    (*reader)->base.path = copy;
    (*reader)->segments.files = &(*reader)->base.files;
    ps_recording_clear(&(*reader)->base.info);
    return PS_OK;
}

void ps_hdf5_reader_close(ps_reader *reader) {
    if (!reader) return;
    ps_hdf5_reader *r = (ps_hdf5_reader *)reader;
    ps_segments_free(&r->segments);
    free(r->mask_dataset);
    free(r->base.path);
    free(r);
}

ps_code ps_hdf5_reader_read(ps_reader *reader, int64_t first_position, int64_t n_positions, void *counts, ps_error *error) {
    ps_hdf5_reader *r = (ps_hdf5_reader *)reader;
    const ps_recording *info = &reader->info;
    size_t frame_bytes = (size_t)(info->detector_rows * info->detector_columns) * ps_dtype_bytes(info->dtype);
    return ps_segments_read(&r->segments, first_position, n_positions, frame_bytes, counts, error);
}

ps_code ps_hdf5_reader_bytes(ps_reader *reader, int64_t *bytes, ps_error *error) {
    return ps_segments_bytes(&((ps_hdf5_reader *)reader)->segments, bytes, error);
}

ps_code ps_hdf5_reader_mask(ps_reader *reader, uint8_t *bad, bool *present, ps_error *error) {
    ps_hdf5_reader *r = (ps_hdf5_reader *)reader;
    *present = r->mask_dataset != NULL;
    if (!*present) return PS_OK;
    return ps_mask_load_hdf5(reader->path, r->mask_dataset, reader->info.detector_rows, reader->info.detector_columns, bad, error);
}
