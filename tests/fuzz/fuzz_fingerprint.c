/* The science that an output file says it was made with, against another one: two texts with a NUL character between them. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/fingerprint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 2);
    memcpy(text, data, size);
    memset(text + size, 0, 2);
    char *differences = NULL;
    enum { LIMIT = 3 };
    if (ps_fingerprint_differences(text, text + strlen(text) + 1, LIMIT, &differences, NULL) != PS_OK || !differences) abort();
    free(differences);
    free(text);
    return 0;
}
