#include "tasks/simulate/setup.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/bslz4.h"
#include "optics/optics_json.h"
#include "optics/plan.h"
#include "tasks/simulate/scatter.h"
#include "tasks/simulate/targets.h"

static const double default_budget_GiB = 4.0;
static const double bytes_per_GiB = 1073741824.0;
static const int64_t piece_bytes = 256 << 20; /* of counts, that a group of pixels or a block of positions takes at most */

int64_t ps_simulate_slots(const ps_simulate_setup *setup) {
    enum { SLOTS_PER_THREAD = 64 };
    int64_t block = setup->memory.positions_per_block, slots = SLOTS_PER_THREAD * setup->n_threads;
    return block < slots ? block : slots;
}

static ps_code load_optics(const ps_job *job, ps_optics *optics, ps_error *error) {
    switch (job->optics.source) {
    case PS_OPTICS_INLINE: PS_TRY(ps_optics_from_json(job->optics.json, "/optics", optics, error)); break;
    case PS_OPTICS_FILE: PS_TRY(ps_optics_load(job->optics.path, optics, NULL, error)); break;
    case PS_OPTICS_PER_FRAME:
        return PS_FAIL(error, PS_E_JOB,
                       "/optics/per_frame: a simulation has one optics, expected an object or a file; "
                       "/simulate/defocus_step_A changes it from frame to frame");
    }
    const char *missing = ps_optics_missing(optics);
    if (missing)
        return PS_FAIL(error, PS_E_JOB, "%s: /%s: missing; it is required where there is no recording that could tell it",
                       job->optics.path ? job->optics.path : "/optics", missing);
    if (optics->thickness_A != 0.0 || optics->tilt_mrad[0] != 0.0 || optics->tilt_mrad[1] != 0.0)
        return PS_FAIL(error, PS_E_JOB,
                       "/optics: found thickness_A %g and tilt_mrad [%g, %g], expected 0: the simulation scatters in a single thin slice",
                       optics->thickness_A, optics->tilt_mrad[0], optics->tilt_mrad[1]);
    return PS_OK;
}

static ps_code check_name(const ps_job_simulate *job, ps_error *error) {
    static const char ending[] = "_master.h5";
    const char *name = job->output_master;
    size_t length = strlen(name);
    if (length < sizeof ending || strcmp(name + length - (sizeof ending - 1), ending) != 0)
        return PS_FAIL(error, PS_E_JOB, "/simulate/output_master: found \"%s\", expected a name that ends in %s", name, ending);
    return PS_OK;
}

static ps_code check_sizes(const ps_simulate_setup *setup, ps_error *error) {
    const ps_job_simulate *job = setup->job;
    if (job->n_frames > INT32_MAX || setup->n_pixels > UINT32_MAX || setup->n_positions >= INT64_C(1) << 48)
        return PS_FAIL(error, PS_E_JOB,
                       "/simulate: %" PRId64 " frames of %" PRId64 " positions with %" PRId64 " pixels are more than expected",
                       job->n_frames, setup->n_positions, setup->n_pixels);
    if (setup->grid.rows > INT32_MAX || setup->grid.columns > INT32_MAX)
        return PS_FAIL(error, PS_E_JOB,
                       "/simulate/object_upsampling: %" PRId64 " makes an object of %" PRId64 " x %" PRId64 " points, too many",
                       setup->upsampling, setup->grid.rows, setup->grid.columns);
    return PS_OK;
}

/* Atoms must be larger than a grid point and their lattice must be within reach of the aperture, else pictures would show nothing. */
static ps_code check_crystal(const ps_simulate_setup *setup, ps_error *error) {
    const ps_job_simulate *job = setup->job;
    double reach_inv_A = 2e-3 * setup->optics.semiangle_mrad / ps_wavelength_A(setup->optics.voltage_V);
    double sigma_A = ps_crystal_sigma_A(job);
    double step_A = fmax(setup->grid.step_A[0], setup->grid.step_A[1]);
    if (1.0 / job->lattice_A >= reach_inv_A)
        return PS_FAIL(error, PS_E_JOB, "/simulate/lattice_A: found %g, expected more than %.3g: the aperture of %g mrad resolves no less",
                       job->lattice_A, 1.0 / reach_inv_A, setup->optics.semiangle_mrad);
    if (sigma_A < 0.4 * step_A)
        return PS_FAIL(error, PS_E_JOB, "/simulate/atom_sigma_A: found %g, expected at least %.3g, 0.4 of the object grid's step of %.3g A",
                       sigma_A, 0.4 * step_A, step_A);
    return PS_OK;
}

