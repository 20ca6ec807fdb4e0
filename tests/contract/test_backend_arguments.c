/* Every bad argument is refused, with its reason, before a backend sees it: kernels/backend.c. And what a table lacks has its default. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "contract/problem.h"
#include "kernels/backend_bench.h"
#include "kernels/cpu/memory.h"

/* Calls with `e` as their error. */
#define REFUSED(call, text) problem_require_refused((call), &e, PS_E_ARGUMENT, text)

/* --- backends --- */

static void a_table_without_a_required_operation_is_refused(void **state) {
    const contract_backend *b = *state;
    ps_backend *backend = (ps_backend *)&b;
    ps_error e = {0};
#define WITHOUT(operation)                                                                                                     \
    do {                                                                                                                       \
        ps_backend_ops ops = *b->ops;                                                                                          \
        ops.operation = NULL;                                                                                                  \
        problem_require_refused(ps_backend_open(&ops, NULL, &backend, &e), &e, PS_E_INTERNAL, "no operation " #operation ","); \
        assert_null(backend);                                                                                                  \
    } while (0)
    WITHOUT(open);
    WITHOUT(close);
    WITHOUT(device_info);
    WITHOUT(memory_plan);
    WITHOUT(system_create);
    WITHOUT(system_destroy);
    WITHOUT(system_set_weights);
    WITHOUT(system_prepare);
    WITHOUT(frame_create);
    WITHOUT(frame_destroy);
    WITHOUT(frame_upload);
    WITHOUT(frame_mean_counts);
    WITHOUT(frame_reduce);
    WITHOUT(solve);
    WITHOUT(ssb);
    WITHOUT(right_side_image);
    WITHOUT(get_transfer);
    WITHOUT(get_normal);
    WITHOUT(get_eigenvalues);
    WITHOUT(get_right_side);
    WITHOUT(get_spectrum);
}

static ps_code two_devices(int *count, ps_error *error) {
    (void)error;
    *count = 2;
    return PS_OK;
}

static void bad_options_are_refused(void **state) {
    const contract_backend *b = *state;
    ps_backend *backend;
    ps_backend_ops with_devices = *b->ops;
    ps_error e = {0};
    with_devices.device_count = two_devices;
    REFUSED(ps_backend_open(NULL, NULL, &backend, &e), "ops is NULL");
    REFUSED(ps_backend_open(b->ops, NULL, NULL, &e), "backend is NULL");
    REFUSED(ps_backend_open(b->ops, &(ps_backend_options){.n_threads = -1}, &backend, &e), "found -1 threads");
    REFUSED(ps_backend_open(b->ops, &(ps_backend_options){.n_sharing = -3}, &backend, &e), "found -3 ranks");
    problem_require_refused(ps_backend_open(&with_devices, &(ps_backend_options){.device = 2}, &backend, &e), &e, PS_E_BACKEND,
                            "device 2, expected 0 to 1");
    problem_require_refused(ps_backend_open(&with_devices, &(ps_backend_options){.device = -1}, &backend, &e), &e, PS_E_BACKEND,
                            "device -1, expected 0 to 1");
}

static void bad_plans_are_refused(void **state) {
    const ps_backend_ops *ops = ((const contract_backend *)*state)->ops;
    problem p;
    ps_memory_plan plan;
    ps_error e = {0};
    problem_create(&problem_sizes[PROBLEM_USUAL], 20, &p);
    const ps_system_desc *desc = &p.plan.desc;
    REFUSED(ps_backend_memory_plan(NULL, desc, PROBLEM_ALL, PS_U16, 0, 1, &plan, &e), "ops is NULL");
    REFUSED(ps_backend_memory_plan(ops, NULL, PROBLEM_ALL, PS_U16, 0, 1, &plan, &e), "desc is NULL");
    REFUSED(ps_backend_memory_plan(ops, desc, PROBLEM_ALL, PS_U16, 0, 1, NULL, &e), "plan is NULL");
    REFUSED(ps_backend_memory_plan(ops, desc, 0, PS_U16, 0, 1, &plan, &e), "methods are 0");
    REFUSED(ps_backend_memory_plan(ops, desc, PROBLEM_ALL, PS_N_DTYPES, 0, 1, &plan, &e), "unknown element type");
    REFUSED(ps_backend_memory_plan(ops, desc, PROBLEM_ALL, PS_U16, 0, 0, &plan, &e), "a batch of 0 frames");
    problem_free(&p);
}

/* --- systems --- */

static void require_desc_refused(const trial *t, const ps_system_desc *desc, const char *text) {
    ps_error e = {0};
    ps_memory_plan plan;
    ps_system *system = t->run.system;
    REFUSED(ps_system_create(t->run.backend, desc, PROBLEM_ALL, &system, &e), text);
    assert_null(system);
    REFUSED(ps_backend_memory_plan(t->b->ops, desc, PROBLEM_ALL, PS_U16, 0, 1, &plan, &e), text);
}

/* The description with one number or array replaced. */
#define BAD(member, value, text)                    \
    do {                                            \
        ps_system_desc changed = t.p.plan.desc;     \
        changed.member = (value);                   \
        require_desc_refused(&t, &changed, (text)); \
    } while (0)
/* The description with `bytes` of one of its arrays, at a place in the array, replaced. array: where its pointer lies in a description. */
static void require_value_refused(const trial *t, size_t array, size_t array_bytes, size_t at, const void *value, size_t bytes,
                                  const char *text) {
    ps_system_desc changed = t->p.plan.desc;
    const void *original;
    char *copy = malloc(array_bytes);
    memcpy(&original, (const char *)&changed + array, sizeof original);
    memcpy(copy, original, array_bytes);
    memcpy(copy + at, value, bytes);
    memcpy((char *)&changed + array, &copy, sizeof copy);
    require_desc_refused(t, &changed, text);
    free(copy);
}

#define DESC t.p.plan.desc
#define BAD_AT(array, n, at, type, value, text)                                                                                         \
    require_value_refused(&t, offsetof(ps_system_desc, array), (size_t)DESC.n * sizeof *DESC.array, (at), &(type){value}, sizeof(type), \
                          text)
#define BAD_VALUE(array, n, index, type, value, text) BAD_AT(array, n, (index) * sizeof *DESC.array, type, value, text)
#define BAD_FREQUENCY(index, member, type, value, text) \
    BAD_AT(frequencies, n_frequencies, (index) * sizeof(ps_frequency) + offsetof(ps_frequency, member), type, value, text)

static void bad_sizes_are_refused(void **state) {
    trial t;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 21, &t);
    BAD(scan_rows, 0, "scan rows is 0");
    BAD(scan_columns, -4, "scan columns is -4");
    BAD(detector_rows, 0, "detector rows is 0");
    BAD(detector_columns, (int64_t)1 << 40, "detector columns is 1099511627776");
    BAD(upsampling, 0, "upsampling is 0");
    BAD(upsampling, INT32_MAX, "above 2147483647");
    BAD(n_active, 0, "0 active pixels");
    BAD(n_active, DESC.detector_rows * DESC.detector_columns + 1, "active pixels, expected 1 to");
    BAD(n_frequencies, 0, "0 frequencies");
    BAD(n_frequencies, 7 * 11 + 1, "78 frequencies");
    BAD(n_aliases, -1, "-1 aliases");
    BAD(active, NULL, "an array over pixels or frequencies is NULL");
    BAD(frequencies, NULL, "an array over pixels or frequencies is NULL");
    BAD(prior_complex, NULL, "an array over aliases is NULL");
    trial_end(&t);
}

