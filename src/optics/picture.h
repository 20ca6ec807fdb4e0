/* A mean pattern on the way to its disc: what measuring a disc that is seen whole and one that gaps cut have in common. Internal to the
 * measurement. */
#ifndef PS_OPTICS_PICTURE_H
#define PS_OPTICS_PICTURE_H

#include "optics/measure.h"

/* Images are [rows, columns]; all owned. */
typedef struct {
    int64_t rows, columns;
    double *filled;    /* the pattern with bad pixels replaced by their surroundings */
    double *smooth;    /* its 3 x 3 median */
    uint8_t *piece;    /* 1 in the largest connected piece above the threshold */
    uint8_t *silent;   /* PS_SILENT_*: pixels that never count */
    uint8_t *left_out; /* scratch */
    double one_count;  /* the smallest mean above 0: what one count makes of it, where counts are whole */
    double *sorted;    /* scratch */
    int64_t *queue;    /* scratch */
} ps_picture;

/* filled and smooth are not filled in, piece and silent are 0. ps_picture_free; nothing to free after an error. */
ps_code ps_picture_create(int64_t rows, int64_t columns, ps_picture *p, ps_error *error);
void ps_picture_free(ps_picture *p);

double ps_picture_median(double *values, int64_t n); /* n > 0; sorts them */
bool ps_picture_touches_edge(const ps_picture *p);
/* Distance from the disc's rim in pixels, negative inside. */
double ps_picture_outside_px(const ps_disc *disc, int64_t row, int64_t column, const double pitch[2]);
/* Median of the pattern where the distance from the rim lies in [from, to] pixels; otherwise `fallback`. */
double ps_picture_level(ps_picture *p, const ps_disc *disc, const double pitch[2], double from, double to, double fallback);
/* Fills disc->missing. out_of_round: part of the disc's area where the piece and the circle differ. */
void ps_picture_compare(const ps_picture *p, const double pitch[2], ps_disc *disc, double *out_of_round);
ps_code ps_picture_refuse(const ps_disc *disc, const double pitch[2], double out_of_round, ps_error *error);

#endif
