/* Writing what preparing an optics came to: weights, dose, scales, and what prepared it. */
#include <stdio.h>
#include <string.h>

#include "cluster/mpi_lock.h"
#include "hdf5/lock.h"
#include "hdf5/write.h"
#include "store/internal.h"

static ps_code write_whole(hid_t group, const char *name, const void *values, const char *text, ps_error *error) {
    ps_code code = PS_OK;
    char padded[PS_WIDTH_DOUBT];
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

/* *group invalid: the file has no such optics, or no room. */
static void open_doubt(const ps_output *output, int64_t optics, hid_t *group) {
    char name[32];
    snprintf(name, sizeof name, "optics_%lld", (long long)optics);
    *group = H5Gopen2(output->entry, name, H5P_DEFAULT);
    if (*group >= 0 && H5Lexists(*group, "doubt_looked", H5P_DEFAULT) <= 0) ps_h5_close(group);
}

static ps_code write_doubt(const ps_output *output, int64_t optics, const char *text, double seconds, ps_error *error) {
    const int64_t looked = 1;
    ps_code code = PS_OK;
    hid_t group;
    open_doubt(output, optics, &group);
    if (group < 0) return PS_OK;
    PS_GO(write_whole(group, "doubt", NULL, text, error));
    PS_GO(write_whole(group, "doubt_seconds", &seconds, NULL, error));
    PS_GO(write_whole(group, "doubt_looked", &looked, NULL, error));
done:
    ps_h5_close(&group);
    return code;
}

ps_code ps_output_write_doubt(ps_output *output, int64_t optics, const char *text, double seconds, ps_error *error) {
    ps_hdf5_lock();
    ps_mpi_lock();
    ps_code code = write_doubt(output, optics, text, seconds, error);
    ps_mpi_unlock();
    ps_hdf5_unlock();
    return code;
}

static ps_code has_looked(const ps_output *output, int64_t optics, bool *looked, ps_error *error) {
    int64_t value = 0;
    hid_t group;
    open_doubt(output, optics, &group);
    *looked = true;
    if (group < 0) return PS_OK;
    hid_t dataset = H5Dopen2(group, "doubt_looked", H5P_DEFAULT);
    herr_t status = dataset < 0 ? -1 : H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value);
    ps_h5_close(&dataset);
    ps_h5_close(&group);
    *looked = value == 1;
    return status < 0 ? ps_h5_fail(error, "%s: cannot read optics_%lld/doubt_looked", output->path, (long long)optics) : PS_OK;
}

ps_code ps_output_has_looked(ps_output *output, int64_t optics, bool *looked, ps_error *error) {
    ps_hdf5_lock();
    ps_mpi_lock();
    ps_code code = has_looked(output, optics, looked, error);
    ps_mpi_unlock();
    ps_hdf5_unlock();
    return code;
}
