#include "core/one_thread.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count_threads(void) {
    int n = 0;
    DIR *threads = opendir("/proc/self/task");
    if (!threads) return 1;
    for (struct dirent *entry; (entry = readdir(threads));) n += entry->d_name[0] != '.';
    closedir(threads);
    return n;
}

void ps_one_thread_begin(char **arguments) {
    static const char variable[] = "OPENBLAS_NUM_THREADS";
    const char *set = getenv(variable);
    if ((set && strcmp(set, "1") == 0) || count_threads() == 1) return;
    if (setenv(variable, "1", 1) == 0) execv("/proc/self/exe", arguments);
}
