/* Numbers with units that files give for the scan step and for a pixel of the detector. */
#ifndef PS_INPUT_FORMATS_CALIBRATION_H
#define PS_INPUT_FORMATS_CALIBRATION_H

#include "input/reader.h"

enum { PS_PLACE_BYTES = 512 };

typedef struct {
    double value; /* NAN: not there */
    char unit[32], place[PS_PLACE_BYTES];
} ps_quantity;

/* Takes rows and columns into reader->info where nothing is known yet and both have a unit of length (the step), or of angle or
 * reciprocal length (the pitch; the voltage of info must be known before). A unit that says nothing is noted: one that is not known
 * here as a warning, pixels and none where the number is not 1. */
void ps_calibration_take_step(ps_reader *reader, const ps_quantity rows_columns[2]);
void ps_calibration_take_pitch(ps_reader *reader, const ps_quantity rows_columns[2]);

#endif
