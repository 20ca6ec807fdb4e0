/* Whether what a dataset holds can be handed on packed. */
#include <stdio.h>

#include "input/packed_parts.h"

bool ps_packed_say(char why[PS_PACKED_WHY], const char *text) {
    snprintf(why, PS_PACKED_WHY, "%s", text);
    return false;
}

static bool packing_of(const ps_hdf5_dataset *d, ps_packing *packing) {
    *packing = d->storage == PS_CHUNKS_BSLZ4 ? PS_PACKED_BSLZ4 : d->storage == PS_CHUNKS_LZ4 ? PS_PACKED_LZ4 : PS_PACKED_PLAIN;
    return d->storage != PS_THROUGH_HDF5 || d->contiguous_at >= 0;
}

/* Whether every chunk of a dataset is one pattern, and all are packed as the first one's are. */
static bool is_usable(const ps_hdf5_dataset *d, bool is_first, ps_packed_recording *r, char why[PS_PACKED_WHY]) {
    ps_packing own;
    ps_dtype dtype = r->reader->base.info.dtype;
    bool is_big_endian = d->big_endian && d->stored_bytes > 1;
    if (!packing_of(d, &own)) return ps_packed_say(why, "a layout or a filter that the HDF5 library undoes");
    if (d->contiguous_at < 0 && (d->chunk[0] != 1 || d->chunk[1] != 1 || d->chunk[2] != d->rows || d->chunk[3] != d->columns))
        return ps_packed_say(why, "chunks that are not one pattern each");
    if (d->stored_bytes != ps_dtype_bytes(dtype)) return ps_packed_say(why, "counts of another type than stored");
    if (r->reader->segments.channels && d->lead[1] > 1) return ps_packed_say(why, "several channels");
    if (!is_first && own != r->packing) return ps_packed_say(why, "data files that are packed differently");
    if (!is_first && is_big_endian != r->is_big_endian) return ps_packed_say(why, "data files of both byte orders");
    r->packing = own;
    r->is_big_endian = is_big_endian;
    return true;
}

ps_code ps_packed_look_at(ps_packed_recording *r, int64_t i, bool *usable, char why[PS_PACKED_WHY], ps_error *error) {
    PS_TRY(ps_segments_use(&r->reader->segments, i, error));
    *usable = is_usable(r->reader->segments.segments[i].opened, i == 0, r, why);
    return PS_OK;
}
