#include "core/assert.h"

#include <stdio.h>
#include <stdlib.h>

void ps_assert_fail(const char *condition, const char *function, const char *file, int line) {
    fprintf(stderr, "%s:%d: %s: a precondition does not hold: %s\n", file, line, function, condition);
    abort();
}
