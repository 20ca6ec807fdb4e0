/* A method of a job by its name. */
#ifndef PS_TESTS_METHOD_NAMED_H
#define PS_TESTS_METHOD_NAMED_H

#include <string.h>

#include "method/method.h"

/* NULL: the job does not ask for it. */
static inline ps_method_settings *method_named(ps_method_set *set, const char *name) {
    for (int64_t i = 0; i < set->n; i++)
        if (strcmp(set->items[i].method->name, name) == 0) return &set->items[i];
    return NULL;
}

#endif
