#include "core/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

static void print_help(const ps_command_line *line) {
    printf("usage: ptyseries %s %s\n\n%s\n", line->command, line->synopsis, line->description);
    if (line->n_options > 0) printf("\noptions:\n");
    for (int i = 0; i < line->n_options; i++) {
        const ps_option *option = &line->options[i];
        printf("  %-16s%s %s\n", option->name, option->kind == PS_OPTION_FLAG ? "      " : " VALUE", option->help);
    }
    printf("  %-16s       %s\n", "--help", "this text");
}

static const ps_option *find_option(const ps_command_line *line, const char *name, size_t length) {
    for (int i = 0; i < line->n_options; i++)
        if (strlen(line->options[i].name) == length && strncmp(line->options[i].name, name, length) == 0) return &line->options[i];
    return NULL;
}

static ps_code unknown_option(const ps_command_line *line, const char *name, ps_error *error) {
    const char *names[64];
    size_t n = 0;
    for (int i = 0; i < line->n_options && n < 64; i++) names[n++] = line->options[i].name;
    const char *nearest = ps_text_nearest(name, names, n);
    return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries %s: unknown option %s%s%s; see ptyseries %s --help", line->command, name,
                   nearest ? ", did you mean " : "", nearest ? nearest : "", line->command);
}

static ps_code append_text(ps_option_list *list, const char *text, ps_error *error) {
    const char **larger = realloc(list->texts, (size_t)(list->n + 1) * sizeof *larger);
    if (!larger) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for options");
    list->texts = larger;
    list->texts[list->n++] = text;
    return PS_OK;
}

static ps_code store_value(const ps_command_line *line, const ps_option *option, const char *text, ps_error *error) {
    char *end = NULL;
    errno = 0;
    switch (option->kind) {
    case PS_OPTION_FLAG: *(bool *)option->value = true; return PS_OK;
    case PS_OPTION_TEXT: *(const char **)option->value = text; return PS_OK;
    case PS_OPTION_LIST: return append_text(option->value, text, error);
    case PS_OPTION_INTEGER: *(int64_t *)option->value = strtoll(text, &end, 10); break;
    case PS_OPTION_NUMBER: *(double *)option->value = strtod(text, &end); break;
    }
    if (end == text || *end || errno)
        return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries %s: %s: found '%s', expected %s", line->command, option->name, text,
                       option->kind == PS_OPTION_INTEGER ? "an integer" : "a number");
    return PS_OK;
}

ps_code ps_options_parse(ps_command_line *line, int n_arguments, char **arguments, bool *help, ps_error *error) {
    bool only_operands = false;
    *help = false;
    line->n_operands = 0;
    for (int i = 0; i < n_arguments; i++) {
        const char *argument = arguments[i];
        if (only_operands || argument[0] != '-' || argument[1] == '\0') {
            if (line->n_operands >= line->max_operands)
                return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries %s: unexpected argument '%s'; usage: ptyseries %s %s", line->command,
                               argument, line->command, line->synopsis);
            line->operands[line->n_operands++] = argument;
            continue;
        }
        if (strcmp(argument, "--") == 0) {
            only_operands = true;
            continue;
        }
        if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            print_help(line);
            *help = true;
            return PS_OK;
        }
        size_t length = strcspn(argument, "=");
        const ps_option *option = find_option(line, argument, length);
        if (!option) return unknown_option(line, argument, error);
        const char *value = argument[length] == '=' ? argument + length + 1 : NULL;
        if (option->kind == PS_OPTION_FLAG && value)
            return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries %s: %s takes no value", line->command, option->name);
        if (option->kind != PS_OPTION_FLAG && !value) {
            if (i + 1 >= n_arguments) return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries %s: %s needs a value", line->command, option->name);
            value = arguments[++i];
        }
        PS_TRY(store_value(line, option, value, error));
    }
    if (line->n_operands < line->min_operands)
        return PS_FAIL(error, PS_E_ARGUMENT, "ptyseries %s: missing argument; usage: ptyseries %s %s", line->command, line->command,
                       line->synopsis);
    return PS_OK;
}
