#include "tasks/histogram/file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hdf5/lock.h"
#include "hdf5/write.h"
#include "store/crate.h"
#include "store/layout.h"
#include "store/process.h"
#include "store/publish.h"
#include "tasks/histogram/fingerprint.h"

/* ---- the tree, created by rank 0 -------------------------------------------------------------------------------------------------- */

enum { FORMAT_VERSION = 1 }; /* of a histogram's layout */

static ps_code create_entry(hid_t file, const void *whole_spec, ps_error *error) {
    const ps_histogram_file_spec *spec = whole_spec;
    ps_code code = PS_OK;
    char *signature = NULL;
    hid_t entry = H5I_INVALID_HID;
    ps_output_spec process = {.job = spec->plan->job, .n_notes = spec->n_notes, .notes = spec->notes};
    PS_GO(ps_h5_group(file, "entry", "NXentry", &entry, error));
    PS_GO(ps_h5_attribute_text(entry, "default", "histogram", error));
    PS_GO(ps_h5_integer(entry, "format_version", FORMAT_VERSION, error));
    PS_GO(ps_histogram_fingerprint(spec->plan, &signature, error));
    PS_GO(ps_h5_text(entry, "signature", strlen(signature), signature, error));
    PS_GO(ps_histogram_create_data(entry, spec, error));
    PS_GO(ps_histogram_create_frames(entry, spec, error));
    PS_GO(ps_process_create_only(entry, &process, error));
done:
    free(signature);
    ps_h5_close(&entry);
    return code;
}

/* What the file will take, a little more rather than less. */
static int64_t estimate_bytes(const ps_histogram_file_spec *spec) {
    enum { N_MAPS = 11, BYTES_PER_FRAME = 4096, OTHERS = 1 << 20 };
    const ps_histogram_plan *plan = spec->plan;
    int64_t per_pixel = (spec->map->n_bins + N_MAPS) * (int64_t)sizeof(uint64_t);
    return plan->n_pixels * per_pixel + plan->run.detector_rows * plan->run.detector_columns * (int64_t)sizeof(uint32_t) +
           plan->run.series.n_items * BYTES_PER_FRAME + OTHERS;
}

/* Rank 0: the temporary file at its full size. */
static ps_code create_file(ps_histogram_file *f, ps_error *error) {
    PS_TRY(ps_new_file_begin(f->path, f->spec->overwrite, estimate_bytes(f->spec), &f->new_file, error));
    PS_TRY(ps_new_file_write(&f->new_file, create_entry, f->spec, error));
    return ps_publish_sync(f->new_file.temporary, error);
}

/* ---- all ranks ---------------------------------------------------------------------------------------------------------------------- */

/* Rank 0's temporary name to everyone. Collective. */
static ps_code share_name(ps_histogram_file *f, ps_error *error) {
    const char *name = f->new_file.temporary;
    int length = name ? (int)strlen(name) + 1 : 0;
    PS_TRY(PS_MPI(error, MPI_Bcast(&length, 1, MPI_INT, 0, f->cluster->communicator)));
    f->temporary = name ? strdup(name) : malloc((size_t)length);
    ps_code code = f->temporary ? PS_OK : PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    PS_TRY(ps_cluster_agree(f->cluster, code, error));
    return PS_MPI(error, MPI_Bcast(f->temporary, length, MPI_CHAR, 0, f->cluster->communicator));
}

static ps_code open_file(ps_histogram_file *f, ps_error *error) {
    ps_code code = PS_OK;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0 || H5Pset_fapl_mpio(access, f->cluster->communicator, MPI_INFO_NULL) < 0 ||
        H5Pset_file_locking(access, false, true) < 0 || (f->file = H5Fopen(f->temporary, H5F_ACC_RDWR, access)) < 0 ||
        (f->entry = H5Gopen2(f->file, "entry", H5P_DEFAULT)) < 0 ||
        (f->counts = H5Dopen2(f->entry, "histogram/histogram", H5P_DEFAULT)) < 0)
        code = ps_h5_fail(error, "%s: cannot open through MPI-IO", f->temporary);
    ps_h5_close(&access);
    return code;
}

/* Collective: a file that one rank could not open is not closed by the others, who would wait for it. */
static void leave_open_unless_all(ps_histogram_file *f) {
    int all = f->file >= 0;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, f->cluster->communicator);
    if (all || f->file < 0) return;
    ps_hdf5_mark_broken();
    f->file = f->entry = f->counts = H5I_INVALID_HID;
}

