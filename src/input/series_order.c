#include "input/series_order.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "input/reader.h"

/* The last run of digits in a name: [begin, begin + n); n 0: none, or too long to be a number. */
typedef struct {
    size_t begin, n;
    int64_t value;
} digits;

static digits last_digits(const char *name) {
    enum { MOST_DIGITS = 15 };
    size_t end = strlen(name);
    while (end > 0 && !isdigit((unsigned char)name[end - 1])) end--;
    size_t begin = end;
    while (begin > 0 && isdigit((unsigned char)name[begin - 1])) begin--;
    if (end - begin > MOST_DIGITS) return (digits){0};
    return (digits){begin, end - begin, strtoll(name + begin, NULL, 10)};
}

/* Whether two names differ in that number only. */
static bool same_row(const char *a, digits da, const char *b, digits db) {
    return da.n > 0 && db.n > 0 && da.begin == db.begin && strncmp(a, b, da.begin) == 0 &&
           strcmp(a + da.begin + da.n, b + db.begin + db.n) == 0;
}

static char *append_gap(char *list, const char *stem, digits d, int64_t from, int64_t to) {
    int width = d.n > 1 && stem[d.begin] == '0' ? (int)d.n : 1; /* leading zeros stay */
    const char *behind = stem + d.begin + d.n;
    char *first = ps_text_format("%.*s%0*" PRId64 "%s", (int)d.begin, stem, width, from, behind);
    char *last = ps_text_format("%.*s%0*" PRId64 "%s", (int)d.begin, stem, width, to, behind);
    char *longer = ps_text_format("%s%s%s%s%s", list ? list : "", list ? ", " : "", first, from < to ? " to " : "", from < to ? last : "");
    free(first);
    free(last);
    free(list);
    return longer;
}

char *ps_series_find_gaps(const ps_series *series) {
    char *gaps = NULL;
    int64_t n_missing = 0;
    for (int64_t i = 1; i < series->n_items; i++) {
        const char *a = series->items[i - 1].stem, *b = series->items[i].stem;
        digits da = last_digits(a), db = last_digits(b);
        if (!same_row(a, da, b, db) || db.value <= da.value + 1) continue;
        n_missing += db.value - da.value - 1;
        gaps = append_gap(gaps, a, da, da.value + 1, db.value - 1);
    }
    if (n_missing <= series->n_items) return gaps;
    free(gaps);
    return NULL;
}

/* Days from 1970-01-01 in the Gregorian calendar. */
static int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - 400 * era;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* "+02:00", "-0530", "Z" or nothing; seconds east. NAN: something else. */
static double parse_zone(const char *text) {
    int hours = 0, minutes = 0;
    if (*text == '\0' || strcmp(text, "Z") == 0) return 0;
    if ((*text != '+' && *text != '-') ||
        (sscanf(text + 1, "%2d:%2d", &hours, &minutes) != 2 && sscanf(text + 1, "%2d%2d", &hours, &minutes) < 1))
        return NAN;
    return (*text == '-' ? -1 : 1) * (3600.0 * hours + 60.0 * minutes);
}

double ps_time_parse(const char *text) {
    int year, month, day, hour, minute, used = 0;
    if (sscanf(text, "%4d-%2d-%2d%*1[T ]%2d:%2d:%n", &year, &month, &day, &hour, &minute, &used) != 5 || used == 0) return NAN;
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 || minute < 0 || minute > 59) return NAN;
    if (!isdigit((unsigned char)text[used])) return NAN;
    size_t n = strspn(text + used, "0123456789.");
    char seconds[32];
    if (n >= sizeof seconds) return NAN;
    memcpy(seconds, text + used, n);
    seconds[n] = '\0';
    return 86400.0 * (double)days_since_1970(year, month, day) + 3600.0 * hour + 60.0 * minute + strtod(seconds, NULL) -
           parse_zone(text + used + n);
}

typedef struct {
    double time;
    int64_t place; /* in the order of names */
    ps_series_item item;
} timed_item;

static int compare_times(const void *a, const void *b) {
    const timed_item *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* NAN: it cannot be opened. */
static ps_code read_time(const ps_series_item *item, const ps_reader_options *options, double *time, ps_error *error) {
    ps_reader *reader = NULL;
    *time = NAN;
    if (ps_reader_open(item->source, options, &reader, NULL) != PS_OK) return PS_OK;
    *time = ps_time_parse(reader->info.acquisition_time);
    ps_code code = PS_OK;
    if (isnan(*time))
        code = PS_FAIL(error, PS_E_INPUT, "%s: tells no time of acquisition%s%s, by which the series is to be ordered", item->source,
                       reader->info.acquisition_time[0] ? " that can be read: " : "", reader->info.acquisition_time);
    ps_reader_close(reader);
    return code;
}

static void fill_unknown(timed_item *timed, int64_t n) {
    int64_t first = 0;
    while (first < n && isnan(timed[first].time)) first++;
    for (int64_t i = 0; i < n; i++)
        if (isnan(timed[i].time)) timed[i].time = first == n ? 0.0 : i < first ? timed[first].time : timed[i - 1].time;
}

ps_code ps_series_sort_by_time(ps_series *series, const ps_reader_options *options, ps_error *error) {
    ps_code code = PS_OK;
    timed_item *timed = calloc((size_t)series->n_items + 1, sizeof *timed);
    PS_GO_ALLOC(error, timed);
    for (int64_t i = 0; i < series->n_items; i++) {
        timed[i] = (timed_item){.place = i, .item = series->items[i]};
        PS_GO(read_time(&series->items[i], options, &timed[i].time, error));
    }
    fill_unknown(timed, series->n_items);
    qsort(timed, (size_t)series->n_items, sizeof *timed, compare_times);
    for (int64_t i = 0; i < series->n_items; i++) series->items[i] = timed[i].item;
done:
    free(timed);
    return code;
}
