/* Errors are values: every function that can fail returns a ps_code and writes the reason into the caller's ps_error.
 *
 * A message says what, where, what was found and what was expected. One list below yields the codes, their names and the
 * exit status of the program. The first error wins: a cleanup path never overwrites the reason that led to it. */
#ifndef PS_CORE_ERROR_H
#define PS_CORE_ERROR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* code, exit status of the program, short name */
#define PS_CODES(X)                             \
    X(PS_OK, 0, "ok")                           \
    X(PS_E_INTERNAL, 1, "internal error")       \
    X(PS_E_ARGUMENT, 2, "bad arguments")        \
    X(PS_E_JOB, 2, "bad job")                   \
    X(PS_E_INPUT, 4, "bad input")               \
    X(PS_E_IO, 1, "input/output error")         \
    X(PS_E_HDF5, 1, "HDF5 error")               \
    X(PS_E_MPI, 1, "MPI error")                 \
    X(PS_E_MEMORY, 1, "out of memory")          \
    X(PS_E_NUMERIC, 1, "numerical failure")     \
    X(PS_E_BACKEND, 2, "backend not available") \
    X(PS_E_DEVICE, 1, "device error")           \
    X(PS_E_PARTIAL, 3, "some frames failed")    \
    X(PS_E_INTERRUPTED, 75, "interrupted")

typedef enum {
#define X(code, status, name) code,
    PS_CODES(X)
#undef X
} ps_code;

enum { PS_ERROR_TEXT = 1024 };

typedef struct {
    ps_code code;
    char text[PS_ERROR_TEXT]; /* UTF-8, without a trailing newline */
    const char *file;         /* source file and line that first reported it */
    int line;
} ps_error;

const char *ps_code_name(ps_code code);
int ps_code_exit_status(ps_code code);

/* Records the reason in *error (may be NULL) unless one is there already; returns code. Use PS_FAIL. */
ps_code ps_error_set(ps_error *error, ps_code code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Puts "context: " in front of the text that is in *error. */
void ps_error_prefix(ps_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ps_error_clear(ps_error *error);

#define PS_FAIL(error, code, ...) ps_error_set((error), (code), __FILE__, __LINE__, __VA_ARGS__)

/* Returns from the calling function when expression is not PS_OK. */
#define PS_TRY(expression)                              \
    do {                                                \
        ps_code ps_try_code_ = (expression);            \
        if (ps_try_code_ != PS_OK) return ps_try_code_; \
    } while (0)

/* Stores the code in `code` and jumps to `done`, the single cleanup path, when expression is not PS_OK. */
#define PS_GO(expression)             \
    do {                              \
        code = (expression);          \
        if (code != PS_OK) goto done; \
    } while (0)

/* Fails with PS_E_MEMORY and jumps to `done` when pointer is NULL. */
#define PS_GO_ALLOC(error, pointer)                                                          \
    do {                                                                                     \
        if (!(pointer)) {                                                                    \
            code = PS_FAIL((error), PS_E_MEMORY, "cannot allocate memory for %s", #pointer); \
            goto done;                                                                       \
        }                                                                                    \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
