/* The checks of arguments that backend.c makes before it calls a backend. Each is PS_E_ARGUMENT, unless it says otherwise. Internal. */
#ifndef PS_KERNELS_BACKEND_CHECK_H
#define PS_KERNELS_BACKEND_CHECK_H

#include "kernels/backend.h"

/* Returns from the calling function when pointer is NULL; the message names both. */
#define PS_CHECK_POINTER(pointer) PS_TRY(ps_check_pointer(__func__, #pointer, (pointer), error))
/* Also when the pointer, which may be NULL, points into the device's own memory. */
#define PS_CHECK_HOST(backend, pointer) PS_TRY(ps_check_host(__func__, #pointer, (backend), (pointer), error))

ps_code ps_check_pointer(const char *function, const char *name, const void *pointer, ps_error *error);
ps_code ps_check_host(const char *function, const char *name, const ps_backend *backend, const void *pointer, ps_error *error);
/* PS_E_INTERNAL, naming the required operation that is not there. */
ps_code ps_check_operations(const ps_backend_ops *ops, ps_error *error);
ps_code ps_check_options(const ps_backend_ops *ops, const ps_backend_options *options, ps_error *error); /* PS_E_BACKEND: no such device */
/* A system's description, methods that the backend computes, an element type. */
ps_code ps_check_desc(const ps_system_desc *desc, ps_error *error);
ps_code ps_check_methods(const ps_backend_ops *ops, ps_methods methods, ps_error *error);
ps_code ps_check_dtype(ps_dtype dtype, ps_error *error);
/* [n] each > 0 and finite; what: "weight of active pixel". */
ps_code ps_check_positive(const char *what, int64_t n, const double *values, ps_error *error);
/* The system was created with all of `methods` and, for phase and complex, is prepared. */
ps_code ps_check_enabled(const ps_system *system, ps_methods methods, ps_error *error);
/* One of phase and complex, enabled. */
ps_code ps_check_solvable(const ps_system *system, ps_methods method, ps_error *error);
/* One of phase, complex and mf, enabled. */
ps_code ps_check_right_side(const ps_system *system, ps_methods method, ps_error *error);
ps_code ps_check_strengths(ps_methods method, int64_t n_strengths, const ps_strength *strengths, ps_error *error);
ps_code ps_check_frequency(const ps_system *system, int64_t frequency, ps_error *error);
/* Positions that a frame has and were not uploaded before. */
ps_code ps_check_positions(const ps_frame *frame, int64_t first, int64_t n, ps_error *error);
ps_code ps_check_complete(const ps_frame *frame, ps_error *error); /* all positions are uploaded */
ps_code ps_check_reduced(const ps_frame *frame, ps_error *error);
/* Different frames of one system, whose methods are prepared, complete, with their doses. */
ps_code ps_check_batch(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error);

#endif
