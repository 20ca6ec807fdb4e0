/* ptyseries bench scale: how the cost of each stage grows with the scan, the detector, the aliases and the frames of a batch. */
#ifndef PS_BENCH_SCALE_H
#define PS_BENCH_SCALE_H

/* arguments: what follows "bench scale"; returns the exit status. */
int ps_bench_scale(int n_arguments, char **arguments);

#endif
