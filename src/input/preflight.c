#include "input/preflight.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"
#include "hdf5/crash.h"
#include "hdf5/lock.h"

enum { SOURCE_BYTES = 8192 };

/* A question and its answer, in memory that all processes share. */
typedef struct {
    ps_reader_options options;
    char source[SOURCE_BYTES];
    bool only_reach; /* whether the path can be looked up at all, no more */
    int patience_s;
    bool finished;
    bool stuck;        /* no answer for patience_s */
    int signal;        /* that ended the child; 0: none */
    ps_hdf5_work work; /* what HDF5 was at then */
} inspection;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* around what follows */
static int channel = -1;                                  /* to the helper: a byte there asks, a byte back answers */
static inspection *shared;

static bool met_stuck; /* the last look got no answer */

/* Hashes of sources that passed: open addressing, 0 is empty. */
static uint64_t *passed;
static size_t n_passed, room;

/* ---- the helper's side ---- */

static ps_preflight_look *look_inside;

static void look(void) {
    const struct rlimit time = {PS_PREFLIGHT_CPU_SECONDS, PS_PREFLIGHT_CPU_SECONDS + 1}, no_core = {0, 0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_CORE, &no_core);
    ps_hdf5_note_into(&shared->work);
    if (shared->only_reach)
        stat(shared->source, &(struct stat){0});
    else
        look_inside(shared->source, &shared->options);
    shared->finished = true;
    _exit(0);
}

/* Whether the process that holds the other end of this pipe ends within a time. */
static bool ends_within(int pipe_end, int seconds) {
    struct pollfd watched = {.fd = pipe_end, .events = POLLIN};
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (int64_t end_ms = (now.tv_sec + seconds) * 1000 + now.tv_nsec / 1000000;;) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        int64_t left_ms = end_ms - now.tv_sec * 1000 - now.tv_nsec / 1000000;
        int found = poll(&watched, 1, left_ms > 0 ? (int)left_ms : 0);
        if (found > 0) return true;
        if (found == 0 || (errno != EINTR && errno != EAGAIN)) return false;
    }
}

/* What the kernel holds in a read that does not come back cannot even be killed; it is left behind then, and its end taken note of later.
 */
static void wait_for(pid_t child, int pipe_end) {
    enum { GRACE_SECONDS = 2 };
    int status = 0;
    shared->stuck = !ends_within(pipe_end, shared->patience_s);
    if (shared->stuck) {
        kill(child, SIGKILL);
        if (!ends_within(pipe_end, GRACE_SECONDS)) return;
    }
    if (waitpid(child, &status, 0) != child)
        shared->finished = !shared->stuck; /* nothing was seen, so nothing is said */
    else if (WIFSIGNALED(status))
        shared->signal = WTERMSIG(status);
}

static void look_in_child(void) {
    int ends[2];
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    if (pipe(ends) != 0) {
        shared->finished = true;
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        look();
    }
    close(ends[1]);
    if (child > 0)
        wait_for(child, ends[0]);
    else
        shared->finished = true;
    close(ends[0]);
}

/* Signals that stop a run gently go to all its processes; the helper stays as long as it is asked. */
static void serve(int socket) {
    static const int gentle[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}, fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    char byte;
    for (int i = 0; i < 5; i++) signal(gentle[i], SIG_IGN);
    for (int i = 0; i < 5; i++) signal(fatal[i], SIG_DFL);
    int nowhere = open("/dev/null", O_RDWR);
    for (int descriptor = 0; descriptor <= 2; descriptor++) dup2(nowhere, descriptor);
    H5open(); /* once for all children */
    while (recv(socket, &byte, 1, 0) == 1) {
        look_in_child();
        if (send(socket, &byte, 1, MSG_NOSIGNAL) != 1) break;
    }
    _exit(0);
}

