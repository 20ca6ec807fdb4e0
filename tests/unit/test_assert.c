/* Assertions of preconditions: a broken one ends the program and says where; a release build evaluates none. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/assert.h"
#include "core/byte_order.h"

static int n_evaluated;

static int evaluate(int value) {
    n_evaluated++;
    return value;
}

/* What `broken` leaves on standard error, and how its process ended. */
static int run_broken(void (*broken)(void), char *text, size_t bytes) {
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        broken();
        _exit(0);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], text, bytes - 1);
    text[got > 0 ? got : 0] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void break_one(void) {
    PS_ASSERT(evaluate(1) == 2);
}

static void break_byte_order(void) {
    char bytes[6] = {0};
    ps_swap_bytes(bytes, 2, 3);
}

static void expect_end(void (*broken)(void), const char *function, const char *condition) {
    char text[512];
    int status = run_broken(broken, text, sizeof text);
#ifdef PS_ASSERTIONS
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, function));
    assert_non_null(strstr(text, condition));
#else
    (void)function, (void)condition;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_string_equal(text, "");
#endif
}

static void test_broken(void **state) {
    (void)state;
    expect_end(break_one, "break_one", "evaluate(1) == 2");
    expect_end(break_byte_order, "ps_swap_bytes", "element_bytes");
}

static void test_kept(void **state) {
    (void)state;
    PS_ASSERT(evaluate(3) == 3);
#ifdef PS_ASSERTIONS
    assert_int_equal(n_evaluated, 1);
#else
    assert_int_equal(n_evaluated, 0);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_broken), cmocka_unit_test(test_kept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
