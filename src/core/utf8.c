#include "core/utf8.h"

#include <string.h>

typedef struct {
    unsigned char first, last;             /* of the leading byte */
    unsigned char second_low, second_high; /* what may follow it; narrower than 80 to BF where overlong forms and surrogates lie */
    size_t n;                              /* bytes of the character */
} lead;

static const lead leads[] = {{0x00, 0x7F, 0x00, 0x00, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                             {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                             {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};

/* Bytes of the character that begins here; 0: none does. */
static size_t character_bytes(const unsigned char *at, size_t left) {
    for (size_t i = 0; i < sizeof leads / sizeof *leads; i++) {
        const lead *l = &leads[i];
        if (*at < l->first || *at > l->last) continue;
        if (l->n > left) return 0;
        if (l->n > 1 && (at[1] < l->second_low || at[1] > l->second_high)) return 0;
        for (size_t k = 2; k < l->n; k++)
            if ((at[k] & 0xC0) != 0x80) return 0;
        return l->n;
    }
    return 0;
}

const char *ps_utf8_find_bad(const char *text, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        size_t n = character_bytes((const unsigned char *)text + at, bytes - at);
        if (n == 0) return text + at;
        at += n;
    }
    return NULL;
}

const char *ps_utf8_other_mark(const char *text, size_t bytes) {
    static const struct {
        const char *name;
        size_t n;
        char mark[4];
    } marks[] = {{"UTF-32", 4, "\xFF\xFE\0"}, {"UTF-32", 4, "\0\0\xFE\xFF"}, {"UTF-16", 2, "\xFF\xFE"}, {"UTF-16", 2, "\xFE\xFF"}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (bytes >= marks[i].n && memcmp(text, marks[i].mark, marks[i].n) == 0) return marks[i].name;
    return NULL;
}
