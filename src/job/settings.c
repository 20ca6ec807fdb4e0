/* --set path.to.key=value */
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "job/job_parts.h"

static ps_code bad_setting(const char *setting, const char *problem, ps_error *error) {
    return PS_FAIL(error, PS_E_JOB, "--set %s: %s", setting, problem);
}

/* JSON where the text is JSON, else the text itself. */
static cJSON *parse_value(const char *text) {
    cJSON *value = NULL;
    ps_error ignored = {0};
    if (ps_json_parse(text, strlen(text), "value", &value, &ignored) == PS_OK) return value;
    return cJSON_CreateString(text);
}

static bool read_index(const cJSON *array, const char *key, int *index) {
    if (!*key || strspn(key, "0123456789") != strlen(key) || strlen(key) > 8) return false;
    *index = atoi(key);
    return *index < cJSON_GetArraySize(array);
}

/* The object or array called key, made when it is missing or null. */
static ps_code step_into(cJSON **container, const char *key, const char *setting, ps_error *error) {
    int index;
    if (cJSON_IsArray(*container)) {
        if (!read_index(*container, key, &index)) return bad_setting(setting, "a list on the way has no such element", error);
        *container = cJSON_GetArrayItem(*container, index);
        return PS_OK;
    }
    if (!cJSON_IsObject(*container)) return bad_setting(setting, "something on the way is neither an object nor a list", error);
    cJSON *member = cJSON_GetObjectItemCaseSensitive(*container, key);
    if (member && cJSON_IsNull(member)) {
        cJSON_DeleteItemFromObjectCaseSensitive(*container, key);
        member = NULL;
    }
    *container = member ? member : cJSON_AddObjectToObject(*container, key);
    return *container ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for --set");
}

/* Takes value. */
static ps_code put_value(cJSON *container, const char *key, cJSON *value, const char *setting, ps_error *error) {
    int index;
    bool done = false;
    if (cJSON_IsArray(container) && read_index(container, key, &index)) done = cJSON_ReplaceItemInArray(container, index, value);
    if (cJSON_IsObject(container))
        done = cJSON_GetObjectItemCaseSensitive(container, key) ? cJSON_ReplaceItemInObjectCaseSensitive(container, key, value)
                                                                : cJSON_AddItemToObject(container, key, value);
    if (done) return PS_OK;
    cJSON_Delete(value);
    return bad_setting(setting, "the last key stands in neither an object nor a list that has it", error);
}

/* What is not UTF-8 is not shown: nobody knows what it would look like. */
static ps_code check_encoding(const char *setting, ps_error *error) {
    const char *bad = ps_utf8_find_bad(setting, strlen(setting));
    if (!bad) return PS_OK;
    return PS_FAIL(error, PS_E_JOB, "--set %.*s...: byte %zu (0x%02X) is not UTF-8, as a job's text must be", (int)(bad - setting), setting,
                   (size_t)(bad - setting), (unsigned)(unsigned char)*bad);
}

ps_code ps_job_apply_setting(cJSON *json, const char *setting, ps_error *error) {
    PS_TRY(check_encoding(setting, error));
    const char *equals = strchr(setting, '=');
    if (!equals || equals == setting) return bad_setting(setting, "expected path.to.key=value", error);
    char *path = strndup(setting, (size_t)(equals - setting)), *rest = path;
    if (!path) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for --set");
    ps_code code = PS_OK;
    cJSON *container = json;
    char *key = strsep(&rest, ".");
    while (code == PS_OK && rest) {
        code = *key ? step_into(&container, key, setting, error) : bad_setting(setting, "a key of the path is empty", error);
        key = strsep(&rest, ".");
    }
    if (code == PS_OK && !*key) code = bad_setting(setting, "a key of the path is empty", error);
    if (code == PS_OK) code = put_value(container, key, parse_value(equals + 1), setting, error);
    free(path);
    return code;
}
