#include "input/formats/probe_list.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hdf5/failure.h"
#include "hdf5/util.h"

enum { PLACE_BYTES = 256, NAME_BYTES = 64 };

typedef struct {
    hid_t file;
    hsize_t n;                                              /* patterns */
    char list[PLACE_BYTES], x[PLACE_BYTES], y[PLACE_BYTES]; /* "": not found */
    char mover[PLACE_BYTES];                                /* the first of the motors that moved */
    int n_movers;
} search;

static bool contains_one(const char *text, const char *const *words, size_t n_words) {
    for (size_t i = 0; i < n_words; i++)
        if (strstr(text, words[i])) return true;
    return false;
}

static bool is_one(const char *text, const char *const *words, size_t n_words) {
    for (size_t i = 0; i < n_words; i++)
        if (strcmp(text, words[i]) == 0) return true;
    return false;
}

#define CONTAINS_ONE(text, words) contains_one(text, words, sizeof(words) / sizeof *(words))
#define IS_ONE(text, words) is_one(text, words, sizeof(words) / sizeof *(words))

static void lower(const char *name, char text[NAME_BYTES]) {
    size_t n = 0;
    for (; *name && n + 1 < NAME_BYTES; name++) text[n++] = (char)tolower((unsigned char)*name);
    text[n] = '\0';
}

/* Rank of a dataset of numbers and its shape; 0: neither 1 nor 2, or no numbers. */
static int numeric_shape(hid_t file, const char *name, hsize_t shape[2]) {
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    ps_hdf5_note_lack(dataset >= 0);
    if (dataset < 0) return 0;
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    ps_hdf5_note_lack(space >= 0 && type >= 0);
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    int rank = space < 0 ? 0 : H5Sget_simple_extent_ndims(space);
    if ((class != H5T_FLOAT && class != H5T_INTEGER) || rank < 1 || rank > 2 || H5Sget_simple_extent_dims(space, shape, NULL) < 0) rank = 0;
    if (type >= 0) H5Tclose(type);
    if (space >= 0) H5Sclose(space);
    H5Dclose(dataset);
    return rank;
}

/* Names of lists of points. */
static bool names_points(const char *name) {
    static const char *const parts[] = {"position", "translation", "coord"}, *const whole[] = {"pos", "xy", "points", "scan",
                                                                                               "scan_points"};
    return CONTAINS_ONE(name, parts) || IS_ONE(name, whole);
}

/* 'x' or 'y' for a name such as "sample_x", "ppY", "x_pos", or "x" in a group that is called after positions; 0: no coordinate. */
static char coordinate(const char *name, const char *group) {
    static const char *const words[] = {"pos", "sample", "stage", "motor", "probe", "scan", "pp", "transl", "coord"};
    size_t n = strlen(name);
    char last = n ? name[n - 1] : 0;
    if (n == 1) return (last == 'x' || last == 'y') && CONTAINS_ONE(group, words) ? last : 0;
    if (!CONTAINS_ONE(name, words)) return 0;
    if (last == 'x' || last == 'y') return last;
    return (name[0] == 'x' || name[0] == 'y') && !isalpha((unsigned char)name[1]) ? name[0] : 0;
}

/* A motor's readings: the value of a NeXus positioner, or a translation among NeXus transformations. */
static bool is_mover(hid_t file, const char *name, const char *group) {
    char text[NAME_BYTES];
    if (ps_hdf5_attribute_text(file, name, "transformation_type", text, sizeof text)) return strcmp(text, "translation") == 0;
    return group[0] && ps_hdf5_attribute_text(file, group, "NX_class", text, sizeof text) && strcmp(text, "NXpositioner") == 0;
}

static void keep(char place[PLACE_BYTES], const char *name) {
    if (!place[0]) snprintf(place, PLACE_BYTES, "/%.*s", PLACE_BYTES - 2, name);
}

static void look_at_numbers(search *s, const char *path, const char *name, const char *group, const char *group_name) {
    hsize_t shape[2] = {0};
    int rank = numeric_shape(s->file, path, shape);
    bool of_points = (shape[0] == s->n && (shape[1] == 2 || shape[1] == 3)) || (shape[1] == s->n && (shape[0] == 2 || shape[0] == 3));
    if (rank == 2 && of_points && names_points(name)) keep(s->list, path);
    if (rank != 1 || shape[0] != s->n) return;
    char axis = coordinate(name, group_name);
    if (axis) keep(axis == 'x' ? s->x : s->y, path);
    if (!is_mover(s->file, path, group)) return;
    keep(s->mover, path);
    s->n_movers++;
}

static herr_t look(hid_t file, const char *path, const H5O_info_t *info, void *context) {
    (void)file;
    char group[PLACE_BYTES] = "", name[NAME_BYTES], group_name[NAME_BYTES];
    if (info->type != H5O_TYPE_DATASET) return 0;
    const char *slash = strrchr(path, '/');
    if (slash && (size_t)(slash - path) < sizeof group) snprintf(group, sizeof group, "%.*s", (int)(slash - path), path);
    const char *above = strrchr(group, '/');
    lower(slash ? slash + 1 : path, name);
    lower(above ? above + 1 : group, group_name);
    look_at_numbers(context, path, name, group, group_name);
    return 0;
}

/* Where the positions are, for a message; NULL: there are none. */
static const char *found_at(const search *s, char text[2 * PLACE_BYTES + 8]) {
    if (s->list[0]) return s->list;
    if (s->x[0] && s->y[0]) snprintf(text, 2 * PLACE_BYTES + 8, "%s and %s", s->x, s->y);
    if (s->x[0] && s->y[0]) return text;
    return s->n_movers >= 2 ? s->mover : NULL;
}

ps_code ps_probe_list_check(ps_reader *reader, hid_t file, const ps_reader_options *options, ps_error *error) {
    search s = {.file = file, .n = (hsize_t)reader->info.n_positions};
    char text[2 * PLACE_BYTES + 8];
    if (reader->info.n_positions < 2) return PS_OK;
    ps_hdf5_note_lack(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_NATIVE, look, &s, H5O_INFO_BASIC) >= 0);
    const char *place = found_at(&s, text);
    if (!place) return PS_OK;
    if (!options->shape_override || options->scan_rows <= 0)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: %s lists the probe's position for each of %" PRId64
                       " patterns, as scans do that are no raster; only rasters are read. If it is one, row by row, give "
                       "series.scan_shape and set series.scan_shape_override to true",
                       reader->path, place, reader->info.n_positions);
    ps_reader_note(reader, "warning: %s lists the probe's positions; they are taken as the job's raster (series.scan_shape_override)",
                   place);
    return PS_OK;
}