static void bad_optics_are_refused(void **state) {
    trial t;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 22, &t);
    BAD(probe.wavelength_A, 0.0, "wavelength 0 A");
    BAD(probe.semiangle_rad, NAN, "semiangle nan rad");
    BAD(probe.pitch_rad[1], -1e-3, "pitches");
    BAD(scan_step_A[0], INFINITY, "steps inf");
    BAD(probe.C_A[3], NAN, "finite aberrations");
    BAD(probe.tilt_rad[1], INFINITY, "thickness and tilt");
    trial_end(&t);
}

static void bad_arrays_are_refused(void **state) {
    trial t;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 23, &t);
    BAD_VALUE(active, n_active, 0, int32_t, -1, "active pixel 0 is number -1");
    BAD_VALUE(active, n_active, 5, int32_t, DESC.active[4], "active pixel 5 is number");
    BAD_VALUE(active, n_active, DESC.n_active - 1, int32_t, (int32_t)(DESC.detector_rows * DESC.detector_columns), "of the detector at");
    BAD_VALUE(k_row, n_active, 2, double, NAN, "active pixel 2");
    BAD_VALUE(k_column, n_active, 3, double, INFINITY, "active pixel 3");
    BAD_FREQUENCY(4, row, int32_t, 7, "frequency 4 is (7,");
    BAD_FREQUENCY(4, column, int32_t, -1, ", -1)");
    BAD_FREQUENCY(4, n_aliases, int32_t, PS_MAX_ALIASES + 1, "with 65 aliases");
    BAD_FREQUENCY(4, first_alias, int64_t, DESC.n_aliases, "frequency 4 is");
    BAD_FREQUENCY(4, multiplicity, int32_t, 3, "multiplicity 3");
    BAD_FREQUENCY(0, row, int32_t, 1, "expected the scan's zero frequency");
    BAD_VALUE(fine_row, n_aliases, 1, int32_t, 21, "alias 1 is (21,");
    BAD_VALUE(fine_column, n_aliases, 1, int32_t, -2, "alias 1 is");
    BAD_VALUE(q_row, n_aliases, 2, double, NAN, "alias 2 is");
    BAD_VALUE(q_column, n_aliases, 2, double, INFINITY, "alias 2 is");
    BAD_VALUE(prior_phase, n_aliases, 3, double, 0.5, "priors 0.5 (phase)");
    BAD_VALUE(prior_complex, n_aliases, 3, double, NAN, "nan (complex)");
    trial_end(&t);
}

