/* Command-line options: one table per command, checked against what was given. */
#ifndef PS_CORE_OPTIONS_H
#define PS_CORE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

typedef enum { PS_OPTION_FLAG, PS_OPTION_TEXT, PS_OPTION_INTEGER, PS_OPTION_NUMBER, PS_OPTION_LIST } ps_option_kind;

typedef struct {
    const char *name; /* "--resume" */
    ps_option_kind kind;
    void *value; /* bool, const char *, int64_t, double, ps_option_list */
    const char *help;
} ps_option;

/* Texts given with a repeatable option, borrowed from argv. */
typedef struct {
    int64_t n;
    const char **texts; /* owned: free() */
} ps_option_list;

typedef struct {
    const char *command, *synopsis, *description;
    const ps_option *options; /* [n_options] */
    int n_options;
    int min_operands, max_operands;
    const char **operands; /* [max_operands], filled */
    int n_operands;        /* filled */
} ps_command_line;

/* "--name value" and "--name=value"; "--help" prints and sets *help. Unknown options are PS_E_ARGUMENT with the nearest known one. */
ps_code ps_options_parse(ps_command_line *line, int n_arguments, char **arguments, bool *help, ps_error *error);

#endif
