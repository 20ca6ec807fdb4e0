#include "tasks/simulate/specimen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

ps_code ps_specimen_build(const ps_job_simulate *job, const ps_fine_grid *grid, double band_inv_A, int64_t frame, ps_specimen *specimen,
                          ps_error *error) {
    ps_code code = PS_OK;
    size_t n = (size_t)(grid->rows * grid->columns);
    *specimen = (ps_specimen){.grid = *grid, .phase = calloc(n, sizeof(double)), .log_amplitude = calloc(n, sizeof(double))};
    PS_GO_ALLOC(error, specimen->phase && specimen->log_amplitude);
    if (strcmp(job->object, "crystal") == 0)
        PS_GO(ps_specimen_add_crystal(job, frame, specimen, error));
    else
        PS_GO(ps_specimen_add_noise(job, band_inv_A, frame, specimen, error));
done:
    if (code != PS_OK) ps_specimen_free(specimen);
    return code;
}

void ps_specimen_free(ps_specimen *specimen) {
    free(specimen->phase);
    free(specimen->log_amplitude);
    *specimen = (ps_specimen){0};
}
