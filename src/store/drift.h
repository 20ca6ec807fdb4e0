/* /entry/drift of the output, and /entry/aligned where the job asks for it: docs/drift.md. What was measured is written when every frame is
 * dealt with; `complete` is 0 from the moment a frame is to be done again. */
#ifndef PS_STORE_DRIFT_H
#define PS_STORE_DRIFT_H

#include "store/output.h"

/* The image that drift is measured in: that of the first method with strengths, at the middle one of a list; else the first method's. */
ps_image_place ps_drift_image(const ps_method_set *methods);

/* Of every frame; [n_frames] each. Owned: ps_drift_table_free. */
typedef struct {
    int64_t n_frames;
    double *shift_px;    /* [n_frames, 2] row, column: where the sample stands, against the first frame that is done */
    double *step_px;     /* [n_frames, 2] against `reference` */
    double *trust;       /* 0 ... 1, of the step */
    double *least_trust; /* the smallest trust of the steps up to here */
    int64_t *reference;  /* the done frame before; -1: none */
    uint8_t *known;      /* 1: the frame is done and a shift was found for it and all before it */
    int64_t *inside;     /* [n_frames, 4] first row, one behind the last, first column, one behind the last, of the aligned images */
} ps_drift_table;
ps_code ps_drift_table_create(int64_t n_frames, ps_drift_table *table, ps_error *error);
void ps_drift_table_free(ps_drift_table *table);

/* Internal to creating a file: room for all of it; nothing in a series of one frame, or where the job does not measure. */
ps_code ps_create_drift(hid_t entry, const ps_output_spec *spec, ps_error *error);

/* Rank-local, as all below. *present: the file has room; *complete: what is there holds for the frames as they are. */
ps_code ps_output_drift_state(ps_output *output, bool *present, bool *complete, ps_error *error);
/* By one rank: before frames change (false), or, brought to disk, once all is written (true). Nothing in a file without room. */
ps_code ps_output_drift_set_complete(ps_output *output, bool complete, ps_error *error);
/* By one rank. step_A: of a pixel of the image. */
ps_code ps_output_write_drift(ps_output *output, const ps_drift_table *table, const double step_A[2], ps_error *error);

/* This rank's raw data to disk. */
ps_code ps_output_bring_to_disk(const ps_output *output, ps_error *error);
/* Collective. *states: [n_frames] what became of every frame, whichever rank wrote it; malloc'd, on every rank. */
ps_code ps_output_gather_states(ps_output *output, uint8_t **states, ps_error *error);

/* An image of a frame as it stands in the file, whichever rank wrote it. image: [image_rows, image_columns]. */
ps_code ps_output_read_image(ps_output *output, int64_t frame, const ps_image_place *place, float *image, ps_error *error);
/* *part_count: images of that result in a frame. */
int64_t ps_output_image_parts(const ps_output *output, const ps_image_place *place);
ps_code ps_output_write_aligned(ps_output *output, int64_t frame, const ps_image_place *place, const float *image, ps_error *error);

#endif
