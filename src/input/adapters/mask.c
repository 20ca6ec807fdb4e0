#include "input/adapters/mask.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/assert.h"
#include "core/byte_order.h"
#include "core/file_read.h"
#include "core/regular.h"
#include "hdf5/behind.h"
#include "hdf5/failure.h"
#include "hdf5/util.h"
#include "input/formats/npy_header.h"
#include "input/preflight.h"
#include "input/source.h"

static ps_code wrong_shape(const char *path, int rank, int64_t found_rows, int64_t found_columns, int64_t rows, int64_t columns,
                           ps_error *error) {
    if (rank != 2) return PS_FAIL(error, PS_E_INPUT, "%s: the mask has rank %d, expected 2 (row, column)", path, rank);
    return PS_FAIL(error, PS_E_INPUT, "%s: the mask is %" PRId64 " x %" PRId64 ", the detector %" PRId64 " x %" PRId64, path, found_rows,
                   found_columns, rows, columns);
}

static ps_code read_values(const char *path, hid_t dataset, int64_t rows, int64_t columns, double *values, ps_error *error) {
    hsize_t dims[2] = {0};
    hid_t space = H5Dget_space(dataset);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    if (rank == 2) H5Sget_simple_extent_dims(space, dims, NULL);
    if (space >= 0) H5Sclose(space);
    if (rank != 2 || (int64_t)dims[0] != rows || (int64_t)dims[1] != columns)
        return wrong_shape(path, rank, (int64_t)dims[0], (int64_t)dims[1], rows, columns, error);
    if (H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        return ps_hdf5_fail(error, "%s: cannot read the mask", path);
    return PS_OK;
}

ps_code ps_mask_load_hdf5(const char *path, const char *name, int64_t rows, int64_t columns, uint8_t *bad, ps_error *error) {
    ps_code code = PS_OK;
    hid_t file = -1, dataset = -1;
    double *values = malloc((size_t)(rows * columns) * sizeof *values);
    ps_hdf5_lock();
    PS_GO_ALLOC(error, values);
    PS_GO(ps_hdf5_open(path, &file, error));
    dataset = ps_hdf5_exists(file, name) ? H5Dopen2(file, name, H5P_DEFAULT) : -1;
    if (dataset < 0) {
        code = ps_hdf5_lacked_memory() ? ps_hdf5_fail(error, "%s: cannot look for the mask %s", path, name)
                                       : PS_FAIL(error, PS_E_INPUT, "%s: holds no dataset %s for a mask", path, name);
        goto done;
    }
    PS_GO(ps_hdf5_check_behind(dataset, name, error));
    PS_GO(read_values(path, dataset, rows, columns, values, error));
    for (int64_t i = 0; i < rows * columns; i++) bad[i] = values[i] != 0;
done:
    if (dataset >= 0) H5Dclose(dataset);
    if (file >= 0) H5Fclose(file);
    ps_hdf5_unlock();
    free(values);
    return code;
}

/* An element is zero when all its bytes are, but for the sign of a floating-point zero. */
static bool is_nonzero(const uint8_t *element, const ps_npy_header *header) {
    size_t n = ps_dtype_bytes(header->dtype);
    bool floating = header->dtype == PS_F32 || header->dtype == PS_F64;
    for (size_t i = 0; i < n; i++) {
        bool has_sign = floating && i == (header->big_endian ? 0 : n - 1);
        if (element[i] & (has_sign ? 0x7f : 0xff)) return true;
    }
    return false;
}

static ps_code load_npy(const char *path, int64_t rows, int64_t columns, uint8_t *bad, ps_error *error) {
    ps_code code = PS_OK;
    ps_npy_header header;
    uint8_t *elements = NULL;
    int descriptor = -1;
    PS_GO(ps_npy_open(path, &header, &descriptor, error));
    if (header.rank != 2 || header.shape[0] != rows || header.shape[1] != columns) {
        code = wrong_shape(path, header.rank, header.shape[0], header.shape[1], rows, columns, error);
        goto done;
    }
    size_t size = ps_dtype_bytes(header.dtype), n = (size_t)(rows * columns);
    elements = malloc(n * size);
    PS_GO_ALLOC(error, elements);
    PS_GO(ps_file_read(path, descriptor, header.data_offset, n * size, elements, error));
    for (int64_t u = 0; u < rows; u++)
        for (int64_t v = 0; v < columns; v++) {
            int64_t at = header.fortran_order ? u + v * rows : u * columns + v;
            bad[u * columns + v] = is_nonzero(elements + (size_t)at * size, &header);
        }
done:
    free(elements);
    if (descriptor >= 0) close(descriptor);
    return code;
}

ps_code ps_mask_load(const char *source, int64_t rows, int64_t columns, uint8_t *bad, ps_error *error) {
    PS_ASSERT(rows > 0 && columns > 0);
    ps_source parts = {0};
    ps_code code = PS_OK;
    PS_TRY(ps_preflight_inspect(source, &(ps_reader_options){0}, error));
    PS_TRY(ps_source_split(source, &parts, error));
    PS_GO(ps_regular_check(parts.path, error));
    if (parts.dataset)
        code = ps_mask_load_hdf5(parts.path, parts.dataset, rows, columns, bad, error);
    else if (ps_npy_is_file(parts.path))
        code = load_npy(parts.path, rows, columns, bad, error);
    else if (ps_hdf5_is_file(parts.path))
        code = PS_FAIL(error, PS_E_INPUT, "%s: an HDF5 file; say which dataset is the mask: %s:/path/of/dataset", parts.path, parts.path);
    else
        code = PS_FAIL(error, PS_E_INPUT, "%s: cannot be read as a mask; expected a .npy file or file.h5:/dataset", parts.path);
done:
    ps_source_free(&parts);
    return code;
}
