#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "input/empad.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ps_empad_metadata metadata;
    ps_error error = {0};
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    if (ps_empad_parse("fuzz", text, size, &metadata, &error) == PS_OK &&
        (!metadata.raw_file[0] || metadata.scan_rows < 0 || metadata.scan_columns < 0))
        abort();
    free(text);
    return 0;
}