static ps_code check_width(const ps_simulate_setup *setup, double sigma_A, const char *of_what, ps_error *error) {
    double step_A = fmin(setup->grid.step_A[0], setup->grid.step_A[1]);
    if (sigma_A <= PS_WIDEST_GAUSSIAN * step_A) return PS_OK;
    return PS_FAIL(error, PS_E_JOB,
                   "/simulate: the object grid's step of %.3g A is too fine for sigma %.3g A of %s, expected at least %.3g A", step_A,
                   sigma_A, of_what, sigma_A / PS_WIDEST_GAUSSIAN);
}

static ps_code set_grid(ps_simulate_setup *setup, ps_error *error) {
    const ps_job_simulate *job = setup->job;
    setup->n_positions = job->scan_rows * job->scan_columns;
    setup->n_pixels = job->detector_rows * job->detector_columns;
    setup->upsampling = job->object_upsampling > 0 ? job->object_upsampling : ps_plan_auto_upsampling(&setup->optics);
    setup->grid.rows = job->scan_rows * setup->upsampling;
    setup->grid.columns = job->scan_columns * setup->upsampling;
    double nyquist_inv_A = INFINITY, extent_A[2];
    for (int axis = 0; axis < 2; axis++) {
        setup->grid.step_A[axis] = setup->optics.scan_step_A[axis] / (double)setup->upsampling;
        nyquist_inv_A = fmin(nyquist_inv_A, 0.5 / setup->grid.step_A[axis]);
        extent_A[axis] = (double)(axis == 0 ? job->scan_rows : job->scan_columns) * setup->optics.scan_step_A[axis];
    }
    setup->band_inv_A = fmin(1e-3 * setup->optics.semiangle_mrad / ps_wavelength_A(setup->optics.voltage_V), 0.95 * nyquist_inv_A);
    PS_TRY(check_sizes(setup, error));
    if (strcmp(job->object, "crystal") != 0)
        return job->moving_defect ? check_width(setup, ps_blob_sigma_A(setup->band_inv_A), "the moving defect", error) : PS_OK;
    PS_TRY(check_crystal(setup, error));
    PS_TRY(check_width(setup, ps_crystal_sigma_A(job), "atoms", error));
    return ps_lattice_fit(job->lattice_A, job->lattice_rotation_deg, extent_A, &setup->lattice, error);
}

ps_code ps_simulate_vacuum_sum(const ps_optics *optics, double *sum, ps_error *error) {
    ps_code code = PS_OK;
    ps_probe probe;
    ps_optics_probe(optics, &probe);
    double finest = fmin(optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1]);
    int64_t reach = (int64_t)ceil(optics->semiangle_mrad / finest) + 2, n = 2 * reach + 1;
    double *k = malloc(2 * (size_t)n * sizeof *k);
    PS_GO_ALLOC(error, k);
    ps_optics lattice = *optics;
    lattice.detector_center_px[1] += (double)reach - floor(optics->detector_center_px[1]);
    *sum = 0.0;
    for (int64_t row = -reach; row <= reach; row++) {
        lattice.detector_center_px[0] = optics->detector_center_px[0] - floor(optics->detector_center_px[0]) - (double)row;
        ps_optics_k(&lattice, 1, n, k, k + n);
        for (int64_t i = 0; i < n; i++) {
            double aperture = ps_probe_aperture(&probe, k[i], k[n + i]);
            *sum += aperture * aperture;
        }
    }
done:
    free(k);
    return code;
}

