#include "input/formats/frame_numbers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Files of so many patterns are looked at pattern by pattern; larger ones only where the numbers at two ends do not fit the distance. */
enum { ALL_LOOKED_AT = 4096, MOST_RUNS = 1 << 16 };

typedef struct {
    const char *name;
    ps_code (*number)(void *context, int64_t stored, int64_t *value, ps_error *error);
    void *context;
    bool look_at_all;
    int64_t room;
    ps_frame_numbers *to;
} builder;

static ps_code add_run(builder *b, int64_t stored, int64_t number, ps_error *error) {
    ps_frame_numbers *to = b->to;
    if (to->n_runs == MOST_RUNS)
        return PS_FAIL(error, PS_E_INPUT, "%s: the frame numbers in the headers jump at more than %d places: no order can be seen in them",
                       b->name, MOST_RUNS);
    if (to->n_runs == b->room) {
        b->room = b->room ? 2 * b->room : 16;
        ps_frame_run *larger = realloc(to->runs, (size_t)b->room * sizeof *larger);
        if (!larger) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for frame numbers");
        to->runs = larger;
    }
    if (to->n_runs > 0) to->runs[to->n_runs - 1].n = stored - to->runs[to->n_runs - 1].stored;
    to->runs[to->n_runs++] = (ps_frame_run){.stored = stored, .number = number};
    return PS_OK;
}

/* A new run wherever a number does not follow the one before, in patterns (low, high]. */
static ps_code find_breaks(builder *b, int64_t low, int64_t low_number, int64_t high, int64_t high_number, ps_error *error) {
    if (high_number - low_number == high - low && !b->look_at_all) return PS_OK;
    if (high - low == 1) return high_number == low_number + 1 ? PS_OK : add_run(b, high, high_number, error);
    int64_t middle = low + (high - low) / 2, number = 0;
    PS_TRY(b->number(b->context, middle, &number, error));
    PS_TRY(find_breaks(b, low, low_number, middle, number, error));
    return find_breaks(b, middle, number, high, high_number, error);
}

static int64_t last_number(const ps_frame_run *run) {
    return run->number + run->n - 1;
}

/* Counters that are full begin again at 0 or 1. */
static bool is_wrap(int64_t before, int64_t number) {
    static const int64_t full[] = {65535, 999999, 16777215, 9999999, 99999999, 4294967295};
    for (size_t i = 0; i < sizeof full / sizeof *full; i++)
        if (before == full[i] && (number == 0 || number == 1)) return true;
    return false;
}

static bool begins_again(const ps_frame_run *before, const ps_frame_run *run) {
    return run->number <= last_number(before) && run->number >= 0 && run->number <= 1 && !is_wrap(last_number(before), run->number);
}

static ps_code check_order(const builder *b, ps_error *error) {
    for (int64_t i = 1; i < b->to->n_runs; i++) {
        const ps_frame_run *run = &b->to->runs[i], *before = run - 1;
        int64_t last = last_number(before);
        if (run->number > last || is_wrap(last, run->number) || (begins_again(before, run) && last != run->number)) continue;
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: pattern %" PRId64 " has the number %" PRId64 " in its header, the one before it %" PRId64
                       ": a pattern that was stored twice, or patterns out of order; nothing tells which scan positions they are",
                       b->name, run->stored, run->number, last);
    }
    return PS_OK;
}

/* The length that all rounds but the last have, which may be cut short; 0: they differ. */
static int64_t regular_round(const ps_frame_numbers *n) {
    int64_t round = 0, begin = n->runs[0].number;
    for (int64_t i = 1; i < n->n_runs; i++) {
        if (!begins_again(&n->runs[i - 1], &n->runs[i])) continue;
        int64_t length = last_number(&n->runs[i - 1]) - n->runs[i].number + 1;
        if (n->runs[i].number != begin || (round && length != round)) return 0;
        round = length;
    }
    return round && last_number(&n->runs[n->n_runs - 1]) - begin + 1 <= round ? round : 0;
}

