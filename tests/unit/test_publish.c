/* What stands at a name before it is replaced, and files that have lost theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/text.h"
#include "store/publish.h"

static char folder[64], path[96];

static int set_up(void **state) {
    (void)state;
    strcpy(folder, "/tmp/ps_publish_XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/run[1]*.h5", folder);
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

static void write_file(const char *name, const char *text) {
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static char *beside(const char *ending) {
    static char name[2][160];
    static int turn;
    turn = !turn;
    snprintf(name[turn], sizeof name[turn], "%s%s", path, ending);
    return name[turn];
}

/* text NULL: there is no such file. */
static void expect_file(const char *name, const char *text) {
    char *found = NULL;
    if (!text) {
        assert_int_not_equal(access(name, F_OK), 0);
        return;
    }
    assert_int_equal(ps_text_read_file(name, &found, NULL, NULL), PS_OK);
    assert_string_equal(found, text);
    free(found);
}

static char *keep(void) {
    ps_error error = {0};
    char *kept = NULL;
    must(ps_publish_keep(path, &kept, &error), &error);
    return kept;
}

static void what_is_replaced_keeps_a_second_name(void **state) {
    (void)state;
    assert_null(keep());
    write_file(path, "first");
    char *kept = keep();
    assert_string_equal(kept, beside(".previous-1"));
    expect_file(path, "first"); /* until it is replaced */
    unlink(path);
    write_file(path, "second");
    char *other = keep();
    assert_string_equal(other, beside(".previous-2"));
    expect_file(kept, "first");
    expect_file(other, "second");
    ps_publish_restore(path, other); /* the replacement failed before it began */
    expect_file(path, "second");
    expect_file(other, NULL);
    unlink(path);
    ps_publish_restore(path, kept); /* or in the middle */
    expect_file(path, "first");
    expect_file(kept, NULL);
    free(kept);
    free(other);
}

static bool is_own(const char *name) {
    char *text = NULL;
    bool own = ps_text_read_file(name, &text, NULL, NULL) == PS_OK && strcmp(text, "own") == 0;
    free(text);
    return own;
}

static void only_own_files_are_forgotten(void **state) {
    (void)state;
    write_file(beside(".previous-1"), "own");
    write_file(beside(".previous-12"), "own");
    write_file(beside(".previous-2"), "foreign");
    write_file(beside(".previous-"), "own");
    write_file(beside(".previous-3x"), "own");
    write_file(path, "own");
    assert_int_equal(ps_publish_forget(path, is_own), 2);
    expect_file(beside(".previous-1"), NULL);
    expect_file(beside(".previous-12"), NULL);
    expect_file(beside(".previous-2"), "foreign");
    expect_file(beside(".previous-"), "own");
    expect_file(beside(".previous-3x"), "own");
    expect_file(path, "own");
}

static void a_file_without_a_name_is_saved(void **state) {
    (void)state;
    ps_error error = {0};
    char *saved = NULL;
    write_file(path, "all of it");
    write_file(beside(".recovered-1"), "of another time");
    int fd = open(path, O_RDWR);
    lseek(fd, 3, SEEK_SET);
    unlink(path);
    must(ps_publish_recover(fd, path, &saved, &error), &error);
    assert_string_equal(saved, beside(".recovered-2"));
    expect_file(saved, "all of it");
    expect_file(beside(".recovered-1"), "of another time");
    free(saved);
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    saved = NULL;
    assert_int_equal(ps_publish_recover(fd, path, &saved, &error), PS_E_IO);
    assert_null(saved);
    close(fd);
}

int main(void) {
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(what_is_replaced_keeps_a_second_name), T(only_own_files_are_forgotten),
                                       T(a_file_without_a_name_is_saved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
