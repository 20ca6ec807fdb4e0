#include "hdf5/failure.h"

#include <hdf5.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *text;
    size_t bytes;
} reason_target;

static herr_t keep_reason(unsigned n, const H5E_error2_t *entry, void *target) {
    reason_target *reason = target;
    if (n == 0 && entry->desc) snprintf(reason->text, reason->bytes, "%s", entry->desc);
    return 0;
}

void ps_hdf5_reason(char *text, size_t bytes) {
    snprintf(text, bytes, "no reason given");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_reason, &(reason_target){text, bytes});
}

static herr_t look_for_lack(unsigned n, const H5E_error2_t *entry, void *found) {
    (void)n;
    bool lack = entry->min_num == H5E_NOSPACE || entry->min_num == H5E_CANTALLOC ||
                (entry->desc && strstr(entry->desc, "memory allocation failed"));
    *(bool *)found |= lack;
    return 0;
}

bool ps_hdf5_lacked_memory(void) {
    bool found = false;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, look_for_lack, &found);
    return found;
}

static _Thread_local bool lacked;

bool ps_hdf5_forget_lack(void) {
    bool was = lacked;
    lacked = false;
    return was;
}

bool ps_hdf5_note_lack(bool succeeded) {
    if (!succeeded) lacked |= ps_hdf5_lacked_memory();
    return succeeded;
}

/* A damaged file may ask for any amount; a few megabytes that cannot be had are another matter. */
static bool is_memory_short(void) {
    enum { PROBE_BYTES = 16 << 20 };
    void *probe = malloc(PROBE_BYTES);
    free(probe);
    return !probe;
}

ps_code ps_hdf5_fail(ps_error *error, const char *format, ...) {
    char what[512], reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    ps_hdf5_reason(reason, sizeof reason);
    if (!ps_hdf5_lacked_memory() && !lacked) return PS_FAIL(error, PS_E_INPUT, "%s: %s", what, reason);
    bool is_short = is_memory_short();
    return PS_FAIL(error, is_short ? PS_E_MEMORY : PS_E_INPUT, "%s: the HDF5 library could not get memory (%s): %s", what, reason,
                   is_short ? "there is none left; nothing is known to be wrong with the file"
                            : "it ran out for a moment, or the file asks for more than there is, as a damaged one may");
}
