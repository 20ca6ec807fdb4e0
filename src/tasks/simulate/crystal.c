/* A projected crystal: a square cell with a heavy atom at its corner and a light one at its centre, both Gaussian. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/simulate/random.h"
#include "tasks/simulate/specimen.h"

/* Heights of the heavy and the light atom relative to the heavy one; absorption falls off faster with atomic number than phase. */
static const double phase_height[2] = {1.0, 0.55}, absorption_height[2] = {-1.0, -0.3};

typedef struct {
    int64_t i, j; /* corner at i v0 + j v1 */
} cell;

typedef struct {
    const ps_job_simulate *job;
    ps_lattice lattice;
    double extent_A[2], origin_A[2]; /* the scan area; where cell (0, 0) is, drift included */
    double sigma_A;
    cell *vacant; /* [job->n_vacancies] cells without their heavy atom, owned */
} crystal;

ps_code ps_lattice_fit(double lattice_A, double rotation_deg, const double extent_A[2], ps_lattice *lattice, ps_error *error) {
    double angle = rotation_deg * M_PI / 180.0, c = cos(angle), s = sin(angle);
    const double ideal[2][2] = {{lattice_A * c, lattice_A * s}, {-lattice_A * s, lattice_A * c}};
    *lattice = (ps_lattice){0};
    for (int edge = 0; edge < 2; edge++)
        for (int v = 0; v < 2; v++) lattice->cells[edge][v] = llround(extent_A[edge] * ideal[v][edge] / (lattice_A * lattice_A));
    const int64_t(*n)[2] = (const int64_t(*)[2])lattice->cells;
    int64_t determinant = n[0][0] * n[1][1] - n[0][1] * n[1][0];
    if (determinant < 1 || determinant > INT32_MAX)
        return PS_FAIL(error, PS_E_JOB,
                       "/simulate/lattice_A: %" PRId64 " cells of %g A fit a scan area of %g x %g A, expected between 1 and %d",
                       determinant, lattice_A, extent_A[0], extent_A[1], INT32_MAX);
    lattice->n_cells = determinant;
    /* vectors = cells^-1 * edges, edges = diag(extent) */
    for (int axis = 0; axis < 2; axis++) {
        lattice->vector_A[0][axis] = (double)(axis == 0 ? n[1][1] : -n[0][1]) * extent_A[axis] / (double)determinant;
        lattice->vector_A[1][axis] = (double)(axis == 0 ? -n[1][0] : n[0][0]) * extent_A[axis] / (double)determinant;
    }
    return PS_OK;
}

double ps_crystal_sigma_A(const ps_job_simulate *job) {
    return job->atom_sigma_A > 0.0 ? job->atom_sigma_A : 0.1 * job->lattice_A;
}

static int64_t modulo(int64_t value, int64_t n) {
    int64_t rest = value % n;
    return rest < 0 ? rest + n : rest;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* Cell number `index` of n_cells: i below the greatest common divisor of the edges' first components meets every cell once. */
static cell cell_of(const ps_lattice *lattice, int64_t index) {
    int64_t rows = greatest_common_divisor(lattice->cells[0][0], lattice->cells[1][0]), columns = lattice->n_cells / rows;
    return (cell){index / columns, index % columns};
}

/* Whether two cells are the same in the periodic scan area: exact, for a corner is a whole number of edge/n_cells. */
static bool same_cell(const ps_lattice *lattice, cell a, cell b) {
    int64_t i = a.i - b.i, j = a.j - b.j, n = lattice->n_cells;
    return modulo(i * lattice->cells[1][1] - j * lattice->cells[1][0], n) == 0 &&
           modulo(j * lattice->cells[0][0] - i * lattice->cells[0][1], n) == 0;
}

static bool is_vacant(const crystal *c, cell candidate, int64_t n_vacant) {
    for (int64_t v = 0; v < n_vacant; v++)
        if (same_cell(&c->lattice, candidate, c->vacant[v])) return true;
    return false;
}

/* Where an atom is in the scan area; site 0 is the corner, site 1 the centre. */
static void atom_position(const crystal *c, cell where, int site, double at_A[2]) {
    double i = (double)where.i + 0.5 * site, j = (double)where.j + 0.5 * site;
    for (int axis = 0; axis < 2; axis++) {
        double at = c->origin_A[axis] + i * c->lattice.vector_A[0][axis] + j * c->lattice.vector_A[1][axis];
        at_A[axis] = at - floor(at / c->extent_A[axis]) * c->extent_A[axis];
    }
}

static void place_origin(crystal *c, double frame) {
    double u = ps_random_uniform(c->job->seed, PS_RANDOM_OFFSET, 0, 0), v = ps_random_uniform(c->job->seed, PS_RANDOM_OFFSET, 1, 0);
    for (int axis = 0; axis < 2; axis++)
        c->origin_A[axis] = u * c->lattice.vector_A[0][axis] + v * c->lattice.vector_A[1][axis] + frame * c->job->drift_A[axis];
}

/* The cell near the middle of the scan area, where the moving defect starts. */
static cell middle_cell(const ps_lattice *lattice) {
    return (cell){(lattice->cells[0][0] + lattice->cells[1][0]) / 2, (lattice->cells[0][1] + lattice->cells[1][1]) / 2};
}

static void choose_vacancies(crystal *c) {
    uint32_t draw = 0;
    for (int64_t n = 0; n < c->job->n_vacancies;) {
        double unit = ps_random_uniform(c->job->seed, PS_RANDOM_VACANCY, draw++, 0);
        cell candidate = cell_of(&c->lattice, (int64_t)(unit * (double)c->lattice.n_cells));
        if (is_vacant(c, candidate, n) || same_cell(&c->lattice, candidate, middle_cell(&c->lattice))) continue;
        c->vacant[n++] = candidate;
    }
}

/* The moving vacancy's cell after `frame` hops to one of four neighbours, never into another vacancy. */
static cell walk(const crystal *c, int64_t frame) {
    enum { TRIES = 32 }; /* enough to find a way out that exists */
    static const cell hops[4] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    cell at = middle_cell(&c->lattice);
    for (int64_t hop = 0; hop < frame; hop++)
        for (uint32_t attempt = 0; attempt < TRIES; attempt++) {
            int way = (int)(4.0 * ps_random_uniform(c->job->seed, PS_RANDOM_HOP, (uint32_t)hop, attempt));
            cell next = {at.i + hops[way].i, at.j + hops[way].j};
            if (is_vacant(c, next, c->job->n_vacancies)) continue;
            at = next;
            break;
        }
    return at;
}

static void render(const crystal *c, const ps_fine_grid *grid, const double height[2], double factor, double *field) {
    for (int64_t index = 0; index < c->lattice.n_cells; index++)
        for (int site = 0; site < 2; site++) {
            double at_A[2];
            atom_position(c, cell_of(&c->lattice, index), site, at_A);
            ps_gaussian_add(grid, at_A, c->sigma_A, factor * height[site], field);
        }
}

static double mean_of(const double *field, int64_t n) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += field[i];
    return sum / (double)n;
}

