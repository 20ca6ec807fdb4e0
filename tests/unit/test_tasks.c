/* The table of tasks against what is said of tasks elsewhere: the schema of jobs, messages, and the table itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "tasks/tasks.h"

static cJSON *schema;

static int read_schema(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes;
    ps_error error = {0};
    if (ps_text_read_file(PS_SOURCE_DIR "/configs/job.schema.json", &text, &bytes, &error) != PS_OK) fail_msg("%s", error.text);
    schema = cJSON_Parse(text);
    free(text);
    return schema ? 0 : -1;
}

static int free_schema(void **state) {
    (void)state;
    cJSON_Delete(schema);
    return 0;
}

static const cJSON *properties(void) {
    return cJSON_GetObjectItemCaseSensitive(schema, "properties");
}

static const cJSON *schema_names(void) {
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(properties(), "task"), "enum");
}

static bool is_in_list(const cJSON *list, const char *name) {
    const cJSON *entry;
    cJSON_ArrayForEach(entry, list) if (strcmp(cJSON_GetStringValue(entry), name) == 0) return true;
    return false;
}

static bool is_in_table(const char *name) {
    for (int i = 0; i < ps_tasks()->n; i++)
        if (strcmp(ps_tasks()->tasks[i]->job->name, name) == 0) return true;
    return false;
}

static void table_and_schema_name_the_same_tasks(void **state) {
    (void)state;
    const cJSON *entry;
    assert_true(ps_tasks()->n > 0);
    assert_int_equal(ps_tasks()->n, cJSON_GetArraySize(schema_names()));
    for (int i = 0; i < ps_tasks()->n; i++) assert_true(is_in_list(schema_names(), ps_tasks()->tasks[i]->job->name));
    cJSON_ArrayForEach(entry, schema_names()) {
        assert_true(is_in_table(cJSON_GetStringValue(entry)));
    }
}

/* The schema's rule for jobs of one task; NULL: there is none. */
static const cJSON *rule_of(const char *name) {
    const cJSON *rule;
    cJSON_ArrayForEach(rule, cJSON_GetObjectItemCaseSensitive(schema, "allOf")) {
        const cJSON *condition = cJSON_GetObjectItemCaseSensitive(rule, "if");
        const cJSON *task = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(condition, "properties"), "task");
        const char *named = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(task, "const"));
        if (named && strcmp(named, name) == 0) return cJSON_GetObjectItemCaseSensitive(rule, "then");
    }
    return NULL;
}

static bool has_entry(const ps_job_kind *kind, const char *name) {
    for (size_t i = 0; i < kind->n_entries; i++)
        if (strcmp(kind->entries[i], name) == 0) return true;
    return false;
}

static bool is_common(const char *name) {
    return strcmp(name, "$schema") == 0 || strcmp(name, "comment") == 0 || strcmp(name, "task") == 0;
}

/* What the schema forbids such jobs is what the table does not list for them, and nothing else. */
static void compare_entries(const ps_job_kind *kind) {
    const cJSON *entry, *rule = rule_of(kind->name);
    assert_non_null(rule);
    const cJSON *restricted = cJSON_GetObjectItemCaseSensitive(rule, "properties");
    cJSON_ArrayForEach(entry, properties()) {
        bool forbidden = cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(restricted, entry->string));
        if (forbidden != (!is_common(entry->string) && !has_entry(kind, entry->string)))
            fail_msg("%s: the schema %s the entry %s, the table does not", kind->name, forbidden ? "forbids" : "allows", entry->string);
    }
    cJSON_ArrayForEach(entry, cJSON_GetObjectItemCaseSensitive(rule, "required")) {
        assert_true(has_entry(kind, cJSON_GetStringValue(entry)));
    }
}

static void table_and_schema_name_the_same_entries(void **state) {
    (void)state;
    for (int i = 0; i < ps_tasks()->n; i++) {
        const ps_job_kind *kind = ps_tasks()->tasks[i]->job;
        for (size_t k = 0; k < kind->n_entries; k++) assert_non_null(cJSON_GetObjectItemCaseSensitive(properties(), kind->entries[k]));
        compare_entries(kind);
    }
}

/* What a job of the task is told; it must be refused. */
static void refuse(const char *task, ps_error *error) {
    char text[64];
    ps_job job;
    snprintf(text, sizeof text, "{\"task\": \"%s\"}", task);
    assert_int_equal(ps_job_parse(ps_task_job_kinds(), text, "/base", NULL, 0, &job, error), PS_E_JOB);
}

static void an_unknown_task_is_told_all_names(void **state) {
    (void)state;
    char names[256] = "";
    ps_error error = {0};
    for (int i = 0; i < ps_tasks()->n; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "one of: ", ps_tasks()->tasks[i]->job->name);
    refuse("zzzzzzzzzzzz", &error);
    assert_non_null(strstr(error.text, "/task: found \"zzzzzzzzzzzz\""));
    size_t end = strlen(error.text) - strlen(names);
    assert_string_equal(error.text + end, names);
}

static void planned_tasks_are_refused_and_claimed_nowhere(void **state) {
    (void)state;
    const ps_job_kinds *kinds = ps_task_job_kinds();
    for (size_t i = 0; i < kinds->n_planned; i++) {
        ps_error error = {0};
        assert_false(is_in_table(kinds->planned[i].name));
        assert_false(is_in_list(schema_names(), kinds->planned[i].name));
        refuse(kinds->planned[i].name, &error);
        assert_non_null(strstr(error.text, kinds->planned[i].reason));
    }
}

/* Of all tasks that write an output file, one has no mark, and the others' marks differ: ps_task_of_output can tell them apart. */
static void lines_are_complete(void **state) {
    (void)state;
    int n_unmarked = 0;
    for (int i = 0; i < ps_tasks()->n; i++) {
        const ps_task *task = ps_tasks()->tasks[i];
        assert_true(task->job->name && task->job->entries && task->job->n_entries > 0 && task->job->read);
        assert_true(task->run && task->check && task->print && task->add_json);
        assert_true((task->info != NULL) == (task->preview != NULL));
        assert_true(task->info || !task->output_mark);
        n_unmarked += task->info && !task->output_mark;
        for (int k = 0; k < i; k++) {
            const ps_task *other = ps_tasks()->tasks[k];
            assert_string_not_equal(task->job->name, other->job->name);
            if (task->output_mark && other->output_mark) assert_string_not_equal(task->output_mark, other->output_mark);
        }
    }
    assert_int_equal(n_unmarked, 1);
}

static void each_task_is_found_by_its_job(void **state) {
    (void)state;
    for (int i = 0; i < ps_tasks()->n; i++) {
        const ps_job job = {.kind = ps_tasks()->tasks[i]->job};
        assert_ptr_equal(ps_task_of_job(&job), ps_tasks()->tasks[i]);
        assert_ptr_equal(ps_task_job_kinds()->kinds[i], job.kind);
    }
    assert_null(ps_task_of_output(PS_SOURCE_DIR "/configs/job.schema.json"));
    assert_null(ps_task_of_output("/nowhere/at/all.h5"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(table_and_schema_name_the_same_tasks),
                                       cmocka_unit_test(table_and_schema_name_the_same_entries),
                                       cmocka_unit_test(an_unknown_task_is_told_all_names),
                                       cmocka_unit_test(planned_tasks_are_refused_and_claimed_nowhere),
                                       cmocka_unit_test(lines_are_complete),
                                       cmocka_unit_test(each_task_is_found_by_its_job)};
    return cmocka_run_group_tests(tests, read_schema, free_schema);
}