ps_code ps_histogram_file_begin(const ps_cluster *cluster, const ps_histogram_file_spec *spec, ps_histogram_file *f, ps_error *error) {
    ps_code code = PS_OK;
    *f = (ps_histogram_file){.cluster = cluster,
                             .spec = spec,
                             .path = strdup(spec->plan->job->output_file),
                             .file = H5I_INVALID_HID,
                             .entry = H5I_INVALID_HID,
                             .counts = H5I_INVALID_HID,
                             .new_file = PS_NEW_FILE_NONE};
    ps_h5_quiet();
    if (!f->path) code = PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a path");
    if (code == PS_OK && cluster->rank == 0) code = create_file(f, error);
    PS_GO(ps_cluster_agree(cluster, code, error));
    PS_GO(share_name(f, error));
    code = open_file(f, error);
    leave_open_unless_all(f);
    PS_GO(ps_cluster_agree(cluster, code, error));
done:
    if (code != PS_OK) ps_histogram_file_discard(f);
    return code;
}

/* Pixels [column, column + n) of one row, or n_rows whole rows from row on. */
static ps_code write_box(const ps_histogram_file *f, const hsize_t start[3], const hsize_t size[3], const uint64_t *counts,
                         ps_error *error) {
    ps_code code = PS_OK;
    hsize_t n = size[0] * size[1] * size[2];
    hid_t in_file = H5Dget_space(f->counts), in_memory = H5Screate_simple(1, &n, NULL);
    if (in_file < 0 || in_memory < 0 || H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start, NULL, size, NULL) < 0 ||
        H5Dwrite(f->counts, H5T_NATIVE_UINT64, in_memory, in_file, H5P_DEFAULT, counts) < 0) {
        code = ps_h5_fail(error, "%s: cannot write histograms", f->path);
        ps_hdf5_mark_broken();
    }
    ps_h5_close(&in_file);
    ps_h5_close(&in_memory);
    return code;
}

ps_code ps_histogram_file_write_counts(void *file, int64_t first_pixel, int64_t n_pixels, const uint64_t *counts, ps_error *error) {
    const ps_histogram_file *f = file;
    int64_t columns = f->spec->plan->columns, n_bins = f->spec->map->n_bins;
    for (int64_t p = first_pixel, end = first_pixel + n_pixels; p < end;) {
        int64_t row = p / columns, column = p % columns, n_rows = column == 0 ? (end - p) / columns : 0;
        int64_t n = n_rows > 0 ? columns : end - p < columns - column ? end - p : columns - column;
        hsize_t start[3] = {(hsize_t)row, (hsize_t)column, 0};
        hsize_t size[3] = {(hsize_t)(n_rows > 0 ? n_rows : 1), (hsize_t)n, (hsize_t)n_bins};
        PS_TRY(write_box(f, start, size, counts + (p - first_pixel) * n_bins, error));
        p += n_rows > 0 ? n_rows * columns : n;
    }
    return PS_OK;
}

/* Collective, when every rank has the file open: where one could not write it, nobody closes it, because closing waits for all, and the
 * program ends without closing HDF5. */
static bool is_broken_anywhere(const ps_histogram_file *f) {
    int any = ps_hdf5_is_broken();
    MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, f->cluster->communicator);
    if (any) ps_hdf5_mark_broken();
    return any != 0;
}

/* Collective: false when HDF5 could not close. */
static bool close_file(ps_histogram_file *f) {
    if (f->file < 0) return true;
    bool closed = !is_broken_anywhere(f);
    if (closed) {
        ps_h5_close(&f->counts);
        ps_h5_close(&f->entry);
        closed = H5Fclose(f->file) >= 0;
    }
    if (!closed) ps_hdf5_mark_broken();
    f->file = f->entry = f->counts = H5I_INVALID_HID;
    return closed;
}

/* The new file is complete, so an earlier output has had its time; what is none stays under another name. */
static ps_code publish(ps_histogram_file *f, ps_error *error) {
    char *kept = NULL;
    PS_TRY(ps_new_file_publish(&f->new_file, &kept, error));
    if (ps_new_file_kept_own(f->path, kept)) unlink(kept);
    free(kept);
    return PS_OK;
}

ps_code ps_histogram_file_finish(ps_histogram_file *f, const ps_histogram_results *results, ps_error *error) {
    ps_code code = f->cluster->rank == 0 ? ps_histogram_write_results(f->entry, f->spec, results, error) : PS_OK;
    if (code == PS_E_IO || code == PS_E_HDF5) ps_hdf5_mark_broken();
    PS_GO(ps_cluster_agree(f->cluster, code, error));
    code = close_file(f) ? PS_OK : ps_h5_fail(error, "%s: cannot close", f->temporary);
    PS_GO(ps_cluster_agree(f->cluster, code, error));
    if (f->cluster->rank == 0) code = publish(f, error);
    PS_GO(ps_cluster_agree(f->cluster, code, error));
    if (f->cluster->rank == 0) ps_crate_tell(f->path);
done:
    ps_histogram_file_discard(f);
    return code;
}

void ps_histogram_file_discard(ps_histogram_file *f) {
    if (!f->path) return;
    close_file(f);
    ps_new_file_end(&f->new_file);
    free(f->temporary);
    free(f->path);
    f->path = f->temporary = NULL;
}
