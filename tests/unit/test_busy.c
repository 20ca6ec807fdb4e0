/* For how long resources are busy, on made-up clocks and on threads, and what ranks' times come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "core/busy.h"
#include "core/log.h"
#include "core/usage.h"

static double time_s;

static double made_up(void) {
    return time_s;
}

static int begin_clock(void **state) {
    (void)state;
    time_s += 1000;
    ps_busy_set_clock(made_up);
    return 0;
}

static int end_clock(void **state) {
    (void)state;
    ps_busy_set_clock(NULL);
    return 0;
}

static void close_to(double found, double expected) {
    double difference = found > expected ? found - expected : expected - found;
    if (!(difference <= 1e-9)) fail_msg("found %.12g, expected %.12g", found, expected);
}

/* Events of a resource at times: +1 begins, -1 ends. */
typedef struct {
    double at_s;
    ps_resource resource;
    int step;
} event;

static ps_busy_times play(const event *events, int n, double end_s) {
    ps_busy_times begin = ps_busy_read();
    double base_s = time_s;
    for (int i = 0; i < n; i++) {
        time_s = base_s + events[i].at_s;
        if (events[i].step > 0)
            ps_busy_begin(events[i].resource);
        else
            ps_busy_end(events[i].resource);
    }
    time_s = base_s + end_s;
    return ps_busy_since(&begin);
}

static void overlapping_intervals_count_once(void **state) {
    (void)state;
    /* [1, 4] and [2, 6] are 5 seconds, [8, 9] one more; the bus [5, 8.5] */
    const event events[] = {{1, PS_RESOURCE_FILE, 1},  {2, PS_RESOURCE_FILE, 1}, {4, PS_RESOURCE_FILE, -1},  {5, PS_RESOURCE_BUS, 1},
                            {6, PS_RESOURCE_FILE, -1}, {8, PS_RESOURCE_FILE, 1}, {8.5, PS_RESOURCE_BUS, -1}, {9, PS_RESOURCE_FILE, -1}};
    ps_busy_times times = play(events, sizeof events / sizeof *events, 10);
    close_to(times.busy_s[PS_RESOURCE_FILE], 6);
    close_to(times.busy_s[PS_RESOURCE_BUS], 3.5);
    close_to(times.busy_s[PS_RESOURCE_DEVICE], 0);
    close_to(times.any_s, 8); /* [1, 9] */
    close_to(times.wall_s, 10);
}

static void intervals_may_nest_and_touch(void **state) {
    (void)state;
    const event events[] = {{0, PS_RESOURCE_DECODE, 1},  {1, PS_RESOURCE_DECODE, 1}, {2, PS_RESOURCE_DECODE, -1},
                            {3, PS_RESOURCE_DECODE, -1}, {3, PS_RESOURCE_DECODE, 1}, {4, PS_RESOURCE_DECODE, -1},
                            {4, PS_RESOURCE_DECODE, 1},  {4, PS_RESOURCE_DECODE, -1}};
    close_to(play(events, sizeof events / sizeof *events, 5).busy_s[PS_RESOURCE_DECODE], 4);
}

static void what_is_under_way_counts_up_to_now(void **state) {
    (void)state;
    const event first[] = {{2, PS_RESOURCE_OUTPUT, 1}}, second[] = {{3, PS_RESOURCE_OUTPUT, -1}};
    ps_busy_times times = play(first, 1, 5);
    close_to(times.busy_s[PS_RESOURCE_OUTPUT], 3);
    close_to(times.any_s, 3);
    times = play(second, 1, 10); /* a reading may begin and end within an interval */
    close_to(times.busy_s[PS_RESOURCE_OUTPUT], 3);
    close_to(times.any_s, 3);
}

static void a_call_is_timed_and_its_value_kept(void **state) {
    (void)state;
    ps_busy_times begin = ps_busy_read();
    int value = PS_BUSY(PS_RESOURCE_DEVICE, (time_s += 2, 17));
    assert_int_equal(value, 17);
    time_s += 1;
    close_to(ps_busy_since(&begin).busy_s[PS_RESOURCE_DEVICE], 2);
}

/* ---- threads ---- */

enum { N_THREADS = 6, N_TURNS = 20000 };
static atomic_long ticks;

static double ticking(void) {
    return (double)atomic_fetch_add(&ticks, 1);
}

static void *use_both(void *argument) {
    (void)argument;
    for (int i = 0; i < N_TURNS; i++) {
        ps_busy_begin(PS_RESOURCE_DECODE);
        ps_busy_begin(PS_RESOURCE_FILE);
        ps_busy_end(PS_RESOURCE_DECODE);
        ps_busy_end(PS_RESOURCE_FILE);
    }
    return NULL;
}

/* A clock that moves at every look at it: each interval is at least a tick, none is counted twice, and at the end nobody is left. */
static void threads_never_count_twice(void **state) {
    (void)state;
    pthread_t threads[N_THREADS];
    ps_busy_set_clock(ticking);
    ps_busy_times begin = ps_busy_read();
    for (int i = 0; i < N_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_both, NULL), 0);
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    ps_busy_times end = ps_busy_read(), later = ps_busy_read();
    for (int r = 0; r < PS_N_RESOURCES; r++) {
        assert_true(end.busy_s[r] - begin.busy_s[r] <= end.wall_s - begin.wall_s);
        close_to(later.busy_s[r], end.busy_s[r]); /* it is idle */
        if (r == PS_RESOURCE_DECODE || r == PS_RESOURCE_FILE) assert_true(end.busy_s[r] - begin.busy_s[r] >= 1);
        assert_true(end.any_s - begin.any_s >= end.busy_s[r] - begin.busy_s[r] - 2.0 * N_TURNS * N_THREADS);
    }
    assert_true(end.any_s - begin.any_s <= end.wall_s - begin.wall_s);
    close_to(later.any_s, end.any_s);
}

