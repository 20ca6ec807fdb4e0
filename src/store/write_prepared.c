/* Writing what preparing an optics came to: weights, dose, scales, and what prepared it. */
#include <stdio.h>
#include <string.h>

#include "cluster/mpi_lock.h"
#include "hdf5/lock.h"
#include "hdf5/write.h"
#include "store/internal.h"

static ps_code write_whole(hid_t group, const char *name, const void *values, const char *text, ps_error *error) {
    ps_code code = PS_OK;
    char padded[256];
    hid_t type = H5I_INVALID_HID, dataset = H5Dopen2(group, name, H5P_DEFAULT);
    if (dataset < 0 || (type = H5Dget_type(dataset)) < 0) {
        code = ps_h5_fail(error, "cannot open optics/%s", name);
        goto done;
    }
    if (text) {
        size_t capacity = H5Tget_size(type);
        ps_h5_pad_text(padded, capacity < sizeof padded ? capacity : sizeof padded, text);
        values = padded;
    }
    if (H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
        code = ps_h5_fail(error, "cannot write optics/%s", name);
        ps_hdf5_mark_broken();
    }
done:
    ps_h5_close(&type);
    ps_h5_close(&dataset);
    return code;
}

static ps_code write_prepared(const ps_output *output, int64_t optics, const ps_output_prepared *prepared, ps_error *error) {
    ps_code code = PS_OK;
    char name[32];
    snprintf(name, sizeof name, "optics_%lld", (long long)optics);
    hid_t group = H5Gopen2(output->entry, name, H5P_DEFAULT);
    if (group < 0) return ps_h5_fail(error, "%s: cannot open /entry/%s", output->path, name);
    for (int64_t i = 0; i < prepared->methods->n; i++) {
        const ps_method *method = prepared->methods->items[i].method;
        for (int s = 0; s < method->n_scales; s++) PS_GO(write_whole(group, method->scales[s], &prepared->scales[i][s], NULL, error));
    }
    PS_GO(write_whole(group, "weights", prepared->weights, NULL, error));
    PS_GO(write_whole(group, "dose", &prepared->dose, NULL, error));
    PS_GO(write_whole(group, "backend", NULL, prepared->backend, error));
    PS_GO(write_whole(group, "precision", NULL, prepared->precision, error));
done:
    ps_h5_close(&group);
    return code;
}

/* Opening objects reads the file, through MPI-IO as well. */
ps_code ps_output_write_prepared(ps_output *output, int64_t optics, const ps_output_prepared *prepared, ps_error *error) {
    ps_hdf5_lock();
    ps_mpi_lock();
    ps_code code = write_prepared(output, optics, prepared, error);
    ps_mpi_unlock();
    ps_hdf5_unlock();
    return code;
}
