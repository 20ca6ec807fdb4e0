/* The points of `ptyseries bench scale`: problems along four axes that start at one base, what each stage of them has to do, and how long
 * it took. Internal to bench. */
#ifndef PS_BENCH_SCALE_POINTS_H
#define PS_BENCH_SCALE_POINTS_H

#include <stdbool.h>

#include "bench/problem.h"
#include "kernels/backend_list.h"

typedef enum { PS_SCALE_SCAN, PS_SCALE_DETECTOR, PS_SCALE_ALIASES, PS_SCALE_FRAMES, PS_SCALE_N_AXES } ps_scale_axis;
typedef enum { PS_SCALE_PUT, PS_SCALE_PREPARE, PS_SCALE_REDUCE, PS_SCALE_SOLVE, PS_SCALE_SSB, PS_SCALE_N_STAGES } ps_scale_stage;
enum { PS_SCALE_MOST_POINTS = 64 };

typedef struct {
    ps_scale_axis axis;
    double x; /* of the axis: positions or pixels along a side, aliases of a frequency (mean), frames of a batch */
    ps_bench_problem problem;
    double step_A; /* of the scan: more aliases where it is longer */
    int64_t n_frames;
    int64_t n_active, upsampling, peak_bytes;
    double work[PS_SCALE_N_STAGES];    /* of one frame: bytes of counts; else about how many floating-point operations (scale_points.c) */
    double seconds[PS_SCALE_N_STAGES]; /* of one frame, the shorter of two where it is short; NAN: not measured */
    char skipped[160];                 /* why it was not measured; "": it was */
} ps_scale_point;

const char *ps_scale_axis_name(ps_scale_axis axis); /* with its unit */
const char *ps_scale_stage_name(ps_scale_stage stage);
/* points: [PS_SCALE_MOST_POINTS], axis after axis, the base first of each. Returns how many. */
int ps_scale_list(ps_scale_point *points);
/* Plans the point's problem and counts its work. plan: to be freed, also after an error. */
ps_code ps_scale_plan(ps_scale_point *point, ps_plan *plan, ps_error *error);
/* Seconds a unit of work of a stage, against the median of its axis; NAN: not measured. n: of points. */
double ps_scale_relative_cost(const ps_scale_point *points, int n, int at, ps_scale_stage stage);

#endif
