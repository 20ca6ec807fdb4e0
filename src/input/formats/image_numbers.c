#include "input/formats/image_numbers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

ps_code ps_image_list_add(ps_image_list *list, ps_image_piece *piece, ps_error *error) {
    ps_image_piece *larger = NULL;
    int64_t room = list->room ? 2 * list->room : 8;
    bool good = piece->link && piece->file;
    if (good && list->n == list->room) {
        larger = realloc(list->pieces, (size_t)room * sizeof *larger);
        good = larger != NULL;
        if (good) list->pieces = larger, list->room = room;
    }
    if (good) {
        list->pieces[list->n++] = *piece;
        return PS_OK;
    }
    free(piece->link);
    free(piece->file);
    return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the names of data files");
}

void ps_image_list_free(ps_image_list *list) {
    for (int64_t i = 0; i < list->n; i++) {
        free(list->pieces[i].link);
        free(list->pieces[i].file);
    }
    free(list->pieces);
    *list = (ps_image_list){0};
}

static bool is_there(const ps_image_piece *p) {
    return p->n_segments > 0;
}

static bool has_numbers(const ps_image_piece *p) {
    return is_there(p) && p->low >= 0 && p->high > 0;
}

/* The segments in their new order, under construction. */
typedef struct {
    ps_hdf5_reader *reader;
    ps_segments old;
    int64_t promised, per_file; /* patterns in all; in the first data file that is there */
    int64_t base;               /* the number of the first image */
} arrangement;

static ps_code move_piece(arrangement *a, const ps_image_piece *p, ps_error *error) {
    for (int64_t i = 0; i < p->n_segments; i++)
        PS_TRY(ps_segments_take(&a->reader->segments, &a->old.segments[p->first_segment + i], &a->reader->base.info, error));
    return PS_OK;
}

/* A missing file without a number: as many patterns as its neighbours have, the last one what is left. */
static ps_code fill_file(arrangement *a, const ps_image_piece *p, bool last, ps_error *error) {
    ps_hdf5_reader *r = a->reader;
    int64_t first = r->segments.n_positions, n = last && a->promised > 0 ? a->promised - first : a->per_file;
    if (n <= 0)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: the data file %s (link /entry/data/%s) is missing, and nothing tells how many patterns it held", r->base.path,
                       p->file, p->link);
    ps_reader_note(&r->base, "warning: the data file %s is missing: patterns %" PRId64 " to %" PRId64 " are filled from the nearest one",
                   p->file, first, first + n - 1);
    return ps_segments_add_missing(&r->segments, n, &r->base.info, error);
}

/* Some files have numbers and others have not: those that have must are where their names put them. */
static ps_code check_place(const arrangement *a, const ps_image_piece *p, ps_error *error) {
    int64_t first = a->reader->segments.n_positions;
    if (!has_numbers(p) || p->low == first || p->low == first + 1) return PS_OK;
    return PS_FAIL(error, PS_E_INPUT,
                   "%s: the data file %s numbers its images %" PRId64 " to %" PRId64 ", but by the name of its link (%s) it holds "
                   "patterns from %" PRId64 " (counted from 1) on; other data files have no image numbers, so nothing decides",
                   a->reader->base.path, p->file, p->low, p->high, p->link, first + 1);
}

/* The number in the name of a link data_000001; -1: it has none. */
static int64_t link_number(const ps_image_piece *p) {
    static const char begin[] = "data_";
    const char *digits = p->link + strlen(begin);
    if (strncmp(p->link, begin, strlen(begin)) != 0 || *digits == '\0' || digits[strspn(digits, "0123456789")] != '\0') return -1;
    return strtoll(digits, NULL, 10);
}

/* Links that are not there, before p: nothing but their numbers tells of their data. before: the piece in front of p, or NULL. */
static ps_code fill_lost_links(arrangement *a, const ps_image_piece *p, const ps_image_piece *before, ps_error *error) {
    ps_hdf5_reader *r = a->reader;
    int64_t expected = before ? link_number(before) + 1 : 1, lost = link_number(p) - expected;
    bool all_are_there = a->promised > 0 && a->old.n_positions == a->promised;
    if (lost <= 0 || expected <= 0 || all_are_there) return PS_OK;
    if (!r->segments.allow_partial)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: no link data_%06" PRId64 " in /entry/data, though there is %s, and no image numbers tell where its patterns "
                       "belong; series.allow_partial fills what is missing",
                       r->base.path, expected, p->link);
    int64_t first = r->segments.n_positions, n = lost <= INT32_MAX / a->per_file ? lost * a->per_file : 0;
    if (n == 0) return PS_FAIL(error, PS_E_INPUT, "%s: no links in /entry/data before %s", r->base.path, p->link);
    ps_reader_note(&r->base,
                   "warning: no link data_%06" PRId64 " in /entry/data, though there is %s: patterns %" PRId64 " to %" PRId64
                   " are filled from the nearest one",
                   expected, p->link, first, first + n - 1);
    return ps_segments_add_missing(&r->segments, n, &r->base.info, error);
}

static ps_code arrange_by_name(arrangement *a, const ps_image_list *list, ps_error *error) {
    for (int64_t i = 0; i < list->n; i++) {
        PS_TRY(fill_lost_links(a, &list->pieces[i], i ? &list->pieces[i - 1] : NULL, error));
        PS_TRY(check_place(a, &list->pieces[i], error));
        PS_TRY(is_there(&list->pieces[i]) ? move_piece(a, &list->pieces[i], error)
                                          : fill_file(a, &list->pieces[i], i == list->n - 1, error));
    }
    return PS_OK;
}

