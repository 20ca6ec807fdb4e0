/* The order of a master's data files: by the image numbers that they carry (attributes image_nr_low and image_nr_high of their datasets),
 * else by the names of the links. */
#ifndef PS_INPUT_FORMATS_IMAGE_NUMBERS_H
#define PS_INPUT_FORMATS_IMAGE_NUMBERS_H

#include "input/formats/hdf5_common.h"

/* What one link leads to. */
typedef struct {
    char *link, *file;                 /* its name; the file as the link names it; owned by the list */
    int64_t first_segment, n_segments; /* of reader->segments; no segments: the file is missing */
    int64_t n;                         /* positions in them */
    int64_t low, high;                 /* numbers of its first and last image; low < 0 or high 0: it has none */
} ps_image_piece;

typedef struct {
    int64_t n, room;
    ps_image_piece *pieces; /* [n] in the order of the links' names */
} ps_image_list;            /* starts as {0} */

/* Takes over the texts of *piece, also after an error. */
ps_code ps_image_list_add(ps_image_list *list, ps_image_piece *piece, ps_error *error);
void ps_image_list_free(ps_image_list *list);

/* Puts reader->segments in order, with positions without data where images are in no file (an error unless segments.allow_partial). The
 * list is in the new order afterwards. promised: patterns of the recording, 0: not known. */
ps_code ps_image_list_arrange(ps_image_list *list, ps_hdf5_reader *reader, int64_t promised, ps_error *error);

#endif
