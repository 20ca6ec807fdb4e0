/* Which quantities a set of optics gives: those are where a search starts. */
#include <stdio.h>
#include <string.h>

#include "optics/quantem_fit.h"
#include "tasks/fit/item.h"

static bool has(const cJSON *object, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, key);
    return value && !cJSON_IsNull(value);
}

static bool gives_term(const cJSON *optics, int term) {
    char keys[2][16];
    const cJSON *aberrations = cJSON_GetObjectItemCaseSensitive(optics, "aberrations");
    snprintf(keys[0], sizeof keys[0], "C%d%d_A", ps_aberration_orders[term][0], ps_aberration_orders[term][1]);
    snprintf(keys[1], sizeof keys[1], "C%d%d_nm", ps_aberration_orders[term][0], ps_aberration_orders[term][1]);
    if (has(aberrations, keys[0]) || has(aberrations, keys[1])) return true;
    return term == 0 &&
           (has(optics, "defocus_A") || has(optics, "defocus_nm") || has(aberrations, "defocus_A") || has(aberrations, "defocus_nm"));
}

ps_code ps_fit_find_given(const ps_run_group *group, ps_fit_options *options, ps_error *error) {
    cJSON *optics = cJSON_Parse(group->given);
    if (!optics) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for optics");
    ps_json root = ps_json_root(optics, "optics");
    bool all = ps_quantem_fit_recognise(&root);
    for (int term = 0; term < PS_N_ABERRATIONS; term++) options->given[ps_fit_quantity_of_term(term)] = all || gives_term(optics, term);
    options->given[ps_fit_find_name("rotation_deg")] = all || has(optics, "rotation_deg");
    if (options->automatic && (all || has(optics, "detector_transpose") || has(optics, "detector_flip"))) options->transpose = false;
    cJSON_Delete(optics);
    return PS_OK;
}
