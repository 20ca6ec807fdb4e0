#include "tasks/reconstruct/fitted.h"

#include <unistd.h>

#include "core/log.h"
#include "store/measured.h"
#include "tasks/fit/once.h"
#include "tasks/series.h"

/* Whether there is an output to go on with is rank 0's to say. */
static ps_code recall(const ps_cluster *cluster, const ps_job *job, bool resume, cJSON **json, ps_error *error) {
    ps_measured *measured = NULL;
    int exists = resume && cluster->rank == 0 && access(job->output_file, F_OK) == 0;
    *json = NULL;
    PS_TRY(PS_MPI(error, MPI_Bcast(&exists, 1, MPI_INT, 0, cluster->communicator)));
    if (!exists) return PS_OK;
    ps_code code = ps_measured_read(job->output_file, &measured, error);
    if (code == PS_OK && measured->n_optics < 1) code = PS_FAIL(error, PS_E_HDF5, "%s: no /entry/optics_0", job->output_file);
    if (code == PS_OK) {
        *json = cJSON_Parse(measured->optics[0].used);
        if (!*json) code = PS_FAIL(error, PS_E_HDF5, "%s: /entry/optics_0/used holds no optics", job->output_file);
    }
    ps_measured_free(measured);
    return ps_cluster_agree(cluster, code, error);
}

ps_code ps_reconstruct_fit(const ps_cluster *cluster, const ps_job *job, const ps_run_options *options, ps_job *fitted, cJSON **json,
                           char **text, ps_error *error) {
    *fitted = *job;
    *text = NULL;
    PS_TRY(ps_series_begin(cluster, job, error));
    PS_TRY(recall(cluster, job, options->resume, json, error));
    if (!*json) PS_TRY(ps_fit_once(cluster, job, job->own, options->retry_failed, json, text, error));
    if (cluster->rank == 0 && *text) ps_log(PS_LOG_INFO, "%s", *text);
    fitted->optics = (ps_job_optics){.source = PS_OPTICS_INLINE, .json = *json};
    return PS_OK;
}
