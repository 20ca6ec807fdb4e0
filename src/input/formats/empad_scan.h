/* Which scan an EMPAD raw file holds: what its XML file, its name and its size say. */
#ifndef PS_INPUT_FORMATS_EMPAD_SCAN_H
#define PS_INPUT_FORMATS_EMPAD_SCAN_H

#include "input/formats/empad_xml.h"
#include "input/reader.h"

/* Patterns of the first generation as stored: 130 x 128 float32, of which the first 128 rows are the detector. */
enum { PS_EMPAD_SIDE = 128, PS_EMPAD_ROWS = 130, PS_EMPAD_FRAME_BYTES = PS_EMPAD_ROWS * PS_EMPAD_SIDE * 4 };

/* Sets the scan of reader->info, whose n_positions is known. Of the scans in the XML file: the one that the raw file's name says; else the
 * only one that fits the patterns there are; of several that fit the one that the job gives. PS_E_INPUT lists them when it gives none, and
 * when the name says another one that fits as well. When none fits, the first one stays, for the comparison with the patterns to tell. */
ps_code ps_empad_choose_scan(ps_reader *reader, const ps_empad_metadata *metadata, const ps_reader_options *options, ps_error *error);

/* Whether a raw file of this size without an XML file is what the job's scan says; PS_E_INPUT says what it could be. */
ps_code ps_empad_check_alone(const char *path, int64_t bytes, const ps_reader_options *options, ps_error *error);

/* Sets the scan that the name of a raw file without an XML file says, when it fits the patterns. */
void ps_empad_take_name(ps_reader *reader, const ps_reader_options *options);

#endif
