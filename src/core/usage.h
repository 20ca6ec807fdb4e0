/* What bounded a run: for how much of the time that went into frames each resource was busy, on each rank and over all of them. */
#ifndef PS_CORE_USAGE_H
#define PS_CORE_USAGE_H

#include <stddef.h>

#include "core/busy.h"
#include "core/stage.h"

/* One rank's. */
typedef struct {
    double start_s;                /* before the first frame */
    double work_s;                 /* on frames, until no rank had any left */
    double busy_s[PS_N_RESOURCES]; /* of work_s */
    double any_s;                  /* of work_s: at least one resource was busy */
    double processor_s;            /* of all threads, during work_s */
    double stage_s[PS_N_STAGES];   /* of the frames that this rank finished */
} ps_rank_usage;

/* Of work_s, 0 to 1. */
typedef struct {
    double mean, least, most; /* over ranks */
    int most_rank;            /* the first that has the most */
} ps_usage_share;

typedef struct {
    int n_ranks;
    double start_s, work_s; /* the longest of any rank */
    ps_usage_share share[PS_N_RESOURCES];
    double idle; /* mean share in which no resource was busy: waiting for other ranks, or for what is not measured */
    double busy_s[PS_N_RESOURCES], processor_s, stage_s[PS_N_STAGES]; /* sums over ranks */
} ps_usage;

/* ranks: [n], n > 0. Shares of a rank without work are 0. */
void ps_usage_combine(const ps_rank_usage *ranks, int n, ps_usage *usage);

/* From this share on a resource is said to bound. */
#define PS_BOUND_SHARE 0.5
/* The resource that was busiest, the first of equals. */
ps_resource ps_usage_busiest(const double *shares);
/* "bound by the bus, 91 % busy", or what was busiest where nothing was busy for half of the time. shares: [PS_N_RESOURCES]. */
void ps_usage_verdict(const double *shares, char *text, size_t bytes);
/* The verdict, the shares of all resources that were used, and of how many seconds: one line without an end. */
enum { PS_USAGE_TEXT = 512 };
void ps_usage_describe(const ps_usage *usage, char text[PS_USAGE_TEXT]);
/* "read 1.2, put 0.1 ..." over all ranks. */
void ps_usage_describe_stages(const ps_usage *usage, char text[PS_USAGE_TEXT]);

#endif