static void bad_methods_are_refused(void **state) {
    trial t;
    ps_backend *backend;
    ps_system *system;
    ps_error e = {0};
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 24, &t);
    REFUSED(ps_system_create(t.run.backend, &DESC, 0, &system, &e), "methods are 0");
    REFUSED(ps_system_create(t.run.backend, &DESC, 64, &system, &e), "methods are 64");
    REFUSED(ps_system_create(NULL, &DESC, PROBLEM_ALL, &system, &e), "backend is NULL");
    REFUSED(ps_system_create(t.run.backend, NULL, PROBLEM_ALL, &system, &e), "desc is NULL");
    REFUSED(ps_system_create(t.run.backend, &DESC, PROBLEM_ALL, NULL, &e), "system is NULL");
    ps_backend_ops phase_only = *t.b->ops;
    phase_only.methods = PS_METHOD_PHASE;
    REQUIRE_OK(ps_backend_open(&phase_only, NULL, &backend, &error));
    REFUSED(ps_system_create(backend, &DESC, PROBLEM_ALL, &system, &e), "does not compute the complex method");
    REFUSED(ps_system_create(backend, &DESC, PS_METHOD_SSB, &system, &e), "does not compute the ssb method");
    REFUSED(ps_system_create(backend, &DESC, PS_METHOD_MF, &system, &e), "does not compute the mf method");
    REQUIRE_OK(ps_system_create(backend, &DESC, PS_METHOD_PHASE, &system, &error));
    REFUSED(ps_system_scales(system, PS_METHOD_PHASE, NULL, NULL, &e), "not prepared");
    REFUSED(ps_system_scales(system, PS_METHOD_COMPLEX, NULL, NULL, &e), "created without the complex method");
    ps_system_destroy(system);
    ps_backend_close(backend);
    trial_end(&t);
}

static void bad_weights_are_refused_and_good_ones_undo_the_preparation(void **state) {
    static const double bad[] = {0.0, -1.0, NAN, INFINITY};
    trial t;
    ps_error e = {0};
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 25, &t);
    double *weights = malloc((size_t)DESC.n_active * sizeof *weights);
    for (int64_t i = 0; i < DESC.n_active; i++) weights[i] = 1.0;
    for (int i = 0; i < 4; i++) {
        weights[DESC.n_active - 1] = bad[i];
        REFUSED(ps_system_set_weights(t.run.system, weights, &e), "expected a positive number");
    }
    REFUSED(ps_system_set_weights(t.run.system, NULL, &e), "weights is NULL");
    REQUIRE_OK(ps_system_scales(t.run.system, PS_METHOD_PHASE, NULL, NULL, &error)); /* as it was */
    weights[DESC.n_active - 1] = 2.0;
    REQUIRE_OK(ps_system_set_weights(t.run.system, weights, &error));
    REFUSED(ps_system_scales(t.run.system, PS_METHOD_PHASE, NULL, NULL, &e), "not prepared");
    ps_frame *frame = problem_frame(&t.run, PS_U16, t.p.counts);
    REFUSED(ps_frame_reduce(&frame, 1, &(double){40.0}, &e), "not prepared");
    ps_frame_destroy(frame);
    free(weights);
    trial_end(&t);
}

