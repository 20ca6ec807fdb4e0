/* The protocol of the queue of work items in every order in which the atomic steps of three ranks can mix.
 *
 * Ranks work as the program's do: claim a work item, complete it, ask for the state when nothing is left to claim. A few times in all, at
 * any moment between two actions, any rank may do something else instead: give a work item back and go on, claim a further work item while
 * it holds one, lose its device (give back what it holds, and leave) or be told to stop. The code that is stepped here is the one that the
 * program runs.
 *
 * In no state may a work item be in two hands, be completed twice or be lost, or an action of a rank that runs alone not end; and from
 * every state all ranks come to their end without further trouble. A protocol that claims slots by adding, and claims a claim too many back
 * by subtracting, fails here: ranks wait for others within an action, and with three work items given back two ranks can wait for one for
 * ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/queue_steps.h"

enum { N_RANKS = 3, MOST_COUNTERS = 16, MOST_STEPS_ALONE = 24, MOST_STATES = 1 << 21 };

typedef enum { BETWEEN, ACTING, GONE } mode;

typedef struct {
    mode mode;
    bool nothing_taken; /* the last claim gave none: the state is asked for next */
    bool after_stop;    /* the action began when some rank's stop was complete */
    bool is_lost;       /* gives back what it holds, then leaves */
    unsigned holds;     /* bit p: work item p */
    int64_t work_item;  /* being completed or given back */
    ps_queue_steps steps;
    ps_counter_change change; /* wanted next */
} rank;

typedef struct {
    int64_t counters[MOST_COUNTERS];
    rank ranks[N_RANKS];
    int n_troubles;
    unsigned completed;      /* bit p: work item p is done */
    bool stopped, told_done; /* some rank's stop is complete; some rank heard that all is finished */
} model;

static int64_t n_work_items;

static const char *const action_names[] = {"claim", "give back", "complete", "leave", "stop", "remaining", "state"};

#define REQUIRE(state, holds, ...)                      \
    do {                                                \
        if (!(holds)) fail_because(state, __VA_ARGS__); \
    } while (0)

__attribute__((format(printf, 2, 3))) static void fail_because(const model *m, const char *format, ...) {
    va_list arguments;
    for (int r = 0; r < N_RANKS; r++)
        print_message("rank %d: mode %d, holds %#x, %s step %d, work item %d\n", r, (int)m->ranks[r].mode, m->ranks[r].holds,
                      action_names[m->ranks[r].steps.action], m->ranks[r].steps.step, (int)m->ranks[r].work_item);
    for (int i = 0; i < ps_queue_n_counters(n_work_items); i++) print_message("counter %d: %#llx\n", i, (long long)m->counters[i]);
    va_start(arguments, format);
    char text[256];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_msg("%s", text);
}

/* ---- one rank ----------------------------------------------------------------------------------------------------------------- */

static void begin(const model *m, rank *r, ps_queue_action action, int64_t work_item) {
    r->mode = ACTING;
    r->after_stop = m->stopped;
    r->work_item = work_item;
    ps_queue_begin(&r->steps, action, n_work_items, N_RANKS, work_item, &r->change);
}

static int64_t lowest(unsigned work_items) {
    return __builtin_ctz(work_items);
}

static void begin_give_back(const model *m, rank *r) {
    int64_t work_item = lowest(r->holds);
    r->holds &= ~(1u << work_item); /* from now on others may have it */
    begin(m, r, PS_QUEUE_GIVE_BACK, work_item);
}

static void begin_complete(model *m, rank *r) {
    int64_t work_item = lowest(r->holds);
    REQUIRE(m, !(m->completed >> work_item & 1), "work item %d is done twice", (int)work_item);
    m->completed |= 1u << work_item;
    r->holds &= ~(1u << work_item);
    begin(m, r, PS_QUEUE_COMPLETE, work_item);
}

/* What a rank does next when nothing troubles it. */
static void begin_usual(model *m, rank *r) {
    if (r->holds)
        begin_complete(m, r);
    else
        begin(m, r, r->nothing_taken ? PS_QUEUE_STATE : PS_QUEUE_CLAIM, -1);
    r->nothing_taken = false;
}

