#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "input/formats/mib_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ps_mib_header header;
    ps_error error = {0};
    ps_mib_companion companion;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    if (ps_mib_parse("fuzz", text, size, &header, &error) == PS_OK)
        if (header.rows < 1 || header.columns < 1 || header.header_bytes < 1 || (size_t)header.header_bytes > size ||
            header.counter_bits < 1)
            abort();
    text[size] = '\0';
    ps_mib_parse_companion(text, &companion);
    if (companion.n_frames < 0 || companion.scan_rows < 0 || (companion.scan_rows > 0) != (companion.scan_columns > 0)) abort();
    free(text);
    return 0;
}
