#include "input/name_list.h"

#include <ctype.h>
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

int ps_natural_compare(const char *a, const char *b) {
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            const char *a0 = a + strspn(a, "0"), *b0 = b + strspn(b, "0");
            size_t na = strspn(a0, "0123456789"), nb = strspn(b0, "0123456789");
            if (na != nb) return na < nb ? -1 : 1;
            int order = strncmp(a0, b0, na);
            if (order) return order;
            a = a0 + na;
            b = b0 + nb;
            continue;
        }
        if (*a != *b) break;
        a++;
        b++;
    }
    return (unsigned char)*a - (unsigned char)*b;
}
