/* What the files that read packed patterns share: what can be read so (packed.c, packed_look.c), where it lies (packed_find.c), and the way
 * into a frame (packed_put.c). Internal. */
#ifndef PS_INPUT_PACKED_PARTS_H
#define PS_INPUT_PACKED_PARTS_H

#include <pthread.h>

#include "hdf5/index.h"
#include "input/formats/hdf5_common.h"
#include "input/packed.h"

typedef struct {
    int descriptor; /* -1: none */
    char *path;
} ps_packed_file;

typedef struct {
    int64_t address; /* of its lead, if it has one */
    uint32_t bytes;  /* with it */
    int32_t file;
} ps_packed_place;

/* Data files are found one after the other: opened by one thread, then the leaves of its index read by any. */
typedef enum { PS_FINDING_NEXT, PS_FINDING_OPENS, PS_FINDING_LEAVES } ps_finding_state;

struct ps_packed_recording {
    ps_packing packing;
    uint32_t limit;
    bool is_big_endian;
    const ps_reader *format; /* whose `check` sees the lead_bytes in front of each pattern */
    int64_t lead_bytes;
    ps_code (*check)(const ps_reader *reader, int64_t position, const uint8_t *lead, ps_error *error);
    int64_t n_positions, n_pixels, pattern_bytes;
    ps_packed_place *places; /* [n_positions] the first n_known are known */
    ps_packed_file *files;   /* [n_files] */
    int64_t n_files;
    ps_hdf5_reader *reader; /* whose segments are found; NULL: all are known */
    /* of finding; under the mutex */
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* more is known, or there is something to do, or it ended */
    int64_t n_known, bytes; /* positions; of all that is read of them */
    int64_t at;             /* the file that is being found */
    ps_finding_state state;
    int64_t next_leaf;
    int n_busy; /* threads that read leaves */
    bool is_sound;
    bool is_left; /* to be read as counts, for the reason `why` */
    char why[PS_PACKED_WHY];
    ps_error failure;
};

/* Returns false, for the caller to return. */
bool ps_packed_say(char why[PS_PACKED_WHY], const char *text);

/* n patterns that lie as they are delivered, from position `first` on, in file number `file`. false: why says the reason. */
bool ps_packed_take_plain(ps_packed_recording *recording, int64_t first, int64_t n, int32_t file, const ps_reader_plain *plain,
                          char why[PS_PACKED_WHY]);

/* Whether what file number i holds can be handed on packed, as its dataset says. The first file decides on the packing. Opens it. */
ps_code ps_packed_look_at(ps_packed_recording *recording, int64_t i, bool *usable, char why[PS_PACKED_WHY], ps_error *error);

/* Does one thing that is to be done to find more places, and returns true; false: other threads are at the rest, or it ended. Called with
 * the mutex held, which it leaves while it is at it. */
bool ps_packed_find_step(ps_packed_recording *recording);
bool ps_packed_find_ended(const ps_packed_recording *recording); /* all is known, or nothing more will be; the same */

#endif