/* Counts where the vacuum has intensity 1: from the dose, or a quarter of what the dtype holds (2^22 where float32 ends) without noise. */
static ps_code set_scale(ps_simulate_setup *setup, ps_error *error) {
    double sum = 0.0;
    PS_TRY(ps_simulate_vacuum_sum(&setup->optics, &sum, error));
    if (setup->job->dose_per_position > 0.0)
        setup->counts_per_unit = setup->job->dose_per_position / sum;
    else
        setup->counts_per_unit = fmin(floor((double)ps_dtype_invalid_value(setup->job->dtype) / 4.0), 4194304.0);
    return PS_OK;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

/* Bytes at peak with the division in setup->memory: while pixels are scattered, or while positions are written. */
static int64_t peak_bytes(const ps_simulate_setup *setup, int64_t fixed) {
    const ps_simulate_memory *memory = &setup->memory;
    int64_t element = (int64_t)ps_dtype_bytes(setup->job->dtype), row = setup->n_pixels * element, threads = setup->n_threads;
    int64_t slots = ps_simulate_slots(setup), tile = memory->positions_per_block * memory->pixels_per_group * element;
    int64_t scattering = fixed + memory->pixels_per_group * setup->n_positions * element + (memory->in_memory ? 0 : threads * tile);
    int64_t writing = threads * row + slots * (int64_t)ps_bslz4_bound(setup->n_pixels, (size_t)element) +
                      (memory->in_memory ? 0 : memory->positions_per_block * row);
    return (memory->in_memory ? setup->n_positions * row : 0) + (scattering > writing ? scattering : writing);
}

/* Divides what the budget leaves after the object, its spectrum and the workspaces: a quarter for each kind of piece. */
static ps_code plan_memory(const ps_job *job, uint64_t available_bytes, ps_simulate_setup *setup, ps_error *error) {
    ps_simulate_memory *memory = &setup->memory;
    double budget_GiB = job->memory_budget_GiB > 0.0 ? job->memory_budget_GiB : default_budget_GiB;
    bool is_scarce = (double)available_bytes < budget_GiB * bytes_per_GiB;
    if (is_scarce) budget_GiB = (double)available_bytes / bytes_per_GiB;
    int64_t element = (int64_t)ps_dtype_bytes(setup->job->dtype), positions = setup->n_positions, pixels = setup->n_pixels;
    int64_t fine = setup->grid.rows * setup->grid.columns, per_thread = 8 * positions; /* intensities, counts */
    int64_t fixed = ps_scatter_bytes(&setup->grid, setup->job->scan_rows, setup->job->scan_columns, setup->n_threads) +
                    2 * (int64_t)sizeof(double) * fine + setup->n_threads * per_thread;
    int64_t left = (int64_t)(budget_GiB * bytes_per_GiB) - fixed, raw = positions * pixels * element;
    memory->in_memory = raw <= left / 2;
    int64_t pieces = memory->in_memory ? left - raw : left, share = pieces / 4 < piece_bytes ? pieces / 4 : piece_bytes;
    memory->pixels_per_group = clamp(share / (positions * element), 1, pixels);
    memory->positions_per_block = clamp(share / (pixels * element), 1, positions);
    memory->bytes = peak_bytes(setup, fixed);
    if (memory->bytes > (int64_t)(budget_GiB * bytes_per_GiB) && is_scarce)
        return PS_FAIL(error, PS_E_JOB,
                       "this scan and detector need at least %.2f GiB on each rank, %.2f GiB are there for it on this machine",
                       (double)memory->bytes / bytes_per_GiB + 0.005, budget_GiB);
    if (memory->bytes > (int64_t)(budget_GiB * bytes_per_GiB))
        return PS_FAIL(error, PS_E_JOB, "/compute/memory_budget_GiB: found %g%s, expected at least %.2f for this scan and detector",
                       budget_GiB, job->memory_budget_GiB > 0.0 ? "" : " (the default)", (double)memory->bytes / bytes_per_GiB + 0.005);
    return PS_OK;
}

ps_code ps_simulate_setup_build(const ps_job *job, uint64_t available_bytes, ps_simulate_setup *setup, ps_error *error) {
    *setup = (ps_simulate_setup){.job = ps_simulate_entry(job), .job_text = job->effective_text ? job->effective_text : ""};
    setup->n_threads = job->n_threads > 0 ? (int)job->n_threads : omp_get_max_threads();
    PS_TRY(check_name(setup->job, error));
    PS_TRY(load_optics(job, &setup->optics, error));
    PS_TRY(set_grid(setup, error));
    PS_TRY(set_scale(setup, error));
    return plan_memory(job, available_bytes, setup, error);
}

ps_optics ps_simulate_frame_optics(const ps_simulate_setup *setup, int64_t frame) {
    enum { C10 = 0 };
    ps_optics optics = setup->optics;
    optics.C_A[C10] -= (double)frame * setup->job->defocus_step_A;
    return optics;
}

ps_code ps_simulate_plan_build(const ps_job *job, uint64_t available_bytes, ps_simulate_plan *plan, ps_error *error) {
    ps_simulate_setup setup;
    PS_TRY(ps_simulate_guard(job, error));
    PS_TRY(ps_simulate_setup_build(job, available_bytes, &setup, error));
    *plan = (ps_simulate_plan){.upsampling = setup.upsampling, .object_rows = setup.grid.rows, .object_columns = setup.grid.columns};
    plan->bytes_per_frame = setup.n_positions * setup.n_pixels * (int64_t)ps_dtype_bytes(ps_simulate_entry(job)->dtype);
    plan->memory_bytes = setup.memory.bytes;
    plan->scratch_bytes = setup.memory.in_memory ? 0 : plan->bytes_per_frame;
    plan->n_atoms = 2 * setup.lattice.n_cells;
    memcpy(plan->object_step_A, setup.grid.step_A, sizeof plan->object_step_A);
    memcpy(plan->lattice_A, setup.lattice.vector_A, sizeof plan->lattice_A);
    return PS_OK;
}
