#include "kernels/backend_default.h"

#include <stdlib.h>

/* A method that the system was created with, whose right side tells the data norm; 0: a system for SSB alone has none. */
static ps_methods method_with_data_norm(const ps_system *system) {
    ps_methods methods = system->methods & PS_METHODS_RIGHT_SIDE;
    return methods & -methods;
}

ps_code ps_default_data_norms(ps_frame *frame, double *data_norms, ps_error *error) {
    const ps_system *system = frame->system;
    double right_side[4 * PS_MAX_ALIASES];
    ps_methods method = method_with_data_norm(system);
    if (!method)
        return PS_FAIL(error, PS_E_ARGUMENT, "backend %s has no data norm for a system without the phase, complex and mf methods",
                       frame->ops->name);
    for (int64_t i = 1; i < system->n_frequencies; i++)
        PS_TRY(frame->ops->get_right_side(frame, method, i, right_side, &data_norms[i], error));
    return PS_OK;
}

ps_code ps_default_data_norm(ps_frame *frame, double *data_norm, ps_error *error) {
    const ps_system *system = frame->system;
    ps_code code = PS_OK;
    double *each = malloc((size_t)system->n_frequencies * sizeof *each);
    PS_GO_ALLOC(error, each);
    PS_GO(ps_default_data_norms(frame, each, error));
    *data_norm = 0.0;
    for (int64_t i = 1; i < system->n_frequencies; i++) *data_norm += system->frequencies[i].multiplicity * each[i];
done:
    free(each);
    return code;
}

/* Adds the diagonal of one frequency, as often as it counts; normal: [dim, dim] complex. */
static void add_diagonal(const ps_frequency *f, int64_t dim, const double *normal, double *amplitude, double *phase) {
    for (int64_t a = 0; a < f->n_aliases; a++) {
        int64_t i = dim - f->n_aliases + a;
        *amplitude += f->multiplicity * normal[2 * a * (dim + 1)];
        *phase += f->multiplicity * normal[2 * i * (dim + 1)];
    }
}

ps_code ps_default_scales(ps_system *system, ps_methods method, double *amplitude, double *phase, ps_error *error) {
    double aliases = 0.0, sums[2] = {0.0};
    ps_code code = PS_OK;
    double *normal = malloc(8 * (size_t)PS_MAX_ALIASES * PS_MAX_ALIASES * sizeof *normal);
    PS_GO_ALLOC(error, normal);
    for (int64_t i = 1; i < system->n_frequencies; i++) {
        const ps_frequency *f = &system->frequencies[i];
        int64_t dim = method == PS_METHOD_COMPLEX ? 2 * f->n_aliases : f->n_aliases;
        PS_GO(system->ops->get_normal(system, method, i, normal, error));
        add_diagonal(f, dim, normal, &sums[0], &sums[1]);
        aliases += f->multiplicity * (double)f->n_aliases;
    }
    *amplitude = aliases > 0.0 ? sums[0] / aliases : 0.0;
    *phase = aliases > 0.0 ? sums[1] / aliases : 0.0;
done:
    free(normal);
    return code;
}
