/* The first step of the run plan: every recording of the series opened once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "input/open.h"
#include "input/scan_shape.h"
#include "plan/parts.h"

enum { MOST_LISTED = 8 };

/* Takes mask; the same mask of another frame is used instead where there is one. */
static ps_code keep_mask(ps_file_masks *masks, int64_t frame, uint8_t *mask, size_t size, ps_error *error) {
    for (int64_t i = 0; i < masks->n_masks; i++)
        if (masks->sizes[i] == size && memcmp(masks->masks[i], mask, size) == 0) {
            masks->mask_of[frame] = i;
            free(mask);
            return PS_OK;
        }
    size_t room = (size_t)masks->n_masks + 1;
    uint8_t **more = realloc(masks->masks, room * sizeof *more);
    if (more) masks->masks = more;
    size_t *sizes = realloc(masks->sizes, room * sizeof *sizes);
    if (sizes) masks->sizes = sizes;
    if (!more || !sizes) {
        free(mask);
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for pixel masks");
    }
    masks->masks[masks->n_masks] = mask;
    masks->sizes[masks->n_masks] = size;
    masks->mask_of[frame] = masks->n_masks++;
    return PS_OK;
}

static ps_code read_mask(ps_reader *reader, int64_t frame, ps_file_masks *masks, ps_error *error) {
    size_t size = (size_t)(reader->info.detector_rows * reader->info.detector_columns);
    bool present = false;
    uint8_t *mask = calloc(size, 1);
    if (!mask) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a pixel mask");
    ps_code code = ps_reader_mask(reader, mask, &present, error);
    if (code == PS_OK && present) return keep_mask(masks, frame, mask, size, error);
    free(mask);
    return code;
}

/* A warning that another recording of the series gave too is given once. */
static bool is_known(const ps_run_plan *plan, const char *text, int length) {
    for (int64_t i = 0; i < plan->n_warnings; i++) {
        const char *end = strchr(plan->warnings[i], ':');
        if (end && strlen(end + 2) == (size_t)length && memcmp(end + 2, text, (size_t)length) == 0) return true;
    }
    return false;
}

/* Lines of the reader's notes that begin with "warning: ". */
static ps_code pass_warnings(const ps_reader *reader, const ps_series_item *item, ps_run_plan *plan, ps_error *error) {
    static const char sign[] = "warning: ";
    for (const char *line = ps_reader_notes(reader); *line;) {
        int length = (int)strcspn(line, "\n");
        bool is_warning = strncmp(line, sign, sizeof sign - 1) == 0;
        const char *text = line + sizeof sign - 1;
        int n = length - (int)sizeof sign + 1;
        if (is_warning && !is_known(plan, text, n)) PS_TRY(ps_run_plan_add_warning(plan, error, "%s: %.*s", item->stem, n, text));
        line += length + (line[length] == '\n');
    }
    return PS_OK;
}

/* Fills the frame at index, and its mask. */
static ps_code read_headers(const ps_job *job, int64_t index, ps_run_plan *plan, ps_file_masks *masks, ps_error *error) {
    ps_code code = PS_OK;
    const ps_series_item *item = &plan->series.items[index];
    ps_run_frame *frame = &plan->frames[index];
    ps_reader *reader = NULL;
    ps_reader_options options = ps_job_reader_options(job);
    PS_GO(ps_reader_open(item->source, &options, &reader, error));
    frame->info = reader->info;
    PS_GO(ps_reader_scan_shape(reader, &options, &frame->info.scan_rows, &frame->info.scan_columns, error));
    PS_GO(pass_warnings(reader, item, plan, error));
    PS_GO(ps_reader_list_files(reader, &frame->files, error));
    if (job->series.mask_from_file) PS_GO(read_mask(reader, index, masks, error));
done:
    ps_reader_close(reader);
    return code;
}

static ps_code note_unreadable(ps_run_frame *frame, const ps_error *reason, ps_run_plan *plan, ps_error *error) {
    memset(&frame->info, 0, sizeof frame->info);
    ps_name_list_free(&frame->files);
    frame->unreadable = strdup(reason->text);
    plan->n_unreadable++;
    return frame->unreadable ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for an error text");
}

static bool same_shape(const ps_recording *a, const ps_recording *b) {
    return a->scan_rows == b->scan_rows && a->scan_columns == b->scan_columns && a->detector_rows == b->detector_rows &&
           a->detector_columns == b->detector_columns && a->dtype == b->dtype;
}

