#include "store/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5/write.h"

/* Of the file format specification. */
enum { MESSAGE_NOTHING = 0, MESSAGE_LINK = 6, MESSAGE_CONTINUATION = 16, PREFIX_BYTES = 16, MESSAGE_HEAD_BYTES = 8 };
enum { LINK_LENGTH_SIZE = 3, LINK_HAS_ORDER = 4, LINK_HAS_TYPE = 8, LINK_HAS_CHARSET = 16 };
enum { MOST_LINKS = 60000 }; /* of a header: messages are counted with 16 bits */
static const uint64_t largest_block = (uint64_t)64 << 20;

ps_code ps_slots_create_entry(hid_t file, int64_t n_links, hid_t *entry, ps_error *error) {
    hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
    ps_code code = PS_OK;
    bool fits = n_links <= MOST_LINKS;
    if (creation < 0 ||
        (fits && (H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED) < 0 || H5Pset_link_phase_change(creation, 65535, 0) < 0 ||
                  H5Pset_est_link_info(creation, (unsigned)n_links, 12) < 0)) ||
        (*entry = H5Gcreate2(file, "entry", H5P_DEFAULT, creation, H5P_DEFAULT)) < 0)
        code = ps_h5_fail(error, "cannot create the group entry");
    ps_h5_close(&creation);
    return code == PS_OK ? ps_h5_attribute_text(*entry, "NX_class", "NXentry", error) : code;
}

