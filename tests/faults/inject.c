/* Preloaded into a run to make it meet the faults of real clusters, at a chosen call:
 *
 *   PS_INJECT=KIND:N         KIND read_error, short_read, write_error, no_space, malloc, hdf5_crash, short_write, hdf5_refuse; the N-th
 *                            matching call (from 1) and, for read_error, write_error, no_space, hdf5_crash (of H5Fopen), every one after
 * it. short_write: from the N-th on every second write is interrupted, the others write at most half. hdf5_refuse: H5Fopen for writing
 * opens the file and says that it could not PS_INJECT_RANK=R         hdf5_refuse: only on this rank PS_INJECT=aligned:N      from the N-th
 * request for aligned memory of at least PS_INJECT_BYTES on, PS_INJECT_TIMES of them fail (1; 0: all) PS_INJECT_PATH=TEXT      only files
 * whose path holds TEXT PS_INJECT_BYTES=B        malloc: only requests of at least B bytes made by the program itself, not by libraries
 *   PS_INJECT=aligned_room:N at most N blocks of aligned memory of at least PS_INJECT_BYTES at a time
 *   PS_INJECT=kill_name:N     kill -9 at the N-th link, rename or unlink of a matching file, before it is done
 *   PS_INJECT_NO_LINKS=1      the file system knows no hard links
 *   PS_INJECT_WRITE_US=T     every write to a matching file takes T microseconds longer, to widen the moments a kill can hit
 *   PS_INJECT_READ_US=T      and every read from one
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

typedef enum {
    NOTHING,
    READ_ERROR,
    SHORT_READ,
    WRITE_ERROR,
    NO_SPACE,
    MALLOC,
    HDF5_CRASH,
    SHORT_WRITE,
    HDF5_REFUSE,
    ALIGNED,
    ALIGNED_ROOM,
    KILL_NAME
} fault;

static fault kind;
static long at_call, n_times = 1;
static const char *path_part;
static size_t least_bytes;
static unsigned write_us, read_us;
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
    static const char *const names[] = {"",           "read_error",  "short_read",  "write_error", "no_space",     "malloc",
                                        "hdf5_crash", "short_write", "hdf5_refuse", "aligned",     "aligned_room", "kill_name"};
    const char *text = getenv("PS_INJECT"), *bytes = getenv("PS_INJECT_BYTES"), *delay = getenv("PS_INJECT_WRITE_US");
    for (int i = READ_ERROR; text && i <= KILL_NAME; i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0 && text[strlen(names[i])] == ':') {
            kind = (fault)i;
            at_call = atol(text + strlen(names[i]) + 1);
        }
    path_part = getenv("PS_INJECT_PATH");
    least_bytes = bytes ? (size_t)atol(bytes) : 0;
    if (getenv("PS_INJECT_TIMES")) n_times = atol(getenv("PS_INJECT_TIMES"));
    write_us = delay ? (unsigned)atol(delay) : 0;
    if (getenv("PS_INJECT_READ_US")) read_us = (unsigned)atol(getenv("PS_INJECT_READ_US"));
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
    if (strikes(WRITE_ERROR, file))
        errno = EIO;
    else if (strikes(NO_SPACE, file))
        errno = ENOSPC;
    else
        return false;
    return true;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define DEFINE_READ(name, ...)                                   \
    if (read_us && is_wanted_file(file)) usleep(read_us);        \
    if (strikes(READ_ERROR, file)) {                             \
        errno = EIO;                                             \
        return -1;                                               \
    }                                                            \
    if (bytes > 1 && strikes_once(SHORT_READ, file)) bytes /= 2; \
    return REAL(name)(__VA_ARGS__)

ssize_t read(int file, void *into, size_t bytes) {
    DEFINE_READ(read, file, into, bytes);
}
ssize_t pread(int file, void *into, size_t bytes, off_t from) {
    DEFINE_READ(pread, file, into, bytes, from);
}
ssize_t pread64(int file, void *into, size_t bytes, off64_t from) {
    DEFINE_READ(pread64, file, into, bytes, from);
}

/* What is left of a write of `bytes`; 0: it is interrupted. */
static size_t cut_write(int file, size_t bytes) {
    static atomic_bool cut;
    if (!strikes(SHORT_WRITE, file)) return bytes;
    if (atomic_exchange(&cut, !atomic_load(&cut))) return bytes > 1 ? bytes / 2 : bytes;
    errno = EINTR;
    return 0;
}

