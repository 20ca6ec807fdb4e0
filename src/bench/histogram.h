/* ptyseries bench histogram: the histogram kernels on this machine. */
#ifndef PS_BENCH_HISTOGRAM_H
#define PS_BENCH_HISTOGRAM_H

/* arguments: what follows "bench histogram"; returns the exit status. */
int ps_bench_histogram(int n_arguments, char **arguments);

#endif
