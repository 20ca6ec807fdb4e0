/* Plots as an SVG file of their own, two beside each other. */
#ifndef PS_REPORT_SVG_SHEET_H
#define PS_REPORT_SVG_SHEET_H

#include "core/error.h"
#include "report/svg.h"

/* plots: [n]. A plot on which nothing can be shown leaves its place empty. PS_E_IO when path cannot be written. */
ps_code ps_svg_sheet_write(const char *path, const ps_plot *plots, int n, ps_error *error);

#endif
