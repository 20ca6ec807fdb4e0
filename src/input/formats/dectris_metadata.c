#include "input/formats/dectris_metadata.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/regular.h"
#include "core/text.h"
#include "hdf5/util.h"
#include "input/file_list.h"

/* The first of these datasets that is a number above 0. */
static double first_positive(hid_t file, const char *const *paths, int n_paths) {
    for (int i = 0; i < n_paths; i++) {
        double found = NAN;
        if (ps_hdf5_number(file, paths[i], &found) && found > 0 && isfinite(found)) return found;
    }
    return 0;
}

/* Firmware writes the plan below detectorSpecific, some converters beside it. */
static int64_t read_number_of(hid_t file, const char *specific, const char *beside) {
    enum { MOST = 1 << 30 };
    const char *const places[] = {specific, beside};
    double number = first_positive(file, places, 2);
    return number >= 1 && number < MOST && number == floor(number) ? (int64_t)number : 0;
}

void ps_dectris_read_plan(hid_t master, ps_dectris_plan *plan) {
    char mode[32] = "";
    *plan = (ps_dectris_plan){.n_images = read_number_of(master, PS_DECTRIS_SPECIFIC "/nimages", PS_DECTRIS_DETECTOR "/nimages"),
                              .n_triggers = read_number_of(master, PS_DECTRIS_SPECIFIC "/ntrigger", PS_DECTRIS_DETECTOR "/ntrigger")};
    if (!ps_hdf5_text(master, PS_DECTRIS_SPECIFIC "/trigger_mode", mode, sizeof mode))
        ps_hdf5_text(master, PS_DECTRIS_DETECTOR "/trigger_mode", mode, sizeof mode);
    plan->one_image_a_trigger = strcmp(mode, "exte") == 0 || strcmp(mode, "inte") == 0;
    plan->n_frames = plan->n_images * plan->n_triggers;
}

/* Detectors begin with the energy of a photon line, 8 or 12.4 keV, and keep it where nobody sets it. */
static bool is_beam_of_electrons(double energy_V) {
    enum { LOWEST = 15000, HIGHEST = 3000000 };
    return energy_V >= LOWEST && energy_V <= HIGHEST;
}

static double energy_unit_V(hid_t file, const char *path) {
    char unit[16] = "";
    ps_hdf5_attribute_text(file, path, "units", unit, sizeof unit);
    return strcmp(unit, "keV") == 0 ? 1000 : strcmp(unit, "MeV") == 0 ? 1e6 : 1;
}

static void read_voltage(ps_hdf5_reader *r, hid_t file) {
    static const char *const energies[] = {"/entry/instrument/beam/incident_energy", PS_DECTRIS_SPECIFIC "/photon_energy",
                                           PS_DECTRIS_DETECTOR "/photon_energy"};
    ps_recording *info = &r->base.info;
    for (int i = 0; i < 3; i++) {
        double energy = first_positive(file, &energies[i], 1) * energy_unit_V(file, energies[i]);
        if (energy == 0) continue;
        if (!is_beam_of_electrons(energy))
            ps_reader_note(&r->base,
                           "warning: %s is %g eV, an energy of photons or a default, no voltage of an electron microscope: not used",
                           energies[i], energy);
        else if (isnan(info->voltage_V)) {
            info->voltage_V = energy;
            snprintf(info->voltage_place, sizeof info->voltage_place, "%s", energies[i]);
        } else if (energy != info->voltage_V)
            ps_reader_note(&r->base, "warning: %s is %g eV, but %s, which is used, says %g eV", energies[i], energy, info->voltage_place,
                           info->voltage_V);
    }
}

/* The lowest of what the places say: above it some pixel's count is not its own. */
typedef struct {
    ps_hdf5_reader *reader;
    double lowest, highest;
} saturation;

static void take_saturation(saturation *s, double found) {
    if (!(found > 0) || found >= (double)UINT32_MAX) return; /* all ones: not known */
    s->lowest = isnan(s->lowest) || found < s->lowest ? found : s->lowest;
    s->highest = isnan(s->highest) || found > s->highest ? found : s->highest;
}

static void read_saturation_of(hid_t group, const char *path, saturation *s) {
    static const char *const names[] = {"saturation_value", "countrate_correction_count_cutoff"};
    for (int i = 0; i < 2; i++) {
        char *name = ps_text_format("%s/%s", path, names[i]);
        double found = NAN;
        if (name && ps_hdf5_number(group, name, &found)) take_saturation(s, found);
        free(name);
    }
}

