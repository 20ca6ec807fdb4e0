/* The three forms of `ptyseries bench scale`. */
#ifndef PS_BENCH_SCALE_PRINT_H
#define PS_BENCH_SCALE_PRINT_H

#include <stdio.h>

#include "bench/scale_points.h"

typedef struct {
    char backend[32];
    ps_device_info device;
    bool on_device; /* seconds are of the wall; else of the processor, all threads together */
    int n;
    ps_scale_point points[PS_SCALE_MOST_POINTS];
} ps_scale_table;

void ps_scale_print(const ps_scale_table *table, FILE *stream);
ps_code ps_scale_write_json(const ps_scale_table *table, const char *path, ps_error *error);
/* One plot an axis, both logarithmic. */
ps_code ps_scale_write_svg(const ps_scale_table *table, const char *path, ps_error *error);

#endif
