/* The simulate task: objects, the turning of counts, what is refused, and whole recordings read back. */
#include <complex.h>
#include <dirent.h>
#include <fftw3.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/text.h"
#include "input/open.h"
#include "input/reader.h"
#include "optics/optics_json.h"
#include "tasks/simulate/run.h"
#include "tasks/simulate/setup.h"
#include "tasks/simulate/transpose.h"
#include "tasks/tasks.h"

static const ps_cluster cluster = {.n_ranks = 1}; /* one process, which needs no MPI */
static const ps_run_options afresh = {0}, overwriting = {.overwrite = true}, resuming = {.resume = true};
static char folder[] = "/tmp/ptyseries-simulate-XXXXXX";

static void assert_close(double found, double expected, double tolerance) {
    if (!(fabs(found - expected) <= tolerance)) fail_msg("found %.17g, expected %.17g within %g", found, expected, tolerance);
}

static void lattices_fit_the_scan_area(void **state) {
    (void)state;
    const double extents[][2] = {{40, 40}, {37.5, 61.2}, {191, 190}}, rotations[] = {0, 15, -37, 90, 200};
    for (size_t e = 0; e < 3; e++)
        for (size_t r = 0; r < 5; r++) {
            ps_lattice lattice;
            assert_int_equal(ps_lattice_fit(3.9, rotations[r], extents[e], &lattice, NULL), PS_OK);
            for (int edge = 0; edge < 2; edge++)
                for (int axis = 0; axis < 2; axis++) {
                    double sum = (double)lattice.cells[edge][0] * lattice.vector_A[0][axis] +
                                 (double)lattice.cells[edge][1] * lattice.vector_A[1][axis];
                    assert_close(sum, edge == axis ? extents[e][edge] : 0.0, 1e-9);
                }
            double area = lattice.vector_A[0][0] * lattice.vector_A[1][1] - lattice.vector_A[0][1] * lattice.vector_A[1][0];
            assert_close(area * (double)lattice.n_cells, extents[e][0] * extents[e][1], 1e-6);
            assert_close(hypot(lattice.vector_A[0][0], lattice.vector_A[0][1]), 3.9, 0.1 * 3.9);
            assert_close(atan2(lattice.vector_A[0][1], lattice.vector_A[0][0]) - rotations[r] * M_PI / 180,
                         2 * M_PI * round((atan2(lattice.vector_A[0][1], lattice.vector_A[0][0]) - rotations[r] * M_PI / 180) / (2 * M_PI)),
                         0.1);
        }
}

static void lattices_too_large_are_refused(void **state) {
    (void)state;
    ps_error error = {0};
    ps_lattice lattice;
    assert_int_equal(ps_lattice_fit(30, 0, (const double[]){10, 10}, &lattice, &error), PS_E_JOB);
    assert_non_null(strstr(error.text, "/simulate/lattice_A"));
}

static const ps_fine_grid grid = {60, 75, {0.5, 0.4}};

static ps_job_simulate crystal_job(void) {
    return (ps_job_simulate){.seed = 5,
                             .object = "crystal",
                             .lattice_A = 3.9,
                             .lattice_rotation_deg = 20,
                             .phase_rad = 0.1,
                             .log_amplitude = 0.03,
                             .drift_A = {1.0, -0.8},
                             .n_frames = 4};
}

static ps_specimen build(const ps_job_simulate *job, int64_t frame) {
    ps_specimen specimen;
    assert_int_equal(ps_specimen_build(job, &grid, 0.5, frame, &specimen, NULL), PS_OK);
    return specimen;
}

static double mean_square(const double *field, double *mean) {
    double sum = 0.0, squares = 0.0, n = (double)(grid.rows * grid.columns);
    for (int64_t i = 0; i < grid.rows * grid.columns; i++) {
        sum += field[i];
        squares += field[i] * field[i];
    }
    *mean = sum / n;
    return squares / n;
}

static void check_moments(const double *field, double root_mean_square) {
    double mean, square = mean_square(field, &mean);
    assert_close(mean, 0.0, 1e-12);
    assert_close(sqrt(square), root_mean_square, 1e-12);
}

