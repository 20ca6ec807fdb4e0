/* Commands that are being written; each stand-in goes when the command comes (weak: the real one wins). */
#include <stdio.h>

#include "cli/cli.h"

__attribute__((weak)) int ps_command_bench(int n_arguments, char **arguments) {
    (void)n_arguments;
    (void)arguments;
    fprintf(stderr, "ptyseries bench: not in this build\n");
    return 2;
}
