/* Which scan position each stored pattern belongs to, by the frame number that a Merlin file writes into the header of each pattern: a jump
 * in the numbers means that patterns were lost. */
#ifndef PS_INPUT_FORMATS_FRAME_NUMBERS_H
#define PS_INPUT_FORMATS_FRAME_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

/* Stored patterns [stored, stored + n) are positions [position, position + n) and have the numbers from `number` on. */
typedef struct {
    int64_t position, stored, n, number;
} ps_frame_run;

typedef struct {
    bool numbered; /* false: the patterns have no numbers, or all the same; then they are one run whose numbers mean nothing */
    int64_t n_runs;
    ps_frame_run *runs; /* [n_runs] in order */
    int64_t n_positions, n_lost;
    int64_t first_lost;   /* position; -1: none is lost */
    int64_t n_elsewhere;  /* patterns before the first one by its number, that nothing says to be lost */
    int64_t every;        /* the numbers begin again so often; 0: they do not, or at no regular distance */
    int64_t begins_again; /* stored pattern where the numbers begin again and nothing tells whether patterns were lost there; -1: none */
} ps_frame_numbers;

/* What is known from elsewhere; 0: nothing. */
typedef struct {
    int64_t n_expected; /* patterns of the whole acquisition */
    int64_t per_round;  /* numbers begin again behind so many patterns */
} ps_frame_plan;

/* number: of a stored pattern; -1: it has none. Large files are looked at where the numbers do not add up (each pattern's number is
 * compared again when it is read: ps_frame_numbers_check). name: for messages. PS_E_INPUT: numbers that stand still or run backwards. Freed
 * with ps_frame_numbers_free, after an error too. */
ps_code ps_frame_numbers_build(const char *name, int64_t n_frames, ps_frame_plan plan,
                               ps_code (*number)(void *context, int64_t stored, int64_t *value, ps_error *error), void *context,
                               ps_frame_numbers *numbers, ps_error *error);
void ps_frame_numbers_free(ps_frame_numbers *numbers);

/* The stored pattern of a position; of a lost one, that of the nearest position before it, else after it. run: the one it is in. */
int64_t ps_frame_numbers_find(const ps_frame_numbers *numbers, int64_t position, const ps_frame_run **run);
/* PS_E_INPUT when a pattern's number is not the one that its place says. */
ps_code ps_frame_numbers_check(const ps_frame_numbers *numbers, const ps_frame_run *run, const char *name, int64_t stored, int64_t number,
                               ps_error *error);

#endif
