#include "store/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/text.h"
#include "hdf5/write.h"
#include "store/internal.h"
#include "store/publish.h"
#include "store/view.h"

static const uint64_t largest_chunk = 0xffffffffu; /* HDF5's limit, bytes */

typedef struct {
    const char *from;
    hid_t source, target;
    int fd; /* of the source */
    int level, n_threads;
    ps_error *error;
} packer;

/* ---- attributes and groups ---- */

static herr_t copy_attribute(hid_t from, const char *name, const H5A_info_t *info, void *context) {
    hid_t to = *(const hid_t *)context, in = H5Aopen(from, name, H5P_DEFAULT), type = H5Aget_type(in), space = H5Aget_space(in);
    hid_t out = H5Acreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    (void)info;
    void *values = calloc((size_t)H5Sget_simple_extent_npoints(space) + 1, H5Tget_size(type));
    herr_t status = values && H5Aread(in, type, values) >= 0 && H5Awrite(out, type, values) >= 0 ? 0 : -1;
    if (status == 0) H5Dvlen_reclaim(type, space, H5P_DEFAULT, values);
    free(values);
    ps_h5_close(&out);
    ps_h5_close(&space);
    ps_h5_close(&type);
    ps_h5_close(&in);
    return status;
}

static ps_code copy_attributes(hid_t from, hid_t to, ps_error *error) {
    if (H5Aiterate2(from, H5_INDEX_NAME, H5_ITER_INC, NULL, copy_attribute, &to) < 0) return ps_h5_fail(error, "cannot copy attributes");
    return PS_OK;
}

/* ---- images ---- */

/* Byte planes of n floats: all first bytes, then all second ones ... as HDF5's shuffle filter stores them. */
static void shuffle(const unsigned char *in, size_t n, unsigned char *out) {
    for (size_t byte = 0; byte < sizeof(float); byte++)
        for (size_t i = 0; i < n; i++) out[byte * n + i] = in[i * sizeof(float) + byte];
}

typedef struct {
    unsigned char *image, *shuffled, *packed;
    size_t image_bytes;
    uLong room;
} buffers;

static ps_code read_image(int fd, uint64_t offset, buffers *b, ps_error *error) {
    for (size_t done = 0; done < b->image_bytes;) {
        ssize_t got = pread(fd, b->image + done, b->image_bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return ps_io_fail(error, got < 0 ? errno : EIO, "cannot read an image at byte %llu", (unsigned long long)offset);
        done += (size_t)got;
    }
    return PS_OK;
}

/* One image: read and deflated by this thread, written by one at a time. index counts images in C order over frames and strengths. */
static ps_code pack_image(const packer *p, const ps_rows *rows, hid_t target, int64_t index, buffers *b, ps_error *error) {
    hsize_t start[PS_ROWS_MAX_RANK] = {0};
    uLongf packed_bytes = b->room;
    herr_t status;
    PS_TRY(read_image(p->fd, rows->offset + (uint64_t)index * b->image_bytes, b, error));
    shuffle(b->image, b->image_bytes / sizeof(float), b->shuffled);
    if (compress2(b->packed, &packed_bytes, b->shuffled, b->image_bytes, p->level) != Z_OK)
        return PS_FAIL(error, PS_E_INTERNAL, "zlib cannot deflate an image");
    start[0] = (hsize_t)(rows->rank == 4 ? index / (int64_t)rows->dims[1] : index);
    if (rows->rank == 4) start[1] = (hsize_t)(index % (int64_t)rows->dims[1]);
#pragma omp critical(ps_pack_hdf5)
    {
        status = H5Dwrite_chunk(target, H5P_DEFAULT, 0, start, packed_bytes, b->packed);
        if (status < 0) ps_h5_fail(error, "cannot write an image of %s", rows->name);
    }
    return status < 0 ? error->code : PS_OK;
}

static bool allocate(buffers *b, size_t image_bytes) {
    b->image_bytes = image_bytes;
    b->room = compressBound(image_bytes);
    b->image = malloc(image_bytes);
    b->shuffled = malloc(image_bytes);
    b->packed = malloc(b->room);
    return b->image && b->shuffled && b->packed;
}

static ps_code pack_images(const packer *p, const ps_rows *rows, hid_t target, size_t image_bytes) {
    int64_t n_images = (int64_t)(rows->row_bytes / image_bytes) * (int64_t)rows->dims[0];
    ps_error first = {0};
#pragma omp parallel num_threads(p->n_threads)
    {
        buffers b = {0};
        ps_error problem = {0};
        ps_code code = allocate(&b, image_bytes) ? PS_OK : PS_FAIL(&problem, PS_E_MEMORY, "cannot allocate memory for images");
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < n_images; i++)
            if (code == PS_OK) code = pack_image(p, rows, target, i, &b, &problem);
#pragma omp critical(ps_pack_error)
        if (code != PS_OK && first.code == PS_OK) first = problem;
        free(b.image);
        free(b.shuffled);
        free(b.packed);
    }
    return first.code == PS_OK ? PS_OK : PS_FAIL(p->error, first.code, "%s: %s", p->from, first.text);
}