/* Patterns lost between a run and the one before it. */
static int64_t lost_between(ps_frame_numbers *n, int64_t i, ps_frame_plan plan) {
    const ps_frame_run *run = &n->runs[i], *before = run - 1;
    int64_t last = last_number(before);
    if (is_wrap(last, run->number)) return 0;
    if (!begins_again(before, run)) return run->number - last - 1;
    if (n->every > 0) return 0;
    int64_t missing = plan.per_round > 1 ? plan.per_round - (last - run->number + 1) : -1;
    if (missing >= 0) return missing;
    if (n->begins_again < 0) n->begins_again = run->stored;
    return 0;
}

static void mark_lost(ps_frame_numbers *n, int64_t position, int64_t n_lost) {
    if (n_lost > 0 && n->first_lost < 0) n->first_lost = position;
    n->n_lost += n_lost;
}

/* Patterns in front of the first one: lost when the whole acquisition is expected here, else in another file. */
static int64_t lost_in_front(ps_frame_numbers *n, ps_frame_plan plan) {
    int64_t before = n->runs[0].number - 1, last = last_number(&n->runs[n->n_runs - 1]);
    if (before <= 0) return 0;
    if (plan.n_expected > 0 && last <= plan.n_expected) return before;
    n->n_elsewhere = before;
    return 0;
}

static void place_runs(ps_frame_numbers *n, ps_frame_plan plan) {
    n->every = regular_round(n);
    int64_t position = lost_in_front(n, plan);
    mark_lost(n, 0, position);
    for (int64_t i = 0; i < n->n_runs; i++) {
        int64_t lost = i > 0 ? lost_between(n, i, plan) : 0;
        mark_lost(n, position, lost);
        n->runs[i].position = position + lost;
        position = n->runs[i].position + n->runs[i].n;
    }
    n->n_positions = position;
}

ps_code ps_frame_numbers_build(const char *name, int64_t n_frames, ps_frame_plan plan,
                               ps_code (*number)(void *context, int64_t stored, int64_t *value, ps_error *error), void *context,
                               ps_frame_numbers *numbers, ps_error *error) {
    builder b = {.name = name, .number = number, .context = context, .look_at_all = n_frames <= ALL_LOOKED_AT, .to = numbers};
    int64_t first = 0, second = 0, last = 0;
    *numbers = (ps_frame_numbers){.first_lost = -1, .begins_again = -1};
    PS_TRY(number(context, 0, &first, error));
    PS_TRY(number(context, n_frames > 1 ? 1 : 0, &second, error));
    PS_TRY(number(context, n_frames - 1, &last, error));
    PS_TRY(add_run(&b, 0, first, error));
    numbers->numbered = first >= 0 && (n_frames == 1 || second != first || last != first);
    if (numbers->numbered && n_frames > 1) PS_TRY(find_breaks(&b, 0, first, n_frames - 1, last, error));
    ps_frame_run *end = &numbers->runs[numbers->n_runs - 1];
    end->n = n_frames - end->stored;
    numbers->n_positions = n_frames;
    if (!numbers->numbered) return PS_OK;
    PS_TRY(check_order(&b, error));
    place_runs(numbers, plan);
    return PS_OK;
}

void ps_frame_numbers_free(ps_frame_numbers *numbers) {
    free(numbers->runs);
    *numbers = (ps_frame_numbers){0};
}

int64_t ps_frame_numbers_find(const ps_frame_numbers *numbers, int64_t position, const ps_frame_run **run) {
    int64_t low = 0, high = numbers->n_runs; /* the last run that begins at or before the position */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (numbers->runs[middle].position <= position)
            low = middle;
        else
            high = middle;
    }
    const ps_frame_run *found = &numbers->runs[low];
    int64_t in_run = position - found->position;
    *run = found;
    return found->stored + (in_run < 0 ? 0 : in_run < found->n ? in_run : found->n - 1);
}

ps_code ps_frame_numbers_check(const ps_frame_numbers *numbers, const ps_frame_run *run, const char *name, int64_t stored, int64_t number,
                               ps_error *error) {
    int64_t expected = numbers->numbered ? run->number + (stored - run->stored) : run->number;
    if (number == expected) return PS_OK;
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: pattern %" PRId64 " has the number %" PRId64 " in its header, expected %" PRId64
                   ": patterns are out of order, or as many were stored twice as were lost",
                   name, stored, number, expected);
}
