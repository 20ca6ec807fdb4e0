/* The table of methods: whole, alike with the schema of jobs, and of lasting order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "method/curves.h"
#include "method/table.h"
#include "store/layout.h"

static ps_method_set parsed(const char *text) {
    ps_error error = {0};
    ps_method_set set;
    cJSON *json = cJSON_Parse(text);
    ps_json place = ps_json_root(json, "job");
    if (ps_method_set_parse(&place, &set, &error) != PS_OK) fail_msg("%s", error.text);
    cJSON_Delete(json);
    return set;
}

static const char everything[] = "{\"ssb\":{\"estimator\":\"phase\"},\"complex\":{\"strength\":[1,{\"amplitude\":2,\"phase\":3}],"
                                 "\"smoothness_inv_A\":1.5},\"mf\":{},\"phase\":{\"strength\":\"auto\"}}";

static bool has_text(const char *text) {
    return text && *text;
}

static void assert_scales(const ps_method *method) {
    assert_true(method->n_scales >= 0 && method->n_scales <= PS_MOST_METHOD_SCALES);
    assert_int_equal(method->n_scales > 0, method->read_scales != NULL);
    for (int s = 0; s < method->n_scales; s++) assert_true(has_text(method->scales[s]));
}

/* Nothing that callers use without asking is missing. */
static void every_entry_is_whole(void **state) {
    (void)state;
    for (int i = 0; i < ps_n_methods; i++) {
        const ps_method *method = ps_method_table[i];
        assert_true(has_text(method->name) && has_text(method->schema) && method->bits != 0);
        assert_string_not_equal(method->name, "frames"); /* taken below /entry */
        assert_true(method->parse && method->describe && method->fingerprint && method->solve);
        assert_true(method->stage >= 0 && method->stage < PS_N_STAGES);
        assert_true(method->n_results > 0 && method->n_results <= PS_MOST_METHOD_RESULTS);
        assert_true(ps_result_is_image(&method->results[0]));
        for (int r = 0; r < method->n_results; r++) assert_true(has_text(method->results[r].name));
        for (int other = 0; other < i; other++) assert_string_not_equal(method->name, ps_method_table[other]->name);
        assert_scales(method);
    }
}

/* Between them the examples leave every result. */
static void examples_leave_every_result(void **state) {
    (void)state;
    for (int i = 0; i < ps_n_methods; i++) {
        const ps_method *method = ps_method_table[i];
        bool left[PS_MOST_METHOD_RESULTS] = {false};
        for (int k = 0; k < method->n_examples; k++) {
            ps_method_set set;
            ps_error error = {0};
            if (ps_method_parse(method, method->examples[k], &set, &error) != PS_OK) fail_msg("%s", error.text);
            assert_ptr_equal(set.items[0].method, method);
            assert_int_equal(set.items[0].has_strengths, method->results[0].axes == PS_RESULT_IMAGE_SWEEP);
            for (int r = 0; r < method->n_results; r++) left[r] = left[r] || ps_method_result_elements(&set.items[0], r, 1) > 0;
            ps_method_set_free(&set);
        }
        for (int r = 0; r < method->n_results; r++)
            if (!left[r]) fail_msg("no example of %s leaves %s", method->name, method->results[r].name);
    }
}

/* Images of different methods get files of different names. */
static void pictures_have_their_own_names(void **state) {
    (void)state;
    const char *names[PS_MOST_METHODS * PS_MOST_METHOD_RESULTS];
    int n = 0;
    for (int i = 0; i < ps_n_methods; i++)
        for (int r = 0; r < ps_method_table[i]->n_results; r++) {
            const ps_result_desc *result = &ps_method_table[i]->results[r];
            if (!ps_result_is_image(result) || !result->shown_as) continue;
            for (int k = 0; k < n; k++) assert_string_not_equal(names[k], result->shown_as);
            names[n++] = result->shown_as;
        }
}

/* What a method's entry of the schema must be, ready to be put there. */
static void assert_schema(const cJSON *methods, const ps_method *method) {
    cJSON *expected = cJSON_Parse(method->schema);
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(methods, "properties"), method->name);
    if (!expected) fail_msg("the schema of %s is no JSON: %s", method->name, method->schema);
    if (!cJSON_Compare(found, expected, true)) {
        print_error("configs/job.schema.json: /properties/methods/properties/%s is to be\n%s\n", method->name, method->schema);
        fail();
    }
    cJSON_Delete(expected);
}