static void *hold(void *argument) {
    pthread_barrier_t *barrier = argument;
    ps_busy_begin(PS_RESOURCE_BUS);
    pthread_barrier_wait(barrier); /* all hold it */
    pthread_barrier_wait(barrier); /* the time has moved */
    ps_busy_end(PS_RESOURCE_BUS);
    return NULL;
}

static void threads_at_the_same_time_are_one(void **state) {
    (void)state;
    pthread_t threads[N_THREADS];
    pthread_barrier_t barrier;
    ps_busy_times begin = ps_busy_read();
    pthread_barrier_init(&barrier, NULL, N_THREADS + 1);
    for (int i = 0; i < N_THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, hold, &barrier), 0);
    pthread_barrier_wait(&barrier);
    time_s += 7;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    time_s += 3;
    ps_busy_times times = ps_busy_since(&begin);
    close_to(times.busy_s[PS_RESOURCE_BUS], 7);
    close_to(times.any_s, 7);
    close_to(times.wall_s, 10);
}

/* ---- ranks ---- */

static ps_rank_usage rank_of(double work_s, double bus_s, double any_s) {
    ps_rank_usage rank = {.start_s = 1, .work_s = work_s, .any_s = any_s, .processor_s = 2};
    rank.busy_s[PS_RESOURCE_BUS] = bus_s;
    rank.busy_s[PS_RESOURCE_FILE] = 1;
    rank.stage_s[PS_STAGE_PUT] = bus_s;
    return rank;
}

static void shares_are_means_over_ranks(void **state) {
    (void)state;
    const ps_rank_usage ranks[] = {rank_of(10, 9, 10), rank_of(10, 10, 10), rank_of(20, 16, 18)};
    char text[PS_USAGE_TEXT];
    ps_usage usage;
    ps_usage_combine(ranks, 3, &usage);
    assert_int_equal(usage.n_ranks, 3);
    close_to(usage.work_s, 20);
    close_to(usage.share[PS_RESOURCE_BUS].mean, 0.9);
    close_to(usage.share[PS_RESOURCE_BUS].least, 0.8);
    close_to(usage.share[PS_RESOURCE_BUS].most, 1);
    assert_int_equal(usage.share[PS_RESOURCE_BUS].most_rank, 1);
    close_to(usage.busy_s[PS_RESOURCE_BUS], 35);
    close_to(usage.stage_s[PS_STAGE_PUT], 35);
    close_to(usage.processor_s, 6);
    close_to(usage.idle, 0.1 / 3);
    ps_usage_describe(&usage, text);
    assert_non_null(strstr(text, "bound by the bus, 90 % busy: "));
    assert_non_null(strstr(text, "file 8 % (5 to 10), bus 90 % (80 to 100), nothing 3 % of 20 s on frames (means of 3 ranks"));
    assert_null(strstr(text, "device"));
}

static void ranks_without_work_have_no_share(void **state) {
    (void)state;
    const ps_rank_usage ranks[] = {rank_of(0, 0, 0), rank_of(10, 8, 8)};
    ps_usage usage;
    ps_usage_combine(ranks, 2, &usage);
    close_to(usage.share[PS_RESOURCE_BUS].mean, 0.4);
    close_to(usage.share[PS_RESOURCE_BUS].least, 0);
    assert_int_equal(usage.share[PS_RESOURCE_BUS].most_rank, 1);
    close_to(usage.idle, 0.6);
}

static void nothing_bounds_a_run_that_waits(void **state) {
    (void)state;
    char text[PS_USAGE_TEXT];
    double shares[PS_N_RESOURCES] = {[PS_RESOURCE_FILE] = 0.2, [PS_RESOURCE_CORES] = 0.49};
    ps_usage_verdict(shares, text, sizeof text);
    assert_string_equal(text, "no resource was busy for half of the time; the cores were the most, 49 %");
    shares[PS_RESOURCE_CORES] = PS_BOUND_SHARE;
    ps_usage_verdict(shares, text, sizeof text);
    assert_string_equal(text, "bound by the cores, 50 % busy");
    shares[PS_RESOURCE_FILE] = PS_BOUND_SHARE; /* the first of equals */
    ps_usage_verdict(shares, text, sizeof text);
    assert_string_equal(text, "bound by the file, 50 % busy");
}

#define ON_MADE_UP_CLOCK(test) cmocka_unit_test_setup_teardown(test, begin_clock, end_clock)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_MADE_UP_CLOCK(overlapping_intervals_count_once),   ON_MADE_UP_CLOCK(intervals_may_nest_and_touch),
        ON_MADE_UP_CLOCK(what_is_under_way_counts_up_to_now), ON_MADE_UP_CLOCK(a_call_is_timed_and_its_value_kept),
        ON_MADE_UP_CLOCK(threads_never_count_twice),          ON_MADE_UP_CLOCK(threads_at_the_same_time_are_one),
        cmocka_unit_test(shares_are_means_over_ranks),        cmocka_unit_test(ranks_without_work_have_no_share),
        cmocka_unit_test(nothing_bounds_a_run_that_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
