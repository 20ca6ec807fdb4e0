/* Preloaded into a run to make it meet the faults of real clusters, at a chosen call:
 *
 *   PS_INJECT=KIND:N         KIND read_error, short_read, write_error, no_space, malloc, hdf5_crash; the N-th matching call (from 1) and,
 *                            for read_error, write_error, no_space and hdf5_crash (of H5Fopen), every one after it
 *   PS_INJECT=aligned:N      from the N-th request for aligned memory of at least PS_INJECT_BYTES on, PS_INJECT_TIMES of them fail (1; 0: all)
 *   PS_INJECT_PATH=TEXT      only files whose path holds TEXT
 *   PS_INJECT_BYTES=B        malloc: only requests of at least B bytes made by the program itself, not by libraries
 *   PS_INJECT_WRITE_US=T     every write to a matching file takes T microseconds longer, to widen the moments a kill can hit
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

typedef enum { NOTHING, READ_ERROR, SHORT_READ, WRITE_ERROR, NO_SPACE, MALLOC, HDF5_CRASH, ALIGNED } fault;

static fault kind;
static long at_call, n_times = 1;
static const char *path_part;
static size_t least_bytes;
static unsigned write_us;
static uintptr_t program_begin, program_end;
static atomic_long n_calls;
static atomic_bool ready;

static int find_program(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
        program_begin = info->dlpi_addr + header->p_vaddr;
        program_end = program_begin + header->p_memsz;
    }
    return 1; /* the first object is the program */
}

__attribute__((constructor)) static void read_settings(void) {
    static const char *const names[] = {"", "read_error", "short_read", "write_error", "no_space", "malloc", "hdf5_crash", "aligned"};
    const char *text = getenv("PS_INJECT"), *bytes = getenv("PS_INJECT_BYTES"), *delay = getenv("PS_INJECT_WRITE_US");
    for (int i = READ_ERROR; text && i <= ALIGNED; i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0 && text[strlen(names[i])] == ':') {
            kind = (fault)i;
            at_call = atol(text + strlen(names[i]) + 1);
        }
    path_part = getenv("PS_INJECT_PATH");
    least_bytes = bytes ? (size_t)atol(bytes) : 0;
    if (getenv("PS_INJECT_TIMES")) n_times = atol(getenv("PS_INJECT_TIMES"));
    write_us = delay ? (unsigned)atol(delay) : 0;
    dl_iterate_phdr(find_program, NULL);
    atomic_store(&ready, true);
}

static bool is_wanted_file(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!path_part || length < 0) return false;
    path[length] = '\0';
    return strstr(path, path_part) != NULL;
}

/* True from the chosen call on. */
static bool strikes(fault wanted, int file) {
    return atomic_load(&ready) && kind == wanted && is_wanted_file(file) && atomic_fetch_add(&n_calls, 1) + 1 >= at_call;
}

static bool strikes_once(fault wanted, int file) {
    return atomic_load(&ready) && kind == wanted && is_wanted_file(file) && atomic_fetch_add(&n_calls, 1) + 1 == at_call;
}

static bool refuses_write(int file) {
    if (write_us && is_wanted_file(file)) usleep(write_us);
    if (strikes(WRITE_ERROR, file)) errno = EIO;
    else if (strikes(NO_SPACE, file)) errno = ENOSPC;
    else return false;
    return true;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define DEFINE_READ(name, ...)                                                                                                             \
    if (strikes(READ_ERROR, file)) {                                                                                                       \
        errno = EIO;                                                                                                                       \
        return -1;                                                                                                                         \
    }                                                                                                                                      \
    if (bytes > 1 && strikes_once(SHORT_READ, file)) bytes /= 2;                                                                           \
    return REAL(name)(__VA_ARGS__)

ssize_t read(int file, void *into, size_t bytes) { DEFINE_READ(read, file, into, bytes); }
ssize_t pread(int file, void *into, size_t bytes, off_t from) { DEFINE_READ(pread, file, into, bytes, from); }
ssize_t pread64(int file, void *into, size_t bytes, off64_t from) { DEFINE_READ(pread64, file, into, bytes, from); }

ssize_t write(int file, const void *from, size_t bytes) { return refuses_write(file) ? -1 : REAL(write)(file, from, bytes); }
ssize_t pwrite(int file, const void *from, size_t bytes, off_t to) { return refuses_write(file) ? -1 : REAL(pwrite)(file, from, bytes, to); }
ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t to) {
    return refuses_write(file) ? -1 : REAL(pwrite64)(file, from, bytes, to);
}

extern void *__libc_malloc(size_t bytes);

void *malloc(size_t bytes) {
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (atomic_load(&ready) && kind == MALLOC && bytes >= least_bytes && caller >= program_begin && caller < program_end &&
        atomic_fetch_add(&n_calls, 1) + 1 == at_call) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    bool counts = atomic_load(&ready) && kind == ALIGNED && bytes >= least_bytes && caller >= program_begin && caller < program_end;
    long call = counts ? atomic_fetch_add(&n_calls, 1) + 1 : 0;
    if (counts && call >= at_call && (n_times == 0 || call < at_call + n_times)) {
        errno = ENOMEM;
        return NULL;
    }
    return REAL(aligned_alloc)(alignment, bytes);
}

/* As a damaged file may make the library do. */
int64_t H5Fopen(const char *path, unsigned flags, int64_t plist);

int64_t H5Fopen(const char *path, unsigned flags, int64_t plist) {
    bool strikes_here = kind == HDF5_CRASH && path_part && strstr(path, path_part) && atomic_fetch_add(&n_calls, 1) + 1 >= at_call;
    if (strikes_here) raise(SIGSEGV);
    return REAL(H5Fopen)(path, flags, plist);
}
