/* From names to tables, by going over the list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend_list.h"
#include "kernels/backend_names.h"

#define X(name, job_name, precision, needs_device, ops) {name, job_name, precision, needs_device, ops},
static const ps_backend_entry entries[] = {PS_BACKEND_LIST(X)};
#undef X
static const ps_backend_entries all = {entries, sizeof entries / sizeof entries[0]};

const ps_backend_entries *ps_backend_list(void) {
    return &all;
}

ps_code ps_backend_entry_devices(const ps_backend_entry *entry, int *count, ps_error *error) {
    *count = 0;
    if (!entry->ops) return PS_FAIL(error, PS_E_BACKEND, "%s: not built", entry->name);
    if (entry->needs_device) return entry->ops->device_count(count, error);
    *count = 1;
    return PS_OK;
}

/* --- selection --- */

static const char *precision_of(const ps_backend_request *request) {
    return request->precision ? request->precision : "fast";
}

static bool is_usable(const ps_backend_entry *entry) {
    ps_error ignored = {0};
    int count;
    return ps_backend_entry_devices(entry, &count, &ignored) == PS_OK && count > 0;
}

static bool has_needed(const ps_backend_entry *entry, const ps_backend_request *request) {
    return !request->needs_histograms || !entry->ops || entry->ops->histogram;
}

/* The line that the request means; NULL: none. *device: the number in the name, -1: none. */
static const ps_backend_entry *find(const ps_backend_entries *list, const ps_backend_request *request, int *device) {
    *device = -1;
    for (int i = list->n - 1; i >= 0; i--) {
        const ps_backend_entry *entry = &list->entries[i];
        if (strcmp(entry->precision, precision_of(request)) != 0) continue;
        if (ps_name_is_auto(request->name) ? is_usable(entry) && has_needed(entry, request)
                                           : ps_entry_is_named(entry, request->name, device))
            return entry;
    }
    return NULL;
}

static ps_code refuse(const ps_backend_entries *list, const ps_backend_request *request, ps_error *error) {
    const char *name = ps_name_is_auto(request->name) ? "auto" : request->name, *precision = precision_of(request);
    if (!ps_entries_know(list, request->name))
        return PS_FAIL(error, PS_E_ARGUMENT, "%s: found '%s', expected one of: %s", request->where_name, name,
                       ps_entries_names(list, NULL, false).text);
    ps_backend_request anything = *request;
    int ignored;
    anything.needs_histograms = false;
    if (find(list, &anything, &ignored))
        return PS_FAIL(error, PS_E_BACKEND, "%s: no backend that can be used here makes histograms", request->where_name);
    return PS_FAIL(error, PS_E_JOB, "%s: found %s, which backend %s does not compute, expected one of the backends: %s",
                   request->where_precision, precision, name, ps_entries_names(list, precision, true).text);
}

/* The device of a rank: the one in the name, or the host's in turn; and how many ranks of the host use it. */
static ps_code choose_device(const ps_backend_request *request, const ps_backend_entry *entry, int number, ps_backend_options *options,
                             ps_error *error) {
    int n_devices, n_ranks = request->n_node_ranks > 0 ? request->n_node_ranks : 1;
    PS_TRY(ps_backend_entry_devices(entry, &n_devices, error));
    options->device = number >= 0 ? number : request->node_rank % n_devices;
    if (options->device >= n_devices)
        return PS_FAIL(error, PS_E_BACKEND, "%s: found %s, but %d %s device%s visible here", request->where_name, request->name, n_devices,
                       entry->name, n_devices == 1 ? " is" : "s are");
    options->n_sharing = number >= 0 ? n_ranks : n_ranks / n_devices + (options->device < n_ranks % n_devices);
    return PS_OK;
}

ps_code ps_backend_select_from(const ps_backend_entries *list, const ps_backend_request *request, const ps_backend_ops **ops,
                               ps_backend_options *options, ps_error *error) {
    int number;
    *ops = NULL;
    options->device = options->n_sharing = 0;
    const ps_backend_entry *entry = find(list, request, &number);
    if (!entry) return refuse(list, request, error);
    if (!entry->ops)
        return PS_FAIL(error, PS_E_BACKEND, "%s: found %s, but this program was built without %s, expected one of: %s", request->where_name,
                       request->name, entry->name, ps_entries_names(list, precision_of(request), true).text);
    if (!has_needed(entry, request)) return PS_FAIL(error, PS_E_BACKEND, "%s: %s makes no histograms", request->where_name, entry->name);
    if (entry->needs_device) PS_TRY(choose_device(request, entry, number, options, error));
    *ops = entry->ops;
    return PS_OK;
}

ps_code ps_backend_select(const ps_backend_request *request, const ps_backend_ops **ops, ps_backend_options *options, ps_error *error) {
    return ps_backend_select_from(&all, request, ops, options, error);
}

const ps_backend_ops *ps_backend_built(const ps_backend_request *request) {
    int ignored;
    const ps_backend_entry *entry = find(&all, request, &ignored);
    return entry && has_needed(entry, request) ? entry->ops : NULL;
}

/* --- for people --- */

static void describe(const ps_backend_entry *entry, FILE *stream) {
    ps_error error = {0};
    int count;
    if (!entry->ops)
        fprintf(stream, "not built");
    else if (!entry->needs_device)
        fprintf(stream, "%s", entry->precision);
    else if (ps_backend_entry_devices(entry, &count, &error) == PS_OK)
        fprintf(stream, "%d device%s visible", count, count == 1 ? "" : "s");
    else
        fprintf(stream, "built, no device: %s", error.text);
}

/* Lines of one job_name become one: "cpu: reference and fast precision". */
static void describe_all(const ps_backend_entries *list, FILE *stream) {
    for (int i = 0; i < list->n; i++) {
        const ps_backend_entry *entry = &list->entries[i];
        bool goes_on = i > 0 && strcmp(entry->job_name, entry[-1].job_name) == 0;
        bool ends = i + 1 == list->n || strcmp(entry->job_name, entry[1].job_name) != 0;
        fprintf(stream, goes_on ? " and " : "  %s: ", entry->job_name);
        describe(entry, stream);
        if (ends) fprintf(stream, "%s\n", entry->needs_device ? "" : " precision");
    }
}

char *ps_backend_list_text(void) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    if (!stream) return NULL;
    describe_all(&all, stream);
    if (fclose(stream) == 0) return text;
    free(text);
    return NULL;
}