static void begin_leaving(const model *m, rank *r) {
    r->is_lost = true;
    if (r->holds)
        begin_give_back(m, r);
    else
        begin(m, r, PS_QUEUE_LEAVE, -1);
}

static void took(const model *m, rank *r) {
    int64_t work_item = r->steps.work_item;
    r->nothing_taken = work_item < 0;
    if (work_item < 0) return;
    REQUIRE(m, work_item < n_work_items, "work item %d is handed out", (int)work_item);
    REQUIRE(m, !r->after_stop, "work item %d is handed out after a stop", (int)work_item);
    for (int i = 0; i < N_RANKS; i++) REQUIRE(m, !(m->ranks[i].holds >> work_item & 1), "work item %d is in two hands", (int)work_item);
    REQUIRE(m, !(m->completed >> work_item & 1), "work item %d is handed out after it was done", (int)work_item);
    r->holds |= 1u << work_item;
}

static void end_action(model *m, rank *r) {
    r->mode = BETWEEN;
    switch (r->steps.action) {
    case PS_QUEUE_CLAIM: took(m, r); break;
    case PS_QUEUE_LEAVE: r->mode = GONE; break;
    case PS_QUEUE_STOP:
        m->stopped = true;
        r->mode = GONE;
        break;
    case PS_QUEUE_STATE:
        if (r->steps.finished) r->mode = GONE;
        if (r->steps.finished && !r->steps.stopped) m->told_done = true;
        break;
    default: break;
    }
    r->work_item = -1;
    r->after_stop = false;
    r->steps = (ps_queue_steps){0};
    r->change = (ps_counter_change){0};
    if (r->mode == BETWEEN && r->is_lost) begin_leaving(m, r);
}

/* One atomic change, and all that the rank does by itself until the next. */
static void step(model *m, rank *r) {
    REQUIRE(m, r->change.at >= 0 && r->change.at < ps_queue_n_counters(n_work_items), "counter %d does not exist", (int)r->change.at);
    int64_t *counter = &m->counters[r->change.at], before = *counter;
    *counter = ps_counter_after(&r->change, before);
    if (!ps_queue_go_on(&r->steps, before, &r->change)) end_action(m, r);
}

enum { USUAL, GIVE_BACK, TAKE_MORE, LOSE, STOP, N_COURSES };

/* Does the rank's next thing, the course-th of what it may do; false: there is no such. */
static bool move(model *m, int at, int course) {
    rank *r = &m->ranks[at];
    if (r->mode == GONE || (r->mode == ACTING && course != USUAL)) return false;
    if (r->mode == ACTING) {
        step(m, r);
        return true;
    }
    if (course == USUAL) {
        begin_usual(m, r);
        return true;
    }
    if (m->n_troubles == 0 || ((course == GIVE_BACK || course == TAKE_MORE) && !r->holds)) return false;
    m->n_troubles--;
    r->nothing_taken = false;
    if (course == GIVE_BACK) begin_give_back(m, r);
    if (course == TAKE_MORE) begin(m, r, PS_QUEUE_CLAIM, -1);
    if (course == LOSE) begin_leaving(m, r);
    if (course == STOP) {
        r->holds = 0; /* what it holds stays undone, for another run */
        begin(m, r, PS_QUEUE_STOP, -1);
    }
    return true;
}

/* ---- states that were seen ---------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t a, b; /* of all that matters in a state; ranks may change names */
} print;

static void add_word(print *p, int64_t word) {
    p->a = (p->a ^ (uint64_t)word) * 0x9E3779B97F4A7C15u;
    p->a ^= p->a >> 29;
    p->b = (p->b + (uint64_t)word + 0x632BE59BD9B4E019u) * 0xD6E8FEB86659FD93u;
    p->b ^= p->b >> 32;
}

