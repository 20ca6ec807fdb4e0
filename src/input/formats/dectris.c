/* Dectris masters: /entry/data holds links data_000001, data_000002 ... to data files beside the master, or the data itself.
 * What the master says of the detector (mask, saturation) and the beam is read from where Eiger and Arina write it. */
#include <inttypes.h>
#include <stdio.h>

#include "hdf5/failure.h"
#include "hdf5/util.h"
#include "input/adapters/partial.h"
#include "input/formats/dectris_links.h"
#include "input/formats/dectris_metadata.h"
#include "input/formats/formats.h"
#include "input/formats/hdf5_common.h"
#include "input/formats/probe_list.h"

static herr_t look_for_numbered(hid_t group, const char *name, const H5L_info_t *info, void *found) {
    (void)group, (void)info;
    *(bool *)found |= ps_dectris_is_numbered(name);
    return *(bool *)found;
}

static bool probe(const char *path, const char *dataset) {
    if (dataset || !ps_hdf5_is_file(path)) return false;
    bool found = false;
    ps_hdf5_lock();
    hid_t file = -1;
    if (ps_hdf5_open(path, &file, NULL) == PS_OK && ps_hdf5_exists(file, PS_DECTRIS_DATA)) {
        ps_hdf5_note_lack(
            H5Literate_by_name(file, PS_DECTRIS_DATA, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, look_for_numbered, &found, H5P_DEFAULT) >= 0);
        found |= ps_hdf5_exists(file, PS_DECTRIS_SPECIFIC);
    }
    if (file >= 0) H5Fclose(file);
    ps_hdf5_unlock();
    return found;
}

/* Data that ends before the number of patterns the master promised. */
static ps_code check_promise(ps_hdf5_reader *r, const ps_reader_options *options, int64_t promised, ps_error *error) {
    int64_t found = r->segments.n_positions;
    if (promised == 0 || found == promised) return PS_OK;
    ps_reader_note(&r->base, "warning: %" PRId64 " patterns were to be recorded, the data files hold %" PRId64, promised, found);
    if (!options->allow_partial || found > promised) return PS_OK; /* the scan's shape is checked against what is there */
    return ps_segments_add_missing(&r->segments, promised - found, &r->base.info, error);
}

/* Images times triggers; a trigger may be an image in some modes, and then the data tells which was meant. */
static int64_t promised_frames(const ps_hdf5_reader *r, const ps_dectris_plan *plan, const ps_reader_options *options) {
    if (plan->one_image_a_trigger && r->segments.n_positions == plan->n_triggers) return plan->n_triggers;
    return plan->n_frames > 0 ? plan->n_frames : ps_positions_needed(options);
}

static ps_code read_master(ps_hdf5_reader *r, hid_t file, const ps_reader_options *options, ps_error *error) {
    ps_dectris_plan plan;
    ps_dectris_read_plan(file, &plan);
    PS_TRY(ps_dectris_add_data(r, file, options, promised_frames(r, &plan, options), error));
    PS_TRY(check_promise(r, options, promised_frames(r, &plan, options), error));
    ps_hdf5_note(r->base.path, 0, 0); /* data files were opened in between */
    ps_dectris_read_metadata(r, file);
    PS_TRY(ps_dectris_read_companion(r, error));
    ps_dectris_describe_scan(r, &plan);
    return PS_OK;
}

static ps_code open_master(const char *path, const char *dataset, const ps_reader_options *options, ps_reader **reader, ps_error *error) {
    (void)dataset;
    ps_code code = PS_OK;
    ps_hdf5_reader *r = NULL;
    hid_t file = -1;
    ps_hdf5_lock();
    PS_GO(ps_hdf5_reader_create(&ps_reader_dectris, path, &r, error));
    r->segments.allow_partial = options->allow_partial;
    r->segments.channels = true;
    r->segments.channel = options->channel;
    snprintf(r->base.info.format, sizeof r->base.info.format, "Dectris master");
    PS_GO(ps_hdf5_open(path, &file, error));
    PS_GO(read_master(r, file, options, error));
    PS_GO(ps_probe_list_check(&r->base, file, options, error));
    *reader = &r->base;
    r = NULL;
done:
    if (file >= 0) H5Fclose(file);
    if (r) ps_reader_close(&r->base);
    ps_hdf5_unlock();
    return code;
}

const ps_reader_ops ps_reader_dectris = {
    .name = "Dectris master",
    .probe = probe,
    .open = open_master,
    .close = ps_hdf5_reader_close,
    .read = ps_hdf5_reader_read,
    .mask = ps_hdf5_reader_mask,
    .data_bytes = ps_hdf5_reader_bytes,
};
