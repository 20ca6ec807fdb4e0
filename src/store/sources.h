/* Which files a frame came from, as an output records it: compared when it is gone on with, and brought up to date for frames that could
 * not be read before.
 *
 * Content decides: size and checksums. Names, folders and times are told, not compared. */
#ifndef PS_STORE_SOURCES_H
#define PS_STORE_SOURCES_H

#include "store/internal.h"

/* What comparing came to. */
typedef struct {
    char *differences; /* malloc'd, a line each, "" when there are none: what makes it other input */
    bool *compared;    /* malloc'd [spec's frames]: this frame's content was compared, so its name needs not to be */
    int64_t n_old;     /* frames of which only the named file could be compared, because an earlier version recorded no more */
    int64_t n_unwhole; /* files that the job wants compared whole, of which only samples are recorded */
} ps_sources_report;

/* Reads the file at path; changes nothing. Says (warnings) what could not be compared: done frames whose recording or one of whose files
 * cannot be read now. *report: free with ps_sources_report_free, also after an error. */
ps_code ps_sources_compare(const char *path, const ps_output_spec *spec, ps_sources_report *report, ps_error *error);
void ps_sources_report_free(ps_sources_report *report);

/* Records the sources of frames that are not done and could not be read, or not wholly, when the file was made and can be now. */
ps_code ps_sources_refresh(const ps_output *output, const ps_output_spec *spec, ps_error *error);

#endif
