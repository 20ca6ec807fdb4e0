#include "cluster/cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"

static const double close_enough = 1e-6;

/* ---- sets --------------------------------------------------------------------------------------------------------------------- */

void ps_cpu_set_add(ps_cpu_set *set, int cpu) {
    if (cpu >= 0 && cpu < PS_MAX_CPUS) set->bits[cpu / 64] |= (uint64_t)1 << cpu % 64;
}

bool ps_cpu_set_has(const ps_cpu_set *set, int cpu) {
    return cpu >= 0 && cpu < PS_MAX_CPUS && set->bits[cpu / 64] >> cpu % 64 & 1;
}

int ps_cpu_set_count(const ps_cpu_set *set) {
    int n = 0;
    for (int i = 0; i < PS_MAX_CPUS / 64; i++) n += __builtin_popcountll(set->bits[i]);
    return n;
}

bool ps_cpu_set_parse(const char *text, ps_cpu_set *set) {
    *set = (ps_cpu_set){0};
    text += strspn(text, " \t\n");
    while (*text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (end == text || first < 0) return false;
        if (*end == '-') {
            text = end + 1;
            last = strtol(text, &end, 10);
            if (end == text || last < first) return false;
        }
        for (long cpu = first; cpu <= last && cpu < PS_MAX_CPUS; cpu++) ps_cpu_set_add(set, (int)cpu);
        text = end + strspn(end, ", \t\n");
        if (text == end && *text) return false;
    }
    return true;
}

void ps_cpu_set_print(const ps_cpu_set *set, char *text, size_t bytes) {
    size_t used = 0;
    if (bytes > 0) text[0] = '\0';
    for (int first = 0; first < PS_MAX_CPUS && used < bytes; first++) {
        if (!ps_cpu_set_has(set, first)) continue;
        int last = first;
        while (ps_cpu_set_has(set, last + 1)) last++;
        used += (size_t)snprintf(text + used, bytes - used, last > first ? "%s%d-%d" : "%s%d", used ? "," : "", first, last);
        first = last;
    }
}

/* ---- parts -------------------------------------------------------------------------------------------------------------------- */

/* By NUMA node, then core, then CPU: what adjoins in this order is near to each other. */
static int compare_cpus(const void *a, const void *b) {
    const ps_cpu *x = a, *y = b;
    if (x->numa != y->numa) return x->numa < y->numa ? -1 : 1;
    if (x->core != y->core) return x->core < y->core ? -1 : 1;
    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static int count_cores(const ps_cpu *sorted, int n) {
    int n_cores = 0;
    for (int i = 0; i < n; i++) n_cores += i == 0 || sorted[i].core != sorted[i - 1].core || sorted[i].numa != sorted[i - 1].numa;
    return n_cores;
}

/* The rank's turn when parts are handed out: ranks by their device's NUMA node, where all are known. */
static int turn_of(const ps_cores_question *q, int rank) {
    int turn = 0;
    for (int other = 0; other < q->n_ranks; other++)
        if (q->numa[other] < 0) return rank;
    for (int other = 0; other < q->n_ranks; other++)
        turn += q->numa[other] < q->numa[rank] || (other < rank && q->numa[other] == q->numa[rank]);
    return turn;
}

/* Part number turn of n_ranks: of the cores, or of the CPUs where cores are too few. */
static void take_part(const ps_cpu *sorted, int n_cpus, int n_ranks, int turn, ps_cpu_set *part) {
    int n_cores = count_cores(sorted, n_cpus), core = -1;
    bool by_core = n_cores >= n_ranks;
    int n = by_core ? n_cores : n_cpus;
    int begin = (int)((int64_t)turn * n / n_ranks), end = (int)(((int64_t)turn + 1) * n / n_ranks);
    if (end == begin) end = begin + 1;
    *part = (ps_cpu_set){0};
    for (int i = 0; i < n_cpus; i++) {
        if (i == 0 || sorted[i].core != sorted[i - 1].core || sorted[i].numa != sorted[i - 1].numa) core++;
        int at = by_core ? core : i;
        if (at >= begin && at < end) ps_cpu_set_add(part, sorted[i].cpu);
    }
}

/* ---- the decision ------------------------------------------------------------------------------------------------------------- */

/* CPUs that a rank has for itself, those it shares counted in parts. */
static double cpus_of(const ps_cores_question *q, int rank) {
    double cpus = 0;
    for (int i = 0; i < q->n_cpus; i++) {
        int n_sharing = 0;
        if (!ps_cpu_set_has(&q->bound[rank], q->cpus[i].cpu)) continue;
        for (int other = 0; other < q->n_ranks; other++) n_sharing += ps_cpu_set_has(&q->bound[other], q->cpus[i].cpu);
        cpus += 1.0 / n_sharing;
    }
    return cpus;
}

/* Does any rank have less than the smallest part that spreading would give? */
static bool is_short(const ps_cores_question *q, const ps_cpu *sorted, double share) {
    double least = share;
    for (int turn = 0; turn < q->n_ranks; turn++) {
        ps_cpu_set part;
        take_part(sorted, q->n_cpus, q->n_ranks, turn, &part);
        int n = ps_cpu_set_count(&part);
        if (n < least) least = n;
    }
    for (int rank = 0; rank < q->n_ranks; rank++)
        if (cpus_of(q, rank) < least - close_enough) return true;
    return false;
}

static int whole(double cpus) {
    return cpus < 1 ? 1 : (int)(cpus + close_enough);
}

bool ps_cores_decide(const ps_cores_question *q, int rank, ps_cores_plan *plan) {
    PS_ASSERT(rank >= 0 && rank < q->n_ranks);
    bool is_confined = q->n_granted <= 0 || q->n_cpus <= q->n_granted;
    *plan = (ps_cores_plan){.action = PS_CORES_KEPT, .set = q->bound[rank], .had = cpus_of(q, rank)};
    plan->share = (double)(is_confined ? q->n_cpus : q->n_granted) / q->n_ranks;
    ps_cpu *sorted = malloc(((size_t)q->n_cpus + 1) * sizeof *sorted);
    if (!sorted) return false;
    memcpy(sorted, q->cpus, (size_t)q->n_cpus * sizeof *sorted);
    qsort(sorted, (size_t)q->n_cpus, sizeof *sorted, compare_cpus);
    if (q->n_cpus > 0 && q->launched && is_short(q, sorted, plan->share))
        plan->action = q->asked ? PS_CORES_SHORT : is_confined ? PS_CORES_SPREAD : PS_CORES_FREED;
    if (plan->action == PS_CORES_SPREAD) take_part(sorted, q->n_cpus, q->n_ranks, turn_of(q, rank), &plan->set);
    if (plan->action == PS_CORES_FREED)
        for (int i = 0; i < q->n_cpus; i++) ps_cpu_set_add(&plan->set, q->cpus[i].cpu);
    free(sorted);
    double cpus = plan->action == PS_CORES_SPREAD ? ps_cpu_set_count(&plan->set) : plan->action == PS_CORES_FREED ? plan->share : plan->had;
    plan->n_threads = whole(is_confined || cpus < plan->share ? cpus : plan->share);
    return true;
}
