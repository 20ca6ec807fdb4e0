/* JSON with places: values are read through a place that knows its pointer, so that every message says where the value is, what was found,
 * what was expected, and the nearest valid key.
 *
 * Members that are absent give a place whose value is NULL; readers then leave their result alone and return PS_OK, so that
 * defaults are what the result held before. ps_json_require makes absence an error. All errors are PS_E_JOB. */
#ifndef PS_CORE_JSON_H
#define PS_CORE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cJSON.h>

#include "core/error.h"

/* A value and where it is; lives on the caller's stack, and its parents must live as long. */
typedef struct ps_json {
    const cJSON *value;           /* NULL: absent */
    const struct ps_json *parent; /* NULL: the root */
    const char *key;              /* of a member of an object; NULL: an array's element */
    int64_t index;                /* of an array's element */
    const char *where;            /* root only: what messages call the document, or the pointer of what was handed over */
} ps_json;

/* Strict parse: text that is not UTF-8 (a mark of UTF-8 in front is allowed), comments (with a hint), trailing text, duplicate keys,
 * numbers beyond double and NUL characters are refused, with line and column where they are known. what: the document's name in messages.
 * Owned by the caller: cJSON_Delete. */
ps_code ps_json_parse(const char *text, size_t bytes, const char *what, cJSON **json, ps_error *error);

ps_json ps_json_root(const cJSON *value, const char *where);
ps_json ps_json_member(const ps_json *object, const char *key);
ps_json ps_json_element(const ps_json *array, int64_t index); /* steps through all before it */
ps_json ps_json_next(const ps_json *element);                 /* the array's next element; absent behind the last */
bool ps_json_is_null(const ps_json *place);                   /* present and null */

/* PS_E_JOB "WHERE: /pointer: found VALUE, expected EXPECTED". */
ps_code ps_json_fail(const ps_json *place, ps_error *error, const char *expected, ...) __attribute__((format(printf, 3, 4)));
/* PS_E_JOB "WHERE: /pointer: MESSAGE". */
ps_code ps_json_refuse(const ps_json *place, ps_error *error, const char *message, ...) __attribute__((format(printf, 3, 4)));

ps_code ps_json_require(const ps_json *place, ps_error *error);
/* place must be an object with no member outside keys [n_keys]. */
ps_code ps_json_object(const ps_json *place, const char *const *keys, size_t n_keys, ps_error *error);
/* minimum and maximum are allowed values. */
ps_code ps_json_number(const ps_json *place, double minimum, double maximum, double *number, ps_error *error);
ps_code ps_json_integer(const ps_json *place, int64_t minimum, int64_t maximum, int64_t *integer, ps_error *error);
ps_code ps_json_bool(const ps_json *place, bool *flag, ps_error *error);
/* text: borrowed from the document; empty strings are refused. */
ps_code ps_json_text(const ps_json *place, const char **text, ps_error *error);
/* choice: index of the text in names [n_names]. */
ps_code ps_json_choice(const ps_json *place, const char *const *names, size_t n_names, int *choice, ps_error *error);
/* Two numbers, row and column. */
ps_code ps_json_pair(const ps_json *place, double minimum, double maximum, double pair[2], ps_error *error);
ps_code ps_json_integer_pair(const ps_json *place, int64_t minimum, int64_t maximum, int64_t *first, int64_t *second, ps_error *error);

#endif
