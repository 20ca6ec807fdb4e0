#include "input/formats/hyperspy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "hdf5/flag.h"
#include "hdf5/util.h"

static ps_code read_axis(const ps_reader *reader, hid_t file, const char *place, hsize_t n, ps_axis *axis, ps_error *error) {
    double size = NAN;
    bool navigate = false;
    if (ps_hdf5_attribute_number(file, place, "size", &size) && size != (double)n)
        return PS_FAIL(error, PS_E_INPUT, "%s: %s says an axis of %g, but the dataset has %" PRIu64 " there: its axes are in another order",
                       reader->path, place, size, (uint64_t)n);
    ps_hdf5_attribute_text(file, place, "name", axis->name, sizeof axis->name);
    ps_hdf5_attribute_text(file, place, "units", axis->step.unit, sizeof axis->step.unit);
    ps_hdf5_attribute_number(file, place, "scale", &axis->step.value);
    axis->step.value = fabs(axis->step.value);
    snprintf(axis->step.place, sizeof axis->step.place, "%s", place);
    if (ps_hdf5_flag(file, place, "navigate", &navigate)) axis->kind = navigate ? PS_AXIS_SCAN : PS_AXIS_DETECTOR;
    return PS_OK;
}

static void read_voltage(ps_reader *reader, hid_t file, const char *group) {
    double energy_keV = NAN;
    char place[PS_PLACE_BYTES];
    snprintf(place, sizeof place, "%s/metadata/Acquisition_instrument/TEM", group);
    if (!ps_hdf5_attribute_number(file, place, "beam_energy", &energy_keV)) return;
    if (!(energy_keV > 0) || !isnan(reader->info.voltage_V)) return;
    reader->info.voltage_V = energy_keV * 1e3;
    snprintf(reader->info.voltage_place, sizeof reader->info.voltage_place, "beam_energy of HyperSpy's TEM metadata");
}

ps_code ps_hyperspy_read_axes(ps_reader *reader, hid_t file, const char *dataset, int rank, const hsize_t *shape, ps_axis *axes,
                              bool *found, ps_error *error) {
    ps_code code = PS_OK;
    char *group = ps_path_directory(dataset);
    PS_GO_ALLOC(error, group);
    *found = false;
    for (int i = 0; i < rank; i++) {
        char place[PS_PLACE_BYTES];
        snprintf(place, sizeof place, "%s/axis-%d", group, i);
        if (!ps_hdf5_exists(file, place)) continue;
        *found = true;
        PS_GO(read_axis(reader, file, place, shape[i], &axes[i], error));
    }
    if (*found) read_voltage(reader, file, group);
done:
    free(group);
    return code;
}