/* A dataset of images [frames, (strengths,) rows, columns], one chunk an image. */
static ps_code create_packed(const packer *p, hid_t parent, const char *name, const ps_rows *rows, hid_t *target) {
    hsize_t chunk[PS_ROWS_MAX_RANK];
    for (int axis = 0; axis < rows->rank; axis++) chunk[axis] = axis < rows->rank - 2 ? 1 : rows->dims[axis];
    hid_t space = H5Screate_simple(rows->rank, rows->dims, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
    ps_code code = PS_OK;
    if (space < 0 || creation < 0 || H5Pset_chunk(creation, rows->rank, chunk) < 0 || H5Pset_shuffle(creation) < 0 ||
        H5Pset_deflate(creation, (unsigned)p->level) < 0 ||
        (*target = H5Dcreate2(parent, name, rows->type, space, H5P_DEFAULT, creation, H5P_DEFAULT)) < 0)
        code = ps_h5_fail(p->error, "cannot create %s", name);
    ps_h5_close(&creation);
    ps_h5_close(&space);
    return code;
}

static ps_code copy_images(const packer *p, hid_t from, hid_t to, const char *name) {
    ps_rows rows;
    bool present;
    ps_code code = PS_OK;
    hid_t target = H5I_INVALID_HID;
    PS_TRY(ps_rows_open(from, name, &rows, &present, p->error));
    size_t image_bytes = rows.element_bytes * rows.dims[rows.rank - 1] * rows.dims[rows.rank - 2];
    if (image_bytes > largest_chunk) {
        code = PS_FAIL(p->error, PS_E_ARGUMENT, "%s: images of %zu bytes are too large to be packed (at most 4 GiB)", p->from, image_bytes);
        goto done;
    }
    PS_GO(create_packed(p, to, name, &rows, &target));
    PS_GO(copy_attributes(rows.dataset, target, p->error));
    PS_GO(pack_images(p, &rows, target, image_bytes));
done:
    ps_h5_close(&target);
    ps_rows_close(&rows);
    return code;
}

/* ---- the tree ---- */

static bool is_images(hid_t group, const char *name) {
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT), type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    bool images = H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) == sizeof(float) && H5Sget_simple_extent_ndims(space) >= 3;
    ps_h5_close(&space);
    ps_h5_close(&type);
    ps_h5_close(&dataset);
    return images;
}

typedef struct {
    const packer *p;
    hid_t to;
    ps_code code;
} visit;

static herr_t copy_member(hid_t from, const char *name, const H5L_info_t *info, void *context);

static ps_code copy_group(const packer *p, hid_t from, hid_t to) {
    visit v = {p, to, PS_OK};
    PS_TRY(copy_attributes(from, to, p->error));
    if (H5Literate(from, H5_INDEX_NAME, H5_ITER_INC, NULL, copy_member, &v) < 0 && v.code == PS_OK)
        return ps_h5_fail(p->error, "%s: cannot go through a group", p->from);
    return v.code;
}

