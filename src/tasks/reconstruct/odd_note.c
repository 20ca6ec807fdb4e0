#include "tasks/reconstruct/odd_note.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static size_t add_kind(const ps_odd_patterns *found, int64_t n_positions, int64_t scan_columns, ps_pattern_kind kind, char *text,
                       size_t used) {
    char list[PS_ODD_TEXT];
    int64_t n = kind == PS_PATTERN_EMPTY ? found->n_empty : found->n_marked;
    if (n == 0) return used;
    ps_patterns_list(found->kind, n_positions, kind, scan_columns, list);
    return used + (size_t)snprintf(text + used, PS_ODD_NOTE - used, "%s%" PRId64 " of %" PRId64 " patterns %s %s: position%s %s",
                                   used ? "; " : "", n, n_positions, n == 1 ? "is" : "are",
                                   kind == PS_PATTERN_EMPTY ? "empty" : "without counts (all-ones or not finite)", n == 1 ? "" : "s", list);
}

ps_code ps_odd_patterns_find(const ps_pattern_tally *tally, int64_t n_positions, int64_t n_pixels, int64_t scan_columns,
                             ps_odd_patterns *found, ps_error *error) {
    ps_code code = PS_OK;
    *found = (ps_odd_patterns){.kind = malloc((size_t)n_positions)};
    PS_GO_ALLOC(error, found->kind);
    PS_GO(ps_patterns_judge(tally, n_positions, n_pixels, found->kind, &found->n_empty, &found->n_marked, error));
    if (found->n_empty + found->n_marked > 0) {
        PS_GO_ALLOC(error, found->text = malloc(PS_ODD_NOTE));
        size_t used = add_kind(found, n_positions, scan_columns, PS_PATTERN_EMPTY, found->text, 0);
        add_kind(found, n_positions, scan_columns, PS_PATTERN_MARKED, found->text, used);
        return PS_OK;
    }
    free(found->kind);
    found->kind = NULL;
done:
    if (code != PS_OK) ps_odd_patterns_free(found);
    return code;
}

void ps_odd_patterns_free(ps_odd_patterns *found) {
    free(found->kind);
    free(found->text);
    *found = (ps_odd_patterns){0};
}
