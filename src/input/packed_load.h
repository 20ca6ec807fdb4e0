/* A whole recording into a frame whose backend unpacks on its device: what input/loader.h brings as counts, brought packed. The same
 * counts, tallies, findings and messages come of it. */
#ifndef PS_INPUT_PACKED_LOAD_H
#define PS_INPUT_PACKED_LOAD_H

#include "input/loader.h"
#include "input/packed.h"

typedef struct {
    const ps_backend_ops *ops;
    const ps_loader_shape *shape;
    const char *source;
    const uint8_t *bad; /* [detector pixels] that tallies do not look at, not 0: bad; NULL: none */
    int n_threads;      /* that read; 0: all of OpenMP's */
    ps_packed_watch watch;
} ps_packed_request;

typedef struct {
    bool is_packed; /* it is of a kind that is handed on packed */
    bool is_taken;  /* false: the recording is to be read as counts, into another frame; why says the reason */
    char why[PS_PACKED_WHY];
    ps_loader_findings found;
    double seconds; /* spent in all */
} ps_packed_outcome;

/* tally: [n_positions]. The frame is new; complete when the recording was taken, to be destroyed when not. Damage and whatever else goes
 * wrong with a file is left to who reads counts, or met in the same words. */
ps_code ps_packed_load(const ps_packed_request *request, ps_frame *frame, ps_pattern_tally *tally, ps_packed_outcome *outcome,
                       ps_error *error);

#endif
