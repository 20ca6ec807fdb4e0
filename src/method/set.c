#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "method/method.h"

static ps_code parse_all(const ps_json *place, ps_method_set *set, ps_error *error) {
    const char *names[PS_MOST_METHODS];
    char list[256] = "";
    for (int i = 0; i < ps_n_methods; i++) {
        size_t used = strlen(list);
        names[i] = ps_method_table[i]->name;
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    PS_TRY(ps_json_require(place, error));
    PS_TRY(ps_json_object(place, names, (size_t)ps_n_methods, error));
    if (!place->value->child) return ps_json_fail(place, error, "at least one of: %s", list);
    for (int i = 0; i < ps_n_methods; i++) {
        ps_json entry = ps_json_member(place, names[i]);
        if (!entry.value) continue;
        ps_method_settings *settings = &set->items[set->n++];
        *settings = (ps_method_settings){.method = ps_method_table[i], .smoothness_inv_A = INFINITY};
        PS_TRY(ps_method_table[i]->parse(&entry, settings, error));
    }
    return PS_OK;
}

ps_code ps_method_set_parse(const ps_json *place, ps_method_set *set, ps_error *error) {
    *set = (ps_method_set){0};
    ps_code code = parse_all(place, set, error);
    if (code != PS_OK) ps_method_set_free(set);
    return code;
}

ps_code ps_method_parse(const ps_method *method, const char *entry, ps_method_set *set, ps_error *error) {
    cJSON *json = cJSON_Parse(entry);
    ps_json place = ps_json_root(json, method->name);
    *set = (ps_method_set){.n = 1, .items = {{.method = method, .smoothness_inv_A = INFINITY}}};
    ps_code code =
        json ? method->parse(&place, &set->items[0], error) : PS_FAIL(error, PS_E_JOB, "%s: found %s, expected JSON", method->name, entry);
    cJSON_Delete(json);
    if (code != PS_OK) ps_method_set_free(set);
    return code;
}

void ps_method_set_free(ps_method_set *set) {
    for (int64_t i = 0; i < set->n; i++) free(set->items[i].strengths);
    *set = (ps_method_set){0};
}

ps_methods ps_method_set_bits(const ps_method_set *set) {
    ps_methods bits = 0;
    for (int64_t i = 0; i < set->n; i++) bits |= set->items[i].method->bits;
    return bits;
}

bool ps_method_set_needs_normal(const ps_method_set *set) {
    return (ps_method_set_bits(set) & PS_METHODS_PREPARED) != 0;
}

bool ps_method_set_wants_g(const ps_method_set *set) {
    for (int64_t i = 0; i < set->n; i++)
        if (set->items[i].method->wants_g && set->items[i].method->wants_g(&set->items[i])) return true;
    return false;
}

void ps_method_set_plan(const ps_method_set *set, ps_plan_options *options) {
    options->smoothness_phase_inv_A = options->smoothness_complex_inv_A = INFINITY;
    for (int64_t i = 0; i < set->n; i++)
        if (set->items[i].method->plan) set->items[i].method->plan(&set->items[i], options);
}

int64_t ps_method_set_images(const ps_method_set *set) {
    int64_t n = 0;
    for (int64_t i = 0; i < set->n; i++)
        for (int r = 0; r < set->items[i].method->n_results; r++)
            if (ps_result_is_image(&set->items[i].method->results[r])) n += ps_method_result_elements(&set->items[i], r, 1);
    return n;
}
