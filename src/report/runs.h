/* The parts of the report that say how it was made: timings, frames, optics, runs. Each prints its own heading. */
#ifndef PS_REPORT_RUNS_H
#define PS_REPORT_RUNS_H

#include <stdio.h>

#include "store/view.h"

ps_code ps_report_timings(FILE *out, const ps_view *view, ps_error *error);
ps_code ps_report_frames(FILE *out, const ps_view *view, ps_error *error);
void ps_report_optics(FILE *out, const ps_view *view);
ps_code ps_report_processes(FILE *out, const ps_view *view, ps_error *error);

#endif
