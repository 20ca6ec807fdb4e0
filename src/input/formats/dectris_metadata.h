/* What a Dectris master and the microscope's file beside it say of the scan, the beam and the detector. Used by reader_dectris.c. */
#ifndef PS_INPUT_FORMATS_DECTRIS_METADATA_H
#define PS_INPUT_FORMATS_DECTRIS_METADATA_H

#include "input/formats/hdf5_common.h"

#define PS_DECTRIS_DETECTOR "/entry/instrument/detector"
#define PS_DECTRIS_SPECIFIC PS_DECTRIS_DETECTOR "/detectorSpecific"

/* How the recording was planned. 0: not said. */
typedef struct {
    int64_t n_images, n_triggers; /* images per trigger, triggers */
    bool one_image_a_trigger;     /* trigger modes in which a signal exposes each image */
    int64_t n_frames;             /* in all */
} ps_dectris_plan;

void ps_dectris_read_plan(hid_t master, ps_dectris_plan *plan);

/* Voltage, saturation, bit depth, mask and time into reader; what is not taken is noted. */
void ps_dectris_read_metadata(ps_hdf5_reader *reader, hid_t master);

/* Scan shape and voltage from the microscope's file, NAME.h5 beside NAME_master.h5. A shape of more patterns than there are is filled up
 * with positions without data where segments.allow_partial, else it is told and kept from being guessed (scan_doubt). */
ps_code ps_dectris_read_companion(ps_hdf5_reader *reader, ps_error *error);

/* The scan shape that the plan tells, one trigger a row, unless one is known; and whether as many patterns are there as were planned. */
void ps_dectris_describe_scan(ps_hdf5_reader *reader, const ps_dectris_plan *plan);

#endif
