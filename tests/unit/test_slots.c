/* Links of /entry that are hidden until their run happens: not seen, not lost, not changed by whoever opens the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5/write.h"
#include "store/slots.h"

static char folder[64], path[96];

static int set_up(void **state) {
    (void)state;
    strcpy(folder, "/tmp/ps_slots_XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/run.h5", folder);
    ps_h5_quiet();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void must(ps_code code, const ps_error *error) {
    if (code != PS_OK) fail_msg("%s", error->text);
}

static void name_of(int64_t i, char name[32]) {
    snprintf(name, 32, "link_%lld", (long long)i);
}

/* n groups below /entry, each with the attribute NX_class. */
static void create_file(int64_t n, bool hideable) {
    ps_error error = {0};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), entry = H5I_INVALID_HID;
    if (hideable)
        must(ps_slots_create_entry(file, n, &entry, &error), &error);
    else
        must(ps_h5_group(file, "entry", "NXentry", &entry, &error), &error);
    for (int64_t i = 0; i < n; i++) {
        char name[32];
        name_of(i, name);
        must(ps_h5_group(entry, name, name, NULL, &error), &error);
    }
    H5Gclose(entry);
    H5Fclose(file);
}

typedef struct {
    hid_t file, entry;
    int fd;
} opened;

static opened open_all(unsigned flags) {
    opened o = {.file = H5Fopen(path, flags, H5P_DEFAULT), .fd = open(path, O_RDWR)};
    o.entry = H5Gopen2(o.file, "entry", H5P_DEFAULT);
    assert_true(o.file >= 0 && o.entry >= 0 && o.fd >= 0);
    return o;
}

static void close_all(opened o) {
    H5Gclose(o.entry);
    assert_true(H5Fclose(o.file) >= 0);
    close(o.fd);
}

static void hide(int64_t first, int64_t end, bool expected) {
    opened o = open_all(H5F_ACC_RDONLY);
    for (int64_t i = first; i < end; i++) {
        ps_error error = {0};
        char name[32];
        bool done = !expected;
        name_of(i, name);
        must(ps_slots_hide(o.fd, o.entry, name, &done, &error), &error);
        assert_int_equal(done, expected);
    }
    close_all(o);
}

/* Links seen: the first `end` of all; what they lead to is what it was. */
static void expect_seen(int64_t end) {
    opened o = open_all(H5F_ACC_RDONLY);
    H5G_info_t info;
    char name[32];
    assert_true(H5Gget_info(o.entry, &info) >= 0);
    assert_int_equal(info.nlinks, end);
    for (int64_t i = 0; i < end; i++) {
        name_of(i, name);
        hid_t group = H5Gopen2(o.entry, name, H5P_DEFAULT);
        assert_true(group >= 0 && H5Aexists(group, "NX_class") > 0);
        H5Gclose(group);
    }
    name_of(end, name);
    assert_true(H5Lexists(o.entry, name, H5P_DEFAULT) == 0);
    close_all(o);
}

static void show(int64_t i) {
    ps_error error = {0};
    ps_slot slot;
    char name[32];
    opened o = open_all(H5F_ACC_RDONLY);
    name_of(i, name);
    must(ps_slots_find(o.fd, o.entry, name, &slot, &error), &error);
    assert_true(slot.hidden);
    hid_t group = H5Oopen_by_addr(o.file, slot.address);
    assert_true(group >= 0 && H5Aexists(group, "NX_class") > 0);
    H5Oclose(group);
    must(ps_slots_show(o.fd, &slot, &error), &error);
    close_all(o);
}

static void links_are_shown_one_by_one(void **state) {
    (void)state;
    create_file(20, true);
    expect_seen(20);
    hide(4, 20, true);
    expect_seen(4);
    for (int64_t i = 4; i < 20; i++) {
        show(i);
        expect_seen(i + 1);
    }
}

static char *read_bytes(size_t *n) {
    struct stat status;
    FILE *file = fopen(path, "rb");
    assert_int_equal(stat(path, &status), 0);
    char *bytes = malloc((size_t)status.st_size);
    *n = fread(bytes, 1, (size_t)status.st_size, file);
    fclose(file);
    return bytes;
}

/* The library tidies headers when it opens a file for writing: there must be nothing to tidy. */
static void opening_for_writing_changes_nothing(void **state) {
    (void)state;
    size_t n, m;
    create_file(20, true);
    hide(4, 20, true);
    char *before = read_bytes(&n);
    opened o = open_all(H5F_ACC_RDWR);
    close_all(o);
    char *after = read_bytes(&m);
    assert_int_equal(n, m);
    assert_memory_equal(before, after, n);
    free(before);
    free(after);
}

/* Someone adds and removes things in between, for which the library may use the room of hidden links: those are not found any more. */
static void others_may_edit_the_group(void **state) {
    (void)state;
    create_file(8, true);
    hide(2, 8, true);
    opened o = open_all(H5F_ACC_RDWR);
    for (int i = 0; i < 40; i++) {
        char name[32];
        ps_error error = {0};
        snprintf(name, sizeof name, "added_%d", i);
        must(ps_h5_group(o.entry, name, "NXcollection", NULL, &error), &error);
        must(ps_h5_attribute_text(o.entry, name, "a note of some length", &error), &error);
        if (i % 2) assert_true(H5Ldelete(o.entry, name, H5P_DEFAULT) >= 0);
    }
    close_all(o);
    o = open_all(H5F_ACC_RDONLY);
    H5G_info_t info;
    assert_true(H5Gget_info(o.entry, &info) >= 0);
    assert_int_equal(info.nlinks, 2 + 20);
    int n_hidden = 0;
    for (int64_t i = 2; i < 8; i++) {
        ps_error error = {0};
        ps_slot slot;
        char name[32];
        name_of(i, name);
        must(ps_slots_find(o.fd, o.entry, name, &slot, &error), &error);
        assert_true(slot.hidden || slot.type_at == 0);
        n_hidden += slot.hidden;
    }
    assert_true(n_hidden < 6);
    close_all(o);
}

static void old_groups_hide_nothing(void **state) {
    (void)state;
    create_file(5, false);
    hide(2, 5, false);
    expect_seen(5);
}

/* A series may have an optics group for every frame. */
static void many_links_are_no_obstacle(void **state) {
    (void)state;
    create_file(3000, true);
    hide(2990, 3000, true);
    expect_seen(2990);
    show(2990);
    expect_seen(2991);
}

int main(void) {
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(links_are_shown_one_by_one), T(opening_for_writing_changes_nothing), T(others_may_edit_the_group),
                                       T(old_groups_hide_nothing), T(many_links_are_no_obstacle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
