/* A growing list of names, and the order in which people count. */
#ifndef PS_INPUT_NAME_LIST_H
#define PS_INPUT_NAME_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

typedef struct {
    int64_t n, room;
    char **names; /* [n], owned */
} ps_name_list;   /* starts as {0} */

ps_code ps_name_list_add(ps_name_list *list, const char *name); /* copies; PS_E_MEMORY */
void ps_name_list_filter(ps_name_list *list, bool (*keep)(const char *name));
void ps_name_list_sort(ps_name_list *list, int (*compare)(const char *a, const char *b));
void ps_name_list_free(ps_name_list *list);

int ps_natural_compare(const char *a, const char *b); /* as strcmp, runs of digits by value */

#endif