static double at(const double *field, int64_t row, int64_t column) {
    return field[(row + grid.rows) % grid.rows * grid.columns + (column + grid.columns) % grid.columns];
}

/* Frame 1 is frame 0, two rows down and two columns to the left. */
static void check_drift(const double *before, const double *after) {
    for (int64_t r = 0; r < grid.rows; r++)
        for (int64_t c = 0; c < grid.columns; c++) assert_close(at(after, r, c), at(before, r - 2, c + 2), 1e-9);
}

static void objects_have_the_asked_moments_and_drift(void **state) {
    (void)state;
    const char *const objects[] = {"crystal", "random"};
    for (int i = 0; i < 2; i++) {
        ps_job_simulate job = crystal_job();
        snprintf(job.object, sizeof job.object, "%s", objects[i]);
        ps_specimen first = build(&job, 0), second = build(&job, 1);
        check_moments(first.phase, 0.1);
        check_moments(first.log_amplitude, 0.03);
        check_drift(first.phase, second.phase);
        check_drift(first.log_amplitude, second.log_amplitude);
        ps_specimen_free(&first);
        ps_specimen_free(&second);
        job.seed++;
        first = build(&job, 0);
        job.seed--;
        second = build(&job, 0);
        double most = 0.0;
        for (int64_t p = 0; p < grid.rows * grid.columns; p++) most = fmax(most, fabs(first.phase[p] - second.phase[p]));
        assert_true(most > 0.05);
        ps_specimen_free(&first);
        ps_specimen_free(&second);
    }
}

/* Whole cells apart: difference = i v0 + j v1 modulo the scan area, with |i| + |j| = 1. */
static bool is_one_hop(const ps_lattice *lattice, const double from[2], const double to[2]) {
    for (int v = 0; v < 2; v++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double miss = 0.0;
            for (int axis = 0; axis < 2; axis++) {
                double extent = 30.0, d = to[axis] - from[axis] - sign * lattice->vector_A[v][axis];
                miss = fmax(miss, fabs(d - extent * round(d / extent)));
            }
            if (miss < 1e-9) return true;
        }
    return false;
}

static void the_vacancy_hops_from_cell_to_cell(void **state) {
    (void)state;
    ps_job_simulate job = crystal_job();
    ps_lattice lattice;
    job.drift_A[0] = job.drift_A[1] = 0.0;
    assert_int_equal(ps_lattice_fit(3.9, 20, (const double[]){30, 30}, &lattice, NULL), PS_OK);
    ps_specimen whole = build(&job, 0);
    job.moving_defect = true;
    for (int64_t frame = 0; frame < 4; frame++) {
        ps_specimen now = build(&job, frame), next = build(&job, frame + 1);
        assert_true(now.has_defect);
        assert_true(is_one_hop(&lattice, now.defect_A, next.defect_A));
        /* what is missing is one Gaussian of positive phase: its centre of mass is where the truth says */
        double deepest = 0.0;
        int64_t where = 0;
        for (int64_t p = 0; p < grid.rows * grid.columns; p++)
            if (now.phase[p] - whole.phase[p] < deepest) {
                deepest = now.phase[p] - whole.phase[p];
                where = p;
            }
        assert_true(deepest < -0.1);
        assert_close((double)(where / grid.columns) * grid.step_A[0], now.defect_A[0], 0.51 * grid.step_A[0]);
        assert_close((double)(where % grid.columns) * grid.step_A[1], now.defect_A[1], 0.51 * grid.step_A[1]);
        ps_specimen_free(&now);
        ps_specimen_free(&next);
    }
    ps_specimen_free(&whole);
}

static double sum_of_difference(const ps_job_simulate *a, const ps_job_simulate *b) {
    ps_specimen first = build(a, 2), second = build(b, 2);
    double sum = 0.0, corner = first.phase[0] - second.phase[0];
    /* means are 0, so sums are compared after the background, which is the same everywhere, is taken off */
    for (int64_t p = 0; p < grid.rows * grid.columns; p++) corner = fmin(corner, first.phase[p] - second.phase[p]);
    for (int64_t p = 0; p < grid.rows * grid.columns; p++) sum += first.phase[p] - second.phase[p] - corner;
    ps_specimen_free(&first);
    ps_specimen_free(&second);
    return sum;
}

