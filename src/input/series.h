/* The ordered list of recordings a job names: globs expanded, natural sort, first/count/stride applied. */
#ifndef PS_INPUT_SERIES_H
#define PS_INPUT_SERIES_H

#include <stdint.h>

#include "core/error.h"
#include "input/reader.h"

typedef struct {
    char *source;  /* "path" or "path:/dataset", absolute */
    char *stem;    /* file name without directory, extension and a trailing "_master"; fills {stem} */
    int64_t bytes; /* of the named file */
    int64_t mtime_ns;
} ps_series_item;

typedef struct {
    int64_t n_items;
    ps_series_item *items;
    char *gaps; /* numbers that are missing between the names found, for a warning ("scan_7, scan_9 to scan_11"); NULL: none */
} ps_series;

typedef enum { PS_SERIES_BY_NAME, PS_SERIES_BY_TIME } ps_series_order;

/* patterns: [n_patterns] paths or globs, relative to base_directory, "~" expanded; each may end in ":/dataset" for HDF5 files. A
 * pattern that matches nothing is PS_E_INPUT and is named. Natural order ("scan_2" before "scan_10") within each pattern;
 * patterns in the order given; a file named twice is an error. count < 0: all. Owned by the caller: ps_series_free. */
ps_code ps_series_build(const char *base_directory, const char *const *patterns, int64_t n_patterns, int64_t first, int64_t count,
                        int64_t stride, ps_series *series, ps_error *error);
/* The same in another order: by time of acquisition, which every recording must then tell (times without a zone count as UTC; the same
 * time: by name); one that cannot be opened with `options` (may be NULL) stays behind the one before it. first, count and stride apply to
 * the list in order. */
ps_code ps_series_build_ordered(const char *base_directory, const char *const *patterns, int64_t n_patterns, ps_series_order order,
                                const ps_reader_options *options, int64_t first, int64_t count, int64_t stride, ps_series *series,
                                ps_error *error);
void ps_series_free(ps_series *series);

#endif
