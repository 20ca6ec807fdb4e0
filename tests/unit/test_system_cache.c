/* Systems that do not fit into memory: what they leave behind of the other system and of the group's plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "method/table.h"
#include "reference_case.h"
#include "tasks/reconstruct/system_cache.h"

/* More than any machine has: the mask of so many pixels cannot be allocated. */
static const int64_t far_too_many = (int64_t)1 << 30;

const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "allocator_may_return_null=1";
}

/* A backend that has nothing but systems, of which `room` fit. */
static int n_systems, room;
static ps_code refusal = PS_E_MEMORY;

static ps_code create_system(ps_backend *handle, const ps_system_desc *desc, ps_methods methods, ps_system **system, ps_error *error) {
    (void)handle;
    (void)methods;
    assert_non_null(desc->frequencies); /* an open plan, always */
    assert_true(desc->n_frequencies > 0 && desc->frequencies[desc->n_frequencies - 1].multiplicity > 0);
    *system = NULL;
    if (n_systems >= room) return PS_FAIL(error, refusal, "no room");
    *system = calloc(1, sizeof **system);
    assert_non_null(*system);
    n_systems++;
    return PS_OK;
}

static void destroy_system(ps_system *system) {
    free(system);
    n_systems--;
}

static const ps_backend_ops ops = {.name = "rooms", .system_create = create_system, .system_destroy = destroy_system};
static ps_backend backend = {.ops = &ops};

typedef struct {
    ps_job job;
    ps_run_plan run;
    ps_run_group groups[2];
    double *mean[2];
    ps_system_cache cache;
    uint8_t *good, *extra;
} bench;

static bench *set_up(int systems_that_fit) {
    bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->job.methods = (ps_method_set){.n = 1, .items = {{.method = &ps_method_phase, .smoothness_inv_A = INFINITY}}};
    b->run = (ps_run_plan){.n_groups = 2,
                           .groups = b->groups,
                           .scan_rows = 5,
                           .scan_columns = 6,
                           .detector_rows = 40,
                           .detector_columns = 42,
                           .upsampling = 1};
    b->good = calloc(40 * 42, 1);
    b->extra = calloc(40 * 42, 1);
    b->extra[20 * 42 + 20] = 1;
    for (int i = 0; i < 2; i++) b->groups[i] = (ps_run_group){.optics = reference_optics_a(), .used = "{}", .bad = b->good};
    ps_system_cache_init(&b->cache, &b->job, &b->run, NULL, b->mean, &backend);
    b->cache.two_systems = true;
    n_systems = 0;
    room = systems_that_fit;
    refusal = PS_E_MEMORY;
    return b;
}

static void tear_down(bench *b) {
    ps_system_cache_free(&b->cache);
    assert_int_equal(n_systems, 0);
    for (int i = 0; i < 2; i++) {
        assert_null(b->groups[i].plan.desc.frequencies); /* closed again */
        ps_plan_free(&b->groups[i].plan);
    }
    free(b->good);
    free(b->extra);
    free(b);
}

static ps_prepared_system *get(bench *b, int64_t group, const uint8_t *extra) {
    ps_error error = {0};
    ps_prepared_system *prepared;
    if (ps_system_cache_get(&b->cache, group, extra, &prepared, &error) != PS_OK) fail_msg("%s", error.text);
    assert_non_null(prepared->system);
    assert_int_equal(prepared->group, group);
    return prepared;
}

static void assert_refused(bench *b, int64_t group, const uint8_t *extra, ps_code code) {
    ps_error error = {0};
    ps_prepared_system *prepared;
    assert_int_equal(ps_system_cache_get(&b->cache, group, extra, &prepared, &error), code);
    assert_int_equal(error.code, code);
    assert_null(prepared->system);
    assert_int_equal(prepared->group, -1);
}

static void test_both_fit(void **state) {
    (void)state;
    bench *b = set_up(2);
    ps_prepared_system *shared = get(b, 0, NULL), *special = get(b, 0, b->extra);
    assert_ptr_not_equal(shared, special);
    assert_int_equal(special->plan->desc.n_active, shared->plan->desc.n_active - 1);
    assert_ptr_equal(get(b, 0, NULL), shared);
    assert_int_equal(n_systems, 2);
    tear_down(b);
}

static void test_one_makes_room_for_the_other(void **state) {
    (void)state;
    bench *b = set_up(1);
    for (int i = 0; i < 3; i++) {
        get(b, i % 2, NULL);
        get(b, i % 2, b->extra);
        assert_int_equal(n_systems, 1);
    }
    tear_down(b);
}

/* A frame's own mask cannot be allocated: the group's system, and the plan that it was made with, stay as they are. */
static void test_special_without_memory_leaves_the_shared_plan_open(void **state) {
    (void)state;
    bench *b = set_up(2);
    ps_prepared_system *shared = get(b, 0, NULL);
    int64_t rows = b->run.detector_rows, columns = b->run.detector_columns;
    b->run.detector_rows = b->run.detector_columns = far_too_many;
    assert_refused(b, 0, b->extra, PS_E_MEMORY);
    b->run.detector_rows = rows;
    b->run.detector_columns = columns;
    assert_non_null(b->groups[0].plan.desc.frequencies);
    assert_ptr_equal(shared->plan, &b->groups[0].plan);
    get(b, 0, b->extra); /* drops what the one before left in its place */
    assert_non_null(b->groups[0].plan.desc.frequencies);
    assert_ptr_equal(get(b, 0, NULL), shared);
    tear_down(b);
}

static void test_refused_systems_leave_nothing(void **state) {
    (void)state;
    static const ps_code codes[] = {PS_E_MEMORY, PS_E_NUMERIC, PS_E_DEVICE};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        bench *b = set_up(0);
        refusal = codes[i];
        assert_refused(b, 0, NULL, codes[i]);
        assert_null(b->groups[0].plan.desc.frequencies);
        assert_refused(b, 0, b->extra, codes[i]);
        room = 1;
        get(b, 1, NULL);
        tear_down(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_fit), cmocka_unit_test(test_one_makes_room_for_the_other),
                                       cmocka_unit_test(test_special_without_memory_leaves_the_shared_plan_open),
                                       cmocka_unit_test(test_refused_systems_leave_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
