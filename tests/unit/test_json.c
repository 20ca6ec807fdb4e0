/* What is said of keys that an object does not know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/json.h"

static void assert_said(const char *text, const char *const *keys, size_t n_keys, const char *expected) {
    ps_error error = {0};
    cJSON *json = cJSON_Parse(text);
    ps_json root = ps_json_root(json, "file"), place = ps_json_member(&root, "a");
    assert_int_equal(ps_json_object(&place, keys, n_keys, &error), PS_E_JOB);
    assert_string_equal(error.text, expected);
    cJSON_Delete(json);
}

static void unknown_keys_are_answered_with_those_there_are(void **state) {
    (void)state;
    static const char *const keys[] = {"strength", "estimator"};
    assert_said("{\"a\":{\"other\":1}}", keys, 2, "file: /a/other: unknown key; known here: strength, estimator");
    assert_said("{\"a\":{\"strenght\":1}}", keys, 2, "file: /a/strenght: unknown key; did you mean \"strength\"?");
    assert_said("{\"a\":{\"other\":1}}", NULL, 0, "file: /a/other: unknown key; none is known here");
    assert_said("{\"a\":[]}", NULL, 0, "file: /a: found [], expected an object");
}

static void an_object_without_keys_may_be_empty(void **state) {
    (void)state;
    ps_error error = {0};
    cJSON *json = cJSON_Parse("{}");
    ps_json place = ps_json_root(json, "file");
    assert_int_equal(ps_json_object(&place, NULL, 0, &error), PS_OK);
    cJSON_Delete(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(unknown_keys_are_answered_with_those_there_are),
                                       cmocka_unit_test(an_object_without_keys_may_be_empty)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
