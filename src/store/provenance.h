/* What a run records about itself and its inputs. */
#ifndef PS_STORE_PROVENANCE_H
#define PS_STORE_PROVENANCE_H

#include "cluster/cluster.h"
#include "store/output.h"

enum { PS_MAX_NOTES = 48 };

typedef struct {
    int64_t n;
    ps_output_note notes[PS_MAX_NOTES]; /* values are malloc'd */
} ps_notes;

/* Collective: every rank tells its host and device; rank 0's notes are complete. command_line: argv joined, as given. The job's text is
 * recorded elsewhere; its path and the directory its relative paths start from are noted here. */
ps_code ps_notes_gather(const ps_cluster *cluster, const ps_job *job, const char *command_line, const char *device,
                        const char *device_versions, ps_notes *notes, ps_error *error);
/* value: malloc'd, taken over; NULL adds nothing. */
void ps_notes_add(ps_notes *notes, const char *key, char *value);
void ps_notes_free(ps_notes *notes);

/* CRC-32 of a file's first and last MiB (all of a smaller file), which tells a changed file apart without reading all of it. source: a
 * path, or "path:/dataset". */
ps_code ps_source_checksum(const char *source, uint32_t *checksum, ps_error *error);

/* Names and versions of the linked libraries, a line each; malloc'd. */
char *ps_library_versions(void);

#endif