/* Firmware of several modules has a group for each: detectorModule_000 ... */
static herr_t look_at_module(hid_t group, const char *name, const H5L_info_t *info, void *target) {
    (void)info;
    if (strncmp(name, "detectorModule", strlen("detectorModule")) == 0) read_saturation_of(group, name, target);
    return 0;
}

static void read_saturation(ps_hdf5_reader *r, hid_t file) {
    static const char *const groups[] = {PS_DECTRIS_DETECTOR, PS_DECTRIS_SPECIFIC};
    saturation s = {.reader = r, .lowest = NAN, .highest = NAN};
    for (int i = 0; i < 2; i++) {
        if (!ps_hdf5_exists(file, groups[i])) continue;
        read_saturation_of(file, groups[i], &s);
        H5Literate_by_name(file, groups[i], H5_INDEX_NAME, H5_ITER_NATIVE, NULL, look_at_module, &s, H5P_DEFAULT);
    }
    if (isnan(s.lowest)) return;
    r->base.info.saturation = s.lowest;
    if (s.highest > s.lowest)
        ps_reader_note(&r->base, "warning: the master gives saturation values from %g to %g counts: the lowest is used", s.lowest,
                       s.highest);
}

/* Summed readouts hold more than one readout does. */
static void read_bit_depth(ps_hdf5_reader *r, hid_t file) {
    static const char *const image[] = {PS_DECTRIS_DETECTOR "/bit_depth_image", PS_DECTRIS_SPECIFIC "/bit_depth_image"};
    static const char *const readout[] = {PS_DECTRIS_DETECTOR "/bit_depth_readout", PS_DECTRIS_SPECIFIC "/bit_depth_readout"};
    static const char *const summed[] = {PS_DECTRIS_SPECIFIC "/auto_summation", PS_DECTRIS_DETECTOR "/auto_summation"};
    ps_recording *info = &r->base.info;
    double depth = first_positive(file, image, 2);
    if (depth == 0 && first_positive(file, summed, 2) == 0) depth = first_positive(file, readout, 2);
    if (depth != floor(depth) || depth < 1 || depth > 64) return;
    info->bit_depth = (int)depth;
    if (info->bit_depth < 8 * (int)ps_dtype_bytes(info->dtype))
        ps_reader_note(&r->base, "the master states counts of %d bits, stored in %s: %.0f is no count", info->bit_depth,
                       ps_dtype_name(info->dtype), ldexp(1, info->bit_depth) - 1);
}

void ps_dectris_read_metadata(ps_hdf5_reader *r, hid_t file) {
    static const char *const masks[] = {PS_DECTRIS_DETECTOR "/pixel_mask", PS_DECTRIS_SPECIFIC "/pixel_mask"};
    static const char *const dates[] = {PS_DECTRIS_SPECIFIC "/data_collection_date", PS_DECTRIS_DETECTOR "/data_collection_date",
                                        "/entry/start_time"};
    ps_recording *info = &r->base.info;
    read_voltage(r, file);
    read_saturation(r, file);
    read_bit_depth(r, file);
    for (int i = 0; i < 2 && !r->mask_dataset; i++)
        if (ps_hdf5_exists(file, masks[i])) r->mask_dataset = strdup(masks[i]);
    for (int i = 0; i < 3 && !info->acquisition_time[0]; i++)
        ps_hdf5_text(file, dates[i], info->acquisition_time, sizeof info->acquisition_time);
}

/* NAME.h5 beside NAME_master.h5; malloc'd, NULL: it is not there. */
static char *find_companion(const char *path) {
    static const char ending[] = "_master.h5";
    size_t n = strlen(path), tail = sizeof ending - 1;
    if (n <= tail || strcmp(path + n - tail, ending) != 0) return NULL;
    char *found = ps_text_format("%.*s.h5", (int)(n - tail), path);
    if (found && access(found, R_OK) == 0 && !ps_special_file(found)) return found;
    free(found);
    return NULL;
}

static ps_code take_companion_shape(ps_hdf5_reader *r, const char *path, double rows, double columns, double prescan, ps_error *error) {
    ps_recording *info = &r->base.info;
    enum { MOST = 1 << 30 };
    bool sane = rows >= 1 && columns >= 1 && rows < MOST && columns < MOST && rows == floor(rows) && columns == floor(columns);
    double missing = rows * columns - (double)info->n_positions;
    if (sane && missing > 0 && r->segments.allow_partial && info->n_positions > 0) {
        ps_reader_note(&r->base, "warning: %s says a scan of %g x %g, the data files hold %" PRId64 " patterns", path, rows, columns,
                       info->n_positions);
        PS_TRY(ps_segments_add_missing(&r->segments, (int64_t)missing, info, error));
    }
    if (sane && rows * columns == (double)info->n_positions) {
        info->scan_rows = (int64_t)rows;
        info->scan_columns = (int64_t)columns;
        snprintf(info->scan_place, sizeof info->scan_place, "NumPixelsY and NumPixelsX in the microscope's file");
        return PS_OK;
    }
    ps_reader_note(&r->base, "warning: %s says a scan of %g x %g with %g prescan pixels, which does not fit %" PRId64 " patterns", path,
                   rows, columns, prescan, info->n_positions);
    snprintf(info->scan_doubt, sizeof info->scan_doubt, "the microscope's file says a scan of %g x %g", rows, columns);
    return PS_OK;
}