static void the_schema_says_what_the_table_says(void **state) {
    (void)state;
    ps_error error = {0};
    char *text = NULL;
    size_t bytes;
    if (ps_text_read_file(PS_SOURCE_DIR "/configs/job.schema.json", &text, &bytes, &error) != PS_OK) fail_msg("%s", error.text);
    cJSON *file = cJSON_Parse(text);
    assert_non_null(file);
    const cJSON *methods = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(file, "properties"), "methods");
    for (int i = 0; i < ps_n_methods; i++) assert_schema(methods, ps_method_table[i]);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(methods, "properties")), ps_n_methods);
    assert_true(cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(methods, "additionalProperties")));
    assert_int_equal(cJSON_GetObjectItemCaseSensitive(methods, "minProperties")->valueint, 1);
    cJSON_Delete(file);
    free(text);
}

/* Checksums in files that exist depend on it: new methods come behind these, and dose and data norm behind all. */
static void results_keep_their_order(void **state) {
    (void)state;
    static const char *const names[] = {"phase/phase",
                                        "phase/residual",
                                        "phase/effective_degrees_of_freedom",
                                        "phase/gcv",
                                        "phase/chosen_strength",
                                        "complex/phase",
                                        "complex/log_amplitude",
                                        "complex/residual",
                                        "complex/effective_degrees_of_freedom",
                                        "complex/gcv",
                                        "complex/chosen_strength",
                                        "ssb/phase",
                                        "ssb/loss",
                                        "mf/image"};
    enum { N = sizeof names / sizeof *names };
    ps_result_place places[PS_MOST_RESULTS];
    int n = ps_layout_results(places);
    assert_true(n >= N + 2);
    for (int i = 0; i < N; i++) assert_string_equal(places[i].name, names[i]);
    assert_string_equal(places[n - 2].name, "frames/dose");
    assert_string_equal(places[n - 1].name, "frames/data_norm");
}

static void a_set_is_in_the_order_of_the_table(void **state) {
    (void)state;
    ps_method_set set = parsed(everything);
    assert_int_equal(set.n, 4);
    assert_string_equal(set.items[0].method->name, "phase");
    assert_string_equal(set.items[1].method->name, "complex");
    assert_string_equal(set.items[2].method->name, "ssb");
    assert_string_equal(set.items[3].method->name, "mf");
    assert_true(set.items[0].automatic && !set.items[1].automatic);
    assert_int_equal(set.items[2].choice, PS_SSB_PHASE);
    assert_int_equal(ps_method_set_bits(&set), PS_METHODS_ALL);
    assert_true(ps_method_set_needs_normal(&set));
    ps_method_set_free(&set);
    set = parsed("{\"ssb\":{},\"mf\":{}}");
    assert_false(ps_method_set_needs_normal(&set));
    ps_method_set_free(&set);
}

static void sizes_follow_from_the_settings(void **state) {
    (void)state;
    enum { PIXELS = 35 };
    ps_error error = {0};
    ps_method_results results;
    ps_method_set set = parsed(everything);
    const ps_method_settings *phase = &set.items[0], *both = &set.items[1], *ssb = &set.items[2];
    assert_int_equal(ps_method_set_images(&set), 1 + 2 * 2 + 1 + 1);
    assert_int_equal(ps_method_curve_points(phase), PS_N_CURVE_STRENGTHS);
    assert_int_equal(ps_method_curve_points(both), 2);
    assert_int_equal(ps_method_curve_points(ssb), 0);
    assert_int_equal(ps_method_result_elements(phase, 0, PIXELS), PIXELS);
    assert_int_equal(ps_method_result_elements(both, 1, PIXELS), 2 * PIXELS);
    assert_int_equal(ps_method_result_elements(phase, 1, PIXELS), PS_N_CURVE_STRENGTHS);
    assert_true(ps_method_leaves(ssb, 1));
    assert_int_equal(ps_method_result_elements(&set.items[3], 0, PIXELS), PIXELS);
    if (ps_method_results_create(&set, PIXELS, &results, &error) != PS_OK) fail_msg("%s", error.text);
    assert_non_null(results.values[2][1]);
    ps_method_results_free(&results);
    ps_method_set_free(&set);
    set = parsed("{\"ssb\":{\"estimator\":\"wave\"}}");
    assert_false(ps_method_leaves(&set.items[0], 1)); /* this estimator has no loss */
    if (ps_method_results_create(&set, PIXELS, &results, &error) != PS_OK) fail_msg("%s", error.text);
    assert_non_null(results.values[0][0]);
    assert_null(results.values[0][1]);
    ps_method_results_free(&results);
    ps_method_set_free(&set);
}