static print print_rank(const rank *r) {
    const ps_queue_steps *s = &r->steps;
    const int64_t words[] = {
        r->mode,      r->nothing_taken, r->after_stop,       r->is_lost,   r->holds,       r->work_item, s->action, s->step,
        s->work_item, s->completed,     s->remaining,        s->stopped,   s->finished,    s->left,      s->next,   s->returned,
        s->retaken,   s->number,        r->change.operation, r->change.at, r->change.value};
    print p = {1, 2};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) add_word(&p, words[i]);
    return p;
}

static int compare_prints(const void *left, const void *right) {
    return memcmp(left, right, sizeof(print));
}

static print print_model(const model *m) {
    print ranks[N_RANKS], p = {3, 4};
    for (int i = 0; i < N_RANKS; i++) ranks[i] = print_rank(&m->ranks[i]);
    qsort(ranks, N_RANKS, sizeof *ranks, compare_prints);
    for (int i = 0; i < N_RANKS; i++) {
        add_word(&p, (int64_t)ranks[i].a);
        add_word(&p, (int64_t)ranks[i].b);
    }
    for (int i = 0; i < ps_queue_n_counters(n_work_items); i++) add_word(&p, m->counters[i]);
    const int64_t words[] = {m->n_troubles, m->completed, m->stopped, m->told_done};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) add_word(&p, words[i]);
    return p;
}

typedef struct {
    print *prints;  /* [n_states] */
    int32_t *table; /* [2 * MOST_STATES] state + 1 by its print; 0: none */
    bool *can_end;  /* [n_states] */
    int32_t *edges; /* [n_edges, 2] from, to */
    int64_t n_states, n_edges, edge_space;
    model *open; /* [n_open] states whose moves were not tried yet */
    int32_t *open_index;
    int64_t n_open, open_space;
} search;

static void *grown(void *memory, size_t bytes) {
    void *longer = realloc(memory, bytes);
    assert_non_null(longer);
    return longer;
}

static bool is_end(const model *m) {
    for (int i = 0; i < N_RANKS; i++)
        if (m->ranks[i].mode != GONE) return false;
    return true;
}

/* Index of a state; new ones are opened. */
static int32_t enter(search *s, const model *m) {
    print p = print_model(m);
    uint64_t slot = p.a & (2 * MOST_STATES - 1);
    for (; s->table[slot]; slot = (slot + 1) & (2 * MOST_STATES - 1))
        if (memcmp(&s->prints[s->table[slot] - 1], &p, sizeof p) == 0) return s->table[slot] - 1;
    assert_true(s->n_states < MOST_STATES);
    int32_t index = (int32_t)s->n_states++;
    s->table[slot] = index + 1;
    s->prints[index] = p;
    s->can_end[index] = is_end(m);
    if (s->n_open == s->open_space) {
        s->open_space = 2 * s->open_space + 1024;
        s->open = grown(s->open, (size_t)s->open_space * sizeof *s->open);
        s->open_index = grown(s->open_index, (size_t)s->open_space * sizeof *s->open_index);
    }
    s->open_index[s->n_open] = index;
    s->open[s->n_open++] = *m;
    return index;
}

static void add_edge(search *s, int32_t from, int32_t to) {
    if (s->n_edges == s->edge_space) {
        s->edge_space = 2 * s->edge_space + 4096;
        s->edges = grown(s->edges, 2 * (size_t)s->edge_space * sizeof *s->edges);
    }
    s->edges[2 * s->n_edges] = from;
    s->edges[2 * s->n_edges++ + 1] = to;
}

/* ---- what must hold ----------------------------------------------------------------------------------------------------------- */

static void take_at_once(model *m, rank *r) {
    begin(m, r, PS_QUEUE_CLAIM, -1);
    while (r->mode == ACTING) step(m, r);
}

