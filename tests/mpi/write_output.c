/* usage: write_output FILE FRAMES PIECE_BYTES MODE PAUSE_MS   under mpirun, any number of ranks; pieces are not limited when 0.
 *
 * MODE create: rank 0 creates FILE and keeps a copy of it as FILE.created; ranks write frames rank, rank + ranks, ...; frame 2 fails.
 * MODE begin: the file is created, and that is all.
 * MODE resume: what is pending in FILE is written, or everything when there is no FILE. PAUSE_MS passes before each frame, so that a
 * killer finds the program at work. */
#include <stdio.h>
#include <unistd.h>

#include "output_fixture.h"
#include "store/internal.h"
#include "store/resume.h"

static int rank, n_ranks;

static int complain(const char *what, const ps_error *error) {
    fprintf(stderr, "[rank %d] %s: %s\n", rank, what, error->text);
    return 1;
}

static int write_frames(ps_output *output, const fixture *f, const uint8_t *states, useconds_t pause_us) {
    ps_error error = {0};
    int failed = 0;
    for (int64_t frame = rank; frame < f->spec.n_frames && !failed; frame += n_ranks) {
        if (states[frame] != PS_FRAME_PENDING) continue;
        usleep(pause_us);
        fixture_result r;
        fixture_result_init(&r, f, frame);
        ps_code code = frame == 2 ? ps_output_fail_frame(output, frame, "a reason with \xc3\xa9", &error)
                                  : ps_output_write_frame(output, frame, &r.result, &error);
        if (code != PS_OK) failed = complain("writing", &error);
        fixture_result_free(&r);
    }
    return failed;
}

static int write_optics(ps_output *output, const fixture *f) {
    ps_error error = {0};
    for (int64_t i = rank; i < f->spec.n_optics; i += n_ranks) {
        int64_t n = f->plans[i].desc.n_active;
        double *weights = malloc((size_t)n * sizeof *weights);
        for (int64_t k = 0; k < n; k++) weights[k] = 1.0 + (double)k;
        ps_output_prepared prepared = {.weights = weights,
                                       .dose = 42.0,
                                       .methods = &f->job.methods,
                                       .scales = {{1.5}, {2.5, 3.5}},
                                       .backend = "cpu-reference",
                                       .precision = "float64"};
        ps_code code = ps_output_write_prepared(output, i, &prepared, &error);
        free(weights);
        if (code != PS_OK) return complain("writing optics", &error);
    }
    return 0;
}

static int check_states(const char *path, const fixture *f) {
    ps_error error = {0};
    int64_t n = 0;
    uint8_t *states = NULL;
    if (ps_output_states(path, &n, &states, &error) != PS_OK) return complain("states", &error);
    int wrong = n != f->spec.n_frames;
    for (int64_t i = 0; i < n && !wrong; i++) wrong = states[i] != (i == 2 ? PS_FRAME_FAILED : PS_FRAME_DONE);
    free(states);
    if (wrong) fprintf(stderr, "states are wrong\n");
    return wrong;
}

static int copy_file(const char *from, const char *suffix) {
    ps_error error = {0};
    char *text = NULL, *to = ps_text_format("%s%s", from, suffix);
    size_t bytes = 0;
    ps_code code = ps_text_read_file(from, &text, &bytes, &error);
    FILE *file = code == PS_OK ? fopen(to, "wb") : NULL;
    int failed = !file || fwrite(text, 1, bytes, file) != bytes;
    if (file && fclose(file) != 0) failed = 1;
    free(text);
    free(to);
    return failed;
}

static int make_file(const char *path, const fixture *f, bool resume_it) {
    ps_error error = {0};
    ps_resume_report report;
    if (resume_it && access(path, F_OK) == 0) {
        if (ps_output_resume_report(path, &f->spec, false, &report, &error) != PS_OK) return complain("resuming", &error);
        printf("resumed: %lld done, %lld failed, %lld pending, %lld damaged\n", (long long)report.n_done, (long long)report.n_failed,
               (long long)report.n_pending, (long long)report.n_damaged);
        return 0;
    }
    if (ps_output_create(path, true, &f->spec, &error) != PS_OK) return complain("creating", &error);
    return copy_file(path, ".created");
}

static int run(const char *path, int64_t n_frames, size_t piece_bytes, const char *mode, useconds_t pause_us) {
    ps_error error = {0};
    fixture f;
    ps_output *output = NULL;
    int64_t n_states;
    uint8_t *states = NULL;
    if (fixture_init(&f, n_frames)) return 1;
    int failed = rank == 0 ? make_file(path, &f, strcmp(mode, "resume") == 0) : 0;
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (failed || strcmp(mode, "begin") == 0) return failed;
    if (ps_output_states(path, &n_states, &states, &error) != PS_OK) return complain("states", &error);
    if (ps_output_open(path, MPI_COMM_WORLD, &output, &error) != PS_OK) return complain("opening", &error);
    if (piece_bytes > 0) ps_output_limit_writes(output, piece_bytes);
    failed = write_optics(output, &f) || write_frames(output, &f, states, pause_us);
    if (ps_output_close(output, &error) != PS_OK) failed = complain("closing", &error);
    if (!failed && rank == 0) failed = check_states(path, &f);
    free(states);
    fixture_free(&f);
    return failed;
}

int main(int n_arguments, char **arguments) {
    if (n_arguments != 6) {
        fprintf(stderr, "usage: write_output FILE FRAMES PIECE_BYTES create|begin|resume PAUSE_MS\n");
        return 2;
    }
    MPI_Init(&n_arguments, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    int mine = run(arguments[1], strtoll(arguments[2], NULL, 10), (size_t)strtoull(arguments[3], NULL, 10), arguments[4],
                   1000u * (useconds_t)strtoul(arguments[5], NULL, 10));
    int any;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return any;
}
