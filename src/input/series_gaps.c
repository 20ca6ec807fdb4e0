#include "input/series_gaps.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

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