static ps_code copy_child_group(const packer *p, hid_t from, hid_t to, const char *name) {
    hid_t in = H5Gopen2(from, name, H5P_DEFAULT), out = H5Gcreate2(to, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ps_code code = in < 0 || out < 0 ? ps_h5_fail(p->error, "cannot copy the group %s", name) : copy_group(p, in, out);
    ps_h5_close(&out);
    ps_h5_close(&in);
    return code;
}

static bool has_variable_length(hid_t type) {
    return H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tdetect_class(type, H5T_REFERENCE) > 0 || H5Tis_variable_str(type) > 0;
}

/* A dataset through memory. H5Ocopy, which crashes when the disk is full, is left what others may have added to the file. */
static ps_code copy_dataset(const packer *p, hid_t from, hid_t to, const char *name) {
    ps_code code = PS_OK;
    hid_t in = H5Dopen2(from, name, H5P_DEFAULT), type = H5Dget_type(in), space = H5Dget_space(in), out = H5I_INVALID_HID;
    hsize_t dims[H5S_MAX_RANK] = {0};
    int rank = H5Sget_simple_extent_ndims(space);
    void *values = NULL;
    if (rank < 0 || has_variable_length(type)) {
        if (H5Ocopy(from, name, to, name, H5P_DEFAULT, H5P_DEFAULT) < 0) code = ps_h5_fail(p->error, "cannot copy %s", name);
        goto done;
    }
    values = malloc((size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type) + 1);
    PS_GO_ALLOC(p->error, values);
    H5Sget_simple_extent_dims(space, dims, NULL);
    if (H5Dread(in, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) PS_GO(ps_h5_fail(p->error, "cannot read %s", name));
    PS_GO(ps_h5_dataset(to, name, type, type, rank, dims, values, p->error));
    if ((out = H5Dopen2(to, name, H5P_DEFAULT)) < 0) PS_GO(ps_h5_fail(p->error, "cannot open %s", name));
    PS_GO(copy_attributes(in, out, p->error));
done:
    free(values);
    ps_h5_close(&out);
    ps_h5_close(&space);
    ps_h5_close(&type);
    ps_h5_close(&in);
    return code;
}

/* A soft link stays one: what it points to is copied in its own place. bytes: of the path it points to. */
static ps_code copy_link(const packer *p, hid_t from, hid_t to, const char *name, size_t bytes) {
    ps_code code = PS_OK;
    char *path = calloc(bytes + 1, 1);
    PS_GO_ALLOC(p->error, path);
    if (H5Lget_val(from, name, path, bytes, H5P_DEFAULT) < 0 || H5Lcreate_soft(path, to, name, H5P_DEFAULT, H5P_DEFAULT) < 0)
        code = ps_h5_fail(p->error, "cannot copy the link %s", name);
done:
    free(path);
    return code;
}

static herr_t copy_member(hid_t from, const char *name, const H5L_info_t *info, void *context) {
    visit *v = context;
    H5O_info_t object;
    if (info->type == H5L_TYPE_SOFT)
        v->code = copy_link(v->p, from, v->to, name, info->u.val_size);
    else if (H5Oget_info_by_name(from, name, &object, H5P_DEFAULT) < 0)
        v->code = ps_h5_fail(v->p->error, "cannot look at %s", name);
    else if (object.type == H5O_TYPE_GROUP)
        v->code = copy_child_group(v->p, from, v->to, name);
    else if (object.type == H5O_TYPE_DATASET && is_images(from, name))
        v->code = copy_images(v->p, from, v->to, name);
    else if (object.type == H5O_TYPE_DATASET)
        v->code = copy_dataset(v->p, from, v->to, name);
    else if (H5Ocopy(from, name, v->to, name, H5P_DEFAULT, H5P_DEFAULT) < 0)
        v->code = ps_h5_fail(v->p->error, "cannot copy %s", name);
    return v->code == PS_OK ? 0 : -1;
}

static ps_code copy_tree(packer *p, const char *temporary) {
    ps_code code = PS_OK;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    p->target = access < 0 || H5Pset_file_locking(access, false, true) < 0 ? H5I_INVALID_HID
                                                                           : H5Fcreate(temporary, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (p->target < 0) code = ps_h5_fail(p->error, "%s: cannot create", temporary);
    ps_h5_close(&access);
    if (code == PS_OK) code = copy_group(p, p->source, p->target);
    ps_code closed = ps_h5_close_written(&p->target, temporary, p->error);
    return code == PS_OK ? closed : code;
}

/* ---- verification ---- */

/* Continues *crc with one frame's row of a dataset, read through HDF5 and its filters. */
static ps_code add_row_crc(hid_t dataset, const char *name, int64_t frame, uint32_t *crc, ps_error *error) {
    ps_code code = PS_OK;
    hsize_t start[PS_ROWS_MAX_RANK] = {(hsize_t)frame}, count[PS_ROWS_MAX_RANK] = {1};
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    H5Sget_simple_extent_dims(space, count, NULL);
    count[0] = 1;
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    hsize_t n = (hsize_t)H5Sget_select_npoints(space);
    hid_t memory = H5Screate_simple(1, &n, NULL);
    void *row = malloc(n * H5Tget_size(type));
    if (!row || H5Dread(dataset, type, memory, space, H5P_DEFAULT, row) < 0)
        code = ps_h5_fail(error, "cannot read frame %lld of %s back", (long long)frame, name);
    else
        *crc = (uint32_t)crc32_z(*crc, row, n * H5Tget_size(type));
    free(row);
    ps_h5_close(&memory);
    ps_h5_close(&type);
    ps_h5_close(&space);
    return code;
}

static ps_code frame_crc(const ps_view *view, int64_t frame, uint32_t *crc, ps_error *error) {
    ps_result_place places[PS_MOST_RESULTS];
    int n = ps_layout_results(places);
    *crc = 0;
    for (int i = 0; i < n; i++) {
        const char *name = ps_layout_name(view->entry, &places[i]);
        if (!name) continue;
        hid_t dataset = H5Dopen2(view->entry, name, H5P_DEFAULT);
        if (dataset < 0) return ps_h5_fail(error, "cannot open %s", name);
        ps_code code = add_row_crc(dataset, name, frame, crc, error);
        ps_h5_close(&dataset);
        PS_TRY(code);
    }
    return PS_OK;
}

static ps_code verify(const char *copy, int64_t *n_verified, ps_error *error) {
    ps_view view;
    double *recorded = NULL;
    ps_code code = PS_OK;
    PS_TRY(ps_view_open(copy, &view, error));
    recorded = malloc((size_t)view.n_frames * sizeof *recorded);
    PS_GO_ALLOC(error, recorded);
    PS_GO(ps_view_numbers(&view, "frames/crc32", view.n_frames, recorded, error));
    for (int64_t frame = 0; frame < view.n_frames; frame++) {
        uint32_t crc;
        if (view.states[frame] != PS_FRAME_DONE) continue;
        PS_GO(frame_crc(&view, frame, &crc, error));
        if (crc != (uint32_t)recorded[frame]) {
            code = PS_FAIL(error, PS_E_IO, "frame %lld has not the CRC recorded for it: run --resume on the original, then pack again",
                           (long long)frame);
            goto done;
        }
        ++*n_verified;
    }
done:
    free(recorded);
    ps_view_close(&view);
    return code;
}

/* ---- the whole ---- */

static int64_t file_bytes(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

static ps_code make_copy(packer *p, const char *to, ps_pack_report *report) {
    ps_code code = PS_OK;
    char *temporary = NULL;
    PS_GO(ps_publish_temporary(to, &temporary, p->error));
    PS_GO(copy_tree(p, temporary));
    PS_GO(verify(temporary, &report->n_verified, p->error));
    PS_GO(ps_publish_sync(temporary, p->error));
    report->bytes_after = file_bytes(temporary);
    PS_GO(ps_publish_rename(temporary, to, false, p->error));
done:
    if (code != PS_OK && temporary) unlink(temporary);
    free(temporary);
    return code;
}

/* "run.h5" -> "run.packed.h5"; malloc'd */
static char *default_name(const char *path) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    if (!dot || (slash && dot < slash)) return ps_text_format("%s.packed", path);
    return ps_text_format("%.*s.packed%s", (int)(dot - path), path, dot);
}

ps_code ps_pack(const char *path, const ps_pack_options *options, ps_pack_report *report, ps_error *error) {
    ps_code code = PS_OK;
    ps_lock lock = PS_LOCK_NONE, target_lock = PS_LOCK_NONE;
    packer p = {.from = path, .source = H5I_INVALID_HID, .fd = -1, .level = (int)options->level, .error = error};
    char *to = options->to ? strdup(options->to) : default_name(path);
    *report = (ps_pack_report){.bytes_before = file_bytes(path)};
    p.n_threads = options->n_threads > 0 ? (int)options->n_threads : omp_get_max_threads();
    ps_h5_quiet();
    PS_GO_ALLOC(error, to);
    PS_GO(ps_h5_open_read(path, &p.source, error));
    PS_GO(ps_lock_take(path, &lock, error));
    p.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (p.fd < 0) {
        code = ps_io_fail(error, errno, "%s: cannot open", path);
        goto done;
    }
    if (access(to, F_OK) == 0) {
        code = PS_FAIL(error, PS_E_ARGUMENT, "%s exists already", to);
        goto done;
    }
    PS_GO(ps_lock_take(to, &target_lock, error));
    ps_publish_sweep(to);
    PS_GO(make_copy(&p, to, report));
done:
    if (p.fd >= 0) close(p.fd);
    if (p.source >= 0) H5Fclose(p.source);
    ps_lock_release(&target_lock);
    ps_lock_release(&lock);
    free(to);
    return code;
}
