/* What a run leaves that is killed while it gives a recording its names: files of the one before under "NAME.previous-N"
 * (master_writer.h). Rank-local. */
#ifndef PS_TASKS_SIMULATE_LEFTOVERS_H
#define PS_TASKS_SIMULATE_LEFTOVERS_H

#include <stdbool.h>

#include "input/name_list.h"

/* All names of a directory that end in ".previous-N"; starts as {0}; owned: ps_leftovers_free. */
typedef struct {
    char *directory; /* read last */
    ps_name_list names;
} ps_leftovers;

/* Reads the directory unless it is the one read last; one that is not there holds none. */
ps_code ps_leftovers_read(ps_leftovers *leftovers, const char *directory, ps_error *error);
void ps_leftovers_free(ps_leftovers *leftovers);

/* Those of one recording. */
typedef struct {
    int64_t n;
    char *first, *truth; /* paths of one, and of one of the truth; owned: ps_frame_leftovers_free; NULL: none */
    bool of_master;      /* one of the master is among them */
    bool displaced;      /* and so is one of a file that has lost its own name */
} ps_frame_leftovers;

ps_code ps_frame_leftovers_find(const ps_leftovers *leftovers, const char *master, ps_frame_leftovers *found, ps_error *error);
void ps_frame_leftovers_free(ps_frame_leftovers *found);

/* Once the recording of this master is complete: removes those beside it, of whatever earlier files, those of the master last. */
void ps_leftovers_remove(const char *master);

#endif