static void vacancies_are_as_many_as_asked(void **state) {
    (void)state;
    ps_job_simulate whole = crystal_job(), one = whole, five = whole;
    one.n_vacancies = 1;
    five.n_vacancies = 5;
    double single = sum_of_difference(&whole, &one);
    assert_true(single > 0.0);
    assert_close(sum_of_difference(&whole, &five), 5.0 * single, 1e-4 * single);
}

static void noise_stays_in_its_band(void **state) {
    (void)state;
    ps_job_simulate job = crystal_job();
    snprintf(job.object, sizeof job.object, "random");
    ps_specimen specimen = build(&job, 3);
    fftw_complex *spectrum = fftw_alloc_complex((size_t)(grid.rows * (grid.columns / 2 + 1)));
    double inside = 0.0;
    fftw_plan plan = fftw_plan_dft_r2c_2d((int)grid.rows, (int)grid.columns, specimen.phase, spectrum, FFTW_ESTIMATE);
    fftw_execute(plan);
    for (int64_t r = 0; r < grid.rows; r++)
        for (int64_t c = 0; c <= grid.columns / 2; c++) {
            double q_row = (double)(2 * r < grid.rows ? r : r - grid.rows) / 30.0, q = hypot(q_row, (double)c / 30.0);
            double size = cabs(spectrum[r * (grid.columns / 2 + 1) + c]);
            if (q >= 0.5) assert_true(size <= 1e-9);
            inside += size;
        }
    assert_true(inside > 1.0);
    fftw_destroy_plan(plan);
    fftw_free(spectrum);
    ps_specimen_free(&specimen);
}

/* The value a count has in these tests, of its place alone. */
static uint32_t count_at(int64_t position, int64_t pixel, size_t bytes) {
    uint32_t value = (uint32_t)(position * 7919 + pixel * 104729 + 13);
    return bytes == 4 ? value : value & ((1u << 8 * bytes) - 1);
}

static void store(void *counts, int64_t at_index, size_t bytes, uint32_t value) {
    memcpy((uint8_t *)counts + (size_t)at_index * bytes, &value, bytes); /* little endian */
}

static void check_transpose(const ps_transpose_shape *shape) {
    ps_transpose *turning = NULL;
    size_t bytes = shape->element_bytes;
    int64_t n_groups = (shape->n_pixels + shape->pixels_per_group - 1) / shape->pixels_per_group;
    uint8_t *counts = malloc((size_t)(shape->pixels_per_group * shape->n_positions) * bytes);
    uint8_t *tiles = malloc((size_t)(shape->positions_per_block * shape->n_pixels) * bytes),
            *pixels = malloc((size_t)shape->n_pixels * bytes);
    assert_int_equal(ps_transpose_create(folder, shape, &turning, NULL), PS_OK);
    for (int64_t group = n_groups - 1; group >= 0; group--) {
        for (int64_t i = 0; i < shape->pixels_per_group; i++)
            for (int64_t p = 0; p < shape->n_positions; p++)
                store(counts, i * shape->n_positions + p, bytes, count_at(p, group * shape->pixels_per_group + i, bytes));
        assert_int_equal(ps_transpose_put(turning, group, counts, 2, NULL), PS_OK);
    }
    for (int64_t position = 0; position < shape->n_positions; position++) {
        const void *found = NULL;
        int64_t block = position / shape->positions_per_block;
        assert_int_equal(ps_transpose_get(turning, block, tiles, &found, NULL), PS_OK);
        ps_transpose_pick(turning, block, found, position % shape->positions_per_block, pixels);
        for (int64_t pixel = 0; pixel < shape->n_pixels; pixel++) {
            uint32_t value = 0;
            memcpy(&value, pixels + (size_t)pixel * bytes, bytes);
            assert_int_equal(value, count_at(position, pixel, bytes));
        }
    }
    ps_transpose_destroy(turning);
    free(counts);
    free(tiles);
    free(pixels);
}

