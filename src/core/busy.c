#include "core/busy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "core/assert.h"
#include "core/log.h"

/* A resource, or the sum of all. From 0 users to 1 and back goes under the lock, with the time; other changes do not touch the time. */
typedef struct {
    pthread_mutex_t lock;
    atomic_long n_users;
    double since_s, until_s, total_s; /* under lock; since_s: with users; until_s: the last end */
} meter;

#define X(resource, name) [resource] = {.lock = PTHREAD_MUTEX_INITIALIZER},
static meter meters[PS_N_RESOURCES] = {PS_RESOURCES(X)};
#undef X
static meter any = {.lock = PTHREAD_MUTEX_INITIALIZER};
static double (*now)(void) = ps_seconds;

const char *ps_resource_name(ps_resource resource) {
    static const char *const names[] = {
#define X(id, name) name,
        PS_RESOURCES(X)
#undef X
    };
    return resource >= 0 && resource < PS_N_RESOURCES ? names[resource] : "unknown";
}

/* Adds to n_users without the lock, unless that would leave or reach 0: then false. */
static bool change_among_others(meter *m, long step, long least) {
    long n = atomic_load_explicit(&m->n_users, memory_order_relaxed);
    while (n >= least)
        if (atomic_compare_exchange_weak_explicit(&m->n_users, &n, n + step, memory_order_relaxed, memory_order_relaxed)) return true;
    return false;
}

/* True: it was idle. A time that was taken before the lock may lie before the last end: what was counted is not counted again. */
static bool begin(meter *m, double time_s) {
    bool is_first = atomic_fetch_add(&m->n_users, 1) == 0;
    if (is_first) m->since_s = time_s > m->until_s ? time_s : m->until_s;
    return is_first;
}

/* True: it is idle now. */
static bool end(meter *m, double time_s) {
    long n = atomic_fetch_sub(&m->n_users, 1);
    PS_ASSERT(n > 0);
    if (n != 1) return false;
    m->until_s = time_s > m->since_s ? time_s : m->since_s;
    m->total_s += m->until_s - m->since_s;
    return true;
}

static void change_any(bool (*change)(meter *m, double time_s), double time_s) {
    pthread_mutex_lock(&any.lock);
    change(&any, time_s);
    pthread_mutex_unlock(&any.lock);
}

void ps_busy_begin(ps_resource resource) {
    PS_ASSERT(resource >= 0 && resource < PS_N_RESOURCES);
    meter *m = &meters[resource];
    if (change_among_others(m, 1, 1)) return;
    pthread_mutex_lock(&m->lock); /* first the lock, then the time: nobody begins or ends between this time and its interval */
    double time_s = now();
    if (begin(m, time_s)) change_any(begin, time_s);
    pthread_mutex_unlock(&m->lock);
}

void ps_busy_end(ps_resource resource) {
    PS_ASSERT(resource >= 0 && resource < PS_N_RESOURCES);
    meter *m = &meters[resource];
    if (change_among_others(m, -1, 2)) return;
    pthread_mutex_lock(&m->lock);
    double time_s = now();
    if (end(m, time_s)) change_any(end, time_s);
    pthread_mutex_unlock(&m->lock);
}

static double read_meter(meter *m, double time_s) {
    pthread_mutex_lock(&m->lock);
    double total_s = m->total_s;
    if (atomic_load(&m->n_users) > 0 && time_s > m->since_s) total_s += time_s - m->since_s;
    pthread_mutex_unlock(&m->lock);
    return total_s;
}

ps_busy_times ps_busy_read(void) {
    struct timespec processor = {0};
    ps_busy_times times = {.wall_s = now()};
    for (int i = 0; i < PS_N_RESOURCES; i++) times.busy_s[i] = read_meter(&meters[i], times.wall_s);
    times.any_s = read_meter(&any, times.wall_s);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &processor);
    times.processor_s = (double)processor.tv_sec + 1e-9 * (double)processor.tv_nsec;
    return times;
}

static double at_most(double value, double most) {
    return value < 0 ? 0 : value < most ? value : most;
}

/* Another thread may have ended an interval between the reading of the clock and that of its meter: no share is above 1 for that. */
ps_busy_times ps_busy_since(const ps_busy_times *begin_times) {
    ps_busy_times times = ps_busy_read();
    times.wall_s -= begin_times->wall_s;
    times.processor_s -= begin_times->processor_s;
    times.any_s = at_most(times.any_s - begin_times->any_s, times.wall_s);
    for (int i = 0; i < PS_N_RESOURCES; i++) times.busy_s[i] = at_most(times.busy_s[i] - begin_times->busy_s[i], times.wall_s);
    return times;
}

void ps_busy_set_clock(double (*clock)(void)) {
    now = clock ? clock : ps_seconds;
    any.until_s = now();
    for (int i = 0; i < PS_N_RESOURCES; i++) meters[i].until_s = any.until_s;
}