ps_code ps_dectris_read_companion(ps_hdf5_reader *r, ps_error *error) {
    static const char group[] = "/STEM Metadata";
    ps_code code = PS_OK;
    ps_recording *info = &r->base.info;
    double rows = 0, columns = 0, prescan = 0, pixel = 0, voltage = NAN;
    hid_t file = -1;
    char *path = find_companion(r->base.path);
    if (!path || ps_hdf5_open(path, &file, NULL) != PS_OK) goto done;
    PS_GO(ps_file_list_add(&r->base.files, path, error));
    bool has_voltage = ps_hdf5_attribute_number(file, group, "High Tension", &voltage) && voltage > 0;
    if (has_voltage && isnan(info->voltage_V)) {
        info->voltage_V = voltage;
        snprintf(info->voltage_place, sizeof info->voltage_place, "High Tension in the microscope's file");
    } else if (has_voltage && voltage != info->voltage_V)
        ps_reader_note(&r->base, "warning: High Tension in %s is %g V, but %s, which is used, says %g eV", path, voltage,
                       info->voltage_place, info->voltage_V);
    bool said = ps_hdf5_attribute_number(file, group, "NumPixelsY", &rows) && ps_hdf5_attribute_number(file, group, "NumPixelsX", &columns);
    ps_hdf5_attribute_number(file, group, "NumPixelsPrescan", &prescan);
    if (said) PS_GO(take_companion_shape(r, path, rows, columns, prescan, error));
    if (ps_hdf5_attribute_number(file, group, "Pixel Size", &pixel))
        ps_reader_note(&r->base, "%s says a pixel size of %g without a unit: not used", path, pixel);
done:
    if (file >= 0) H5Fclose(file);
    free(path);
    return code;
}

static bool is_square(int64_t n) {
    int64_t root = (int64_t)llround(sqrt((double)n));
    return root * root == n;
}

/* As many triggers as positions, and several images at each, look like this too. */
static bool may_be_repeats(const ps_dectris_plan *plan) {
    enum { SLIMMEST = 64 };
    return plan->n_triggers >= SLIMMEST * plan->n_images && is_square(plan->n_triggers);
}

static void take_triggers_as_rows(ps_hdf5_reader *r, const ps_dectris_plan *plan) {
    ps_recording *info = &r->base.info;
    if (info->scan_rows > 0) {
        if (info->scan_rows != plan->n_triggers)
            ps_reader_note(&r->base,
                           "warning: %" PRId64 " triggers of %" PRId64 " images would be a scan of as many rows, but %s says otherwise",
                           plan->n_triggers, plan->n_images, info->scan_place);
        return;
    }
    if (may_be_repeats(plan) || plan->one_image_a_trigger) {
        snprintf(info->scan_doubt, sizeof info->scan_doubt,
                 "the master says %" PRId64 " triggers of %" PRId64 " images, which may be scan rows, or positions with series.repeats",
                 plan->n_triggers, plan->n_images);
        return;
    }
    info->scan_rows = plan->n_triggers;
    info->scan_columns = plan->n_images;
    info->scan_doubt[0] = '\0';
    snprintf(info->scan_place, sizeof info->scan_place, "ntrigger and nimages of the master, one trigger a scan row");
}

void ps_dectris_describe_scan(ps_hdf5_reader *r, const ps_dectris_plan *plan) {
    ps_recording *info = &r->base.info;
    info->n_planned = plan->n_frames;
    if (plan->n_frames == 0 || (plan->one_image_a_trigger && info->n_positions == plan->n_triggers)) return;
    bool whole = info->n_positions == plan->n_frames;
    if (whole && plan->n_images > 1 && plan->n_triggers > 1) take_triggers_as_rows(r, plan);
    if (!whole && info->scan_rows == 0)
        snprintf(info->scan_doubt, sizeof info->scan_doubt,
                 "%" PRId64 " were planned (ntrigger %" PRId64 ", nimages %" PRId64 " of the master)", plan->n_frames, plan->n_triggers,
                 plan->n_images);
}