static int64_t files_in_folder(void) {
    int64_t n = 0;
    DIR *directory = opendir(folder);
    for (struct dirent *entry; (entry = readdir(directory));) n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return n;
}

static void counts_are_turned_in_memory_and_on_disk(void **state) {
    (void)state;
    const ps_transpose_shape shapes[] = {{35, 77, 8, 10, 2, true}, {35, 77, 8, 10, 2, false},   {1, 5, 1, 5, 1, false},
                                         {64, 1, 64, 1, 4, false}, {130, 70, 100, 33, 4, true}, {130, 70, 33, 70, 1, false}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_transpose(&shapes[i]);
    assert_int_equal(files_in_folder(), 0);
}

static const char job_text[] =
    "{\"task\": \"simulate\","
    " \"optics\": {\"voltage_V\": 300000, \"semiangle_mrad\": 20, \"scan_step_A\": [0.5, 0.4], \"detector_pitch_mrad\": [5, 4],"
    " \"detector_center_px\": [5.2, 6.1], \"rotation_deg\": 10, \"aberrations\": {\"C10_A\": -100, \"C21_A\": 2000}},"
    " \"simulate\": {\"seed\": 3, \"output_master\": \"run/s_{frame}_master.h5\", \"frames\": 2, \"scan_shape\": [12, 15], "
    "\"detector_shape\": [12, 13],"
    " \"object\": \"crystal\", \"lattice_A\": 2.5, \"phase_rad\": 0.1, \"dose_per_position\": 1e4, \"dtype\": \"uint16\","
    " \"defocus_step_A\": 25, \"drift_A\": [0.1, 0], \"moving_defect\": true, \"positions_per_file\": 100}}";

/* Parses the job above with settings ("path.to.key=value", NULL: none). */
static void parse(const char *const *settings, int64_t n, ps_job *job) {
    ps_error error = {0};
    if (ps_job_parse(ps_task_job_kinds(), job_text, folder, settings, n, job, &error) != PS_OK) fail_msg("%s", error.text);
}

static void check_refusal(const char *setting, const char *expected) {
    ps_job job;
    ps_error error = {0};
    ps_simulate_plan plan;
    parse(&setting, 1, &job);
    assert_int_equal(ps_simulate_plan_build(&job, UINT64_MAX, &plan, &error), PS_E_JOB);
    if (!strstr(error.text, expected)) fail_msg("%s: '%s' is not in: %s", setting, expected, error.text);
    ps_error_clear(&error);
    assert_int_equal(ps_simulate(&cluster, &job, &afresh, &error), PS_E_JOB);
    ps_job_free(&job);
    assert_int_equal(files_in_folder(), 0);
}

static void impossible_jobs_are_refused(void **state) {
    (void)state;
    check_refusal("optics.thickness_A=50", "thin slice");
    check_refusal("optics.tilt_mrad=[1,0]", "thin slice");
    check_refusal("simulate.output_master=run/s_{frame}.h5", "_master.h5");
    check_refusal("simulate.lattice_A=0.4", "/simulate/lattice_A: found 0.4");
    check_refusal("simulate.lattice_A=50", "/simulate/lattice_A: 0 cells of 50 A");
    check_refusal("simulate.atom_sigma_A=0.01", "/simulate/atom_sigma_A");
    check_refusal("simulate.atom_sigma_A=12", "is too fine for sigma 12 A of atoms");
    check_refusal("simulate.scan_shape=[6000,6000]", "/compute/memory_budget_GiB: found 4 (the default)");
}

static void the_plan_says_what_will_be_done(void **state) {
    (void)state;
    ps_job job;
    ps_simulate_plan plan;
    parse(NULL, 0, &job);
    assert_int_equal(ps_simulate_plan_build(&job, UINT64_MAX, &plan, NULL), PS_OK);
    assert_int_equal(plan.upsampling, 3); /* 2 * 20 mrad / 0.0197 A = 2.03 1/A; 3/(2 * 0.5 A) = 3, 2/(2 * 0.5 A) = 2 is less */
    assert_int_equal(plan.object_rows, 36);
    assert_int_equal(plan.object_columns, 45);
    assert_close(plan.object_step_A[0], 0.5 / 3, 1e-12);
    assert_int_equal(plan.bytes_per_frame, 12 * 15 * 12 * 13 * 2);
    assert_int_equal(plan.n_atoms, 2 * 2 * 2);
    assert_int_equal(plan.scratch_bytes, 0);
    ps_job_free(&job);
}

static char *in_folder(const char *name) {
    char *path = ps_text_format("%s/run/%s", folder, name);
    assert_non_null(path);
    return path;
}

static void remove_run(void) {
    char *directory = ps_text_format("%s/run", folder);
    DIR *handle = opendir(directory);
    for (struct dirent *entry; handle && (entry = readdir(handle));) unlinkat(dirfd(handle), entry->d_name, 0);
    if (handle) closedir(handle);
    rmdir(directory);
    free(directory);
}

/* counts: [12 * 15, 12 * 13]; owned by the caller. */
static uint16_t *read_counts(const char *name) {
    ps_reader *reader = NULL;
    ps_error error = {0};
    char *path = in_folder(name);
    const ps_reader_options options = {.scan_rows = 12, .scan_columns = 15};
    if (ps_reader_open(path, &options, &reader, &error) != PS_OK) fail_msg("%s", error.text);
    assert_int_equal(reader->info.n_positions, 180);
    assert_int_equal(reader->info.detector_rows, 12);
    assert_int_equal(reader->info.detector_columns, 13);
    assert_int_equal(reader->info.dtype, PS_U16);
    assert_close(reader->info.voltage_V, 300e3, 0);
    uint16_t *counts = malloc(180 * 156 * sizeof *counts);
    if (ps_reader_read(reader, 0, 180, counts, &error) != PS_OK) fail_msg("%s", error.text);
    ps_reader_close(reader);
    free(path);
    return counts;
}

static void check_series(void) {
    for (int frame = 0; frame < 2; frame++) {
        char name[64];
        snprintf(name, sizeof name, "s_%03d_master.h5", frame);
        uint16_t *counts = read_counts(name);
        double sum = 0.0;
        for (int i = 0; i < 180 * 156; i++) sum += counts[i];
        assert_close(sum / 180, 1e4, 0.02 * 1e4);
        free(counts);
        ps_optics optics;
        snprintf(name, sizeof name, "s_%03d_optics.json", frame);
        char *path = in_folder(name);
        assert_int_equal(ps_optics_load(path, &optics, NULL, NULL), PS_OK);
        assert_close(optics.C_A[0], -100.0 - 25.0 * frame, 1e-12);
        assert_close(optics.C_A[2], 2000.0, 1e-9);
        free(path);
        snprintf(name, sizeof name, "s_%03d_truth.h5", frame);
        path = in_folder(name);
        assert_int_equal(access(path, R_OK), 0);
        free(path);
    }
}

static void recordings_are_written_and_read_back(void **state) {
    (void)state;
    ps_job job;
    ps_error error = {0};
    parse(NULL, 0, &job);
    if (ps_simulate(&cluster, &job, &afresh, &error) != PS_OK) fail_msg("%s", error.text);
    check_series();
    uint16_t *before = read_counts("s_001_master.h5");
    assert_int_equal(ps_simulate(&cluster, &job, &afresh, &error), PS_E_ARGUMENT);
    assert_non_null(strstr(error.text, "s_000_master.h5: exists already"));
    ps_job_free(&job);
    /* longer data files: fewer of them, and the old second one must go */
    parse((const char *const[]){"simulate.positions_per_file=null", "compute.memory_budget_GiB=0.0012"}, 2, &job);
    ps_error_clear(&error);
    if (ps_simulate(&cluster, &job, &overwriting, &error) != PS_OK) fail_msg("%s", error.text);
    uint16_t *after = read_counts("s_001_master.h5");
    assert_memory_equal(before, after, 180 * 156 * sizeof *after);
    char *second = in_folder("s_001_data_000002.h5");
    assert_int_not_equal(access(second, F_OK), 0);
    free(second);
    free(before);
    free(after);
    ps_job_free(&job);
    remove_run();
}

static void remove_file(const char *name) {
    char *path = in_folder(name);
    assert_int_equal(unlink(path), 0);
    free(path);
}

/* A missing frame is made again, whole ones are kept, other science is refused with the difference. */
static void series_are_resumed(void **state) {
    (void)state;
    ps_job job;
    ps_error error = {0};
    parse(NULL, 0, &job);
    assert_int_equal(ps_simulate(&cluster, &job, &resuming, NULL), PS_OK);
    uint16_t *before = read_counts("s_000_master.h5");
    remove_file("s_000_master.h5");
    remove_file("s_001_data_000001.h5"); /* never looked at: its master stands */
    assert_int_equal(ps_simulate(&cluster, &job, &resuming, NULL), PS_OK);
    uint16_t *after = read_counts("s_000_master.h5");
    assert_memory_equal(before, after, 180 * 156 * sizeof *after);
    char *kept = in_folder("s_001_data_000001.h5");
    assert_int_not_equal(access(kept, F_OK), 0);
    ps_job_free(&job);
    parse((const char *const[]){"optics.aberrations.C21_A=2500", "simulate.frames=1"}, 2, &job);
    assert_int_equal(ps_simulate(&cluster, &job, &resuming, &error), PS_E_JOB);
    assert_non_null(strstr(error.text, "simulated with \"C21_A\":\t2000"));
    free(kept);
    free(before);
    free(after);
    ps_job_free(&job);
    remove_run();
}

static void counts_that_do_not_fit_are_an_error(void **state) {
    (void)state;
    ps_job job;
    ps_error error = {0};
    parse((const char *const[]){"simulate.dtype=uint8", "simulate.frames=1", "simulate.dose_per_position=3e4"}, 3, &job);
    assert_int_equal(ps_simulate(&cluster, &job, &afresh, &error), PS_E_JOB);
    assert_non_null(strstr(error.text, "uint8 holds at most 254"));
    char *master = in_folder("s_000_master.h5"), *truth = in_folder("s_000_truth.h5");
    assert_int_not_equal(access(master, F_OK), 0);
    assert_int_not_equal(access(truth, F_OK), 0);
    free(master);
    free(truth);
    ps_job_free(&job);
    remove_run();
}

/* Without a dose counts are the rounded intensities: brightest where the model says, a quarter of the type's range in vacuum. */
static void no_dose_means_no_noise(void **state) {
    (void)state;
    ps_job job;
    parse((const char *const[]){"simulate.dose_per_position=null", "simulate.phase_rad=0", "simulate.frames=1"}, 3, &job);
    assert_int_equal(ps_simulate(&cluster, &job, &afresh, NULL), PS_OK);
    uint16_t *counts = read_counts("s_000_master.h5");
    for (int position = 0; position < 180; position++) {
        assert_int_equal(counts[position * 156 + 5 * 13 + 6], 16383);
        assert_int_equal(counts[position * 156 + 0], 0);
    }
    free(counts);
    ps_job_free(&job);
    remove_run();
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    remove_run();
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lattices_fit_the_scan_area),
        cmocka_unit_test(lattices_too_large_are_refused),
        cmocka_unit_test(objects_have_the_asked_moments_and_drift),
        cmocka_unit_test(the_vacancy_hops_from_cell_to_cell),
        cmocka_unit_test(vacancies_are_as_many_as_asked),
        cmocka_unit_test(noise_stays_in_its_band),
        cmocka_unit_test(counts_are_turned_in_memory_and_on_disk),
        cmocka_unit_test(impossible_jobs_are_refused),
        cmocka_unit_test(the_plan_says_what_will_be_done),
        cmocka_unit_test(recordings_are_written_and_read_back),
        cmocka_unit_test(series_are_resumed),
        cmocka_unit_test(counts_that_do_not_fit_are_an_error),
        cmocka_unit_test(no_dose_means_no_noise),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