/* --- frames --- */

static void bad_puts_are_refused(void **state) {
    trial t;
    ps_error e = {0};
    ps_frame *frame;
    double mean[1];
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 26, &t);
    REFUSED(ps_frame_create(t.run.system, (ps_dtype)-1, &frame, &e), "unknown element type");
    REFUSED(ps_frame_create(NULL, PS_U16, &frame, &e), "system is NULL");
    REFUSED(ps_frame_create(t.run.system, PS_U16, NULL, &e), "frame is NULL");
    REQUIRE_OK(ps_frame_create(t.run.system, PS_U16, &frame, &error));
    REFUSED(ps_frame_upload(NULL, 0, 1, t.p.counts, &e), "frame is NULL");
    REFUSED(ps_frame_upload(frame, 0, 1, NULL, &e), "counts is NULL");
    REFUSED(ps_frame_upload(frame, 70, 8, t.p.counts, &e), "8 positions from 70 on uploaded, expected some of 0 to 76");
    REFUSED(ps_frame_upload(frame, -1, 2, t.p.counts, &e), "2 positions from -1 on uploaded");
    REFUSED(ps_frame_upload(frame, 3, -1, t.p.counts, &e), "expected some of 0 to 76");
    REFUSED(ps_frame_upload(frame, 1, INT64_MAX, t.p.counts, &e), "expected some of 0 to 76");
    REFUSED(ps_frame_upload(frame, INT64_MAX, 1, t.p.counts, &e), "expected some of 0 to 76");
    REQUIRE_OK(ps_frame_upload(frame, 0, 70, t.p.counts, &error));
    REFUSED(ps_frame_upload(frame, 69, 2, t.p.counts, &e), "position 69 uploaded twice");
    REFUSED(ps_frame_mean_counts(frame, mean, NULL, &e), "70 of 77 positions uploaded");
    REFUSED(ps_frame_get_spectrum(frame, 1, 40.0, mean, &e), "70 of 77 positions uploaded");
    REFUSED(ps_frame_reduce(&frame, 1, &(double){40.0}, &e), "70 of 77 positions uploaded");
    ps_frame_destroy(frame);
    trial_end(&t);
}

static void bad_batches_are_refused(void **state) {
    static const double dose[] = {40.0, 40.0}, bad[] = {0.0, -1.0, NAN, INFINITY};
    trial t;
    problem_run other;
    ps_error e = {0};
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 27, &t);
    problem_open(t.b, &t.p, NULL, NULL, &other);
    ps_frame *one = problem_frame(&t.run, PS_U16, t.p.counts), *foreign = problem_frame(&other, PS_U16, t.p.counts);
    REFUSED(ps_frame_reduce((ps_frame *[]){one, foreign}, 2, dose, &e), "frames 0 and 1 of the batch belong to different systems");
    REFUSED(ps_frame_reduce((ps_frame *[]){one, one}, 2, dose, &e), "frames 0 and 1 of the batch are the same");
    REFUSED(ps_frame_reduce((ps_frame *[]){one, NULL}, 2, dose, &e), "frame 1 of the batch is NULL");
    REFUSED(ps_frame_reduce(NULL, 1, dose, &e), "frames is NULL");
    REFUSED(ps_frame_reduce(&one, 1, NULL, &e), "dose is NULL");
    REFUSED(ps_frame_reduce(&one, -1, dose, &e), "a batch of -1 frames");
    for (int i = 0; i < 4; i++) REFUSED(ps_frame_reduce(&one, 1, &bad[i], &e), "dose of the batch's frame 0 is");
    REQUIRE_OK(ps_frame_reduce(NULL, 0, NULL, &error));
    ps_frame_destroy(one);
    ps_frame_destroy(foreign);
    problem_close(&other);
    trial_end(&t);
}