/* What heights are multiplied by so that the perfect crystal of frame 0 has this root mean square. field: zero, and zero again after. */
static double scale_for(crystal *c, const ps_fine_grid *grid, const double height[2], double root_mean_square, double *field) {
    int64_t n = grid->rows * grid->columns;
    double sum = 0.0;
    place_origin(c, 0.0);
    render(c, grid, height, 1.0, field);
    double mean = mean_of(field, n);
    for (int64_t i = 0; i < n; i++) sum += (field[i] - mean) * (field[i] - mean);
    memset(field, 0, (size_t)n * sizeof *field);
    return root_mean_square / sqrt(sum / (double)n);
}

static void add_field(crystal *c, int64_t frame, const double height[2], double root_mean_square, ps_specimen *specimen, double *field) {
    const ps_fine_grid *grid = &specimen->grid;
    int64_t n = grid->rows * grid->columns;
    if (root_mean_square == 0.0) return;
    double factor = scale_for(c, grid, height, root_mean_square, field), at_A[2];
    place_origin(c, (double)frame);
    render(c, grid, height, factor, field);
    for (int64_t v = 0; v < c->job->n_vacancies; v++) {
        atom_position(c, c->vacant[v], 0, at_A);
        ps_gaussian_add(grid, at_A, c->sigma_A, -factor * height[0], field);
    }
    if (specimen->has_defect) ps_gaussian_add(grid, specimen->defect_A, c->sigma_A, -factor * height[0], field);
    double mean = mean_of(field, n);
    for (int64_t i = 0; i < n; i++) field[i] -= mean;
}

ps_code ps_specimen_add_crystal(const ps_job_simulate *job, int64_t frame, ps_specimen *specimen, ps_error *error) {
    ps_code code = PS_OK;
    crystal c = {.job = job, .sigma_A = ps_crystal_sigma_A(job)};
    c.extent_A[0] = (double)specimen->grid.rows * specimen->grid.step_A[0];
    c.extent_A[1] = (double)specimen->grid.columns * specimen->grid.step_A[1];
    PS_GO(ps_lattice_fit(job->lattice_A, job->lattice_rotation_deg, c.extent_A, &c.lattice, error));
    if (job->n_vacancies > c.lattice.n_cells / 2) {
        code = PS_FAIL(error, PS_E_JOB, "/simulate/vacancies: found %" PRId64 ", expected at most half of the %" PRId64 " cells",
                       job->n_vacancies, c.lattice.n_cells);
        goto done;
    }
    c.vacant = calloc((size_t)job->n_vacancies + 1, sizeof *c.vacant);
    PS_GO_ALLOC(error, c.vacant);
    choose_vacancies(&c);
    place_origin(&c, (double)frame);
    specimen->has_defect = job->moving_defect;
    if (job->moving_defect) atom_position(&c, walk(&c, frame), 0, specimen->defect_A);
    add_field(&c, frame, phase_height, job->phase_rad, specimen, specimen->phase);
    add_field(&c, frame, absorption_height, job->log_amplitude, specimen, specimen->log_amplitude);
done:
    free(c.vacant);
    return code;
}
