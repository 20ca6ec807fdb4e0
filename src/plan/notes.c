/* What the steps of a run plan say things with. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan/parts.h"

ps_code ps_run_plan_add_warning(ps_run_plan *plan, ps_error *error, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int used = vasprintf(&text, format, arguments);
    va_end(arguments);
    char **more = used < 0 ? NULL : realloc(plan->warnings, (size_t)(plan->n_warnings + 1) * sizeof *more);
    if (!more) {
        if (used >= 0) free(text);
        return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a warning");
    }
    plan->warnings = more;
    plan->warnings[plan->n_warnings++] = text;
    return PS_OK;
}

const char *ps_run_plan_group_name(const ps_run_group *group) {
    return group->source ? group->source : "/optics";
}

bool ps_run_plan_plausible_voltage(double voltage_V) {
    return voltage_V >= 1e4 && voltage_V <= 3e6;
}