/* While the others stand still, whatever a rank is at comes to its end: none of them has to do anything first. */
static void check_alone(const model *m) {
    for (int i = 0; i < N_RANKS; i++) {
        model copy = *m;
        rank *r = &copy.ranks[i];
        ps_queue_action action = r->steps.action;
        int n = 0;
        for (int64_t work_item = r->work_item; r->mode == ACTING && r->steps.action == action && r->work_item == work_item; n++) {
            REQUIRE(m, n < MOST_STEPS_ALONE, "rank %d, alone in %s, does not come to an end", i, action_names[action]);
            step(&copy, r);
        }
    }
}

/* At the end every work item is done; or all ranks lost their devices, and a rank that came now would be given each work item that is left,
 * once.
 */
static void check_end(const model *m) {
    const unsigned all = (1u << n_work_items) - 1;
    model copy = *m;
    rank *visitor = &copy.ranks[0];
    if (m->stopped) return;
    if (m->told_done) REQUIRE(m, m->completed == all, "ranks end with work items %#x undone", all & ~m->completed);
    while (!visitor->nothing_taken) {
        visitor->is_lost = false;
        take_at_once(&copy, visitor);
    }
    REQUIRE(m, (visitor->holds | m->completed) == all, "work items %#x are lost", all & ~(visitor->holds | m->completed));
}

static void check_that_all_can_end(search *s) {
    for (bool changed = true; changed;) {
        changed = false;
        for (int64_t i = s->n_edges - 1; i >= 0; i--) {
            bool *from = &s->can_end[s->edges[2 * i]];
            if (*from || !s->can_end[s->edges[2 * i + 1]]) continue;
            *from = changed = true;
        }
    }
    int64_t n_stuck = 0;
    for (int64_t i = 0; i < s->n_states; i++) n_stuck += !s->can_end[i];
    if (n_stuck) fail_msg("%lld of %lld states have no way to an end", (long long)n_stuck, (long long)s->n_states);
}

/* held: how many of the work items are in the ranks' hands already, in turn. */
static int64_t explore(int64_t work_items, int held, int n_troubles) {
    search s = {.prints = malloc(MOST_STATES * sizeof(print)),
                .table = calloc(2 * MOST_STATES, sizeof(int32_t)),
                .can_end = malloc(MOST_STATES * sizeof(bool))};
    model first = {.n_troubles = n_troubles};
    assert_true(s.prints && s.table && s.can_end);
    n_work_items = work_items;
    for (int i = 0; i < N_RANKS; i++) first.ranks[i].work_item = -1;
    for (int i = 0; i < held; i++) take_at_once(&first, &first.ranks[i % N_RANKS]);
    enter(&s, &first);
    while (s.n_open > 0) {
        model m = s.open[--s.n_open];
        int32_t from = s.open_index[s.n_open];
        check_alone(&m);
        if (is_end(&m)) check_end(&m);
        for (int i = 0; i < N_RANKS * N_COURSES; i++) {
            model after = m;
            if (!move(&after, i / N_COURSES, i % N_COURSES)) continue;
            int32_t to = enter(&s, &after);
            if (i % N_COURSES == USUAL) add_edge(&s, from, to); /* troubles must not be what ends a run */
        }
    }
    check_that_all_can_end(&s);
    print_message("%d work items, %d held, %d troubles: %lld states, %lld steps between them\n", (int)work_items, held, n_troubles,
                  (long long)s.n_states, (long long)s.n_edges);
    free(s.prints);
    free(s.table);
    free(s.can_end);
    free(s.edges);
    free(s.open);
    free(s.open_index);
    return s.n_states;
}

static void test_no_place(void **state) {
    (void)state;
    assert_true(explore(0, 0, 2) > 100);
}

static void test_fewer_places_than_ranks(void **state) {
    (void)state;
    assert_true(explore(1, 0, 3) > 10000);
    assert_true(explore(2, 0, 2) > 10000);
}

/* Nothing new is left: up to three work items are given back while others claim, and slots are still full when their turn comes again. */
static void test_all_in_hand(void **state) {
    (void)state;
    assert_true(explore(2, 2, 3) > 100000);
    assert_true(explore(3, 3, 3) > 100000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_place), cmocka_unit_test(test_fewer_places_than_ranks),
                                       cmocka_unit_test(test_all_in_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