/* Missing files last, so that they are no neighbours. */
static int compare_numbers(const void *x, const void *y) {
    const ps_image_piece *a = x, *b = y;
    if (is_there(a) != is_there(b)) return is_there(a) ? -1 : 1;
    if (!is_there(a) || a->low == b->low) return (a->first_segment > b->first_segment) - (a->first_segment < b->first_segment);
    return a->low < b->low ? -1 : 1;
}

/* Images [from, to) are in no file. */
static ps_code fill_hole(arrangement *a, int64_t from, int64_t to, ps_error *error) {
    ps_hdf5_reader *r = a->reader;
    if (from >= to) return PS_OK;
    if (!r->segments.allow_partial)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: no data file holds the images %" PRId64 " to %" PRId64 " (image_nr_low and image_nr_high of the data files); "
                       "series.allow_partial fills what is missing",
                       r->base.path, from, to - 1);
    int64_t first = r->segments.n_positions;
    ps_reader_note(&r->base,
                   "warning: no data file holds the images %" PRId64 " to %" PRId64 ": patterns %" PRId64 " to %" PRId64
                   " are filled from the nearest one",
                   from, to - 1, first, first + to - from - 1);
    return ps_segments_add_missing(&r->segments, to - from, &r->base.info, error);
}

/* before: the piece in front of p, or NULL */
static ps_code check_numbers(const arrangement *a, const ps_image_piece *p, const ps_image_piece *before, ps_error *error) {
    if (p->high < p->low || p->n > p->high - p->low + 1)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: the data file %s holds %" PRId64 " patterns, but numbers its images %" PRId64 " to %" PRId64
                       " (image_nr_low and image_nr_high)",
                       a->reader->base.path, p->file, p->n, p->low, p->high);
    if (before && p->low <= before->high)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: the data files %s and %s both number images %" PRId64 " to %" PRId64
                       " (image_nr_low and image_nr_high): %" PRId64 " to %" PRId64 " and %" PRId64 " to %" PRId64,
                       a->reader->base.path, before->file, p->file, p->low, p->high < before->high ? p->high : before->high, before->low,
                       before->high, p->low, p->high);
    return PS_OK;
}

/* Images count from 1, or 0; from another number when a recording continues another one, which then is whole from there on. */
static int64_t find_base(const arrangement *a, int64_t lowest, int64_t highest) {
    if (lowest <= 1) return lowest;
    return a->promised > 0 && highest - lowest + 1 >= a->promised ? lowest : 1;
}

static ps_code arrange_by_number(arrangement *a, ps_image_list *list, ps_error *error) {
    bool by_name = true;
    int64_t n = 0;
    for (int64_t i = 1; i < list->n; i++)
        by_name &= !is_there(&list->pieces[i]) || !is_there(&list->pieces[i - 1]) || list->pieces[i].low > list->pieces[i - 1].low;
    qsort(list->pieces, (size_t)list->n, sizeof *list->pieces, compare_numbers);
    while (n < list->n && is_there(&list->pieces[n])) n++;
    for (int64_t i = 0; i < n; i++) PS_TRY(check_numbers(a, &list->pieces[i], i ? &list->pieces[i - 1] : NULL, error));
    a->base = find_base(a, list->pieces[0].low, list->pieces[n - 1].high);
    if (!by_name)
        ps_reader_note(&a->reader->base,
                       "warning: the data files are taken in the order of their image numbers, which is not that of their names: %s "
                       "comes first",
                       list->pieces[0].file);
    for (int64_t i = n; i < list->n; i++)
        ps_reader_note(&a->reader->base, "warning: the data file %s (link /entry/data/%s) is missing", list->pieces[i].file,
                       list->pieces[i].link);
    for (int64_t i = 0; i < n; i++) {
        const ps_image_piece *p = &list->pieces[i];
        PS_TRY(fill_hole(a, a->base + a->reader->segments.n_positions, p->low, error));
        PS_TRY(move_piece(a, p, error));
        PS_TRY(fill_hole(a, p->low + p->n, p->high + 1, error));
    }
    for (int64_t i = n; i < list->n && a->promised == 0; i++) /* how far the recording went is not known */
        if (list->pieces[i].first_segment == a->old.n_segments) PS_TRY(fill_file(a, &list->pieces[i], false, error));
    return PS_OK;
}

ps_code ps_image_list_arrange(ps_image_list *list, ps_hdf5_reader *reader, int64_t promised, ps_error *error) {
    arrangement a = {.reader = reader, .old = reader->segments, .promised = promised};
    int64_t n_there = 0, n_numbered = 0;
    for (int64_t i = 0; i < list->n; i++) {
        const ps_image_piece *p = &list->pieces[i];
        if (is_there(p) && a.per_file == 0) a.per_file = p->n;
        n_there += is_there(p);
        n_numbered += has_numbers(p);
    }
    ps_segments_begin_again(&reader->segments, &reader->base.info);
    ps_code code = n_numbered > 0 && n_numbered == n_there ? arrange_by_number(&a, list, error) : arrange_by_name(&a, list, error);
    ps_segments_free(&a.old); /* what was taken is empty there */
    return code;
}
