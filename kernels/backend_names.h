/* Names of backends in jobs and messages: what can be told without their tables. Internal. */
#ifndef PS_KERNELS_BACKEND_NAMES_H
#define PS_KERNELS_BACKEND_NAMES_H

#include "kernels/backend_list.h"

typedef struct {
    char text[256];
} ps_name_list;

bool ps_name_is_auto(const char *name); /* or NULL */
/* Whether the name means this line; *device: the number behind it, -1: none. */
bool ps_entry_is_named(const ps_backend_entry *entry, const char *name, int *device);
bool ps_entries_know(const ps_backend_entries *list, const char *name);
/* "auto, cpu, cuda, cuda:N (a device)"; precision: only those that compute it, NULL: all. */
ps_name_list ps_entries_names(const ps_backend_entries *list, const char *precision, bool only_built);

#endif
