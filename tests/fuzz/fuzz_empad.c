#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "input/formats/empad_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ps_empad_metadata metadata;
    ps_error error = {0};
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    if (ps_empad_parse("fuzz", text, size, &metadata, &error) == PS_OK &&
        (!metadata.raw_file[0] || metadata.n_scans < 0 || metadata.n_scans > PS_EMPAD_MAX_SCANS))
        abort();
    for (int i = 0; i < metadata.n_scans; i++)
        if (metadata.scans[i].rows < 1 || metadata.scans[i].columns < 1) abort();
    int64_t rows = 1, columns = 1;
    if (ps_empad_name_scan(metadata.raw_file, &rows, &columns) && (rows < 1 || columns < 1)) abort();
    free(text);
    return 0;
}
