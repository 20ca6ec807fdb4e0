/* Linked into the tests of a sanitizer build: modules that MPI loads stay loaded to the end, where the leak checker can name them. */
#include <dlfcn.h>

int dlclose(void *module) {
    (void)module;
    return 0;
}