void ps_preflight_begin(ps_preflight_look *inside) {
    int ends[2];
    pid_t parent = getpid();
    if (shared) return;
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    shared = memory;
    look_inside = inside;
    fflush(NULL);
    pid_t helper = fork();
    if (helper == 0) {
        close(ends[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(0);
        serve(ends[1]);
    }
    close(ends[1]);
    if (helper > 0)
        channel = ends[0];
    else
        close(ends[0]);
}

/* ---- the program's side ---- */

static uint64_t hash(const char *text) {
    uint64_t value = 14695981039346656037u; /* FNV-1a */
    for (; *text; text++) value = (value ^ (unsigned char)*text) * 1099511628211u;
    return value ? value : 1;
}

static uint64_t *find_place(uint64_t *table, size_t n, uint64_t value) {
    size_t at = value % n;
    while (table[at] && table[at] != value) at = (at + 1) % n;
    return &table[at];
}

static bool has_passed(uint64_t value) {
    return room > 0 && *find_place(passed, room, value) == value;
}

/* One that is forgotten for lack of memory is looked at again. */
static void remember(uint64_t value) {
    if (2 * n_passed >= room) {
        size_t more = room ? 2 * room : 64;
        uint64_t *larger = calloc(more, sizeof *larger);
        if (!larger) return;
        for (size_t i = 0; i < room; i++)
            if (passed[i]) *find_place(larger, more, passed[i]) = passed[i];
        free(passed);
        passed = larger;
        room = more;
    }
    *find_place(passed, room, value) = value;
    n_passed++;
}

static ps_code describe(const char *source, ps_error *error) {
    const char *file = shared->work.path, *who = file[0] ? "the HDF5 library" : "reading";
    bool elsewhere = file[0] && strcmp(file, source) != 0;
    const char *at = elsewhere ? ", at " : "", *where = elsewhere ? file : "";
    if (shared->stuck)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: no answer for %d s when it was read%s%s: its file system does not respond (a dead network mount?) or takes "
                       "very long; nothing is known of the file itself (PS_FILE_PATIENCE_S sets how long to wait)",
                       source, shared->patience_s, at, where);
    if (shared->signal == SIGXCPU)
        return PS_FAIL(error, PS_E_INPUT, "%s: %s computes for %d s on it without an end%s%s: the file is damaged", source, who,
                       PS_PREFLIGHT_CPU_SECONDS, at, where);
    if (shared->signal == SIGKILL)
        return PS_FAIL(error, PS_E_INPUT,
                       "%s: the process that looked at it%s%s was killed (SIGKILL), as for a lack of memory; nothing is known of the file",
                       source, at, where);
    return PS_FAIL(error, PS_E_INPUT, "%s: %s crashes on it%s%s (%s): %s", source, who, at, where,
                   shared->signal ? ps_signal_name(shared->signal) : "its process ended", ps_crash_verdict());
}

/* Where one file did not answer, hundreds beside it will not either. */
static int choose_patience(void) {
    enum { AFTER_A_STUCK_ONE = 10, LONGEST = 86400 };
    const char *text = getenv("PS_FILE_PATIENCE_S");
    long given = text ? strtol(text, NULL, 10) : 0;
    int patience = given > 0 && given <= LONGEST ? (int)given : PS_PREFLIGHT_WAIT_SECONDS;
    return met_stuck && patience > AFTER_A_STUCK_ONE ? AFTER_A_STUCK_ONE : patience;
}

/* false: the helper is gone. */
static bool ask(const char *source, const ps_reader_options *options, bool only_reach) {
    char byte = 0;
    ssize_t got;
    shared->options = *options;
    snprintf(shared->source, sizeof shared->source, "%s", source);
    shared->only_reach = only_reach;
    shared->patience_s = choose_patience();
    shared->finished = shared->stuck = false;
    shared->signal = 0;
    shared->work.path[0] = '\0';
    if (send(channel, &byte, 1, MSG_NOSIGNAL) != 1) return false;
    do got = recv(channel, &byte, 1, 0);
    while (got < 0 && errno == EINTR);
    return got == 1;
}

static ps_code look_at(const char *source, uint64_t value, const ps_reader_options *options, bool only_reach, ps_error *error) {
    ps_code code = PS_OK;
    pthread_mutex_lock(&mutex);
    if (channel < 0 || has_passed(value) || strlen(source) >= SOURCE_BYTES) goto done;
    if (!ask(source, options, only_reach)) {
        close(channel);
        channel = -1;
        goto done;
    }
    met_stuck = shared->stuck;
    if (shared->finished && !shared->stuck)
        remember(value);
    else
        code = describe(source, error);
done:
    pthread_mutex_unlock(&mutex);
    return code;
}

ps_code ps_preflight_inspect(const char *source, const ps_reader_options *options, ps_error *error) {
    return look_at(source, hash(source), options, false, error);
}

ps_code ps_preflight_reach(const char *path, ps_error *error) {
    static const ps_reader_options none;
    char *folder = ps_path_directory(path);
    if (!folder) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    ps_code code = look_at(path, ~hash(folder), &none, true, error);
    free(folder);
    return code;
}

void ps_preflight_pass(const char *source) {
    uint64_t value = hash(source);
    pthread_mutex_lock(&mutex);
    if (channel >= 0 && !has_passed(value)) remember(value);
    pthread_mutex_unlock(&mutex);
}
