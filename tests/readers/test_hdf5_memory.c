/* Memory that the HDF5 library cannot get is never told as damage of the file, and what could not be looked up is not taken for not said.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "input/open.h"
#include "recordings.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void) {
    return 77;
} /* they have an allocator of their own */
#else

static long fail_at = -1, n_asked; /* calls of the HDF5 library from now on; -1: none fails */
static bool for_good;              /* those after it fail too, and of everybody else the large ones */

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);

static bool is_refused(const void *caller, size_t bytes) {
    static __thread bool inside;
    Dl_info where;
    if (fail_at < 0 || inside) return false;
    inside = true;
    bool library = dladdr(caller, &where) && where.dli_fname && strstr(where.dli_fname, "libhdf5");
    inside = false;
    if (!library) return for_good && n_asked > fail_at && bytes >= 1 << 20;
    n_asked++;
    return for_good ? n_asked > fail_at : n_asked == fail_at + 1;
}

void *malloc(size_t bytes) {
    return is_refused(__builtin_return_address(0), bytes) ? (errno = ENOMEM, NULL) : __libc_malloc(bytes);
}
void *calloc(size_t n, size_t bytes) {
    return is_refused(__builtin_return_address(0), n * bytes) ? (errno = ENOMEM, NULL) : __libc_calloc(n, bytes);
}
void *realloc(void *old, size_t bytes) {
    return is_refused(__builtin_return_address(0), bytes) ? (errno = ENOMEM, NULL) : __libc_realloc(old, bytes);
}

static const char *path;

static void make_recording(void) {
    path = strdup(in_folder("m.h5"));
    hid_t file = create_file(path);
    add_dataset(file, "/entry/data/data_000001", &(made_dataset){3, {6, 5, 7}, {1, 5, 7}, PS_U16, AS_DEFLATE, 0, 0, 0});
    add_number(file, "/entry/instrument/detector/saturation_value", 4000);
    H5Fclose(file);
}

enum { READ_WELL = 10, SAID_MEMORY, BLAMED_FILE, MISREAD };

/* In a child: some failures make the library crash, which is another test's concern. */
static int read_starved(long call, bool permanent, char *said) {
    ps_reader *reader = NULL;
    ps_error error = {0};
    uint16_t counts[6 * 5 * 7];
    n_asked = 0, for_good = permanent, fail_at = call;
    ps_code code = ps_reader_open(path, NULL, &reader, &error);
    if (code == PS_OK) code = ps_reader_read(reader, 0, 6, counts, &error);
    fail_at = -1;
    if (code == PS_OK)
        snprintf(said, PS_ERROR_TEXT, "read as %s, saturation %g, count %d, notes '%s'", reader->info.format, reader->info.saturation,
                 counts[200], ps_reader_notes(reader));
    if (code == PS_OK)
        return reader->info.saturation == 4000 && counts[200] == (uint16_t)count_at(200 / 35, 200 % 35 / 7, 200 % 7) ? READ_WELL : MISREAD;
    snprintf(said, PS_ERROR_TEXT, "%s", error.text);
    return strstr(error.text, "memory") ? SAID_MEMORY : BLAMED_FILE;
}

static void no_file_is_blamed(void **unused) {
    (void)unused;
    int n_said = 0, n_ended = 0;
    make_recording();
    for (int permanent = 0; permanent < 2; permanent++)
        for (long call = 0; call < 400; call += permanent ? 7 : 1) {
            int ends[2], status = 0;
            char said[PS_ERROR_TEXT] = "";
            assert_int_equal(pipe(ends), 0);
            pid_t child = fork();
            if (child == 0) {
                for (int number = 1; number < 32; number++) signal(number, SIG_DFL);
                int outcome = read_starved(call, permanent, said);
                ssize_t written = write(ends[1], said, strlen(said));
                _exit(written < 0 ? 1 : outcome);
            }
            close(ends[1]);
            ssize_t n = read(ends[0], said, sizeof said - 1);
            said[n > 0 ? n : 0] = '\0';
            close(ends[0]);
            assert_int_equal(waitpid(child, &status, 0), child);
            if (!WIFEXITED(status)) continue;
            if (WEXITSTATUS(status) == BLAMED_FILE) fail_msg("allocation %ld fails: %s", call, said);
            if (WEXITSTATUS(status) == MISREAD) fail_msg("allocation %ld fails: %s", call, said);
            n_said += WEXITSTATUS(status) == SAID_MEMORY;
            n_ended++;
        }
    printf("%d of %d starved reads said so\n", n_said, n_ended);
    assert_true(n_said > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_file_is_blamed)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
#endif
