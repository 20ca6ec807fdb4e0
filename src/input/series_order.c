#include "input/series_order.h"

#include <math.h>
#include <stdlib.h>

#include "input/iso_time.h"
#include "input/open.h"

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