static void a_refusal_leaves_a_frame_as_it_was(void **state) {
    trial t;
    ps_error e = {0};
    double data_norm;
    ps_frame *frame;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 28, &t);
    REQUIRE_OK(ps_frame_create(t.run.system, PS_U16, &frame, &error));
    REQUIRE_OK(ps_frame_upload(frame, 0, t.p.n_positions, t.p.counts, &error));
    REFUSED(ps_frame_data_norm(frame, &data_norm, &e), "not reduced");
    problem_reduce(&t.run, frame);
    REQUIRE_OK(ps_frame_data_norm(frame, &data_norm, &error));
    REFUSED(ps_frame_reduce(&frame, 1, &(double){0.0}, &e), "dose");
    REQUIRE_OK(ps_frame_data_norm(frame, &data_norm, &error));
    REQUIRE_OK(ps_frame_upload(frame, 3, 0, NULL, &error)); /* nothing put changes nothing either */
    REQUIRE_OK(ps_frame_data_norm(frame, &data_norm, &error));
    REFUSED(ps_frame_data_norm(frame, NULL, &e), "data_norm is NULL");
    REFUSED(ps_frame_data_norm(NULL, &data_norm, &e), "frame is NULL");
    ps_frame_destroy(frame);
    trial_end(&t);
}

/* --- answers and inspection --- */

static void bad_questions_are_refused(void **state) {
    trial t;
    ps_error e = {0};
    double image[7 * 11 * 9], loss;
    const ps_solution solution = {.phase_f64 = image}, both = {.phase_f64 = image, .log_amplitude_f32 = (float *)image};
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 29, &t);
    ps_frame *f = problem_frame(&t.run, PS_U16, t.p.counts);
    REFUSED(ps_system_solve(f, PS_METHOD_PHASE, 1, problem_strengths, &solution, &e), "not reduced");
    REFUSED(ps_frame_ssb(f, PS_SSB_WAVE, NULL, image, NULL, &e), "not reduced");
    REFUSED(ps_frame_right_side_image(f, NULL, image, &e), "not reduced");
    problem_reduce(&t.run, f);
    REFUSED(ps_system_solve(NULL, PS_METHOD_PHASE, 1, problem_strengths, &solution, &e), "frame is NULL");
    REFUSED(ps_system_solve(f, PS_METHOD_PHASE, 1, problem_strengths, NULL, &e), "solution is NULL");
    REFUSED(ps_system_solve(f, PS_METHOD_PHASE, 1, NULL, &solution, &e), "strengths is NULL");
    REFUSED(ps_system_solve(f, PS_METHOD_PHASE, -1, problem_strengths, &solution, &e), "-1 strengths");
    REFUSED(ps_system_solve(f, PS_METHOD_SSB, 1, problem_strengths, &solution, &e), "method 4 cannot be solved");
    REFUSED(ps_system_solve(f, PS_METHOD_PHASE | PS_METHOD_COMPLEX, 1, problem_strengths, &solution, &e), "method 3 cannot be solved");
    REFUSED(ps_system_solve(f, PS_METHOD_PHASE, 1, problem_strengths, &both, &e), "no log-amplitude");
    REFUSED(ps_system_solve(f, PS_METHOD_PHASE, 1, &(ps_strength){1.0, 0.0}, &solution, &e), "strength 0 is (1, 0)");
    REFUSED(ps_system_solve(f, PS_METHOD_PHASE, 1, &(ps_strength){1.0, INFINITY}, &solution, &e), "strength 0 is (1, inf)");
    REFUSED(ps_system_solve(f, PS_METHOD_COMPLEX, 1, &(ps_strength){NAN, 1.0}, &solution, &e), "strength 0 is (nan, 1)");
    REFUSED(ps_frame_ssb(f, (ps_ssb_estimator)7, NULL, image, NULL, &e), "unknown SSB estimator 7");
    REFUSED(ps_frame_ssb(f, PS_SSB_WAVE, NULL, image, &loss, &e), "has no loss");
    REFUSED(ps_frame_ssb(NULL, PS_SSB_WAVE, NULL, image, NULL, &e), "frame is NULL");
    REFUSED(ps_frame_right_side_image(NULL, NULL, image, &e), "frame is NULL");
    REQUIRE_OK(ps_system_solve(f, PS_METHOD_PHASE, 1, &(ps_strength){NAN, 1.0}, &solution, &error)); /* amplitude is not looked at */
    ps_frame_destroy(f);
    trial_end(&t);
}

