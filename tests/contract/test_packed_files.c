/* A recording whose packed patterns several threads hand to a backend gives the bits that its counts give. */
#include "contract/problem.h"
#include "input/open.h"
#include "input/packed.h"
#include "readers/recordings.h"

static void make_master(const problem *p, made_storage storage) {
    hsize_t rows = (hsize_t)p->plan.desc.detector_rows, columns = (hsize_t)p->plan.desc.detector_columns;
    hid_t master = create_file(in_folder("p_master.h5")), links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    H5Gclose(H5Gcreate2(master, "/entry/data", links, H5P_DEFAULT, H5P_DEFAULT));
    for (int64_t first = 0, i = 1, n; first < p->n_positions; first += n, i++) {
        char link[64], file[64];
        n = p->n_positions - first < 30 ? p->n_positions - first : 30;
        snprintf(link, sizeof link, "/entry/data/data_%06d", (int)i);
        snprintf(file, sizeof file, "p %d.h5", (int)i);
        made_dataset made = {3, {(hsize_t)n, rows, columns}, {1, rows, columns}, PS_U16, storage, first, 0, 1};
        write_dataset_file(in_folder(file), "/entry/data/data", &made);
        assert_true(H5Lcreate_external(file, "/entry/data/data", master, link, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
    H5Pclose(links);
    H5Fclose(master);
}

static void require_same(const trial *t, ps_frame *found, ps_frame *expected) {
    int64_t n = t->p.plan.desc.n_active, frequency = t->p.plan.desc.n_frequencies / 2;
    double *values = malloc(6 * (size_t)n * sizeof *values);
    REQUIRE_OK(ps_frame_mean_counts(found, values, NULL, &error));
    REQUIRE_OK(ps_frame_mean_counts(expected, values + 3 * n, NULL, &error));
    REQUIRE_OK(ps_frame_get_spectrum(found, frequency, 2.0, values + n, &error));
    REQUIRE_OK(ps_frame_get_spectrum(expected, frequency, 2.0, values + 4 * n, &error));
    assert_memory_equal(values, values + 3 * n, 3 * (size_t)n * sizeof *values);
    free(values);
}

static void packed_files_give_the_readers_counts(void **state) {
    static const made_storage storages[] = {AS_BSLZ4, AS_LZ4, AS_CHUNKS};
    static const int threads[] = {1, 4, 16};
    trial t;
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 50, &t);
    uint8_t *refused = malloc((size_t)t.p.n_positions), *notes = malloc((size_t)t.p.n_positions);
    for (int s = 0; s < 3; s++) {
        char why[PS_PACKED_WHY];
        ps_reader *reader;
        ps_packed_recording *recording;
        ps_frame *frame;
        int64_t n_refused = -1;
        make_master(&t.p, storages[s]);
        REQUIRE_OK(ps_reader_open(in_folder("p_master.h5"), NULL, &reader, &error));
        REQUIRE_OK(ps_packed_open(reader, &recording, why, &error));
        assert_non_null(recording);
        REQUIRE_OK(ps_reader_read(reader, 0, t.p.n_positions, t.p.counts, &error));
        ps_frame *plain = problem_frame(&t.run, PS_U16, t.p.counts);
        for (int i = 0; i < 3; i++) {
            REQUIRE_OK(ps_frame_create(t.run.system, PS_U16, &frame, &error));
            REQUIRE_OK(ps_frame_unpack_begin(frame, NULL, &error));
            REQUIRE_OK(ps_packed_put(recording, frame, threads[i], NULL, NULL, notes, &error));
            REQUIRE_OK(ps_frame_unpack_end(frame, refused, &n_refused, NULL, &error));
            assert_int_equal(n_refused, 0);
            for (int64_t k = 0; k < t.p.n_positions; k++) assert_int_equal(notes[k], 0);
            require_same(&t, frame, plain);
            ps_frame_destroy(frame);
        }
        ps_frame_destroy(plain);
        ps_packed_close(recording);
        ps_reader_close(reader);
    }
    free(refused);
    free(notes);
    trial_end(&t);
}

/* A file that got shorter after it was opened is an error, in whatever thread that is met; all threads end. */
static void a_file_that_shrinks_is_an_error(void **state) {
    trial t;
    char why[PS_PACKED_WHY];
    ps_reader *reader;
    ps_packed_recording *recording;
    ps_frame *frame;
    ps_error e = {0};
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 51, &t);
    uint8_t *notes = malloc((size_t)t.p.n_positions);
    make_master(&t.p, AS_BSLZ4);
    REQUIRE_OK(ps_reader_open(in_folder("p_master.h5"), NULL, &reader, &error));
    REQUIRE_OK(ps_packed_open(reader, &recording, why, &error));
    assert_non_null(recording);
    assert_int_equal(truncate(in_folder("p 2.h5"), 3000), 0);
    REQUIRE_OK(ps_frame_create(t.run.system, PS_U16, &frame, &error));
    REQUIRE_OK(ps_frame_unpack_begin(frame, NULL, &error));
    problem_require_refused(ps_packed_put(recording, frame, 4, NULL, NULL, notes, &e), &e, PS_E_INPUT, "p 2.h5");
    ps_frame_destroy(frame);
    ps_packed_close(recording);
    ps_reader_close(reader);
    free(notes);
    trial_end(&t);
}

/* What only a later data file tells ends the put, in every thread; what was put before it is no frame. */
static void a_later_file_of_another_kind_is_left(void **state) {
    trial t;
    char why[PS_PACKED_WHY];
    ps_reader *reader;
    ps_packed_recording *recording;
    ps_frame *frame;
    ps_error e = {0};
    trial_begin(state, &problem_sizes[PROBLEM_USUAL], 52, &t);
    uint8_t *notes = malloc((size_t)t.p.n_positions);
    hsize_t rows = (hsize_t)t.p.plan.desc.detector_rows, columns = (hsize_t)t.p.plan.desc.detector_columns;
    make_master(&t.p, AS_BSLZ4);
    made_dataset made = {3, {30, rows, columns}, {1, rows, columns}, PS_U16, AS_LZ4, 30, 0, 1};
    write_dataset_file(in_folder("p 2.h5"), "/entry/data/data", &made);
    REQUIRE_OK(ps_reader_open(in_folder("p_master.h5"), NULL, &reader, &error));
    REQUIRE_OK(ps_packed_open(reader, &recording, why, &error));
    assert_non_null(recording);
    REQUIRE_OK(ps_frame_create(t.run.system, PS_U16, &frame, &error));
    REQUIRE_OK(ps_frame_unpack_begin(frame, NULL, &error));
    problem_require_refused(ps_packed_put(recording, frame, 4, NULL, NULL, notes, &e), &e, PS_E_INPUT, "packed differently");
    assert_true(ps_packed_is_left(recording));
    ps_frame_destroy(frame);
    ps_packed_close(recording);
    ps_reader_close(reader);
    free(notes);
    trial_end(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_files_give_the_readers_counts),
        cmocka_unit_test(a_file_that_shrinks_is_an_error),
        cmocka_unit_test(a_later_file_of_another_kind_is_left),
    };
    if (make_folder(NULL) != 0) return 1;
    int failed = contract_run(tests, sizeof tests / sizeof tests[0]);
    return failed != 0 || remove_folder(NULL) != 0;
}
