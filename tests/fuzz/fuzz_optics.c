/* An optics file or a quantem.gpu fit. What is accepted gives finite wave vectors, apertures and chi, a sound plan or a reason why there is
 * none, and comes back the same from the JSON that provenance keeps. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "optics/optics_json.h"
#include "optics/plan.h"
#include "optics/warnings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds) abort();
}

static bool same(double a, double b) {
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-12 * fabs(a);
}

static void check_plan(const ps_optics *optics) {
    ps_plan plan;
    ps_error error = {0};
    enum { ROWS = 15, COLUMNS = 12 };
    ps_plan_options options = {.scan_rows = 5, .scan_columns = 4, .detector_rows = ROWS, .detector_columns = COLUMNS};
    options.smoothness_phase_inv_A = options.smoothness_complex_inv_A = 1;
    if (ps_plan_build(optics, &options, &plan, &error) != PS_OK) {
        check(error.text[0] && !plan.desc.active);
        return;
    }
    const ps_system_desc *desc = &plan.desc;
    check(desc->n_active >= 1 && desc->n_active < ROWS * COLUMNS && desc->n_frequencies >= 1 && plan.n_bright >= 1);
    for (int64_t i = 0; i < desc->n_active; i++) check(desc->active[i] >= 0 && desc->active[i] < ROWS * COLUMNS);
    ps_plan_free(&plan);
}

static void check_use(const ps_optics *optics) {
    enum { ROWS = 3, COLUMNS = 2, MOST = 8 };
    double k_row[ROWS * COLUMNS], k_column[ROWS * COLUMNS];
    char warnings[MOST][PS_WARNING_TEXT];
    ps_probe probe;
    ps_optics_k(optics, ROWS, COLUMNS, k_row, k_column);
    ps_optics_probe(optics, &probe);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        double aperture = ps_probe_aperture(&probe, k_row[i], k_column[i]);
        check(isfinite(k_row[i]) && isfinite(k_column[i]) && aperture >= 0 && aperture <= 1);
        check(isfinite(ps_probe_chi(&probe, k_row[i], k_column[i])));
    }
    check_plan(optics);
    int n = ps_optics_warnings(optics, MOST, warnings);
    check(n >= 0 && n <= MOST);
}

/* The values that have several spellings. */
static void check_same(const ps_optics *a, const ps_optics *b) {
    check(same(a->voltage_V, b->voltage_V) && same(a->semiangle_mrad, b->semiangle_mrad) && same(a->thickness_A, b->thickness_A));
    for (int axis = 0; axis < 2; axis++) {
        check(same(a->scan_step_A[axis], b->scan_step_A[axis]) && same(a->tilt_mrad[axis], b->tilt_mrad[axis]));
        check(same(a->detector_pitch_mrad[axis], b->detector_pitch_mrad[axis]));
        check(a->detector_flip[axis] == b->detector_flip[axis]);
    }
    for (int i = 0; i < PS_N_ABERRATIONS; i++) check(same(a->C_A[i], b->C_A[i]) && same(a->angle_rad[i], b->angle_rad[i]));
}

static void read_again(const ps_optics *optics) {
    ps_optics again;
    ps_error error = {0};
    cJSON *json = ps_optics_to_json(optics);
    check(json && ps_optics_from_json(json, "kept", &again, &error) == PS_OK);
    check_same(optics, &again);
    cJSON_Delete(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ps_optics optics;
    ps_error error = {0};
    cJSON *json = NULL;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0'; /* as behind a file that was read */
    ps_code code = ps_json_parse(text, size, "fuzz", &json, &error);
    if (code == PS_OK) code = ps_optics_from_json(json, "fuzz", &optics, &error);
    if (code != PS_OK)
        check(code == PS_E_JOB && error.text[0]);
    else if (!ps_optics_missing(&optics)) {
        check_use(&optics);
        read_again(&optics);
    }
    cJSON_Delete(json);
    free(text);
    return 0;
}