static void bad_inspections_are_refused(void **state) {
    trial t;
    ps_error e = {0};
    double out[4 * PS_MAX_ALIASES];
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 30, &t);
    ps_system *s = t.run.system;
    ps_frame *f = problem_frame(&t.run, PS_U16, t.p.counts);
    REFUSED(ps_frame_get_right_side(f, PS_METHOD_PHASE, 1, out, NULL, &e), "not reduced");
    problem_reduce(&t.run, f);
    REFUSED(ps_system_get_transfer(s, -1, out, &e), "frequency -1, expected 0 to");
    REFUSED(ps_system_get_normal(s, PS_METHOD_PHASE, DESC.n_frequencies, out, &e), "frequency");
    REFUSED(ps_system_get_eigenvalues(s, DESC.n_frequencies, out, &e), "frequency");
    REFUSED(ps_frame_get_right_side(f, PS_METHOD_PHASE, -1, out, NULL, &e), "frequency -1");
    REFUSED(ps_frame_get_spectrum(f, -1, 1.0, out, &e), "frequency -1");
    REFUSED(ps_frame_get_spectrum(f, 1, 0.0, out, &e), "dose of frame 0 is 0");
    REFUSED(ps_frame_get_spectrum(f, 1, NAN, out, &e), "dose of frame 0 is nan");
    REFUSED(ps_system_get_normal(s, PS_METHOD_SSB, 1, out, &e), "method 4 cannot be solved");
    REFUSED(ps_frame_get_right_side(f, 0, 1, out, NULL, &e), "method 0 has no right side");
    REFUSED(ps_frame_get_right_side(f, PS_METHOD_SSB, 1, out, NULL, &e), "method 4 has no right side, expected phase, complex or mf");
    REFUSED(ps_system_get_normal(s, PS_METHOD_MF, 1, out, &e), "method 8 cannot be solved");
    REFUSED(ps_system_scales(s, PS_METHOD_SSB, out, out, &e), "method 4 cannot be solved");
    REFUSED(ps_system_get_transfer(s, 1, NULL, &e), "transfer is NULL");
    REFUSED(ps_system_get_normal(s, PS_METHOD_PHASE, 1, NULL, &e), "normal is NULL");
    REFUSED(ps_system_get_eigenvalues(s, 1, NULL, &e), "eigenvalues is NULL");
    REFUSED(ps_frame_get_right_side(f, PS_METHOD_PHASE, 1, NULL, NULL, &e), "right_side is NULL");
    REFUSED(ps_frame_get_spectrum(f, 1, 1.0, NULL, &e), "spectrum is NULL");
    if (!t.b->ops->bench) REFUSED(ps_bench_fill(f, 1, NULL, &e), "makes no counts of its own");
    ps_frame_destroy(f);
    trial_end(&t);
}

/* Host memory is what callers pass: a pointer into the backend's own is refused where it is known as such. */
static void memory_of_the_device_is_refused(void **state) {
    trial t;
    ps_error e = {0};
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 31, &t);
    void *own = ps_cpu_allocate(1 << 20, 1);
    if (t.b->ops->owns && t.b->ops->owns(t.run.backend, own)) { /* a GPU's memory is tried by its own tests */
        ps_frame *f;
        ps_solution solution = {.phase_f64 = own};
        REQUIRE_OK(ps_frame_create(t.run.system, PS_U16, &f, &error));
        REFUSED(ps_frame_upload(f, 0, 1, own, &e), "counts points into the memory");
        REQUIRE_OK(ps_frame_upload(f, 0, t.p.n_positions, t.p.counts, &error));
        REFUSED(ps_frame_mean_counts(f, own, NULL, &e), "mean points into the memory");
        REFUSED(ps_frame_reduce(&f, 1, (memset(own, 0, 8), *(double *)own = 40.0, own), &e), "dose points into the memory");
        problem_reduce(&t.run, f);
        REFUSED(ps_system_solve(f, PS_METHOD_PHASE, 1, problem_strengths, &solution, &e), "an array of the solution points into");
        REFUSED(ps_frame_ssb(f, PS_SSB_WAVE, own, NULL, NULL, &e), "phase_f32 points into the memory");
        REFUSED(ps_frame_right_side_image(f, own, NULL, &e), "image_f32 points into the memory");
        REFUSED(ps_frame_right_side_image(f, NULL, own, &e), "image_f64 points into the memory");
        REFUSED(ps_system_get_transfer(t.run.system, 1, own, &e), "transfer points into the memory");
        REFUSED(ps_system_set_weights(t.run.system, own, &e), "weights points into the memory");
        ps_frame_destroy(f);
    }
    ps_cpu_free(own);
    trial_end(&t);
}

