/* From a job's words to a backend: kernels/backend_select.c, over the program's list and over one with made-up devices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "contract/problem.h"
#include "kernels/histogram.h"

static int n_devices; /* that the made-up backend sees */

static ps_code count_devices(int *count, ps_error *error) {
    *count = n_devices;
    return n_devices > 0 ? PS_OK : PS_FAIL(error, PS_E_BACKEND, "card: no device");
}

static const ps_backend_ops plain = {.name = "cpu-plain"}, quick = {.name = "cpu-quick"},
                            card = {.name = "card", .device_count = count_devices};
static const ps_backend_entry lines[] = {{"cpu-plain", "cpu", "reference", false, &plain},
                                         {"cpu-quick", "cpu", "fast", false, &quick},
                                         {"card", "card", "fast", true, &card},
                                         {"dream", "dream", "fast", true, NULL}};
static const ps_backend_entries list = {lines, 4};

/* The same names, of which only the slow ones make histograms. */
static const ps_histogram_ops counters = {.name = "counters"};
static const ps_backend_ops plain_counting = {.name = "cpu-plain", .histogram = &counters},
                            quick_counting = {.name = "cpu-quick", .histogram = &counters};
static const ps_backend_entry counting_lines[] = {{"cpu-plain", "cpu", "reference", false, &plain_counting},
                                                  {"cpu-quick", "cpu", "fast", false, &quick_counting},
                                                  {"card", "card", "fast", true, &card}};
static const ps_backend_entries counting_list = {counting_lines, 3};

static ps_backend_request request_of(const char *name, const char *precision) {
    return (ps_backend_request){.name = name, .precision = precision, .n_node_ranks = 5, .where_name = "/b", .where_precision = "/p"};
}

static void require_selected(ps_backend_request request, const ps_backend_ops *expected, int device, int n_sharing) {
    const ps_backend_ops *found;
    ps_backend_options options = {.n_threads = 3, .memory_budget_bytes = 5, .device = 99, .n_sharing = 99};
    REQUIRE_OK(ps_backend_select_from(&list, &request, &found, &options, &error));
    assert_ptr_equal(found, expected);
    assert_int_equal(options.device, device);
    assert_int_equal(options.n_sharing, n_sharing);
    assert_true(options.n_threads == 3 && options.memory_budget_bytes == 5);
}

static void require_not_selected(const char *name, const char *precision, ps_code code, const char *text) {
    const ps_backend_ops *found = &card;
    ps_backend_options options;
    ps_error e = {0};
    ps_backend_request request = request_of(name, precision);
    problem_require_refused(ps_backend_select_from(&list, &request, &found, &options, &e), &e, code, text);
    assert_null(found);
}

static void auto_takes_a_device_where_there_is_one(void **state) {
    (void)state;
    n_devices = 2;
    require_selected(request_of("auto", "fast"), &card, 0, 3);
    require_selected(request_of(NULL, NULL), &card, 0, 3);
    require_selected(request_of("auto", "reference"), &plain, 0, 0);
    n_devices = 0;
    require_selected(request_of("auto", "fast"), &quick, 0, 0);
}

static void names_and_precisions_pick_a_line(void **state) {
    (void)state;
    n_devices = 2;
    require_selected(request_of("cpu", NULL), &quick, 0, 0);
    require_selected(request_of("cpu", "fast"), &quick, 0, 0);
    require_selected(request_of("cpu", "reference"), &plain, 0, 0);
    require_selected(request_of("card", "fast"), &card, 0, 3);
}

static void ranks_share_devices_in_turn(void **state) {
    (void)state;
    static const int sharing[] = {3, 2}; /* of five ranks */
    n_devices = 2;
    for (int rank = 0; rank < 5; rank++) {
        ps_backend_request request = request_of("card", "fast");
        request.node_rank = rank;
        require_selected(request, &card, rank % 2, sharing[rank % 2]);
        request.name = "card:1"; /* then all take that one */
        require_selected(request, &card, 1, 5);
    }
    require_selected((ps_backend_request){.name = "card"}, &card, 0, 1);
}

