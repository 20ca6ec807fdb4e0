#include "core/usage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static double share_of(const ps_rank_usage *rank, double seconds) {
    return rank->work_s > 0 ? seconds / rank->work_s : 0;
}

static ps_usage_share combine_shares(const ps_rank_usage *ranks, int n, int resource) {
    double first = share_of(&ranks[0], ranks[0].busy_s[resource]);
    ps_usage_share share = {.least = first, .most = first};
    for (int i = 0; i < n; i++) {
        double value = share_of(&ranks[i], ranks[i].busy_s[resource]);
        share.mean += value / n;
        if (value < share.least) share.least = value;
        if (value > share.most) {
            share.most = value;
            share.most_rank = i;
        }
    }
    return share;
}

void ps_usage_combine(const ps_rank_usage *ranks, int n, ps_usage *usage) {
    *usage = (ps_usage){.n_ranks = n, .idle = 1};
    for (int r = 0; r < PS_N_RESOURCES; r++) usage->share[r] = combine_shares(ranks, n, r);
    for (int i = 0; i < n; i++) {
        if (ranks[i].start_s > usage->start_s) usage->start_s = ranks[i].start_s;
        if (ranks[i].work_s > usage->work_s) usage->work_s = ranks[i].work_s;
        usage->idle -= share_of(&ranks[i], ranks[i].any_s) / n;
        usage->processor_s += ranks[i].processor_s;
        for (int r = 0; r < PS_N_RESOURCES; r++) usage->busy_s[r] += ranks[i].busy_s[r];
        for (int s = 0; s < PS_N_STAGES; s++) usage->stage_s[s] += ranks[i].stage_s[s];
    }
    if (usage->idle < 0) usage->idle = 0;
}

ps_resource ps_usage_busiest(const double *shares) {
    int busiest = 0;
    for (int r = 1; r < PS_N_RESOURCES; r++)
        if (shares[r] > shares[busiest]) busiest = r;
    return (ps_resource)busiest;
}

void ps_usage_verdict(const double *shares, char *text, size_t bytes) {
    ps_resource busiest = ps_usage_busiest(shares);
    double share = shares[busiest];
    const char *name = ps_resource_name(busiest), *verb = busiest == PS_RESOURCE_CORES ? "were" : "was";
    if (share >= PS_BOUND_SHARE)
        snprintf(text, bytes, "bound by the %s, %.0f %% busy", name, 100 * share);
    else
        snprintf(text, bytes, "no resource was busy for half of the time; the %s %s the most, %.0f %%", name, verb, 100 * share);
}

static void append(char text[PS_USAGE_TEXT], const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(char text[PS_USAGE_TEXT], const char *format, ...) {
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, PS_USAGE_TEXT - used, format, arguments);
    va_end(arguments);
}

static void append_share(char text[PS_USAGE_TEXT], const ps_usage *usage, int resource) {
    const ps_usage_share *share = &usage->share[resource];
    if (share->most <= 0) return;
    append(text, "%s %.0f %%", ps_resource_name((ps_resource)resource), 100 * share->mean);
    if (usage->n_ranks > 1) append(text, " (%.0f to %.0f)", 100 * share->least, 100 * share->most);
    append(text, ", ");
}

void ps_usage_describe(const ps_usage *usage, char text[PS_USAGE_TEXT]) {
    double shares[PS_N_RESOURCES];
    for (int r = 0; r < PS_N_RESOURCES; r++) shares[r] = usage->share[r].mean;
    ps_usage_verdict(shares, text, PS_USAGE_TEXT);
    append(text, ": ");
    for (int r = 0; r < PS_N_RESOURCES; r++) append_share(text, usage, r);
    append(text, "nothing %.0f %% of %.3g s on frames", 100 * usage->idle, usage->work_s);
    if (usage->n_ranks > 1) append(text, " (means of %d ranks, least to most)", usage->n_ranks);
    append(text, "; %.3g s before the first", usage->start_s);
}

void ps_usage_describe_stages(const ps_usage *usage, char text[PS_USAGE_TEXT]) {
    text[0] = '\0';
    for (int s = 0; s < PS_N_STAGES; s++) append(text, "%s%s %.3g", s ? ", " : "", ps_stage_name((ps_stage)s), usage->stage_s[s]);
}
