/* Whether text that people and programs wrote is UTF-8, as JSON and HDF5 expect it. */
#ifndef PS_CORE_UTF8_H
#define PS_CORE_UTF8_H

#include <stddef.h>

/* The first byte of text [bytes] that is no part of a UTF-8 character: stray or missing continuation bytes, overlong forms, surrogates,
 * code points beyond U+10FFFF; NULL: none. A byte order mark and NUL characters are UTF-8. */
const char *ps_utf8_find_bad(const char *text, size_t bytes);

/* What the text is when it begins with the mark of another encoding ("UTF-16", "UTF-32"), else NULL. */
const char *ps_utf8_other_mark(const char *text, size_t bytes);

#endif
