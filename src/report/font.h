/* A dot font for labels in pictures: printable ASCII, 5 x 7 dots in a cell of 6 x 8. */
#ifndef PS_REPORT_FONT_H
#define PS_REPORT_FONT_H

#include <stdint.h>

enum { PS_FONT_COLUMNS = 5, PS_FONT_ROWS = 7, PS_FONT_ADVANCE = 6 };

/* Five columns of dots, lowest bit at the top; a filled box for what the font does not have. */
const uint8_t *ps_font_glyph(char c);

#endif
