/* Optics that can be used but probably are not what was meant. */
#ifndef PS_OPTICS_WARNINGS_H
#define PS_OPTICS_WARNINGS_H

#include "optics/optics.h"

enum { PS_WARNING_TEXT = 320 };

/* Aberrations that cannot be seen, or that turn faster than the detector samples; a scan step or a thickness far off. Writes what is
 * doubtful and in which unit it would make sense, one text each; returns how many, at most `most`. optics: nothing missing. */
int ps_optics_warnings(const ps_optics *optics, int most, char texts[][PS_WARNING_TEXT]);

#endif
