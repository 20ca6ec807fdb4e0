/* The .xml file of an EMPAD recording. */
#ifndef PS_INPUT_EMPAD_H
#define PS_INPUT_EMPAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

typedef struct {
    char raw_file[512];              /* name without folders */
    bool second_generation;          /* EMPAD2: frames of 128 rows; else 130, of which 128 are the detector */
    int64_t scan_rows, scan_columns; /* 0: not said */
    int64_t n_series;                /* frames of a series of single images; 0: a scan */
    double voltage_V, pitch_mrad;    /* NAN: not said */
    double field_m[2], scale_factor; /* field of view as it stands there: NAN: not said */
    char time[64];
} ps_empad_metadata;

/* text: [n_bytes]. PS_E_INPUT when it is no XML or names no raw file. */
ps_code ps_empad_parse(const char *name, const char *text, size_t n_bytes, ps_empad_metadata *metadata, ps_error *error);

#endif