static size_t describe_shape(const ps_series_item *item, const ps_recording *info, char *text, size_t room) {
    int used = snprintf(text, room, "\n  %s: scan %" PRId64 " x %" PRId64 ", detector %" PRId64 " x %" PRId64 ", %s", item->stem,
                        info->scan_rows, info->scan_columns, info->detector_rows, info->detector_columns, ps_dtype_name(info->dtype));
    return used < 0 ? 0 : (size_t)used < room ? (size_t)used : room;
}

/* All readable frames must look like the first of them. */
static ps_code check_uniform(const ps_run_plan *plan, int64_t first, ps_error *error) {
    char list[PS_ERROR_TEXT - 200] = "";
    int64_t n_different = 0, n_readable = plan->series.n_items - plan->n_unreadable;
    size_t used = describe_shape(&plan->series.items[first], &plan->frames[first].info, list, sizeof list);
    for (int64_t i = first + 1; i < plan->series.n_items; i++) {
        if (plan->frames[i].unreadable || same_shape(&plan->frames[i].info, &plan->frames[first].info)) continue;
        if (n_different++ < MOST_LISTED)
            used += describe_shape(&plan->series.items[i], &plan->frames[i].info, list + used, sizeof list - used);
    }
    if (n_different == 0) return PS_OK;
    return PS_FAIL(error, PS_E_INPUT,
                   "%" PRId64 " of %" PRId64 " recordings differ in shape or type from the first; a series needs one%s%s", n_different,
                   n_readable, list, n_different > MOST_LISTED ? "\n  ..." : "");
}

static void adopt_shape(const ps_recording *info, ps_run_plan *plan) {
    plan->scan_rows = info->scan_rows;
    plan->scan_columns = info->scan_columns;
    plan->detector_rows = info->detector_rows;
    plan->detector_columns = info->detector_columns;
    plan->dtype = info->dtype;
}

ps_code ps_run_plan_open_frames(const ps_job *job, ps_run_plan *plan, ps_file_masks *masks, ps_error *error) {
    int64_t n = plan->series.n_items, first = -1;
    ps_error reason, first_reason = {0};
    plan->frames = calloc((size_t)n, sizeof *plan->frames);
    masks->mask_of = malloc((size_t)n * sizeof *masks->mask_of);
    if (!plan->frames || !masks->mask_of) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for %" PRId64 " frames", n);
    for (int64_t i = 0; i < n; i++) {
        plan->frames[i].group = masks->mask_of[i] = -1;
        ps_error_clear(&reason);
        ps_code code = read_headers(job, i, plan, masks, &reason);
        if (code == PS_E_MEMORY) return PS_FAIL(error, code, "%s", reason.text);
        if (code != PS_OK) PS_TRY(note_unreadable(&plan->frames[i], &reason, plan, error));
        if (code != PS_OK && first_reason.code == PS_OK) first_reason = reason;
        if (code == PS_OK && first < 0) first = i;
    }
    if (n == 1 && first < 0) return PS_FAIL(error, PS_E_INPUT, "%s", first_reason.text);
    if (first < 0) return PS_FAIL(error, PS_E_INPUT, "none of the %" PRId64 " recordings can be used; the first: %s", n, first_reason.text);
    adopt_shape(&plan->frames[first].info, plan);
    return check_uniform(plan, first, error);
}

static ps_code find_bytes(const ps_job *job, const char *source, int64_t *bytes, ps_error *error) {
    ps_reader_options options = ps_job_reader_options(job);
    ps_reader *reader = NULL;
    PS_TRY(ps_reader_open(source, &options, &reader, error));
    ps_code code = ps_reader_data_bytes(reader, bytes, error);
    ps_reader_close(reader);
    return code;
}

ps_code ps_run_plan_find_bytes(const ps_job *job, ps_run_plan *plan, ps_error *error) {
    for (int64_t i = 0; i < plan->series.n_items; i++) {
        ps_run_frame *frame = &plan->frames[i];
        if (!frame->unreadable) PS_TRY(find_bytes(job, plan->series.items[i].source, &frame->info.data_bytes, error));
    }
    return PS_OK;
}

void ps_run_plan_free_masks(ps_file_masks *masks) {
    for (int64_t i = 0; i < masks->n_masks; i++) free(masks->masks[i]);
    free(masks->masks);
    free(masks->sizes);
    free(masks->mask_of);
    memset(masks, 0, sizeof *masks);
}