static void what_cannot_be_is_refused_with_what_can(void **state) {
    (void)state;
    n_devices = 2;
    require_not_selected("gpu", "fast", PS_E_ARGUMENT, "/b: found 'gpu', expected one of: auto, cpu, card, card:N (a device), dream");
    require_not_selected("cpu:0", "fast", PS_E_ARGUMENT, "/b: found 'cpu:0'");
    require_not_selected("card:", "fast", PS_E_ARGUMENT, "/b: found 'card:'");
    require_not_selected("card:1x", "fast", PS_E_ARGUMENT, "/b: found 'card:1x'");
    require_not_selected("card:-1", "fast", PS_E_ARGUMENT, "/b: found 'card:-1'");
    require_not_selected("card:12345", "fast", PS_E_ARGUMENT, "/b: found 'card:12345'");
    require_not_selected("cards", "fast", PS_E_ARGUMENT, "/b: found 'cards'");
    require_not_selected("", "fast", PS_E_ARGUMENT, "/b: found ''");
    require_not_selected("card", "reference", PS_E_JOB,
                         "/p: found reference, which backend card does not compute, expected one of the backends: auto, cpu");
    require_not_selected("card:2", "fast", PS_E_BACKEND, "/b: found card:2, but 2 card devices are visible here");
    require_not_selected("dream", "fast", PS_E_BACKEND,
                         "/b: found dream, but this program was built without dream, expected one of: auto, cpu, card, card:N (a device)");
    n_devices = 0;
    require_not_selected("card", "fast", PS_E_BACKEND, "card: no device");
}

/* What is asked of a backend beyond its name: "auto" passes by those that lack it, a name is taken at its word. */
static void histograms_can_be_needed(void **state) {
    (void)state;
    const ps_backend_ops *found;
    ps_backend_options options;
    ps_error e = {0};
    n_devices = 2;
    ps_backend_request request = request_of("auto", "fast");
    REQUIRE_OK(ps_backend_select_from(&counting_list, &request, &found, &options, &error));
    assert_ptr_equal(found, &card);
    request.needs_histograms = true;
    REQUIRE_OK(ps_backend_select_from(&counting_list, &request, &found, &options, &error));
    assert_ptr_equal(found, &quick_counting);
    problem_require_refused(ps_backend_select_from(&list, &request, &found, &options, &e), &e, PS_E_BACKEND,
                            "/b: no backend that can be used here makes histograms");
    assert_null(found);
    request.name = "card";
    problem_require_refused(ps_backend_select_from(&counting_list, &request, &found, &options, &e), &e, PS_E_BACKEND,
                            "/b: card makes no histograms");
    assert_null(found);
    request.name = "gpu";
    problem_require_refused(ps_backend_select_from(&counting_list, &request, &found, &options, &e), &e, PS_E_ARGUMENT, "/b: found 'gpu'");
}

/* The program's own list: its lines are whole, and names of jobs are those of the list. */
static void the_list_is_whole(void **state) {
    (void)state;
    const ps_backend_entries *own = ps_backend_list();
    assert_true(own->n >= 3);
    for (int i = 0; i < own->n; i++) {
        const ps_backend_entry *entry = &own->entries[i];
        assert_true(ps_backend_name_is_known(entry->job_name));
        assert_true(strcmp(entry->precision, "reference") == 0 || strcmp(entry->precision, "fast") == 0);
        if (!entry->ops) continue;
        assert_string_equal(entry->ops->name, entry->name);
        assert_true(entry->needs_device == (entry->ops->device_count != NULL));
        if (entry->ops->histogram) assert_string_equal(entry->ops->histogram->name, entry->name);
        const ps_backend_request request = {.name = entry->job_name, .precision = entry->precision};
        assert_ptr_equal(ps_backend_built(&request), entry->ops);
    }
    assert_true(ps_backend_name_is_known("auto") && ps_backend_name_is_known("cuda:12"));
    assert_true(ps_backend_computes("auto", "reference") && ps_backend_computes("cpu", "reference"));
    assert_true(ps_backend_computes("cuda:1", "fast") && !ps_backend_computes("cuda:1", "reference"));
    assert_false(ps_backend_name_is_known("cpu:1") || ps_backend_name_is_known("gpu") || ps_backend_name_is_known("cuda:"));
}

static void the_list_is_told_to_people(void **state) {
    (void)state;
    char *text = ps_backend_list_text();
    assert_non_null(text);
    assert_ptr_equal(strstr(text, "  cpu: reference and fast precision\n  cuda: "), text);
    assert_int_equal(text[strlen(text) - 1], '\n');
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_takes_a_device_where_there_is_one),
        cmocka_unit_test(names_and_precisions_pick_a_line),
        cmocka_unit_test(histograms_can_be_needed),
        cmocka_unit_test(ranks_share_devices_in_turn),
        cmocka_unit_test(what_cannot_be_is_refused_with_what_can),
        cmocka_unit_test(the_list_is_whole),
        cmocka_unit_test(the_list_is_told_to_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