static uint64_t little_endian(const uint8_t *bytes, int n) {
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static ps_code read_at(int fd, uint64_t at, uint8_t *bytes, size_t n, ps_error *error) {
    while (n > 0) {
        ssize_t got = pread(fd, bytes, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return ps_io_fail(error, got < 0 ? errno : EIO, "cannot read the header of /entry at byte %llu", (unsigned long long)at);
        bytes += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return PS_OK;
}

/* Whether a message's body is a link `name` to an object of this file. */
static bool is_link(const uint8_t *body, size_t n, const char *name, uint64_t *address) {
    size_t at = 2, length = strlen(name);
    if (n < 4 || body[0] != 1) return false;
    int flags = body[1], length_bytes = 1 << (flags & LINK_LENGTH_SIZE);
    if (flags & LINK_HAS_TYPE && body[at++] != 0) return false;
    if (flags & LINK_HAS_ORDER) at += 8;
    if (flags & LINK_HAS_CHARSET) at++;
    if (at + (size_t)length_bytes + length + 8 > n || little_endian(body + at, length_bytes) != length) return false;
    at += (size_t)length_bytes;
    *address = little_endian(body + at + length, 8);
    return memcmp(body + at, name, length) == 0;
}

/* Blocks of messages: the first one and its continuations. */
typedef struct {
    uint64_t at, bytes;
} block;

typedef struct {
    int fd;
    const char *name;
    int n_blocks, room;
    block *blocks;
    ps_slot *slot;
} search;

static ps_code add_block(search *s, uint64_t at, uint64_t bytes, ps_error *error) {
    if (bytes > largest_block || s->n_blocks >= UINT16_MAX) return PS_FAIL(error, PS_E_HDF5, "the header of /entry is damaged");
    if (s->n_blocks == s->room) {
        int room = s->room ? 2 * s->room : 8;
        block *larger = realloc(s->blocks, (size_t)room * sizeof *larger);
        if (!larger) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the header of /entry");
        s->blocks = larger;
        s->room = room;
    }
    s->blocks[s->n_blocks++] = (block){at, bytes};
    return PS_OK;
}

static ps_code search_block(search *s, block b, ps_error *error) {
    ps_code code = PS_OK;
    uint8_t *bytes = malloc(b.bytes);
    PS_GO_ALLOC(error, bytes);
    PS_GO(read_at(s->fd, b.at, bytes, b.bytes, error));
    for (uint64_t at = 0; at + MESSAGE_HEAD_BYTES <= b.bytes && s->slot->type_at == 0;) {
        const uint8_t *head = bytes + at, *body = head + MESSAGE_HEAD_BYTES;
        uint64_t type = little_endian(head, 2), size = little_endian(head + 2, 2), address;
        if (at + MESSAGE_HEAD_BYTES + size > b.bytes) break;
        if (type == MESSAGE_CONTINUATION && size >= 16) PS_GO(add_block(s, little_endian(body, 8), little_endian(body + 8, 8), error));
        if ((type == MESSAGE_LINK || type == MESSAGE_NOTHING) && is_link(body, size, s->name, &address))
            *s->slot = (ps_slot){.type_at = (int64_t)(b.at + at), .address = address, .bytes = size, .hidden = type == MESSAGE_NOTHING};
        at += MESSAGE_HEAD_BYTES + size;
    }
done:
    free(bytes);
    return code;
}

/* A link that was hidden, and whose bytes something else has used since, points nowhere. */
static bool points_to_header(int fd, const ps_slot *slot) {
    struct stat status;
    uint8_t version;
    return fstat(fd, &status) == 0 && slot->address + PREFIX_BYTES < (uint64_t)status.st_size &&
           read_at(fd, slot->address, &version, 1, NULL) == PS_OK && version == 1;
}

ps_code ps_slots_find(int fd, hid_t group, const char *name, ps_slot *slot, ps_error *error) {
    ps_code code = PS_OK;
    uint8_t prefix[PREFIX_BYTES];
    H5O_info_t object;
    search s = {.fd = fd, .name = name, .slot = slot};
    *slot = (ps_slot){0};
    if (H5Oget_info(group, &object) < 0) return ps_h5_fail(error, "cannot look at /entry");
    PS_GO(read_at(fd, object.addr, prefix, sizeof prefix, error));
    if (prefix[0] != 1) goto done; /* of another version, with a checksum */
    PS_GO(add_block(&s, object.addr + PREFIX_BYTES, little_endian(prefix + 8, 4), error));
    for (int i = 0; i < s.n_blocks && slot->type_at == 0; i++) PS_GO(search_block(&s, s.blocks[i], error));
    if (slot->hidden && !points_to_header(fd, slot)) *slot = (ps_slot){0};
done:
    free(s.blocks);
    return code;
}

/* ---- hiding ---- */

enum { SUPERBLOCK_BYTES = 48, SUPERBLOCK_END = 40, OFFSET_SIZE_AT = 13, CONTINUATION_BYTES = 16 };

static void put_little_endian(uint8_t *bytes, uint64_t value, int n) {
    for (int i = 0; i < n; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

static ps_code write_at(int fd, int64_t at, const uint8_t *bytes, size_t n, ps_error *error) {
    while (n > 0) {
        ssize_t wrote = pwrite(fd, bytes, n, (off_t)at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return ps_io_fail(error, wrote < 0 ? errno : ENOSPC, "cannot write the header of /entry");
        bytes += wrote;
        at += wrote;
        n -= (size_t)wrote;
    }
    return PS_OK;
}

/* The message's bytes as one of type 0 in a block at the end of the file, which grows. *end: where. */
static ps_code move_to_end(int fd, const ps_slot *slot, uint8_t *message, uint64_t *end, ps_error *error) {
    uint8_t superblock[SUPERBLOCK_BYTES];
    size_t n = MESSAGE_HEAD_BYTES + slot->bytes;
    PS_TRY(read_at(fd, 0, superblock, sizeof superblock, error));
    if (superblock[8] != 0 || superblock[OFFSET_SIZE_AT] != 8)
        return PS_FAIL(error, PS_E_INTERNAL, "a superblock of version %d with offsets of %d bytes, expected 0 and 8", superblock[8],
                       superblock[OFFSET_SIZE_AT]);
    *end = little_endian(superblock + SUPERBLOCK_END, 8);
    put_little_endian(message, MESSAGE_NOTHING, 2);
    PS_TRY(write_at(fd, (int64_t)*end, message, n, error));
    put_little_endian(superblock + SUPERBLOCK_END, *end + n, 8);
    return write_at(fd, SUPERBLOCK_END, superblock + SUPERBLOCK_END, 8, error);
}

/* In the place of a message of `bytes`: a continuation message, as long as that one, so that no empty message is left that the library
 * would join with a neighbour. */
static void point_to_block(uint8_t *message, uint64_t bytes, uint64_t at) {
    memset(message, 0, MESSAGE_HEAD_BYTES + bytes);
    put_little_endian(message, MESSAGE_CONTINUATION, 2);
    put_little_endian(message + 2, bytes, 2);
    put_little_endian(message + MESSAGE_HEAD_BYTES, at, 8);
    put_little_endian(message + MESSAGE_HEAD_BYTES + 8, MESSAGE_HEAD_BYTES + bytes, 8);
}

/* The block holds one message more than the header had. */
static ps_code count_message(int fd, uint64_t header, ps_error *error) {
    uint8_t count[2];
    PS_TRY(read_at(fd, header + 2, count, sizeof count, error));
    put_little_endian(count, little_endian(count, 2) + 1, 2);
    return write_at(fd, (int64_t)header + 2, count, sizeof count, error);
}

ps_code ps_slots_hide(int fd, hid_t group, const char *name, bool *done, ps_error *error) {
    ps_code code = PS_OK;
    ps_slot slot;
    H5O_info_t object;
    uint8_t *message = NULL;
    uint64_t end = 0;
    PS_TRY(ps_slots_find(fd, group, name, &slot, error));
    *done = slot.type_at != 0 && !slot.hidden && slot.bytes >= CONTINUATION_BYTES;
    if (!*done) return PS_OK;
    if (H5Oget_info(group, &object) < 0) return ps_h5_fail(error, "cannot look at /entry");
    message = malloc(MESSAGE_HEAD_BYTES + slot.bytes);
    PS_GO_ALLOC(error, message);
    PS_GO(read_at(fd, (uint64_t)slot.type_at, message, MESSAGE_HEAD_BYTES + slot.bytes, error));
    PS_GO(move_to_end(fd, &slot, message, &end, error));
    point_to_block(message, slot.bytes, end);
    PS_GO(write_at(fd, slot.type_at, message, MESSAGE_HEAD_BYTES + slot.bytes, error));
    PS_GO(count_message(fd, object.addr, error));
done:
    free(message);
    return code;
}

static bool on_disk(int fd) {
    int result;
    do result = fdatasync(fd);
    while (result != 0 && errno == EINTR);
    return result == 0 || errno == EINVAL || errno == ENOSYS;
}

ps_code ps_slots_show(int fd, const ps_slot *slot, ps_error *error) {
    uint8_t type[2];
    put_little_endian(type, MESSAGE_LINK, 2);
    if (!on_disk(fd)) return ps_io_fail(error, errno, "cannot bring a run's notes to disk");
    PS_TRY(write_at(fd, slot->type_at, type, sizeof type, error));
    return on_disk(fd) ? PS_OK : ps_io_fail(error, errno, "cannot bring the header of /entry to disk");
}
