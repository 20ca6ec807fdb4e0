/* Small text helpers. */
#ifndef PS_CORE_TEXT_H
#define PS_CORE_TEXT_H

#include <stddef.h>

#include "core/error.h"

char *ps_text_format(const char *format, ...) __attribute__((format(printf, 1, 2))); /* malloc'd; NULL: out of memory */
char *ps_text_replace(const char *text, const char *old, const char *replacement);   /* every old; malloc'd; NULL: out of memory */
/* The candidate with the smallest edit distance to text when it is close enough to be a slip; else NULL. */
const char *ps_text_nearest(const char *text, const char *const *candidates, size_t n_candidates);
ps_code ps_text_read_file(const char *path, char **text, size_t *bytes, ps_error *error); /* malloc'd, with a NUL behind it */
/* "3.2 GiB", into text, which is returned. */
enum { PS_BYTES_TEXT = 24 };
const char *ps_text_bytes(double bytes, char text[PS_BYTES_TEXT]);
/* Absolute path of `path` taken relative to directory, "~" expanded; malloc'd. */
char *ps_path_resolve(const char *directory, const char *path);
char *ps_path_directory(const char *path); /* malloc'd; "." when there is none */

#endif
