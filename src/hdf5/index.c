#include "hdf5/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file_read.h"
#include "core/regular.h"

enum {
    MESSAGE_LAYOUT = 8,
    MESSAGE_CONTINUATION = 16,
    LAYOUT_VERSION = 3,
    LAYOUT_CHUNKED = 2,
    MAX_HEADER_BYTES = 1 << 20,
    MAX_HEADER_BLOCKS = 64,
    MAX_DEPTH = 32
};

/* A file and the address that its addresses are relative to. */
typedef struct {
    const ps_hdf5_dataset *dataset;
    ps_chunk_index *index;
    int64_t base;
    int64_t n_found, n_nodes;
} walk;

static uint64_t little_endian(const uint8_t *bytes, int n) {
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

/* false: out of the file. */
static bool read_bytes(const walk *w, uint64_t address, size_t n, uint8_t *bytes) {
    uint64_t end = (uint64_t)w->index->file_bytes;
    if (address > end || n > end - address || (uint64_t)w->base > end - address - n) return false;
    return ps_file_read(w->dataset->path, w->index->descriptor, (int64_t)address + w->base, n, bytes, NULL) == PS_OK;
}

/* Object headers: where to find the messages of one block, and in which form. */
typedef struct {
    uint64_t address, bytes; /* of the messages */
} header_block;

typedef struct {
    header_block blocks[MAX_HEADER_BLOCKS];
    int n_blocks;
    int version;
    int prefix;    /* bytes in front of each message's data */
    uint64_t tree; /* found in the layout message; 0: not found */
} object_header;

static bool begin_version1(const walk *w, uint64_t address, object_header *h) {
    uint8_t start[16];
    if (!read_bytes(w, address, sizeof start, start) || start[0] != 1) return false;
    h->version = 1;
    h->prefix = 8;
    h->blocks[h->n_blocks++] = (header_block){address + sizeof start, little_endian(start + 8, 4)};
    return true;
}

static bool begin_version2(const walk *w, uint64_t address, object_header *h) {
    uint8_t start[34];
    if (!read_bytes(w, address, 6, start) || memcmp(start, "OHDR\2", 5) != 0) return false;
    int flags = start[5], size_bytes = 1 << (flags & 3), skip = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
    if (!read_bytes(w, address, (size_t)(skip + size_bytes), start)) return false;
    h->version = 2;
    h->prefix = flags & 4 ? 6 : 4;
    h->blocks[h->n_blocks++] = (header_block){address + (uint64_t)(skip + size_bytes), little_endian(start + skip, size_bytes)};
    return true;
}

static void take_layout(const walk *w, const uint8_t *data, uint64_t bytes, object_header *h) {
    if (bytes < 11 || data[0] != LAYOUT_VERSION || data[1] != LAYOUT_CHUNKED || data[2] != w->dataset->rank + 1) return;
    h->tree = little_endian(data + 3, 8);
}

static void take_continuation(const uint8_t *data, uint64_t bytes, object_header *h) {
    if (bytes < 16 || h->n_blocks == MAX_HEADER_BLOCKS) return;
    header_block block = {little_endian(data, 8), little_endian(data + 8, 8)};
    if (h->version == 2) { /* "OCHK" in front, a checksum behind */
        if (block.bytes < 8) return;
        block.address += 4;
        block.bytes -= 8;
    }
    h->blocks[h->n_blocks++] = block;
}

static bool scan_block(const walk *w, header_block block, object_header *h) {
    uint8_t *bytes = block.bytes <= MAX_HEADER_BYTES ? malloc(block.bytes + 1) : NULL;
    bool good = bytes && read_bytes(w, block.address, block.bytes, bytes);
    for (uint64_t at = 0; good && at + (uint64_t)h->prefix <= block.bytes;) {
        uint64_t type = little_endian(bytes + at, h->version == 1 ? 2 : 1), n = little_endian(bytes + at + (h->version == 1 ? 2 : 1), 2);
        at += (uint64_t)h->prefix;
        if (n > block.bytes - at) break;
        if (type == MESSAGE_LAYOUT) take_layout(w, bytes + at, n, h);
        if (type == MESSAGE_CONTINUATION) take_continuation(bytes + at, n, h);
        at += n;
    }
    free(bytes);
    return good;
}

/* The address of the dataset's B-tree; 0: it has none of version 1. */
static uint64_t find_tree(const walk *w) {
    H5O_info_t info;
    object_header h = {0};
    if (H5Oget_info(w->dataset->dataset, &info) < 0) return 0;
    if (!begin_version1(w, info.addr, &h) && !begin_version2(w, info.addr, &h)) return 0;
    for (int i = 0; i < h.n_blocks && !h.tree; i++)
        if (!scan_block(w, h.blocks[i], &h)) return 0;
    return h.tree;
}

/* Puts one leaf entry into the grid. key: bytes, filter mask, then the chunk's origin, uint64 per axis. */
static bool take_chunk(walk *w, const uint8_t *key, uint64_t address) {
    const ps_hdf5_dataset *d = w->dataset;
    int64_t place = 0;
    for (int axis = 0; axis < 4; axis++) {
        int stored = d->rank == 4 ? axis : axis == 0 ? 0 : axis - 1;
        uint64_t origin = d->rank == 3 && axis == 1 ? 0 : little_endian(key + 8 + 8 * stored, 8), cell = origin / (uint64_t)d->chunk[axis];
        if (origin % (uint64_t)d->chunk[axis] != 0) return false;
        if (cell >= (uint64_t)w->index->grid[axis]) return true; /* the dataset shrank; HDF5 ignores such chunks too */
        place = place * w->index->grid[axis] + (int64_t)cell;
    }
    ps_chunk_place *p = &w->index->places[place];
    if (p->address >= 0 || address > INT64_MAX - (uint64_t)w->base) return false;
    *p = (ps_chunk_place){(int64_t)address + w->base, (uint32_t)little_endian(key, 4), (uint32_t)little_endian(key + 4, 4)};
    w->n_found++;
    return true;
}

/* level: what the node must say; -1: the root, any. */
static bool walk_node(walk *w, uint64_t address, int level, int depth) {
    uint8_t start[24];
    if (depth > MAX_DEPTH || ++w->n_nodes > (1 << 26) || !read_bytes(w, address, sizeof start, start) || memcmp(start, "TREE\1", 5) != 0)
        return false;
    if (level >= 0 && start[5] != level) return false;
    size_t n = (size_t)little_endian(start + 6, 2), key_bytes = 8 + 8 * (size_t)(w->dataset->rank + 1), entry = key_bytes + 8;
    uint8_t *entries = malloc(n * entry + 1);
    bool good = entries && read_bytes(w, address + sizeof start, n * entry, entries);
    for (size_t i = 0; good && i < n; i++) {
        uint64_t child = little_endian(entries + i * entry + key_bytes, 8);
        good = start[5] == 0 ? take_chunk(w, entries + i * entry, child) : walk_node(w, child, start[5] - 1, depth + 1);
    }
    free(entries);
    return good;
}

/* Addresses count from the end of the user block, and are 8 bytes long, or this code does not read them. */
static bool read_base(const ps_hdf5_dataset *dataset, int64_t *base) {
    hsize_t user_block = 0;
    size_t address_bytes = 0, length_bytes = 0;
    hid_t file = H5Iget_file_id(dataset->dataset), plist = file < 0 ? -1 : H5Fget_create_plist(file);
    bool good = plist >= 0 && H5Pget_userblock(plist, &user_block) >= 0 && H5Pget_sizes(plist, &address_bytes, &length_bytes) >= 0;
    if (plist >= 0) H5Pclose(plist);
    if (file >= 0) H5Fclose(file);
    *base = (int64_t)user_block;
    return good && address_bytes == 8 && length_bytes == 8;
}

static ps_code open_file(const ps_hdf5_dataset *dataset, ps_chunk_index *index, ps_error *error) {
    struct stat status;
    PS_TRY(ps_regular_open(dataset->path, PS_E_INPUT, &index->descriptor, error));
    if (fstat(index->descriptor, &status) != 0) return PS_FAIL(error, PS_E_INPUT, "%s: cannot open: %s", dataset->path, strerror(errno));
    index->file_bytes = status.st_size;
    return PS_OK;
}

ps_code ps_chunk_index_build(ps_hdf5_dataset *dataset, ps_error *error) {
    ps_code code = PS_OK;
    ps_chunk_index *index = calloc(1, sizeof *index);
    PS_GO_ALLOC(error, index);
    index->descriptor = -1;
    PS_GO(open_file(dataset, index, error));
    const int64_t extent[4] = {dataset->lead[0], dataset->lead[1], dataset->rows, dataset->columns};
    int64_t n = 1;
    for (int i = 0; i < 4; i++) n *= index->grid[i] = (extent[i] - 1) / dataset->chunk[i] + 1;
    index->places = malloc((size_t)n * sizeof *index->places);
    PS_GO_ALLOC(error, index->places);
    for (int64_t i = 0; i < n; i++) index->places[i] = (ps_chunk_place){.address = -1};
    walk w = {.dataset = dataset, .index = index};
    uint64_t tree = read_base(dataset, &w.base) ? find_tree(&w) : 0;
    bool empty = tree == UINT64_MAX; /* HDF5's undefined address: nothing was written */
    if (tree == 0 || (!empty && !walk_node(&w, tree, -1, 0))) {
        free(index->places);
        index->places = NULL;
    }
    dataset->index = index;
    index = NULL;
done:
    ps_chunk_index_free(index);
    return code;
}

void ps_chunk_index_free(ps_chunk_index *index) {
    if (!index) return;
    if (index->descriptor >= 0) close(index->descriptor);
    free(index->places);
    free(index);
}
