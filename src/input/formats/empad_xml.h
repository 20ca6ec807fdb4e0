/* The .xml file of an EMPAD recording, and what the name and size of its raw file tell. */
#ifndef PS_INPUT_FORMATS_EMPAD_XML_H
#define PS_INPUT_FORMATS_EMPAD_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

enum { PS_EMPAD_MAX_SCANS = 8 };

/* A scan that the file speaks of. */
typedef struct {
    int64_t rows, columns; /* 0: not said */
    char place[64];        /* "scan_parameters mode acquire", ... */
} ps_empad_scan;

typedef struct {
    char raw_file[512];     /* name without folders */
    bool second_generation; /* EMPAD2: patterns of 128 rows; else 130, of which 128 are the detector */
    int n_scans;
    ps_empad_scan scans[PS_EMPAD_MAX_SCANS]; /* [n_scans], each shape once; those of the acquisition first */
    int64_t n_series;                        /* patterns of a series of single images; 0: a scan */
    double voltage_V, pitch_mrad;            /* NAN: not said */
    double field_m[2], scale_factor;         /* field of view as it is there: NAN: not said */
    char time[64];
} ps_empad_metadata;

/* text: [n_bytes]. PS_E_INPUT when it is no XML or names no raw file. */
ps_code ps_empad_parse(const char *name, const char *text, size_t n_bytes, ps_empad_metadata *metadata, ps_error *error);

/* What a raw file's name says: "scan_x128_y64.raw" is 64 rows of 128 columns; false: nothing. */
bool ps_empad_name_scan(const char *name, int64_t *rows, int64_t *columns);

#endif
