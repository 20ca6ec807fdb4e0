/* What names, units and marks of a dataset's axes say of their order: [scan ..., detector row, detector column] is what is read. */
#ifndef PS_INPUT_FORMATS_AXIS_ORDER_H
#define PS_INPUT_FORMATS_AXIS_ORDER_H

#include "input/formats/calibration.h"

typedef enum { PS_AXIS_UNKNOWN, PS_AXIS_SCAN, PS_AXIS_DETECTOR } ps_axis_kind;

typedef struct {
    char name[64];     /* "": none */
    ps_axis_kind kind; /* what the file says by a mark of its own; PS_AXIS_UNKNOWN: nothing */
    ps_quantity step;
} ps_axis;

void ps_axis_clear(ps_axis *axis); /* says nothing */

/* From spellings such as "Qx", "k_y", "det_row", "scan_x", "R_y"; a plain "x" says nothing. */
ps_axis_kind ps_axis_name_kind(const char *name);

/* axes: [rank] 3 or 4, in the order of the file. PS_E_INPUT, with what the axes are called, when they say that the detector's come first or
 * the scan's come last; a note when all are said to be of one kind. where: the dataset or group, for the message. */
ps_code ps_axis_order_check(ps_reader *reader, const ps_axis *axes, int rank, const char *where, ps_error *error);

/* Steps of the scan's axes (rank 4) and of the detector's into reader->info, where nothing is known yet. */
void ps_axis_take_steps(ps_reader *reader, const ps_axis *axes, int rank);

#endif
