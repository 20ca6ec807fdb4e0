/* The rim of a bright-field disc that gaps cut: between modules, along dead rows, behind a beam stop. Internal to the measurement. */
#ifndef PS_OPTICS_RIM_H
#define PS_OPTICS_RIM_H

#include "optics/measure.h"

/* Images are [rows, columns], borrowed. */
typedef struct {
    int64_t rows, columns;
    const double *pitch;   /* row, column */
    const double *image;   /* the pattern, bad pixels filled */
    const uint8_t *silent; /* pixels that never count: PS_SILENT_* */
    double background, plateau;
    double fullest; /* times the way from background to plateau, what a pixel counts at most: 1, and as much more as chance may give */
} ps_rim_view;

enum { PS_SILENT_NOT = 0, PS_SILENT_ZERO = 1, PS_SILENT_BAD = 2 }; /* zero: outside the disc that may be the dark itself */

/* Distance of a pixel's centre from the disc's rim in pixels, negative inside. */
double ps_rim_outside_px(const ps_rim_view *view, const ps_disc *disc, int64_t row, int64_t column);

/* left_out: [rows, columns], 1 where a pixel says nothing of the disc's rim: bad; without counts inside the disc, or where such a gap goes
 * on through the rim; far brighter than the disc. Returns how many lie inside or at the rim. */
int64_t ps_rim_leave_out(const ps_rim_view *view, const ps_disc *disc, uint8_t *left_out);

/* Improves centre and radius until, over the pixels at the rim that are not left out, the pattern's excess over the circle's own has no
 * mean and no first harmonic: what area and centroid are for a disc that is seen whole. false when what is seen of the rim does not tell.
 */
bool ps_rim_refine(const ps_rim_view *view, const uint8_t *left_out, ps_disc *disc);

/* Parts of the rim: seen, of the whole circle, and wrong, of those seen: where the pattern's edge lies elsewhere by more than a pixel (or 3
 * % of the radius). */
void ps_rim_misfit(const ps_rim_view *view, const uint8_t *left_out, const ps_disc *disc, double *seen, double *wrong);
/* Leaves out the pixels at those parts of the rim that are wrong, and at those beside them, too. */
void ps_rim_leave_out_wrong(const ps_rim_view *view, const ps_disc *disc, uint8_t *left_out);

#endif
