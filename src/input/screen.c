#include "input/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
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
#include <sys/wait.h>
#include <unistd.h>

#include "core/crash.h"
#include "core/lock.h"
#include "input/file_read.h"
#include "input/source.h"

enum { SOURCE_BYTES = 8192 };
static const size_t largest_frame = (size_t)1 << 30; /* bytes; larger ones are not read here */

/* A question and its answer, in memory that all processes share. */
typedef struct {
    ps_reader_options options;
    char source[SOURCE_BYTES];
    bool finished;
    int signal;        /* that ended the child; 0: none */
    ps_hdf5_work work; /* what HDF5 was at then */
} inspection;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* around what follows */
static int channel = -1;                                  /* to the helper: a byte there asks, a byte back answers */
static inspection *shared;

/* Hashes of sources that passed: open addressing, 0 is empty. */
static uint64_t *passed;
static size_t n_passed, room;

/* ---- the helper's side ---- */

static void read_frames(ps_reader *reader) {
    const ps_recording *info = &reader->info;
    bool present;
    size_t pixels = (size_t)(info->detector_rows * info->detector_columns), bytes = pixels * ps_dtype_bytes(info->dtype);
    uint8_t *bad = bytes <= largest_frame ? malloc(pixels) : NULL;
    void *frame = bytes <= largest_frame ? malloc(bytes) : NULL;
    if (bad) ps_reader_mask(reader, bad, &present, NULL);
    if (frame) ps_reader_read(reader, 0, 1, frame, NULL);
    if (frame) ps_reader_read(reader, info->n_positions - 1, 1, frame, NULL);
    free(bad);
    free(frame);
}

static void look(void) {
    const struct rlimit time = {PS_SCREEN_CPU_SECONDS, PS_SCREEN_CPU_SECONDS + 1}, no_core = {0, 0};
    ps_reader *reader = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_CORE, &no_core);
    ps_hdf5_note_into(&shared->work);
    if (ps_reader_open(shared->source, &shared->options, &reader, NULL) == PS_OK) read_frames(reader);
    ps_reader_close(reader);
    shared->finished = true;
    _exit(0);
}

static void look_in_child(void) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) look();
    if (child < 0 || waitpid(child, &status, 0) != child)
        shared->finished = true; /* nothing was seen, so nothing is said */
    else if (WIFSIGNALED(status))
        shared->signal = WTERMSIG(status);
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

void ps_screen_begin(void) {
    int ends[2];
    pid_t parent = getpid();
    if (shared) return;
    void *memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    shared = memory;
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

/* Where the HDF5 library looks for it: at the beginning, or behind a user block of 512, 1024, ... bytes. */
static bool has_signature(const char *path) {
    static const char signature[8] = "\x89HDF\r\n\x1a\n";
    enum { LARGEST_USER_BLOCK = 1 << 20 };
    char bytes[8];
    size_t got = sizeof bytes;
    bool found = false;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    for (int64_t at = 0; file >= 0 && !found && got == sizeof bytes && at <= LARGEST_USER_BLOCK; at = at ? 2 * at : 512) {
        if (ps_file_read_some(path, file, at, sizeof bytes, bytes, &got, NULL) != PS_OK) break;
        found = got == sizeof bytes && memcmp(bytes, signature, sizeof bytes) == 0;
    }
    if (file >= 0) close(file);
    return found;
}

static ps_code describe(const char *source, ps_error *error) {
    const char *file = shared->work.path, *who = file[0] ? "the HDF5 library" : "reading";
    bool elsewhere = file[0] && strcmp(file, source) != 0;
    const char *at = elsewhere ? ", at " : "", *where = elsewhere ? file : "";
    if (shared->signal == SIGXCPU)
        return PS_FAIL(error, PS_E_INPUT, "%s: %s computes for %d s on it without an end%s%s: the file is damaged", source, who,
                       PS_SCREEN_CPU_SECONDS, at, where);
    return PS_FAIL(error, PS_E_INPUT, "%s: %s crashes on it%s%s (%s): the file is damaged", source, who, at, where,
                   shared->signal ? ps_signal_name(shared->signal) : "its process ended");
}

/* false: the helper is gone. */
static bool ask(const char *source, const ps_reader_options *options) {
    char byte = 0;
    ssize_t got;
    shared->options = *options;
    snprintf(shared->source, sizeof shared->source, "%s", source);
    shared->finished = false;
    shared->signal = 0;
    shared->work.path[0] = '\0';
    if (send(channel, &byte, 1, MSG_NOSIGNAL) != 1) return false;
    do got = recv(channel, &byte, 1, 0);
    while (got < 0 && errno == EINTR);
    return got == 1;
}

static bool is_worth_a_look(const char *source) {
    ps_source parts = {0};
    if (strlen(source) >= SOURCE_BYTES || ps_source_split(source, &parts, NULL) != PS_OK) return false;
    bool worth = has_signature(parts.path);
    ps_source_free(&parts);
    return worth;
}

ps_code ps_screen_look(const char *source, const ps_reader_options *options, ps_error *error) {
    ps_code code = PS_OK;
    uint64_t value = hash(source);
    pthread_mutex_lock(&mutex);
    if (channel < 0 || has_passed(value) || !is_worth_a_look(source)) goto done;
    if (!ask(source, options)) {
        close(channel);
        channel = -1;
    } else if (shared->finished)
        remember(value);
    else
        code = describe(source, error);
done:
    pthread_mutex_unlock(&mutex);
    return code;
}

void ps_screen_pass(const char *source) {
    uint64_t value = hash(source);
    pthread_mutex_lock(&mutex);
    if (channel >= 0 && !has_passed(value)) remember(value);
    pthread_mutex_unlock(&mutex);
}
