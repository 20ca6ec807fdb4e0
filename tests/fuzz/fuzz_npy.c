#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "input/formats/npy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ps_npy_header header;
    ps_error error = {0};
    size_t needed = 0;
    uint8_t *start = malloc(size + 1);
    memcpy(start, data, size);
    if (ps_npy_parse("fuzz", start, size, &header, &needed, &error) == PS_OK && needed <= size) {
        int64_t n = 1;
        for (int i = 0; i < header.rank; i++) n *= header.shape[i];
        if (n != header.n_elements || header.data_offset <= 0) abort();
    }
    free(start);
    return 0;
}
