#include "optics/warnings.h"

#include <math.h>
#include <stdio.h>

#include "optics/plan.h"

static const double invisible_rad = 1e-4;      /* phase at the aperture's edge that changes no image */
static const double most_rad_per_pixel = M_PI; /* beyond, the probe is larger than the detector's pixels can tell */
static const double plausible_rad = 0.05;      /* at the edge, of an aberration somebody cared to write down */
static const double most_thickness_A = 5000.0; /* single scattering ends long before */
static const int64_t most_upsampling = 16;

/* Phase of one term at the edge of the aperture per Angstrom of its coefficient. */
static double edge_phase(const ps_optics *optics, int term) {
    int n = ps_aberration_orders[term][0];
    return 2.0 * M_PI / ps_wavelength_A(optics->voltage_V) * pow(1e-3 * optics->semiangle_mrad, n + 1) / (n + 1);
}

/* The first unit in which the number would give a visible phase that the detector still samples. */
static const char *unit_that_fits(double phase, double most) {
    static const struct {
        const char *name;
        double A;
    } units[] = {{"nm", 1e1}, {"um", 1e4}, {"mm", 1e7}, {"m", 1e10}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (phase * units[i].A >= plausible_rad && phase * units[i].A <= most) return units[i].name;
    return NULL;
}

static bool warn_invisible(const ps_optics *optics, int term, char text[PS_WARNING_TEXT]) {
    int n = ps_aberration_orders[term][0], m = ps_aberration_orders[term][1];
    double phase = fabs(optics->C_A[term]) * edge_phase(optics, term);
    double pixels = optics->semiangle_mrad / fmax(optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1]);
    if (optics->C_A[term] == 0.0 || phase >= invisible_rad) return false;
    const char *unit = unit_that_fits(phase, most_rad_per_pixel * pixels / (n + 1));
    int used = snprintf(text, PS_WARNING_TEXT, "C%d%d of %g A turns the phase by %.1g rad at the aperture's edge, which changes nothing", n,
                        m, optics->C_A[term], phase);
    if (unit && used > 0) snprintf(text + used, (size_t)(PS_WARNING_TEXT - used), "; is the value in %s?", unit);
    return true;
}

/* The largest step of chi from one pixel to the next, which lies at the edge: (n + 1) phase / pixels of the radius. */
static bool warn_undersampled(const ps_optics *optics, char text[PS_WARNING_TEXT]) {
    int worst = 0;
    double most = 0.0, pixels = optics->semiangle_mrad / fmax(optics->detector_pitch_mrad[0], optics->detector_pitch_mrad[1]);
    for (int i = 0; i < PS_N_ABERRATIONS; i++) {
        double step = fabs(optics->C_A[i]) * edge_phase(optics, i) * (ps_aberration_orders[i][0] + 1) / pixels;
        if (!(step > most)) continue;
        most = step;
        worst = i;
    }
    if (most <= most_rad_per_pixel) return false;
    snprintf(
        text, PS_WARNING_TEXT,
        "C%d%d of %g A turns the phase by %.3g rad from one detector pixel to the next at the aperture's edge, more than half a turn: the "
        "probe is larger than such pixels can tell; is the value in another unit (nm under a key in A and the other way round differ by "
        "10), or the pitch too large?",
        ps_aberration_orders[worst][0], ps_aberration_orders[worst][1], optics->C_A[worst], most);
    return true;
}

static bool warn_step(const ps_optics *optics, char text[PS_WARNING_TEXT]) {
    int64_t needed = ps_plan_auto_upsampling(optics);
    if (needed <= most_upsampling) return false;
    snprintf(text, PS_WARNING_TEXT,
             "scan_step_A of %g x %g is %lld times coarser than what a semiangle of %g mrad resolves; is the step or the semiangle in "
             "another unit?",
             optics->scan_step_A[0], optics->scan_step_A[1], (long long)needed, optics->semiangle_mrad);
    return true;
}

static bool warn_thickness(const ps_optics *optics, char text[PS_WARNING_TEXT]) {
    if (optics->thickness_A <= most_thickness_A) return false;
    snprintf(text, PS_WARNING_TEXT, "thickness_A of %g is %g nm, more than single scattering can describe; is the value in another unit?",
             optics->thickness_A, 0.1 * optics->thickness_A);
    return true;
}

int ps_optics_warnings(const ps_optics *optics, int most, char texts[][PS_WARNING_TEXT]) {
    int n = 0;
    if (n < most) n += warn_step(optics, texts[n]);
    if (n < most) n += warn_thickness(optics, texts[n]);
    if (n < most) n += warn_undersampled(optics, texts[n]);
    for (int i = 0; i < PS_N_ABERRATIONS && n < most; i++) n += warn_invisible(optics, i, texts[n]);
    return n;
}
