/* A stored case: counts, optics and options, and float64 answers for every stage. Layout: tests/oracle/oracle.py. */
#ifndef PS_TESTS_CONTRACT_STORED_CASE_H
#define PS_TESTS_CONTRACT_STORED_CASE_H

#include <hdf5.h>

#include "optics/plan.h"

typedef struct {
    char name[64];
    hid_t file;
    ps_optics optics;
    ps_plan plan;
    bool poisson;
    void *counts; /* [scan_rows, scan_columns, detector_rows, detector_columns] of dtype */
    ps_dtype dtype;
} stored_case;

/* Each ends the test when the file does not hold what it should. */
void stored_case_open(const char *path, stored_case *c);
void stored_case_close(stored_case *c);
/* A whole dataset as doubles (complex ones as pairs); malloc'd; *n: doubles read, may be NULL. NULL when it is not there. */
double *stored_case_read(const stored_case *c, const char *path, int64_t *n);
double stored_case_attribute(const stored_case *c, const char *object, const char *name); /* NAN when it is not there */

/* Calls visit for every *.h5 in a directory, by name; returns their number, 0 when there is no such directory. */
int stored_cases_visit(const char *directory, void (*visit)(const char *path));

#endif
