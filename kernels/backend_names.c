/* A file of its own, with the list but not its tables, so that a program that only reads jobs need not link the backends. */
#include "kernels/backend_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define X(name, job_name, precision, needs_device, ops) {name, job_name, precision, needs_device, NULL},
static const ps_backend_entry entries[] = {PS_BACKEND_LIST(X)};
#undef X
static const ps_backend_entries all = {entries, sizeof entries / sizeof entries[0]};
enum { MOST_DIGITS = 4 };

bool ps_name_is_auto(const char *name) {
    return !name || strcmp(name, "auto") == 0;
}

bool ps_entry_is_named(const ps_backend_entry *entry, const char *name, int *device) {
    size_t length = strlen(entry->job_name);
    *device = -1;
    if (strncmp(name, entry->job_name, length) != 0) return false;
    if (name[length] == '\0') return true;
    if (name[length] != ':' || !entry->needs_device) return false;
    const char *number = name + length + 1;
    size_t digits = strspn(number, "0123456789");
    if (digits < 1 || digits > MOST_DIGITS || number[digits] != '\0') return false;
    *device = atoi(number);
    return true;
}

bool ps_entries_know(const ps_backend_entries *list, const char *name) {
    int device;
    for (int i = 0; i < list->n; i++)
        if (ps_name_is_auto(name) || ps_entry_is_named(&list->entries[i], name, &device)) return true;
    return false;
}

ps_name_list ps_entries_names(const ps_backend_entries *list, const char *precision, bool only_built) {
    const char *last = NULL;
    ps_name_list names;
    size_t bytes = sizeof names.text, used = (size_t)snprintf(names.text, bytes, "auto");
    for (int i = 0; i < list->n; i++) {
        const ps_backend_entry *entry = &list->entries[i];
        bool fits = (!precision || strcmp(entry->precision, precision) == 0) && (entry->ops || !only_built);
        if (!fits || (last && strcmp(entry->job_name, last) == 0) || used >= bytes) continue;
        last = entry->job_name;
        used += (size_t)snprintf(names.text + used, bytes - used, entry->needs_device ? ", %s, %s:N (a device)" : ", %s", last, last);
    }
    return names;
}

bool ps_backend_name_is_known(const char *name) {
    return ps_entries_know(&all, name);
}

void ps_backend_names(char *text, size_t bytes) {
    snprintf(text, bytes, "%s", ps_entries_names(&all, NULL, false).text);
}

bool ps_backend_computes(const char *name, const char *precision) {
    int device;
    for (int i = 0; i < all.n; i++)
        if (strcmp(entries[i].precision, precision) == 0 && (ps_name_is_auto(name) || ps_entry_is_named(&entries[i], name, &device)))
            return true;
    return false;
}
