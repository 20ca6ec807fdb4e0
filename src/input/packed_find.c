/* Finding where the patterns lie, by whichever threads have nothing to read yet. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "core/regular.h"
#include "hdf5/util.h"
#include "input/packed_parts.h"

enum { LEAVES_AT_ONCE = 16 };

bool ps_packed_take_plain(ps_packed_recording *r, int64_t first, int64_t n, int32_t file, const ps_reader_plain *plain,
                          char why[PS_PACKED_WHY]) {
    struct stat status;
    int64_t bytes = plain->lead_bytes + r->pattern_bytes;
    if (fstat(plain->descriptor, &status) != 0 || plain->first_byte > status.st_size - bytes ||
        (n - 1) > (status.st_size - bytes - plain->first_byte) / plain->stride_bytes)
        return ps_packed_say(why, "patterns that are not there");
    for (int64_t i = 0; i < n; i++)
        r->places[first + i] = (ps_packed_place){plain->first_byte + i * plain->stride_bytes, (uint32_t)bytes, file};
    r->bytes += n * bytes;
    r->n_known = first + n;
    return true;
}

/* ---- one file ------------------------------------------------------------------------------------------------------------------ */

static ps_code keep_path(ps_packed_file *file, const char *path, ps_error *error) {
    file->path = strdup(path);
    return file->path ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
}

static ps_code begin_index(ps_hdf5_dataset *dataset, ps_error *error) {
    ps_hdf5_lock();
    ps_hdf5_note(dataset->path, 0, 0);
    ps_code code = ps_chunk_index_begin(dataset, error);
    ps_hdf5_unlock();
    return code;
}

/* Up to the leaves of its index. */
static ps_code open_file(ps_packed_recording *r, bool *usable, char why[PS_PACKED_WHY], ps_error *error) {
    ps_segment *segment = &r->reader->segments.segments[r->at];
    ps_packed_file *file = &r->files[r->at];
    PS_TRY(ps_packed_look_at(r, r->at, usable, why, error));
    if (!*usable) return PS_OK;
    PS_TRY(keep_path(file, segment->path, error));
    if (segment->opened->contiguous_at >= 0) return ps_regular_open(segment->path, PS_E_INPUT, &file->descriptor, error);
    PS_TRY(begin_index(segment->opened, error));
    ps_chunk_index *index = segment->opened->index;
    file->descriptor = fcntl(index->descriptor, F_DUPFD_CLOEXEC, 0);
    *usable = file->descriptor >= 0 || ps_packed_say(why, "more data files than may be open");
    if (*usable && !index->is_found) PS_TRY(ps_chunk_index_find_leaves(index, &r->is_sound, error));
    return PS_OK;
}

/* A chunk that is missing or lies outside of its file is left to the reader, which says so. */
static bool take_places(ps_packed_recording *r, const ps_segment *segment, const ps_chunk_index *index) {
    if (!index->places) return ps_packed_say(r->why, "an index of chunks that only the HDF5 library reads");
    for (int64_t i = 0; i < segment->n; i++) {
        const ps_chunk_place *p = &index->places[segment->source_first + i];
        if (p->address < 0 || p->bytes > index->file_bytes - p->address) return ps_packed_say(r->why, "chunks that are not there");
        if (p->filter_mask != 0) return ps_packed_say(r->why, "chunks that left out a filter");
        r->places[segment->first + i] = (ps_packed_place){p->address, p->bytes, (int32_t)r->at};
        r->bytes += p->bytes;
    }
    r->n_known = segment->first + segment->n;
    return true;
}

/* ---- steps, with the mutex held ------------------------------------------------------------------------------------------------ */

static ps_chunk_index *index_at(const ps_packed_recording *r) {
    return r->reader->segments.segments[r->at].opened->index;
}

/* All leaves are read. */
static void end_index(ps_packed_recording *r) {
    const ps_segment *segment = &r->reader->segments.segments[r->at];
    if (!segment->opened->index->is_found) ps_chunk_index_end(segment->opened->index, r->is_sound);
    r->is_left = !take_places(r, segment, segment->opened->index);
    r->at++;
    r->state = PS_FINDING_NEXT;
}

static bool take_contiguous(ps_packed_recording *r) {
    const ps_segment *segment = &r->reader->segments.segments[r->at];
    const ps_packed_file *file = &r->files[r->at];
    ps_reader_plain plain = {.path = file->path,
                             .descriptor = file->descriptor,
                             .first_byte = segment->opened->contiguous_at + segment->source_first * r->pattern_bytes,
                             .stride_bytes = r->pattern_bytes};
    return ps_packed_take_plain(r, segment->first, segment->n, (int32_t)r->at++, &plain, r->why);
}

static void step_open(ps_packed_recording *r) {
    bool usable = false;
    ps_error own = {0};
    char why[PS_PACKED_WHY] = "";
    r->state = PS_FINDING_OPENS;
    r->is_sound = true;
    pthread_mutex_unlock(&r->mutex);
    ps_code code = open_file(r, &usable, why, &own);
    pthread_mutex_lock(&r->mutex);
    r->state = PS_FINDING_NEXT;
    if (code != PS_OK) {
        r->failure = own;
    } else if (!usable) {
        r->is_left = true;
        memcpy(r->why, why, sizeof r->why);
    } else if (r->reader->segments.segments[r->at].opened->contiguous_at >= 0) {
        r->is_left = !take_contiguous(r);
    } else {
        r->state = PS_FINDING_LEAVES;
        r->next_leaf = 0;
        if (index_at(r)->n_leaves == 0 || !r->is_sound) end_index(r);
    }
}

static void step_leaves(ps_packed_recording *r) {
    const ps_chunk_index *index = index_at(r);
    int64_t first = r->next_leaf, left = index->n_leaves - first, n = left < LEAVES_AT_ONCE ? left : LEAVES_AT_ONCE;
    r->next_leaf += n;
    r->n_busy++;
    pthread_mutex_unlock(&r->mutex);
    bool good = ps_chunk_index_read_leaves(index, first, n);
    pthread_mutex_lock(&r->mutex);
    r->n_busy--;
    r->is_sound = r->is_sound && good;
    if (!r->is_sound) r->next_leaf = index->n_leaves; /* the others matter no more */
    if (r->next_leaf == index->n_leaves && r->n_busy == 0) end_index(r);
}

bool ps_packed_find_ended(const ps_packed_recording *r) {
    return r->n_known == r->n_positions || r->is_left || r->failure.code != PS_OK;
}

bool ps_packed_find_step(ps_packed_recording *r) {
    if (ps_packed_find_ended(r) || r->state == PS_FINDING_OPENS) return false;
    if (r->state == PS_FINDING_LEAVES && r->next_leaf == index_at(r)->n_leaves) return false;
    if (r->state == PS_FINDING_NEXT)
        step_open(r);
    else
        step_leaves(r);
    pthread_cond_broadcast(&r->changed);
    return true;
}

ps_code ps_packed_find(ps_packed_recording *r, bool *usable, char why[PS_PACKED_WHY], ps_error *error) {
    pthread_mutex_lock(&r->mutex);
    while (!ps_packed_find_ended(r))
        if (!ps_packed_find_step(r)) pthread_cond_wait(&r->changed, &r->mutex);
    ps_code code = r->failure.code;
    *usable = code == PS_OK && !r->is_left;
    memcpy(why, r->why, sizeof r->why);
    if (code != PS_OK && error) *error = r->failure;
    pthread_mutex_unlock(&r->mutex);
    return code;
}
