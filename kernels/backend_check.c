#include "kernels/backend_check.h"

#include <math.h>

ps_code ps_check_pointer(const char *function, const char *name, const void *pointer, ps_error *error) {
    if (pointer) return PS_OK;
    return PS_FAIL(error, PS_E_ARGUMENT, "%s: %s is NULL", function, name);
}

ps_code ps_check_host(const char *function, const char *name, const ps_backend *backend, const void *pointer, ps_error *error) {
    if (!pointer || !backend->ops->owns || !backend->ops->owns(backend, pointer)) return PS_OK;
    return PS_FAIL(error, PS_E_ARGUMENT, "%s: %s points into the memory of the %s backend's device, expected host memory", function, name,
                   backend->ops->name);
}

ps_code ps_check_operations(const ps_backend_ops *ops, ps_error *error) {
    if (!ops->name) return PS_FAIL(error, PS_E_INTERNAL, "a backend has no name");
#define CHECK(operation) \
    if (!ops->operation) return PS_FAIL(error, PS_E_INTERNAL, "backend %s: no operation %s, which is required", ops->name, #operation)
    CHECK(open);
    CHECK(close);
    CHECK(device_info);
    CHECK(memory_plan);
    CHECK(system_create);
    CHECK(system_destroy);
    CHECK(system_set_weights);
    CHECK(system_prepare);
    CHECK(frame_create);
    CHECK(frame_destroy);
    CHECK(frame_upload);
    CHECK(frame_mean_counts);
    CHECK(frame_reduce);
    CHECK(solve);
    CHECK(ssb);
    CHECK(right_side_image);
    CHECK(get_transfer);
    CHECK(get_normal);
    CHECK(get_eigenvalues);
    CHECK(get_right_side);
    CHECK(get_spectrum);
    if (ops->host && !(ops->host->allocate && ops->host->free && ops->host->wait))
        return PS_FAIL(error, PS_E_INTERNAL, "backend %s: its host memory lacks an operation", ops->name);
#undef CHECK
    return PS_OK;
}

ps_code ps_check_options(const ps_backend_ops *ops, const ps_backend_options *options, ps_error *error) {
    int n_devices;
    if (options->n_threads < 0)
        return PS_FAIL(error, PS_E_ARGUMENT, "%s: found %d threads, expected 0 (all) or more", ops->name, options->n_threads);
    if (options->n_sharing < 0)
        return PS_FAIL(error, PS_E_ARGUMENT, "%s: found %d ranks that share a device, expected 0 (one) or more", ops->name,
                       options->n_sharing);
    if (!ops->device_count) return PS_OK;
    PS_TRY(ops->device_count(&n_devices, error));
    if (options->device < 0 || options->device >= n_devices)
        return PS_FAIL(error, PS_E_BACKEND, "%s: device %d, expected 0 to %d", ops->name, options->device, n_devices - 1);
    return PS_OK;
}

/* --- a system's description --- */

static bool is_positive(double value) {
    return value > 0.0 && isfinite(value);
}

static ps_code check_sizes(const ps_system_desc *desc, ps_error *error) {
    const int64_t sizes[] = {desc->scan_rows, desc->scan_columns, desc->detector_rows, desc->detector_columns, desc->upsampling};
    static const char *const names[] = {"scan rows", "scan columns", "detector rows", "detector columns", "upsampling"};
    for (int i = 0; i < 5; i++)
        if (sizes[i] < 1 || sizes[i] > INT32_MAX)
            return PS_FAIL(error, PS_E_ARGUMENT, "system: %s is %lld, expected 1 to %d", names[i], (long long)sizes[i], INT32_MAX);
    if (desc->scan_rows > INT32_MAX / desc->upsampling || desc->scan_columns > INT32_MAX / desc->upsampling ||
        desc->detector_rows > INT32_MAX / desc->detector_columns)
        return PS_FAIL(error, PS_E_ARGUMENT,
                       "system: scan %lld x %lld times %lld, detector %lld x %lld: a side or the detector is above %d",
                       (long long)desc->scan_rows, (long long)desc->scan_columns, (long long)desc->upsampling,
                       (long long)desc->detector_rows, (long long)desc->detector_columns, INT32_MAX);
    if (desc->n_active < 1 || desc->n_active > desc->detector_rows * desc->detector_columns)
        return PS_FAIL(error, PS_E_ARGUMENT, "system: %lld active pixels, expected 1 to %lld", (long long)desc->n_active,
                       (long long)(desc->detector_rows * desc->detector_columns));
    if (desc->g_storage != PS_G_EXACT && desc->g_storage != PS_G_COMPACT)
        return PS_FAIL(error, PS_E_ARGUMENT, "system: the storage of g is %d, expected %d (exact) or %d (compact)", (int)desc->g_storage,
                       (int)PS_G_EXACT, (int)PS_G_COMPACT);
    if (desc->n_frequencies < 1 || desc->n_frequencies > desc->scan_rows * desc->scan_columns || desc->n_aliases < 0)
        return PS_FAIL(error, PS_E_ARGUMENT, "system: %lld frequencies with %lld aliases, expected 1 to %lld with 0 or more",
                       (long long)desc->n_frequencies, (long long)desc->n_aliases, (long long)(desc->scan_rows * desc->scan_columns));
    return PS_OK;
}

static ps_code check_arrays(const ps_system_desc *desc, ps_error *error) {
    bool pixels = desc->active && desc->k_row && desc->k_column && desc->frequencies;
    bool aliases = desc->fine_row && desc->fine_column && desc->q_row && desc->q_column && desc->prior_phase && desc->prior_complex;
    if (!pixels || (desc->n_aliases > 0 && !aliases))
        return PS_FAIL(error, PS_E_ARGUMENT, "system: an array over %s is NULL", pixels ? "aliases" : "pixels or frequencies");
    return PS_OK;
}

static ps_code check_probe(const ps_system_desc *desc, ps_error *error) {
    const ps_probe *p = &desc->probe;
    bool good = is_positive(p->wavelength_A) && is_positive(p->semiangle_rad) && is_positive(p->pitch_rad[0]) &&
                is_positive(p->pitch_rad[1]) && is_positive(desc->scan_step_A[0]) && is_positive(desc->scan_step_A[1]);
    good = good && isfinite(p->thickness_A) && isfinite(p->tilt_rad[0]) && isfinite(p->tilt_rad[1]);
    for (int i = 0; i < PS_N_ABERRATIONS; i++) good = good && isfinite(p->C_A[i]) && isfinite(p->angle_rad[i]);
    if (good) return PS_OK;
    return PS_FAIL(
        error, PS_E_ARGUMENT,
        "system: wavelength %g A, semiangle %g rad, pitches %g and %g rad, steps %g and %g A, expected positive numbers, and finite "
        "aberrations, thickness and tilt",
        p->wavelength_A, p->semiangle_rad, p->pitch_rad[0], p->pitch_rad[1], desc->scan_step_A[0], desc->scan_step_A[1]);
}

static ps_code check_pixels(const ps_system_desc *desc, ps_error *error) {
    int64_t n_pixels = desc->detector_rows * desc->detector_columns;
    for (int64_t i = 0; i < desc->n_active; i++) {
        int32_t before = i > 0 ? desc->active[i - 1] : -1;
        if (desc->active[i] <= before || desc->active[i] >= n_pixels || !isfinite(desc->k_row[i]) || !isfinite(desc->k_column[i]))
            return PS_FAIL(error, PS_E_ARGUMENT,
                           "system: active pixel %lld is number %d of the detector at (%g, %g) 1/A, expected %d to %lld and a finite place",
                           (long long)i, desc->active[i], desc->k_row[i], desc->k_column[i], before + 1, (long long)n_pixels - 1);
    }
    return PS_OK;
}

static ps_code check_frequencies(const ps_system_desc *desc, ps_error *error) {
    for (int64_t i = 0; i < desc->n_frequencies; i++) {
        const ps_frequency *f = &desc->frequencies[i];
        bool inside = f->row >= 0 && f->row < desc->scan_rows && f->column >= 0 && f->column < desc->scan_columns;
        bool aliases =
            f->n_aliases >= 0 && f->n_aliases <= PS_MAX_ALIASES && f->first_alias >= 0 && f->first_alias <= desc->n_aliases - f->n_aliases;
        if (!inside || !aliases || f->multiplicity < 1 || f->multiplicity > 2)
            return PS_FAIL(error, PS_E_ARGUMENT, "system: frequency %lld is (%d, %d) with %d aliases from %lld, multiplicity %d",
                           (long long)i, f->row, f->column, f->n_aliases, (long long)f->first_alias, f->multiplicity);
    }
    if (desc->frequencies[0].row != 0 || desc->frequencies[0].column != 0)
        return PS_FAIL(error, PS_E_ARGUMENT, "system: frequency 0 is (%d, %d), expected the scan's zero frequency",
                       desc->frequencies[0].row, desc->frequencies[0].column);
    return PS_OK;
}

static ps_code check_aliases(const ps_system_desc *desc, ps_error *error) {
    int64_t rows = desc->scan_rows * desc->upsampling, columns = desc->scan_columns * desc->upsampling;
    for (int64_t a = 0; a < desc->n_aliases; a++) {
        bool inside = desc->fine_row[a] >= 0 && desc->fine_row[a] < rows && desc->fine_column[a] >= 0 && desc->fine_column[a] < columns;
        bool priors = desc->prior_phase[a] >= 1.0 && isfinite(desc->prior_phase[a]) && desc->prior_complex[a] >= 1.0 &&
                      isfinite(desc->prior_complex[a]);
        if (!inside || !priors || !isfinite(desc->q_row[a]) || !isfinite(desc->q_column[a]))
            return PS_FAIL(error, PS_E_ARGUMENT, "system: alias %lld is (%d, %d) at (%g, %g) 1/A with priors %g (phase) and %g (complex)",
                           (long long)a, desc->fine_row[a], desc->fine_column[a], desc->q_row[a], desc->q_column[a], desc->prior_phase[a],
                           desc->prior_complex[a]);
    }
    return PS_OK;
}

ps_code ps_check_desc(const ps_system_desc *desc, ps_error *error) {
    PS_TRY(check_sizes(desc, error));
    PS_TRY(check_arrays(desc, error));
    PS_TRY(check_probe(desc, error));
    PS_TRY(check_pixels(desc, error));
    PS_TRY(check_frequencies(desc, error));
    return check_aliases(desc, error);
}

/* --- methods and element types --- */

static const char *method_name(ps_methods method) {
    switch (method) {
    case PS_METHOD_PHASE: return "phase";
    case PS_METHOD_COMPLEX: return "complex";
    case PS_METHOD_SSB: return "ssb";
    case PS_METHOD_MF: return "mf";
    default: return "unknown";
    }
}

ps_code ps_check_methods(const ps_backend_ops *ops, ps_methods methods, ps_error *error) {
    ps_methods offered = ops->methods ? ops->methods : PS_METHODS_ALL;
    if (methods == 0 || methods & ~(ps_methods)PS_METHODS_ALL)
        return PS_FAIL(error, PS_E_ARGUMENT, "methods are %u, expected a sum of PS_METHOD_ bits", methods);
    for (ps_methods bit = 1; bit <= PS_METHODS_ALL; bit <<= 1)
        if (methods & bit & ~offered)
            return PS_FAIL(error, PS_E_ARGUMENT, "backend %s does not compute the %s method", ops->name, method_name(bit));
    return PS_OK;
}

ps_code ps_check_dtype(ps_dtype dtype, ps_error *error) {
    if (ps_dtype_bytes(dtype) > 0) return PS_OK;
    return PS_FAIL(error, PS_E_ARGUMENT, "unknown element type %d", (int)dtype);
}

ps_code ps_check_enabled(const ps_system *system, ps_methods methods, ps_error *error) {
    for (ps_methods bit = 1; bit <= PS_METHODS_ALL; bit <<= 1)
        if (methods & bit & ~system->methods)
            return PS_FAIL(error, PS_E_ARGUMENT, "the system was created without the %s method", method_name(bit));
    if ((methods & PS_METHODS_PREPARED) && !system->is_prepared) return PS_FAIL(error, PS_E_ARGUMENT, "the system is not prepared");
    return PS_OK;
}

ps_code ps_check_solvable(const ps_system *system, ps_methods method, ps_error *error) {
    if (method != PS_METHOD_PHASE && method != PS_METHOD_COMPLEX)
        return PS_FAIL(error, PS_E_ARGUMENT, "method %u cannot be solved, expected phase or complex", method);
    return ps_check_enabled(system, method, error);
}

ps_code ps_check_right_side(const ps_system *system, ps_methods method, ps_error *error) {
    if (method != PS_METHOD_PHASE && method != PS_METHOD_COMPLEX && method != PS_METHOD_MF)
        return PS_FAIL(error, PS_E_ARGUMENT, "method %u has no right side, expected phase, complex or mf", method);
    return ps_check_enabled(system, method, error);
}

/* --- numbers --- */

ps_code ps_check_positive(const char *what, int64_t n, const double *values, ps_error *error) {
    for (int64_t i = 0; i < n; i++)
        if (!is_positive(values[i]))
            return PS_FAIL(error, PS_E_ARGUMENT, "%s %lld is %g, expected a positive number", what, (long long)i, values[i]);
    return PS_OK;
}

ps_code ps_check_strengths(ps_methods method, int64_t n_strengths, const ps_strength *strengths, ps_error *error) {
    if (n_strengths < 0) return PS_FAIL(error, PS_E_ARGUMENT, "%lld strengths, expected 0 or more", (long long)n_strengths);
    if (n_strengths > 0) PS_CHECK_POINTER(strengths);
    for (int64_t i = 0; i < n_strengths; i++) {
        bool good = is_positive(strengths[i].phase) && (method != PS_METHOD_COMPLEX || is_positive(strengths[i].amplitude));
        if (!good)
            return PS_FAIL(error, PS_E_ARGUMENT, "strength %lld is (%g, %g), expected positive numbers", (long long)i,
                           strengths[i].amplitude, strengths[i].phase);
    }
    return PS_OK;
}

ps_code ps_check_frequency(const ps_system *system, int64_t frequency, ps_error *error) {
    if (frequency >= 0 && frequency < system->n_frequencies) return PS_OK;
    return PS_FAIL(error, PS_E_ARGUMENT, "frequency %lld, expected 0 to %lld", (long long)frequency, (long long)system->n_frequencies - 1);
}

/* --- the state of frames --- */

ps_code ps_check_positions(const ps_frame *frame, int64_t first, int64_t n, ps_error *error) {
    int64_t positions = frame->system->n_positions;
    if (first < 0 || n < 0 || first > positions || n > positions - first)
        return PS_FAIL(error, PS_E_ARGUMENT, "%lld positions from %lld on uploaded, expected some of 0 to %lld", (long long)n,
                       (long long)first, (long long)positions - 1);
    for (int64_t i = first; i < first + n; i++)
        if (frame->is_put[i]) return PS_FAIL(error, PS_E_ARGUMENT, "position %lld uploaded twice", (long long)i);
    return PS_OK;
}

ps_code ps_check_complete(const ps_frame *frame, ps_error *error) {
    int64_t positions = frame->system->n_positions;
    if (frame->unpacking) return PS_FAIL(error, PS_E_ARGUMENT, "the frame's patterns are still being unpacked");
    if (frame->n_put == positions) return PS_OK;
    return PS_FAIL(error, PS_E_ARGUMENT, "%lld of %lld positions uploaded", (long long)frame->n_put, (long long)positions);
}

ps_code ps_check_reduced(const ps_frame *frame, ps_error *error) {
    return frame->is_reduced ? PS_OK : PS_FAIL(error, PS_E_ARGUMENT, "the frame is not reduced");
}

static ps_code check_in_batch(ps_frame *const *frames, int64_t i, ps_error *error) {
    if (!frames[i]) return PS_FAIL(error, PS_E_ARGUMENT, "frame %lld of the batch is NULL", (long long)i);
    if (frames[i]->system != frames[0]->system)
        return PS_FAIL(error, PS_E_ARGUMENT, "frames 0 and %lld of the batch belong to different systems", (long long)i);
    for (int64_t j = 0; j < i; j++)
        if (frames[i] == frames[j])
            return PS_FAIL(error, PS_E_ARGUMENT, "frames %lld and %lld of the batch are the same", (long long)j, (long long)i);
    return PS_OK;
}

ps_code ps_check_batch(ps_frame *const *frames, int64_t n_frames, const double *dose, ps_error *error) {
    for (int64_t i = 0; i < n_frames; i++) PS_TRY(check_in_batch(frames, i, error));
    PS_TRY(ps_check_positive("dose of the batch's frame", n_frames, dose, error));
    PS_TRY(ps_check_enabled(frames[0]->system, frames[0]->system->methods, error));
    for (int64_t i = 0; i < n_frames; i++) PS_TRY(ps_check_complete(frames[i], error));
    return PS_OK;
}
