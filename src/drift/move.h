/* Images moved by a part of a pixel: docs/drift.md. Rank-local. */
#ifndef PS_DRIFT_MOVE_H
#define PS_DRIFT_MOVE_H

#include <stdint.h>

/* The image moved back by shift (pixels), by a windowed sinc; to: [rows, columns], what stood at r + shift stands at r. Nothing is wrapped
 * around: where the shifted image does not reach, or not with all that the sinc takes, to is 0. inside: first row, one behind the last,
 * first column, one behind the last, of what is there; all 0: nothing is. */
void ps_drift_move_back(int64_t rows, int64_t columns, const float *image, const double shift[2], float *to, int64_t inside[4],
                        float *room /* [rows, columns] */);

#endif
