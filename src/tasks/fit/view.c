#include "tasks/fit/view.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/layout.h"
#include "tasks/fit/record.h"

static void print_record(const ps_view *view, const ps_fit_record *r, int64_t index) {
    char **sources = NULL;
    bool named = ps_view_texts(view, "frames/source", view->n_frames, &sources, NULL) == PS_OK;
    printf("fit %-6lldframe %.0f%s%s\n", (long long)index, r->frame, named ? ", " : "", named ? sources[(int64_t)r->frame] : "");
    if (named) ps_view_free_texts(sources, view->n_frames);
    if (r->n == 0) {
        printf("failed    %s\n", r->failure);
        return;
    }
    printf("explained %.4g before, %.4g after, of %.0f frequencies at %.0f pixels; %.0f trials, %.2f s\n", r->before, r->after,
           r->n_frequencies, r->n_pixels, r->evaluations, r->seconds);
    for (int64_t i = 0; i < r->n; i++) printf("  %-18s %14.6g +- %-10.3g %s\n", r->names[i], r->values[i], r->errors[i], r->units[i]);
    for (int64_t i = 0; i < r->n_notes; i++) printf("note      %s\n", r->notes[i]);
    printf("optics    %s\n", r->optics);
}

static void print_text(const ps_view *view, const char *label, const char *name) {
    char *text = ps_view_text(view, name);
    if (text && *text) printf("%-10s%s\n", label, text);
    free(text);
}

ps_code ps_fit_print_info(const char *path, ps_error *error) {
    ps_view view = {.file = H5I_INVALID_HID, .entry = H5I_INVALID_HID};
    int64_t n = 0;
    ps_code code = PS_OK;
    PS_TRY(ps_view_open(path, &view, error));
    PS_GO(ps_fit_record_count(&view, &n, error));
    printf("%s\n", path);
    printf("frames    %lld: %lld done, %lld failed; %lld fit%s\n", (long long)view.n_frames, (long long)view.n_by_state[PS_FRAME_DONE],
           (long long)view.n_by_state[PS_FRAME_FAILED], (long long)n, n == 1 ? "" : "s");
    for (int64_t i = 0; i < n; i++) {
        ps_fit_record record;
        PS_GO(ps_fit_record_read(&view, i, &record, error));
        print_record(&view, &record, i);
        ps_fit_record_free(&record);
    }
    print_text(&view, "device", "frames/device");
    print_text(&view, "memory", "process_1/memory");
    print_text(&view, "command", "process_1/command_line");
    print_text(&view, "finished", "process_1/end_time");
done:
    ps_view_close(&view);
    return code;
}
