/* ptyseries --version: program, build, libraries, backends. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "core/version.h"
#include "kernels/backend.h"
#include "store/provenance.h"

int ps_command_version(void) {
    char *libraries = ps_library_versions(), *backends = ps_backend_list_text();
    printf("ptyseries %s (commit %s)\nbuild: %s\nlibraries:\n%s\nbackends:\n%s", ps_version(), ps_commit(), ps_build_text(),
           libraries ? libraries : "unknown", backends ? backends : "  unknown\n");
    free(libraries);
    free(backends);
    return 0;
}
