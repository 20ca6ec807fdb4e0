#include "tasks/histogram/fingerprint.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/text.h"

/* "frame 3=11 files, 123456 bytes, CRC-32 89abcdef"; malloc'd. Datasets of one file are told apart by their names. */
static char *content_line(const ps_histogram_plan *plan, int64_t frame) {
    const ps_file_checks *checks = &plan->checks;
    const char *source = plan->run.series.items[frame].source, *dataset = strstr(source, ":/");
    int64_t bytes = 0;
    uint32_t crc = 0;
    if (plan->run.frames[frame].unreadable) return ps_text_format("frame %lld=%s", (long long)frame, PS_HISTOGRAM_UNREADABLE);
    for (int64_t i = checks->first[frame]; i < checks->first[frame + 1]; i++) {
        uint32_t sums[2] = {checks->files[i].samples, checks->files[i].whole};
        crc = (uint32_t)crc32_z(crc, (const Bytef *)sums, sizeof sums);
        bytes += checks->files[i].bytes > 0 ? checks->files[i].bytes : 0;
    }
    return ps_text_format("frame %lld=%lld files, %lld bytes, CRC-32 %08x%s%s", (long long)frame,
                          (long long)(checks->first[frame + 1] - checks->first[frame]), (long long)bytes, crc, dataset ? ", " : "",
                          dataset ? dataset + 1 : "");
}

static char *name_line(const ps_histogram_plan *plan, int64_t frame) {
    const ps_series_item *item = &plan->run.series.items[frame];
    return ps_text_format("frame %lld=%s, %lld bytes, %lld ns", (long long)frame, item->source, (long long)item->bytes,
                          (long long)item->mtime_ns);
}

static ps_code write_fingerprint(const ps_histogram_plan *plan, char *(*line_of)(const ps_histogram_plan *, int64_t), char **text,
                                 ps_error *error) {
    ps_code code = PS_OK;
    const cJSON *json = plan->job->json;
    char *histogram = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(json, "histogram"));
    char *series = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(json, "series"));
    *text = NULL;
    PS_GO_ALLOC(error, histogram);
    PS_GO_ALLOC(error, series);
    *text = ps_text_format("task=histogram\nhistogram=%s\nseries=%s\n", histogram, series);
    for (int64_t i = 0; *text && i < plan->run.series.n_items; i++) {
        char *line = line_of(plan, i), *longer = line ? ps_text_format("%s%s\n", *text, line) : NULL;
        free(line);
        free(*text);
        *text = longer;
    }
    if (!*text) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for the fingerprint");
done:
    cJSON_free(histogram);
    cJSON_free(series);
    return code;
}

ps_code ps_histogram_fingerprint(const ps_histogram_plan *plan, char **text, ps_error *error) {
    return write_fingerprint(plan, content_line, text, error);
}

ps_code ps_histogram_fingerprint_of_names(const ps_histogram_plan *plan, char **text, ps_error *error) {
    return write_fingerprint(plan, name_line, text, error);
}
