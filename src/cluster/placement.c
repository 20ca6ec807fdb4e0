#include "cluster/placement.h"

#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/binding.h"
#include "core/log.h"

/* What each rank of a node tells the others. */
typedef struct {
    ps_binding binding;
    int numa;
    int is_known;
} account;

static ps_code gather(const ps_cluster *cluster, const account *mine, account *all, bool *asked, char by[96], ps_error *error) {
    MPI_Comm node = MPI_COMM_NULL;
    int any = mine->binding.evidence.asked;
    PS_TRY(PS_MPI(error, MPI_Comm_split_type(cluster->communicator, MPI_COMM_TYPE_SHARED, cluster->rank, MPI_INFO_NULL, &node)));
    ps_code code = PS_MPI(error, MPI_Allgather(mine, (int)sizeof *mine, MPI_BYTE, all, (int)sizeof *all, MPI_BYTE, node));
    MPI_Comm_free(&node);
    PS_TRY(code);
    /* the launcher's command line is only seen on the node where it runs */
    PS_TRY(PS_MPI(error, MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, cluster->communicator)));
    *asked = any != 0;
    snprintf(by, 96, "%s", mine->binding.evidence.by[0] ? mine->binding.evidence.by : "seen on another node");
    return PS_OK;
}

/* false: nothing can be said or done here. */
static bool decide(const ps_cluster *cluster, const account *all, bool asked, ps_cores_plan *plan) {
    int n = cluster->n_node_ranks, me = cluster->node_rank;
    ps_cpu *cpus = malloc((size_t)PS_MAX_CPUS * sizeof *cpus);
    ps_cpu_set *bound = malloc((size_t)n * sizeof *bound);
    int *numa = malloc((size_t)n * sizeof *numa);
    bool good = cpus && bound && numa;
    for (int i = 0; good && i < n; i++) {
        good = all[i].is_known;
        bound[i] = all[i].binding.bound;
        numa[i] = all[i].numa;
    }
    if (good) {
        const ps_binding *first = &all[0].binding;
        ps_cores_question question = {.n_cpus = ps_binding_topology("", &first->allowed, cpus),
                                      .cpus = cpus,
                                      .n_ranks = n,
                                      .bound = bound,
                                      .numa = numa,
                                      .launched = first->evidence.launched,
                                      .asked = asked,
                                      .n_granted = first->evidence.n_granted};
        good = ps_cores_decide(&question, me, plan);
    }
    free(cpus);
    free(bound);
    free(numa);
    return good;
}

/* The node's first rank speaks for all of them. */
static void say(const ps_cluster *cluster, const ps_cores_plan *plan, const char *cores, const char *by) {
    char ranks[48];
    snprintf(ranks, sizeof ranks, "%d rank%s", cluster->n_node_ranks, cluster->n_node_ranks == 1 ? "" : "s");
    if (cluster->node_rank != 0) return;
    if (plan->action == PS_CORES_SPREAD)
        ps_log(PS_LOG_INFO,
               "%s: the launcher's own binding left %s less than a share of the CPUs (%.3g of %.3g), and none was asked for: ranks are "
               "spread, this one to CPUs %s",
               cluster->host, ranks, plan->had, plan->share, cores);
    if (plan->action == PS_CORES_FREED)
        ps_log(PS_LOG_INFO,
               "%s: the launcher's own binding left %s less than a share of the CPUs (%.3g of %.3g), and none was asked for: ranks run "
               "unbound with %d threads, for no "
               "control group tells which CPUs are the job's",
               cluster->host, ranks, plan->had, plan->share, plan->n_threads);
    if (plan->action == PS_CORES_SHORT)
        ps_log(PS_LOG_WARNING, "%s: the binding that was asked for (%s) leaves %s less than a share of the CPUs: %.3g of %.3g",
               cluster->host, by, ranks, plan->had, plan->share);
}

static void apply(ps_cluster *cluster, ps_cores_plan *plan, const char *by, int n_threads) {
    char cores[160];
    bool moves = plan->action == PS_CORES_SPREAD || plan->action == PS_CORES_FREED;
    if (moves && sched_setaffinity(0, sizeof plan->set, (const cpu_set_t *)&plan->set) != 0) {
        ps_log(PS_LOG_WARNING, "%s: this rank has %.3g CPUs, and Linux refuses to give it its share of %.3g", cluster->host, plan->had,
               plan->share);
        return;
    }
    ps_cpu_set_print(&plan->set, cores, sizeof cores);
    say(cluster, plan, cores, by);
    if (!getenv("OMP_NUM_THREADS")) omp_set_num_threads(n_threads > 0 ? n_threads : plan->n_threads);
    cluster->n_cpus = plan->n_threads;
    static const char *const done[] = {[PS_CORES_KEPT] = "as it was started",
                                       [PS_CORES_SPREAD] = "spread by the program",
                                       [PS_CORES_FREED] = "freed by the program",
                                       [PS_CORES_SHORT] = "as it was asked for"};
    snprintf(cluster->cores, sizeof cluster->cores, "CPUs %s, %s; %d threads; had %.3g of a share of %.3g", cores, done[plan->action],
             omp_get_max_threads(), plan->had, plan->share);
}

ps_code ps_place_ranks(ps_cluster *cluster, const char *pci_device, int n_threads, ps_error *error) {
    account mine = {.numa = pci_device ? ps_binding_numa_of("", pci_device) : -1};
    bool asked = false;
    char by[96];
    ps_cores_plan plan;
    mine.is_known = ps_binding_read(&mine.binding);
    account *all = calloc((size_t)cluster->n_node_ranks, sizeof *all);
    ps_code code = all ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate the list of bindings");
    code = ps_cluster_agree(cluster, code, error);
    if (code == PS_OK) code = gather(cluster, &mine, all, &asked, by, error);
    if (code == PS_OK && decide(cluster, all, asked, &plan)) apply(cluster, &plan, by, n_threads);
    free(all);
    return code;
}
