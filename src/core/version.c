#include "core/version.h"

#include "ps_commit.h"

const char *ps_version(void) {
    return PS_VERSION;
}
const char *ps_commit(void) {
    return PS_COMMIT;
}
const char *ps_build_text(void) {
    return PS_COMPILER ", " PS_BUILD_TYPE;
}
