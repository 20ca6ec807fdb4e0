/* For how long each resource of this process was in use: the union of the intervals in which at least one thread used it, so that threads
 * that use it at the same time are not counted twice.
 *
 * Whoever uses a resource says so, around the use and nothing else: waiting for something to do does not count.
 *
 *     ps_busy_begin(PS_RESOURCE_BUS);                        in the thread that copies, or waits for a copy
 *     ...
 *     ps_busy_end(PS_RESOURCE_BUS);
 *
 *     PS_TRY(PS_BUSY(PS_RESOURCE_FILE, read_some(...)));      the same around one call that returns a value
 *
 * Begin and end come in pairs; they may nest, overlap among threads, and end in another thread than they began in (a copy whose end a
 * callback reports). Any thread, at any time. While others use the same resource a call is one atomic addition; only the first to begin
 * and the last to end take locks and the time, some 0.1 microseconds: fit for what takes 20 microseconds or more, such as a large chunk. */
#ifndef PS_CORE_BUSY_H
#define PS_CORE_BUSY_H

#ifdef __cplusplus
extern "C" {
#endif

/* Where a run could be said to be bound by several, it is by the first. */
#define PS_RESOURCES(X)                                                                             \
    X(PS_RESOURCE_FILE, "file")     /* bytes come from recordings */                                \
    X(PS_RESOURCE_DECODE, "decode") /* the host unpacks counts, turns their bytes, looks at them */ \
    X(PS_RESOURCE_BUS, "bus")       /* counts and images move between host and device */            \
    X(PS_RESOURCE_DEVICE, "device") /* a backend with a device computes */                          \
    X(PS_RESOURCE_CORES, "cores")   /* a backend without one computes, on the host's cores */       \
    X(PS_RESOURCE_OUTPUT, "output") /* results are written, read back, checked and brought to disk */

typedef enum {
#define X(resource, name) resource,
    PS_RESOURCES(X)
#undef X
        PS_N_RESOURCES
} ps_resource;

const char *ps_resource_name(ps_resource resource);

void ps_busy_begin(ps_resource resource);
void ps_busy_end(ps_resource resource);
/* The value of call, during which the resource is busy. */
#define PS_BUSY(resource, call)                    \
    __extension__({                                \
        ps_busy_begin(resource);                   \
        __typeof__(call) ps_busy_result_ = (call); \
        ps_busy_end(resource);                     \
        ps_busy_result_;                           \
    })

/* Seconds since the process began, or between two readings. */
typedef struct {
    double busy_s[PS_N_RESOURCES];
    double any_s;       /* at least one resource was in use */
    double wall_s;      /* of the monotonic clock */
    double processor_s; /* of all threads together */
} ps_busy_times;

/* What is under way counts up to now. */
ps_busy_times ps_busy_read(void);
/* From an earlier reading to now. */
ps_busy_times ps_busy_since(const ps_busy_times *begin);

/* For tests: another clock, in seconds; NULL: the monotonic one again. While no resource is in use. */
void ps_busy_set_clock(double (*clock)(void));

#ifdef __cplusplus
}
#endif
#endif
