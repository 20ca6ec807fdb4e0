/* The text header in front of every pattern of a Merlin .mib file, and the .hdr file beside it. */
#ifndef PS_INPUT_FORMATS_MIB_HEADER_H
#define PS_INPUT_FORMATS_MIB_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/types.h"

enum { PS_MIB_CHIP = 256, PS_MIB_MAX_HEADER = 4096 };

typedef struct {
    int64_t header_bytes, rows, columns;
    int64_t number; /* of the pattern in its acquisition, from 1; -1: not said */
    int n_chips, counter_bits;
    ps_dtype dtype;
    char layout[16]; /* "1x1", "2x2", "2x2G" */
    bool has_gap;
    char time[64]; /* ISO 8601 */
} ps_mib_header;

/* text: [n_bytes] from the header's first byte on, not terminated. name: for messages. Raw mode (R64) is refused by name. */
ps_code ps_mib_parse(const char *name, const char *text, size_t n_bytes, ps_mib_header *header, ps_error *error);

/* What a .hdr file says; 0 where it does not. */
typedef struct {
    int64_t n_frames, frames_per_trigger;
    int64_t scan_rows, scan_columns; /* "ScanY" and "ScanX" and other spellings, both or none */
} ps_mib_companion;

void ps_mib_parse_companion(const char *text, ps_mib_companion *companion);

#endif