#define DEFINE_WRITE(name, ...)           \
    if (refuses_write(file)) return -1;   \
    size_t all = bytes;                   \
    bytes = cut_write(file, bytes);       \
    if (bytes == 0 && all > 0) return -1; \
    return REAL(name)(__VA_ARGS__)

ssize_t write(int file, const void *from, size_t bytes) {
    DEFINE_WRITE(write, file, from, bytes);
}
ssize_t pwrite(int file, const void *from, size_t bytes, off_t to) {
    DEFINE_WRITE(pwrite, file, from, bytes, to);
}
ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t to) {
    DEFINE_WRITE(pwrite64, file, from, bytes, to);
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

extern void __libc_free(void *block);

/* Aligned blocks that are held; what is freed stands among them or not. */
enum { MOST_HELD = 64 };
static _Atomic(void *) held[MOST_HELD];

/* A place for one more block; NULL: as many as there is room for are held. */
static _Atomic(void *) *find_place(void) {
    void *nothing = NULL;
    for (long i = 0; i < at_call && i < MOST_HELD; i++, nothing = NULL)
        if (atomic_compare_exchange_strong(&held[i], &nothing, (void *)held)) return &held[i]; /* taken; the block is not known yet */
    errno = ENOMEM;
    return NULL;
}

void free(void *block) {
    for (long i = 0; block && kind == ALIGNED_ROOM && i < MOST_HELD; i++) {
        void *this = block;
        if (atomic_compare_exchange_strong(&held[i], &this, NULL)) break;
    }
    __libc_free(block);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    if (kind == ALIGNED_ROOM && bytes >= least_bytes) {
        _Atomic(void *) *place = find_place();
        return place ? (*place = REAL(aligned_alloc)(alignment, bytes)) : NULL;
    }
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    bool counts = atomic_load(&ready) && kind == ALIGNED && bytes >= least_bytes && caller >= program_begin && caller < program_end;
    long call = counts ? atomic_fetch_add(&n_calls, 1) + 1 : 0;
    if (counts && call >= at_call && (n_times == 0 || call < at_call + n_times)) {
        errno = ENOMEM;
        return NULL;
    }
    return REAL(aligned_alloc)(alignment, bytes);
}

/* ---- names ---- */

static void kill_at_name(const char *path) {
    bool counts = atomic_load(&ready) && kind == KILL_NAME && path_part && strstr(path, path_part);
    if (counts && atomic_fetch_add(&n_calls, 1) + 1 == at_call) raise(SIGKILL);
}

int link(const char *path, const char *name) {
    kill_at_name(path);
    if (!getenv("PS_INJECT_NO_LINKS")) return REAL(link)(path, name);
    errno = EPERM;
    return -1;
}

int rename(const char *path, const char *name) {
    kill_at_name(path);
    return REAL(rename)(path, name);
}

int renameat2(int from, const char *path, int to, const char *name, unsigned flags) {
    kill_at_name(path);
    return REAL(renameat2)(from, path, to, name, flags);
}

int unlink(const char *path) {
    kill_at_name(path);
    return REAL(unlink)(path);
}

/* Of a file for writing, on the chosen rank. */
static bool refuses_open(const char *path, unsigned flags) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *wanted = getenv("PS_INJECT_RANK");
    bool here = kind == HDF5_REFUSE && (flags & 1) && path_part && strstr(path, path_part);
    return here && rank && wanted && strcmp(rank, wanted) == 0 && atomic_fetch_add(&n_calls, 1) + 1 == at_call;
}

/* As a damaged file may make the library do. */
int64_t H5Fopen(const char *path, unsigned flags, int64_t plist);

int64_t H5Fopen(const char *path, unsigned flags, int64_t plist) {
    bool strikes_here = kind == HDF5_CRASH && path_part && strstr(path, path_part) && atomic_fetch_add(&n_calls, 1) + 1 >= at_call;
    if (strikes_here) raise(SIGSEGV);
    int64_t opened = REAL(H5Fopen)(path, flags, plist);
    return opened >= 0 && refuses_open(path, flags) ? -1 : opened;
}

/* Says that a program left this way: mpirun's own words are lost now and then. */
int MPI_Abort(void *communicator, int status);

int MPI_Abort(void *communicator, int status) {
    fprintf(stderr, "left by MPI_Abort with %d\n", status);
    return REAL(MPI_Abort)(communicator, status);
}
