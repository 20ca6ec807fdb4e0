#include "input/name_list.h"

#include <stdlib.h>
#include <string.h>

ps_code ps_name_list_add(ps_name_list *list, const char *name) {
    if (list->n == list->room) {
        int64_t room = list->room ? 2 * list->room : 16;
        char **larger = realloc(list->names, (size_t)room * sizeof *larger);
        if (!larger) return PS_E_MEMORY;
        list->names = larger;
        list->room = room;
    }
    char *copy = strdup(name);
    if (!copy) return PS_E_MEMORY;
    list->names[list->n++] = copy;
    return PS_OK;
}

void ps_name_list_filter(ps_name_list *list, bool (*keep)(const char *name)) {
    int64_t n = 0;
    for (int64_t i = 0; i < list->n; i++) {
        if (keep(list->names[i]))
            list->names[n++] = list->names[i];
        else
            free(list->names[i]);
    }
    list->n = n;
}

static int compare_names(const void *a, const void *b, void *compare) {
    int (**by)(const char *, const char *) = compare;
    return (*by)(*(char *const *)a, *(char *const *)b);
}

void ps_name_list_sort(ps_name_list *list, int (*compare)(const char *a, const char *b)) {
    if (list->n > 1) qsort_r(list->names, (size_t)list->n, sizeof *list->names, compare_names, &compare);
}

void ps_name_list_free(ps_name_list *list) {
    for (int64_t i = 0; i < list->n; i++) free(list->names[i]);
    free(list->names);
    *list = (ps_name_list){0};
}
