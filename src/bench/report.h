/* The table of `ptyseries bench`: rows of measured times, checks that came before them, and where they were measured. */
#ifndef PS_BENCH_REPORT_H
#define PS_BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/error.h"

enum { PS_BENCH_MOST_ROWS = 64, PS_BENCH_MOST_REPEATS = 64 };

typedef struct {
    char number[8]; /* of docs/performance.md's table; "" : beside it */
    char name[96];
    int n_repeats;
    double median_s, lowest_s, highest_s;
    double target_s, floor_s; /* 0: none */
    char rate[96];            /* what was done per second, against a ceiling; "": nothing to say */
} ps_bench_row;

typedef struct {
    char name[96];
    double difference, tolerance;
} ps_bench_check;

typedef struct {
    char backend[32], device[128], precision[64], versions[256], driver[256];
    int n_ceilings;
    struct {
        char name[48];
        double value;
        char unit[16];
    } ceiling[16];
    int n_rows, n_checks;
    ps_bench_row rows[PS_BENCH_MOST_ROWS];
    ps_bench_check checks[PS_BENCH_MOST_ROWS];
} ps_bench_report;

/* Repeats of one measurement. */
typedef struct {
    int n;
    double seconds[PS_BENCH_MOST_REPEATS];
} ps_bench_times;

void ps_bench_add_ceiling(ps_bench_report *report, const char *name, double value, const char *unit);
/* Median and spread of `times` as a new row, returned for its rate; target_ms, floor_ms: 0: none. NULL: the table is full. */
ps_bench_row *ps_bench_add_row(ps_bench_report *report, const char *number, const char *name, const ps_bench_times *times, double target_ms,
                               double floor_ms);
/* Notes a check; PS_E_NUMERIC unless difference <= tolerance. */
ps_code ps_bench_add_check(ps_bench_report *report, const char *name, double difference, double tolerance, ps_error *error);

void ps_bench_print(const ps_bench_report *report, FILE *stream);
ps_code ps_bench_write_json(const ps_bench_report *report, const char *path, ps_error *error);

#endif
