/* ptyseries --version: program, build, libraries, backends. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "core/version.h"
#include "kernels/backend.h"
#include "store/provenance.h"

#ifdef PS_WITH_CUDA
static void print_cuda(void) {
    int n_devices = 0;
    ps_error error = {0};
    if (ps_cuda_device_count(&n_devices, &error) == PS_OK) printf("  cuda: %d device%s visible\n", n_devices, n_devices == 1 ? "" : "s");
    else printf("  cuda: built, no device: %s\n", error.text);
}
#else
static void print_cuda(void) { printf("  cuda: not built\n"); }
#endif

int ps_command_version(void) {
    char *libraries = ps_library_versions();
    printf("ptyseries %s (commit %s)\nbuild: %s\nlibraries:\n%s\nbackends:\n  cpu: reference and fast precision\n", ps_version(), ps_commit(),
           ps_build_text(), libraries ? libraries : "unknown");
    print_cuda();
    free(libraries);
    return 0;
}
