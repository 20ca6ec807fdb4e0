#include "input/formats/empad_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "input/adapters/positions.h"

enum { LIST_BYTES = 600 };

static void list_scans(const ps_empad_metadata *m, char list[LIST_BYTES]) {
    size_t used = 0;
    list[0] = '\0';
    for (int i = 0; i < m->n_scans && used < LIST_BYTES; i++)
        used += (size_t)snprintf(list + used, LIST_BYTES - used, "%s%" PRId64 " x %" PRId64 " (%s)", i ? ", " : "", m->scans[i].rows,
                                 m->scans[i].columns, m->scans[i].place);
}

static int find_scan(const ps_empad_metadata *m, int64_t rows, int64_t columns) {
    for (int i = 0; i < m->n_scans; i++)
        if (m->scans[i].rows == rows && m->scans[i].columns == columns) return i;
    return -1;
}

static void take(ps_recording *info, int64_t rows, int64_t columns, const char *place) {
    info->scan_rows = rows;
    info->scan_columns = columns;
    snprintf(info->scan_place, sizeof info->scan_place, "%s", place);
}

/* The only one that fits the patterns; -1: none does, -2: two do. */
static int only_fit(const ps_reader *reader, const ps_empad_metadata *m, const ps_reader_options *options) {
    int found = -1;
    for (int i = 0; i < m->n_scans; i++)
        if (ps_positions_fit(options, m->scans[i].rows, m->scans[i].columns, reader->info.n_positions)) found = found == -1 ? i : -2;
    return found;
}

static ps_code refuse(const ps_reader *reader, const ps_empad_metadata *m, const char *why, ps_error *error) {
    char list[LIST_BYTES];
    list_scans(m, list);
    return PS_FAIL(error, PS_E_INPUT, "%s: %s: the XML file says %s, the raw file %s holds %" PRId64 " patterns; give series.scan_shape",
                   reader->path, why, list, m->raw_file, reader->info.n_positions);
}

static void note_choice(ps_reader *reader, const ps_empad_metadata *m, const char *mark, const char *why) {
    char list[LIST_BYTES];
    if (m->n_scans < 2) return;
    list_scans(m, list);
    ps_reader_note(reader, "%sa scan of %" PRId64 " x %" PRId64 " is taken, %s; the XML file has %s", mark, reader->info.scan_rows,
                   reader->info.scan_columns, why, list);
}

/* The name of the raw file counts when the XML file knows that scan, or the patterns are as many; *taken tells. */
static ps_code take_named(ps_reader *reader, const ps_empad_metadata *m, const ps_reader_options *options, int fit, bool *taken,
                          ps_error *error) {
    int64_t rows = 0, columns = 0;
    *taken = false;
    if (!ps_empad_name_scan(m->raw_file, &rows, &columns)) return PS_OK;
    bool known = find_scan(m, rows, columns) >= 0;
    if (!known && !ps_positions_fit(options, rows, columns, reader->info.n_positions)) return PS_OK;
    if (!known && fit != -1 && !options->shape_override)
        return refuse(reader, m, "the name of the raw file says another scan than its XML file", error);
    *taken = true;
    take(&reader->info, rows, columns, "the raw file's name");
    note_choice(reader, m, "", "as the raw file's name says");
    return PS_OK;
}

/* fit: -1 none, -2 several, else the only one */
static ps_code take_fitting(ps_reader *reader, const ps_empad_metadata *m, const ps_reader_options *options, int fit, ps_error *error) {
    bool given = options->scan_rows > 0 && options->scan_columns > 0;
    int job = given ? find_scan(m, options->scan_rows, options->scan_columns) : -1;
    if (fit == -2 && job < 0 && !(given && options->shape_override)) return refuse(reader, m, "which scan is it? Several fit", error);
    int chosen = fit >= 0 ? fit : fit == -2 && job >= 0 ? job : 0;
    take(&reader->info, m->scans[chosen].rows, m->scans[chosen].columns, "the XML file");
    if (fit >= 0)
        note_choice(reader, m, chosen > 0 ? "warning: " : "", "as the number of patterns says");
    else
        note_choice(reader, m, "", fit == -2 ? "as the job says" : "as the XML file says first, though none fits");
    return PS_OK;
}

ps_code ps_empad_choose_scan(ps_reader *reader, const ps_empad_metadata *m, const ps_reader_options *options, ps_error *error) {
    bool taken = false;
    if (m->n_series > 0) return PS_OK; /* images, not positions */
    int fit = only_fit(reader, m, options);
    PS_TRY(take_named(reader, m, options, fit, &taken, error));
    return taken || m->n_scans == 0 ? PS_OK : take_fitting(reader, m, options, fit, error);
}

void ps_empad_take_name(ps_reader *reader, const ps_reader_options *options) {
    const char *slash = strrchr(reader->path, '/');
    int64_t rows = 0, columns = 0;
    if (ps_empad_name_scan(slash ? slash + 1 : reader->path, &rows, &columns) &&
        ps_positions_fit(options, rows, columns, reader->info.n_positions))
        take(&reader->info, rows, columns, "the raw file's name");
}

ps_code ps_empad_check_alone(const char *path, int64_t bytes, const ps_reader_options *options, ps_error *error) {
    enum { SECOND_BYTES = PS_EMPAD_SIDE * PS_EMPAD_SIDE * 4 };
    int64_t n = bytes / PS_EMPAD_FRAME_BYTES, rows = options->scan_rows, columns = options->scan_columns;
    bool given = rows > 0 && columns > 0, whole = bytes > 0 && bytes % PS_EMPAD_FRAME_BYTES == 0;
    bool second = given && bytes % SECOND_BYTES == 0 && ps_positions_fit(options, rows, columns, bytes / SECOND_BYTES);
    static const char head[] = "a raw file that no XML file beside it names";
    if (second)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: %s: its %" PRId64
                       " bytes are the job's scan in patterns of 128 x 128 float32, as an EMPAD of the second generation "
                       "writes them; that needs its XML file",
                       path, head, bytes);
    if (!whole)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: %s, and %" PRId64 " bytes are no whole number of EMPAD patterns of 130 x 128 float32 (%d bytes each)", path,
                       head, bytes, PS_EMPAD_FRAME_BYTES);
    if (!given)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: %s; by its size it holds %" PRId64
                       " EMPAD patterns of 130 x 128 float32: give series.scan_shape, or its XML file",
                       path, head, n);
    if (!ps_positions_fit(options, rows, columns, n))
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: %s; by its size it holds %" PRId64 " EMPAD patterns of 130 x 128 float32, which the job's scan of %" PRId64
                       " x %" PRId64 " does not account for",
                       path, head, n, rows, columns);
    return PS_OK;
}
