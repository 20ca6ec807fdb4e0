/* The results of a frame, written one by one: what there is to write, what was, and the CRC-32 that comes of it. Internal to the store. */
#ifndef PS_STORE_PARTS_H
#define PS_STORE_PARTS_H

#include "store/internal.h"
#include "store/part_check.h"

struct ps_frame_parts {
    int64_t frame;
    bool is_begun;                  /* the frame is pending on disk */
    double seconds;                 /* spent writing so far */
    int64_t first[PS_MOST_RESULTS]; /* of each result's parts, in the next two */
    int64_t n_parts;                /* of all results */
    bool *is_written;               /* [n_parts] */
    uint32_t *crc;                  /* [n_parts] */
    ps_part_check *check;           /* reads back, with memory of its own: writing a frame takes none */
};

/* An image that the file has a place for, is asked for once and holds finite numbers (else PS_E_NUMERIC). */
ps_code ps_parts_check_image(const ps_output *output, const ps_frame_parts *parts, const ps_image_place *place, const float *image,
                             ps_error *error);
/* Writes it and reads it back. */
ps_code ps_parts_write_image(const ps_output *output, ps_frame_parts *parts, const ps_image_place *place, const float *image,
                             ps_error *error);
/* What is left: everything the file has a place for is written or in result, nothing else is, and all of it is finite. */
ps_code ps_parts_check_rest(const ps_output *output, const ps_frame_parts *parts, const ps_frame_result *result, ps_error *error);
/* Writes it and reads it back; *crc: of all results of the frame. */
ps_code ps_parts_write_rest(const ps_output *output, ps_frame_parts *parts, const ps_frame_result *result, uint32_t *crc, ps_error *error);

#endif
