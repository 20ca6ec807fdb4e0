/* Links that are there and not seen: room for later runs in the header of /entry.
 *
 * A later run must not change HDF5 metadata in a way that a kill can leave half done, so the groups of later runs are made at creation. A
 * reader is not to see them before they are used. /entry is therefore a group whose links are messages of its object header (HDF5 file
 * format specification, IV.A, version 1, without a checksum): a message of type 6 is a link, one of type 0 is nothing, whatever its bytes.
 * Showing a hidden link writes 6 into the two bytes of its type: one write inside one disk sector, so that the file is whole before and
 * after it. Each hidden link has a continuation block of the header to itself, because the library, when it opens a file for writing, joins
 * messages of type 0 that are neighbours. */
#ifndef PS_STORE_SLOTS_H
#define PS_STORE_SLOTS_H

#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

typedef struct {
    int64_t type_at;  /* byte of the file where the message's type stands; 0: there is no such link */
    uint64_t address; /* of the object, for H5Oopen_by_addr */
    uint64_t bytes;   /* of the message's body */
    bool hidden;
} ps_slot;

/* Creates /entry so that its links can be hidden. n_links: about how many it will have. */
ps_code ps_slots_create_entry(hid_t file, int64_t n_links, hid_t *entry, ps_error *error);
/* Looks in the header of the group, of the file open as fd, for a link `name` to an object of the file, seen or hidden. A group that keeps
 * its links elsewhere has none. */
ps_code ps_slots_find(int fd, hid_t group, const char *name, ps_slot *slot, ps_error *error);
/* Hides the link `name` of the group, in a closed file that nobody else has (the group open for reading only). *done: false: the group
 * keeps its links elsewhere, and nothing changed. */
ps_code ps_slots_hide(int fd, hid_t group, const char *name, bool *done, ps_error *error);
/* Shows a hidden link; on disk when this returns, and not before everything else that was written through fd or HDF5. */
ps_code ps_slots_show(int fd, const ps_slot *slot, ps_error *error);

#endif
