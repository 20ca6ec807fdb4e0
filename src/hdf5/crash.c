#include "hdf5/crash.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "hdf5/lock.h"

/* PIPE_BUF: written at once, so that lines of several ranks do not mix. */
enum { STACK_BYTES = 1 << 16, LINE_BYTES = 4096 };

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"}};
enum { N_SIGNALS = sizeof signals / sizeof *signals };

static struct sigaction before[N_SIGNALS];
static char stack[STACK_BYTES]; /* a crash may be a stack that is full */

static bool limited;

static bool is_limited(int resource) {
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

const char *ps_crash_verdict(void) {
    return limited ? "the file is damaged, or memory ran out (the address space of this process is limited)" : "the file is damaged";
}

const char *ps_signal_name(int number) {
    for (int i = 0; i < N_SIGNALS; i++)
        if (signals[i].number == number) return signals[i].name;
    return number == SIGKILL ? "SIGKILL, as for a lack of memory" : "a signal";
}

typedef struct {
    char text[LINE_BYTES];
    size_t used;
} line;

static void add_text(line *l, const char *text) {
    size_t n = strlen(text), room = sizeof l->text - l->used;
    if (n > room) n = room;
    memcpy(l->text + l->used, text, n);
    l->used += n;
}

static void add_number(line *l, int64_t number) {
    char digits[24];
    int at = sizeof digits - 1;
    digits[at] = '\0';
    do digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0 && at > 0);
    add_text(l, digits + at);
}

static void say(int number, const ps_hdf5_work *work) {
    line l = {.used = 0};
    add_text(&l, "ptyseries: the HDF5 library crashed (");
    add_text(&l, ps_signal_name(number));
    add_text(&l, ") on ");
    add_text(&l, work->path);
    if (work->n_frames > 0) {
        add_text(&l, ", patterns ");
        add_number(&l, work->first_frame);
        add_text(&l, " to ");
        add_number(&l, work->first_frame + work->n_frames - 1);
    }
    add_text(&l, ": ");
    add_text(&l, ps_crash_verdict());
    add_text(&l, "; outputs keep what was done, and --resume goes on once an empty file is in its place\n");
    ssize_t ignored = write(STDERR_FILENO, l.text, l.used);
    (void)ignored;
}

static void on_crash(int number) {
    const ps_hdf5_work *work = ps_hdf5_noted();
    if (work && work->path[0]) say(number, work);
    for (int i = 0; i < N_SIGNALS; i++) sigaction(signals[i].number, &before[i], NULL);
    raise(number);
}

void ps_crash_install(void) {
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    limited = is_limited(RLIMIT_AS) || is_limited(RLIMIT_DATA);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    for (int i = 0; i < N_SIGNALS; i++) sigaction(signals[i].number, &action, &before[i]);
}