static void the_plan_hears_of_each_prior(void **state) {
    (void)state;
    ps_plan_options options = {.smoothness_phase_inv_A = 7, .smoothness_complex_inv_A = 7};
    ps_method_set set = parsed(everything);
    ps_method_set_plan(&set, &options);
    assert_true(isinf(options.smoothness_phase_inv_A) && options.smoothness_complex_inv_A == 1.5);
    ps_method_set_free(&set);
    set = parsed("{\"phase\":{\"strength\":1,\"smoothness_inv_A\":0.5}}");
    ps_method_set_plan(&set, &options);
    assert_true(options.smoothness_phase_inv_A == 0.5 && isinf(options.smoothness_complex_inv_A));
    ps_method_set_free(&set);
}

static void assert_said(const ps_method_set *set, bool fingerprint, const char *expected) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    for (int64_t i = 0; i < set->n; i++) {
        if (fingerprint) {
            set->items[i].method->fingerprint(&set->items[i], out);
        } else {
            set->items[i].method->describe(&set->items[i], out);
            fputc('\n', out);
        }
    }
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void methods_describe_themselves(void **state) {
    (void)state;
    ps_method_set set = parsed(everything);
    assert_said(&set, false,
                "strength chosen per frame by cross-validation\nstrength 1, (amplitude 2, phase 3); smoothness 1.5 1/A\n"
                "estimator phase\nmatched filter, not normalised\n");
    assert_said(&set, true,
                "method.phase.strength=auto (73 points, crc 258b705b)\nmethod.phase.smoothness_inv_A=none\n"
                "method.complex.strength=1/1,3/2\nmethod.complex.smoothness_inv_A=1.5\nmethod.ssb.estimator=phase\n"
                "method.mf.coefficients=right_side\n");
    ps_method_set_free(&set);
}

static void assert_refused(const char *text, const char *expected) {
    ps_error error = {0};
    ps_method_set set;
    cJSON *json = cJSON_Parse(text);
    ps_json place = ps_json_root(json, "job");
    assert_int_equal(ps_method_set_parse(&place, &set, &error), PS_E_JOB);
    if (!strstr(error.text, expected)) fail_msg("'%s' lacks '%s'", error.text, expected);
    assert_int_equal(set.n, 0);
    assert_null(set.items[0].strengths);
    cJSON_Delete(json);
}

static void bad_entries_are_refused(void **state) {
    (void)state;
    assert_refused("{}", "at least one of: phase, complex, ssb, mf");
    assert_refused("[]", "object");
    assert_refused("{\"phas\":{}}", "phase");
    assert_refused("{\"phase\":null}", "/phase");
    assert_refused("{\"phase\":{\"strength\":[1,0]}}", "/phase/strength/1: found 0, expected a strength above 0");
    assert_refused("{\"phase\":{\"strength\":{\"amplitude\":1,\"phase\":1}}}", "/phase/strength");
    assert_refused("{\"phase\":{\"strength\":1},\"complex\":{\"strength\":[]}}", "/complex/strength: found");
    assert_refused("{\"phase\":{\"strength\":1},\"ssb\":{\"estimator\":\"loss\"}}", "/ssb/estimator");
    assert_refused("{\"mf\":true}", "/mf: found true, expected an object");
    assert_refused("{\"mf\":{\"strength\":1}}", "/mf/strength: unknown key; none is known here");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_is_whole),           cmocka_unit_test(examples_leave_every_result),
        cmocka_unit_test(pictures_have_their_own_names),  cmocka_unit_test(the_schema_says_what_the_table_says),
        cmocka_unit_test(results_keep_their_order),       cmocka_unit_test(a_set_is_in_the_order_of_the_table),
        cmocka_unit_test(sizes_follow_from_the_settings), cmocka_unit_test(the_plan_hears_of_each_prior),
        cmocka_unit_test(methods_describe_themselves),    cmocka_unit_test(bad_entries_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