/* --- defaults --- */

static void require_same_bits(const double *found, const double *expected, size_t n) {
    assert_memory_equal(found, expected, n * sizeof *found);
}

/* The CPU's own operations form the same sums in the same order; another backend's own may differ within its tolerance. */
static void defaults_agree_with_the_backends_own(void **state) {
    trial own, bare;
    trial_begin(state, &problem_sizes[PROBLEM_MANY_PIXELS], 32, &own);
    ps_backend_ops ops = *own.b->ops;
    ops.frame_data_norm = NULL;
    ops.system_scales = NULL;
    contract_backend without = {&ops, own.b->tolerance};
    void *bare_state = &without;
    trial_begin(&bare_state, &problem_sizes[PROBLEM_MANY_PIXELS], 32, &bare);
    trial *both[2] = {&own, &bare};
    double values[2][4];
    for (int i = 0; i < 2; i++) {
        trial *t = both[i];
        ps_frame *frame = problem_frame(&t->run, PS_U16, t->p.counts);
        problem_reduce(&t->run, frame);
        REQUIRE_OK(ps_frame_data_norm(frame, &values[i][0], &error));
        REQUIRE_OK(ps_system_scales(t->run.system, PS_METHOD_PHASE, NULL, &values[i][1], &error));
        REQUIRE_OK(ps_system_scales(t->run.system, PS_METHOD_COMPLEX, &values[i][2], &values[i][3], &error));
        ps_frame_destroy(frame);
        trial_end(t);
    }
    for (int i = 0; i < 4; i++) assert_true(values[0][i] > 0);
    if (own.b->tolerance.exact_chunks) require_same_bits(values[1], values[0], 4);
    for (int i = 0; i < 4; i++) assert_true(fabs(values[1][i] - values[0][i]) <= own.b->tolerance.normal * values[0][i]);
}

static void options_left_out_are_those_of_all_zeros(void **state) {
    const contract_backend *b = *state;
    ps_backend *backends[2];
    ps_device_info info[2];
    REQUIRE_OK(ps_backend_open(b->ops, NULL, &backends[0], &error));
    REQUIRE_OK(ps_backend_open(b->ops, &(ps_backend_options){0}, &backends[1], &error));
    for (int i = 0; i < 2; i++) {
        memset(&info[i], 0, sizeof info[i]);
        ps_backend_info(backends[i], &info[i]);
        ps_backend_close(backends[i]);
    }
    assert_memory_equal(&info[0], &info[1], sizeof info[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_without_a_required_operation_is_refused),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(bad_plans_are_refused),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(bad_optics_are_refused),
        cmocka_unit_test(bad_arrays_are_refused),
        cmocka_unit_test(bad_methods_are_refused),
        cmocka_unit_test(bad_weights_are_refused_and_good_ones_undo_the_preparation),
        cmocka_unit_test(bad_puts_are_refused),
        cmocka_unit_test(bad_batches_are_refused),
        cmocka_unit_test(a_refusal_leaves_a_frame_as_it_was),
        cmocka_unit_test(bad_questions_are_refused),
        cmocka_unit_test(bad_inspections_are_refused),
        cmocka_unit_test(memory_of_the_device_is_refused),
        cmocka_unit_test(defaults_agree_with_the_backends_own),
        cmocka_unit_test(options_left_out_are_those_of_all_zeros),
    };
    return contract_run(tests, sizeof tests / sizeof tests[0]) != 0;
}
