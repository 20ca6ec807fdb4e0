/* The program's entry: finds the command and runs it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cluster/waiting.h"
#include "core/one_thread.h"
#include "core/text.h"
#include "hdf5/crash.h"
#include "hdf5/lock.h"

typedef struct {
    const char *name;
    int (*run)(int n_arguments, char **arguments);
    const char *help;
} command;

static const command commands[] = {
    {"check", ps_command_check, "validate a job and print its plan"},
    {"run", ps_command_run, "do a job's task; under mpirun or srun on many ranks"},
    {"info", ps_command_info, "say what a recording or an output file holds"},
    {"preview", ps_command_preview, "write pictures and a report of an output file"},
    {"pack", ps_command_pack, "write a compressed copy of an output file"},
    {"bench", ps_command_bench, "measure the kernels on this machine"},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_usage(FILE *stream) {
    fprintf(stream, "usage: ptyseries COMMAND [ARGUMENTS]\n\nDirect ptychography of 4D-STEM time series.\n\ncommands:\n");
    for (int i = 0; i < N_COMMANDS; i++) fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(stream, "\n  ptyseries COMMAND --help says more; ptyseries --version prints build, libraries and backends\n");
}

static int unknown_command(const char *name) {
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++) names[i] = commands[i].name;
    const char *nearest = ps_text_nearest(name, names, N_COMMANDS);
    fprintf(stderr, "ptyseries: unknown command '%s'%s%s; see ptyseries --help\n", name, nearest ? ", did you mean " : "",
            nearest ? nearest : "");
    return 2;
}

/* HDF5 that could not close a file crashes when it is shut down. */
static int leave(int status) {
    fflush(NULL);
    if (ps_hdf5_is_broken()) _exit(status);
    return status;
}

int main(int n_arguments, char **arguments) {
    ps_one_thread_begin(arguments);
    if (n_arguments < 2) {
        print_usage(stderr);
        return 2;
    }
    const char *name = arguments[1];
    if (strcmp(name, "run") == 0) ps_waiting_prepare(arguments);
    ps_crash_install();
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(name, "--version") == 0) return ps_command_version();
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of the write, not the program's end */
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0) return leave(commands[i].run(n_arguments - 2, arguments + 2));
    return unknown_command(name);
}
