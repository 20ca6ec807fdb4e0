/* The measurements of `ptyseries bench`. Each checks its answers first and times nothing whose answer is wrong (PS_E_NUMERIC). */
#ifndef PS_BENCH_MEASURE_H
#define PS_BENCH_MEASURE_H

#include "bench/problem.h"
#include "bench/report.h"
#include "kernels/backend_list.h"

typedef struct {
    const ps_backend_ops *ops; /* the backend */
    int device;                /* of it, where it has several */
    int repeats;
    double budget_GiB; /* cuda; 0: what is free */
    bool quick;        /* the small problem instead of the published one */
    const char
        *rows;     /* cuda: of "prepare,frames,ssb,memory,storage,fit,unpack" those wanted; cpu: of "operations,storage,fit"; NULL: all */
    int n_threads; /* cpu; 0: all */
} ps_bench_options;

/* The backend's operations beside the plain float64 path's. */
ps_code ps_bench_cpu(const ps_bench_options *options, ps_bench_report *report, ps_error *error);
/* A backend with a device: the table names what it measures beyond its operations. */
ps_code ps_bench_device(const ps_bench_options *options, ps_bench_report *report, ps_error *error);

/* Row 10 of a backend that unpacks patterns on its device: problem S packed as bitshuffle-LZ4. */
ps_code ps_bench_unpack(const ps_bench_options *options, ps_backend *backend, const ps_bench_problem *problem, ps_bench_report *report,
                        ps_error *error);

/* Fits of optics on an open backend: problem S on a device, else a smaller frame. */
ps_code ps_bench_fit(const ps_bench_options *options, ps_backend *backend, ps_bench_report *report, ps_error *error);

/* g not held, exact and compact, on an open backend: problem S and other scans on a device, else smaller ones. */
ps_code ps_bench_g(const ps_bench_options *options, ps_backend *backend, ps_bench_report *report, ps_error *error);

/* Calls run(context) once and then n times, timed. */
ps_code ps_bench_repeat(int n, ps_code (*run)(void *context, ps_error *error), void *context, ps_bench_times *times, ps_error *error);
/* Fills the report's device fields. */
void ps_bench_describe(ps_backend *backend, ps_bench_report *report);

#endif
