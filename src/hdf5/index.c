#include "hdf5/index.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file_read.h"
#include "core/regular.h"
#include "hdf5/failure.h"

enum {
    MESSAGE_LAYOUT = 8,
    MESSAGE_CONTINUATION = 16,
    LAYOUT_VERSION = 3,
    LAYOUT_CHUNKED = 2,
    MAX_HEADER_BYTES = 1 << 20,
    MAX_HEADER_BLOCKS = 64,
    MAX_DEPTH = 32,
    NODE_START = 24,   /* signature, kind, level, number of entries, two neighbours */
    USUAL_ENTRIES = 64 /* that a node has room for, unless its file says otherwise */
};

static uint64_t little_endian(const uint8_t *bytes, int n) {
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static uint64_t little_endian_8(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return le64toh(value);
}

static uint32_t little_endian_4(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return le32toh(value);
}

/* false: out of the file. */
static bool read_bytes(const ps_chunk_index *index, uint64_t address, size_t n, uint8_t *bytes) {
    uint64_t end = (uint64_t)index->file_bytes;
    if (address > end || n > end - address || (uint64_t)index->base > end - address - n) return false;
    return ps_file_read(index->path, index->descriptor, (int64_t)address + index->base, n, bytes, NULL) == PS_OK;
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

static bool begin_version1(const ps_chunk_index *index, uint64_t address, object_header *h) {
    uint8_t start[16];
    if (!read_bytes(index, address, sizeof start, start) || start[0] != 1) return false;
    h->version = 1;
    h->prefix = 8;
    h->blocks[h->n_blocks++] = (header_block){address + sizeof start, little_endian(start + 8, 4)};
    return true;
}

static bool begin_version2(const ps_chunk_index *index, uint64_t address, object_header *h) {
    uint8_t start[34];
    if (!read_bytes(index, address, 6, start) || memcmp(start, "OHDR\2", 5) != 0) return false;
    int flags = start[5], size_bytes = 1 << (flags & 3), skip = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
    if (!read_bytes(index, address, (size_t)(skip + size_bytes), start)) return false;
    h->version = 2;
    h->prefix = flags & 4 ? 6 : 4;
    h->blocks[h->n_blocks++] = (header_block){address + (uint64_t)(skip + size_bytes), little_endian(start + skip, size_bytes)};
    return true;
}

static void take_layout(const ps_chunk_index *index, const uint8_t *data, uint64_t bytes, object_header *h) {
    if (bytes < 11 || data[0] != LAYOUT_VERSION || data[1] != LAYOUT_CHUNKED || data[2] != index->rank + 1) return;
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

static bool scan_block(const ps_chunk_index *index, header_block block, object_header *h) {
    uint8_t *bytes = block.bytes <= MAX_HEADER_BYTES ? malloc(block.bytes + 1) : NULL;
    bool good = bytes && read_bytes(index, block.address, block.bytes, bytes);
    for (uint64_t at = 0; good && at + (uint64_t)h->prefix <= block.bytes;) {
        uint64_t type = little_endian(bytes + at, h->version == 1 ? 2 : 1), n = little_endian(bytes + at + (h->version == 1 ? 2 : 1), 2);
        at += (uint64_t)h->prefix;
        if (n > block.bytes - at) break;
        if (type == MESSAGE_LAYOUT) take_layout(index, bytes + at, n, h);
        if (type == MESSAGE_CONTINUATION) take_continuation(bytes + at, n, h);
        at += n;
    }
    free(bytes);
    return good;
}

/* The address of the dataset's B-tree. What the library would tell besides of the object, it would walk the whole tree for. */
static uint64_t find_tree(hid_t dataset, const ps_chunk_index *index) {
    H5O_info_t info;
    object_header h = {0};
    if (!ps_hdf5_note_lack(H5Oget_info2(dataset, &info, H5O_INFO_BASIC) >= 0)) return PS_NO_TREE;
    if (!begin_version1(index, info.addr, &h) && !begin_version2(index, info.addr, &h)) return PS_NO_TREE;
    for (int i = 0; i < h.n_blocks && !h.tree; i++)
        if (!scan_block(index, h.blocks[i], &h)) return PS_NO_TREE;
    return h.tree;
}

/* ---- the tree ------------------------------------------------------------------------------------------------------------------ */

/* Entries of a node, for one thread to read one after the other. */
typedef struct {
    uint8_t *bytes; /* NODE_START, then entries */
    size_t room;
    int level;
    size_t n_entries;
} tree_node;

/* An entry is a key (the chunk's bytes, its filter mask, its origin along each axis and in bytes of an element) and an address. */
static size_t entry_bytes(const ps_chunk_index *index) {
    return 8 + 8 * (size_t)(index->rank + 1) + 8;
}

static uint64_t child_of(const ps_chunk_index *index, const tree_node *node, size_t i) {
    return little_endian_8(node->bytes + NODE_START + (i + 1) * entry_bytes(index) - 8);
}

static bool grow(tree_node *node, size_t bytes) {
    if (bytes <= node->room) return true;
    uint8_t *larger = realloc(node->bytes, bytes);
    if (!larger) return false;
    node->bytes = larger;
    node->room = bytes;
    return true;
}

/* A node's usual size in one read, less where the file ends, and the rest of a larger one. level: what it must say; -1: any. false: it is
 * no such node, or there is no memory. */
static bool read_node(const ps_chunk_index *index, uint64_t address, int level, tree_node *node) {
    uint64_t end = (uint64_t)index->file_bytes - (uint64_t)index->base;
    if (address > end || end - address < NODE_START) return false;
    size_t usual = NODE_START + USUAL_ENTRIES * entry_bytes(index), got = end - address < usual ? (size_t)(end - address) : usual;
    if (!grow(node, usual) || !read_bytes(index, address, got, node->bytes) || memcmp(node->bytes, "TREE\1", 5) != 0) return false;
    node->level = node->bytes[5];
    node->n_entries = (size_t)little_endian(node->bytes + 6, 2);
    size_t all = NODE_START + node->n_entries * entry_bytes(index);
    if ((level >= 0 && node->level != level) || !grow(node, all)) return false;
    return all <= got || read_bytes(index, address + got, all - got, node->bytes + got);
}

/* Chunk number `origin / chunk`; false: no chunk begins there. */
static bool find_cell(uint64_t origin, uint64_t chunk, uint64_t *cell) {
    *cell = origin;
    if (origin == 0 || chunk == 1) return true;
    *cell = origin / chunk;
    return *cell * chunk == origin;
}

/* Puts one leaf entry into the grid. Several threads do; a place that was taken is a second chunk there. */
static bool take_chunk(const ps_chunk_index *index, const uint8_t *key, uint64_t address) {
    int64_t place = 0, taken = -1;
    for (int axis = 0; axis < 4; axis++) {
        int stored = index->rank == 4 ? axis : axis == 0 ? 0 : axis - 1;
        uint64_t cell, origin = index->rank == 3 && axis == 1 ? 0 : little_endian_8(key + 8 + 8 * stored);
        if (!find_cell(origin, (uint64_t)index->chunk[axis], &cell)) return false;
        if (cell >= (uint64_t)index->grid[axis]) return true; /* the dataset shrank; HDF5 ignores such chunks too */
        place = place * index->grid[axis] + (int64_t)cell;
    }
    if (address > INT64_MAX - (uint64_t)index->base) return false;
    ps_chunk_place *p = &index->places[place];
    if (!__atomic_compare_exchange_n(&p->address, &taken, (int64_t)address + index->base, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return false;
    p->bytes = little_endian_4(key);
    p->filter_mask = little_endian_4(key + 4);
    return true;
}

/* The children of nodes that are all of one level. Nodes of a sound tree do not overlap, which bounds how many there can be. */
static bool go_down(const ps_chunk_index *index, int level, tree_node *node, uint64_t **nodes, int64_t *n_nodes) {
    const int64_t most = index->file_bytes / NODE_START;
    uint64_t *children = NULL;
    int64_t n = 0, room = 0;
    bool good = true;
    for (int64_t k = 0; good && k < *n_nodes; k++) {
        good = read_node(index, (*nodes)[k], level, node) && (int64_t)node->n_entries <= most - n;
        if (good && n + (int64_t)node->n_entries > room) {
            room = 2 * room + (int64_t)node->n_entries;
            uint64_t *larger = realloc(children, (size_t)room * sizeof *larger);
            if (larger) children = larger;
            good = larger != NULL;
        }
        for (size_t i = 0; good && i < node->n_entries; i++) children[n++] = child_of(index, node, i);
    }
    free(*nodes);
    *nodes = children;
    *n_nodes = n;
    return good;
}

static ps_code allocate_places(ps_chunk_index *index, ps_error *error) {
    int64_t n = index->grid[0] * index->grid[1] * index->grid[2] * index->grid[3];
    index->places = (uint64_t)n <= SIZE_MAX / sizeof *index->places ? malloc((size_t)n * sizeof *index->places) : NULL;
    if (!index->places)
        return PS_FAIL(error, PS_E_MEMORY, "%s: cannot allocate memory for the places of %lld chunks", index->path, (long long)n);
    for (int64_t i = 0; i < n; i++) index->places[i] = (ps_chunk_place){.address = -1};
    return PS_OK;
}

static bool find_leaves(ps_chunk_index *index) {
    tree_node node = {0};
    if (index->tree == PS_NO_TREE) return false;
    if (index->tree == PS_EMPTY_TREE) return true;
    bool good = read_node(index, index->tree, -1, &node) && node.level <= MAX_DEPTH;
    int level = good ? node.level : 0;
    index->leaves = malloc(sizeof *index->leaves);
    good = good && index->leaves;
    if (good) index->leaves[index->n_leaves++] = index->tree;
    for (; good && level > 0; level--) good = go_down(index, level, &node, &index->leaves, &index->n_leaves);
    free(node.bytes);
    return good;
}

ps_code ps_chunk_index_find_leaves(ps_chunk_index *index, bool *sound, ps_error *error) {
    PS_TRY(allocate_places(index, error));
    *sound = find_leaves(index);
    return PS_OK;
}

bool ps_chunk_index_read_leaves(const ps_chunk_index *index, int64_t first, int64_t n) {
    tree_node node = {0};
    bool good = true;
    for (int64_t k = first; good && k < first + n; k++) {
        good = read_node(index, index->leaves[k], 0, &node);
        for (size_t i = 0; good && i < node.n_entries; i++)
            good = take_chunk(index, node.bytes + NODE_START + i * entry_bytes(index), child_of(index, &node, i));
    }
    free(node.bytes);
    return good;
}

void ps_chunk_index_end(ps_chunk_index *index, bool sound) {
    free(index->leaves);
    index->leaves = NULL;
    index->n_leaves = 0;
    index->is_found = true;
    if (sound) return;
    free(index->places);
    index->places = NULL;
}

bool ps_chunk_index_is_empty(const ps_chunk_index *index) {
    tree_node node = {0};
    bool sound = index->tree != PS_NO_TREE && index->tree != PS_EMPTY_TREE && read_node(index, index->tree, -1, &node);
    bool empty = index->tree == PS_EMPTY_TREE || (sound && node.n_entries == 0);
    free(node.bytes);
    return empty;
}

/* ---- building ------------------------------------------------------------------------------------------------------------------ */

/* Addresses count from the end of the user block, and are 8 bytes long, or this code does not read them. */
static bool read_base(const ps_hdf5_dataset *dataset, int64_t *base) {
    hsize_t user_block = 0;
    size_t address_bytes = 0, length_bytes = 0;
    hid_t file = H5Iget_file_id(dataset->dataset), plist = file < 0 ? -1 : H5Fget_create_plist(file);
    bool good = ps_hdf5_note_lack(plist >= 0) && H5Pget_userblock(plist, &user_block) >= 0 &&
                H5Pget_sizes(plist, &address_bytes, &length_bytes) >= 0;
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

static void measure_grid(ps_chunk_index *index, const ps_hdf5_dataset *dataset) {
    const int64_t extent[4] = {dataset->lead[0], dataset->lead[1], dataset->rows, dataset->columns};
    for (int i = 0; i < 4; i++) {
        index->chunk[i] = dataset->chunk[i];
        index->grid[i] = (extent[i] - 1) / dataset->chunk[i] + 1;
    }
}

ps_code ps_chunk_index_begin(ps_hdf5_dataset *dataset, ps_error *error) {
    ps_code code = PS_OK;
    if (dataset->index) return PS_OK;
    ps_chunk_index *index = calloc(1, sizeof *index);
    PS_GO_ALLOC(error, index);
    index->descriptor = -1;
    index->path = dataset->path;
    index->rank = dataset->rank;
    PS_GO(open_file(dataset, index, error));
    measure_grid(index, dataset);
    if (read_base(dataset, &index->base) && index->base <= index->file_bytes) index->tree = find_tree(dataset->dataset, index);
    dataset->index = index;
    index = NULL;
done:
    ps_chunk_index_free(index);
    return code;
}

ps_code ps_chunk_index_build(ps_hdf5_dataset *dataset, ps_error *error) {
    enum { LEAVES_AT_ONCE = 16 };
    PS_TRY(ps_chunk_index_begin(dataset, error));
    ps_chunk_index *index = dataset->index;
    if (index->is_found) return PS_OK;
    bool sound = false;
    PS_TRY(ps_chunk_index_find_leaves(index, &sound, error));
#pragma omp parallel for schedule(dynamic) reduction(&& : sound) if (index->n_leaves > LEAVES_AT_ONCE)
    for (int64_t first = 0; first < index->n_leaves; first += LEAVES_AT_ONCE) {
        int64_t left = index->n_leaves - first;
        sound = sound && ps_chunk_index_read_leaves(index, first, left < LEAVES_AT_ONCE ? left : LEAVES_AT_ONCE);
    }
    ps_chunk_index_end(index, sound);
    return PS_OK;
}

void ps_chunk_index_free(ps_chunk_index *index) {
    if (!index) return;
    if (index->descriptor >= 0) close(index->descriptor);
    free(index->leaves);
    free(index->places);
    free(index);
}
