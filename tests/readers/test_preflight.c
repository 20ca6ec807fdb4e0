/* Files that make the HDF5 library crash or compute for ever are an error that names them; the program lives. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "hdf5/crash.h"
#include "hdf5/dataset.h"
#include "input/look.h"
#include "input/open.h"
#include "input/preflight.h"
#include "recordings.h"

/* Stands in front of the library's: datasets of these names do to it what damage does. */
hid_t H5Dopen2(hid_t location, const char *name, hid_t plist) {
    hid_t (*real)(hid_t, const char *, hid_t) = (hid_t(*)(hid_t, const char *, hid_t))dlsym(RTLD_NEXT, "H5Dopen2");
    if (strstr(name, "crash")) raise(SIGSEGV);
    if (strstr(name, "endless")) raise(SIGXCPU); /* what the kernel sends when the time is up */
    while (strstr(name, "stuck")) pause();       /* as reading from a mount whose server is gone */
    return real(location, name, plist);
}

int stat(const char *restrict path, struct stat *restrict status) {
    int (*real)(const char *, struct stat *) = (int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "stat");
    while (strstr(path, "dead mount")) pause();
    return real(path, status);
}

static const made_dataset some_counts = {3, {4, 3, 3}, {1, 3, 3}, PS_U8, AS_CHUNKS, 0, 0, 0};

static void healthy_files_pass(void **state) {
    (void)state;
    const char *path = in_folder("healthy.h5");
    write_dataset_file(path, "counts", &some_counts);
    for (int i = 0; i < 3; i++) expect_recording(path, 4, 3, 3, PS_U8);
    assert_int_equal(ps_preflight_inspect("not there.h5", &(ps_reader_options){0}, NULL), PS_OK);
    expect_refusal("not there.h5", "cannot open");
}

static void crashes_are_errors(void **state) {
    (void)state;
    char source[600];
    for (int i = 0; i < 2; i++) {
        const char *path = in_folder("damaged.h5");
        write_dataset_file(path, i ? "endless" : "crash", &some_counts);
        snprintf(source, sizeof source, "%s:/%s", path, i ? "endless" : "crash");
        expect_refusal(source, path);
        expect_refusal(source, i ? "computes for 30 s on it without an end" : "the HDF5 library crashes on it");
    }
    expect_recording(in_folder("healthy.h5"), 4, 3, 3, PS_U8); /* the helper goes on */
}

/* The program itself never touches what does not answer. */
static void no_answer_is_an_error(void **state) {
    (void)state;
    char source[600];
    ps_error error = {0};
    const char *path = in_folder("far.h5");
    assert_int_equal(setenv("PS_FILE_PATIENCE_S", "1", 1), 0);
    write_dataset_file(path, "stuck", &some_counts);
    snprintf(source, sizeof source, "%s:/stuck", path);
    for (int i = 0; i < 2; i++) expect_refusal(source, "no answer for 1 s when it was read");
    expect_refusal(in_folder("dead mount.npy"), "its file system does not respond");
    assert_int_equal(ps_preflight_reach(in_folder("dead mount/*.npy"), &error), PS_E_INPUT);
    expect_text(&error, "dead mount/*.npy: no answer for 1 s");
    assert_int_equal(ps_preflight_reach(in_folder("there is no such folder/x"), NULL), PS_OK);
    assert_int_equal(unsetenv("PS_FILE_PATIENCE_S"), 0);
    expect_recording(in_folder("healthy.h5"), 4, 3, 3, PS_U8); /* the helper goes on */
}

/* Of a master and its data files, the one that HDF5 was working on. */
static void linked_files_are_named(void **state) {
    (void)state;
    const char *master = in_folder("scan_master.h5");
    write_dataset_file(in_folder("scan_data_1.h5"), "counts", &some_counts);
    write_dataset_file(in_folder("scan_data_2.h5"), "crash", &some_counts);
    hid_t file = create_file(master), links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    H5Lcreate_external("scan_data_1.h5", "/counts", file, "/entry/data/data_000001", links, H5P_DEFAULT);
    H5Lcreate_external("scan_data_2.h5", "/crash", file, "/entry/data/data_000002", links, H5P_DEFAULT);
    H5Pclose(links), H5Fclose(file);
    expect_refusal(master, "scan_master.h5: the HDF5 library crashes on it, at ");
    expect_refusal(master, "scan_data_2.h5 (SIG");
}

/* In a process of its own, with standard error in `said`; how it ended. */
static int die_reading(const char *path, char *said, size_t bytes) {
    int ends[2], status = 0;
    ps_hdf5_dataset *dataset = NULL;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGSEGV, SIG_DFL); /* not the test library's handler */
        ps_crash_install();
        ps_hdf5_dataset_open(path, "/crash", &dataset, NULL);
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t n; used + 1 < bytes && (n = read(ends[0], said + used, bytes - used - 1)) > 0;) used += (size_t)n;
    said[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Where nothing looked at the file before. */
static void last_words_name_the_file(void **state) {
    (void)state;
    char said[4096], expected[600];
    const char *path = in_folder("scan_data_2.h5");
    int status = die_reading(path, said, sizeof said);
    assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) != 0); /* a sanitizer exits */
    snprintf(expected, sizeof expected, "ptyseries: the HDF5 library crashed (SIGSEGV) on %s: the file is damaged", path);
    if (!strstr(said, expected)) fail_msg("'%s' does not say '%s'", said, expected);
}

static uint64_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* Whatever the library does with damaged files, this process goes on. Version 1.10.8 crashes on seed 1079. */
static void seeded_damage_is_survived(void **state) {
    (void)state;
    enum { FIRST_SEED = 1050, N_SEEDS = 60, MOST_BYTES = 1 << 16 };
    static uint8_t whole[MOST_BYTES], damaged[MOST_BYTES];
    const char *path = in_folder("whole.h5");
    int n_crashed = 0;
    hid_t file = create_file(path);
    add_dataset(file, "/g/counts", &(made_dataset){3, {9, 3, 3}, {2, 3, 3}, PS_U16, AS_DEFLATE, 0, 0, 0});
    for (int i = 0; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof name, "/m%d/value", i);
        add_number(file, name, i);
    }
    H5Fclose(file);
    FILE *stream = fopen(path, "rb");
    size_t n = fread(whole, 1, sizeof whole, stream);
    fclose(stream);
    assert_true(n < sizeof whole);
    for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + N_SEEDS; seed++) {
        uint64_t random = seed;
        ps_reader *reader = NULL;
        ps_error error = {0};
        char name[32];
        memcpy(damaged, whole, n);
        for (uint64_t k = 1 + draw(&random) % 8; k > 0; k--) damaged[draw(&random) % n] = draw(&random) % 3 ? (uint8_t)draw(&random) : 0xff;
        snprintf(name, sizeof name, "seed%d.h5", (int)seed);
        write_file(in_folder(name), damaged, n);
        if (ps_reader_open(in_folder(name), NULL, &reader, &error) != PS_OK) expect_text(&error, name);
        n_crashed += strstr(error.text, "the HDF5 library c") != NULL;
        ps_reader_close(reader);
    }
    printf("of %d damaged files the HDF5 library crashed on %d\n", N_SEEDS, n_crashed);
}

static int begin(void **state) {
    ps_preflight_begin(ps_recording_look);
    return make_folder(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_files_pass),    cmocka_unit_test(crashes_are_errors),       cmocka_unit_test(linked_files_are_named),
        cmocka_unit_test(no_answer_is_an_error), cmocka_unit_test(last_words_name_the_file), cmocka_unit_test(seeded_damage_is_survived),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
