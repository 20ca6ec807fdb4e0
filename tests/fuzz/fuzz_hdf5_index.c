/* The walk through an HDF5 file's object header and B-tree, without the HDF5 library: the first bytes say what the library would tell
 * of the dataset (rank, grid, where its header stands), the rest is the file. */
#include <fcntl.h>
#include <hdf5.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hdf5/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SETUP_BYTES = 12, ADDRESS = 10, USER_BLOCK = 9, SOME_ID = 1 };

/* What the library would say of the input at hand. */
static const uint8_t *setup;

#if H5_VERSION_GE(1, 12, 0)
herr_t H5Oget_info2(hid_t object, H5O_info1_t *info, unsigned fields) {
#else
herr_t H5Oget_info2(hid_t object, H5O_info_t *info, unsigned fields) {
#endif
    (void)fields;
    (void)object;
    memset(info, 0, sizeof *info);
    info->addr = (haddr_t)setup[ADDRESS] | (haddr_t)setup[ADDRESS + 1] << 8;
    return 0;
}

hid_t H5Iget_file_id(hid_t object) {
    return object;
}

hid_t H5Fget_create_plist(hid_t file) {
    return file;
}

herr_t H5Pget_userblock(hid_t plist, hsize_t *bytes) {
    (void)plist;
    *bytes = setup[USER_BLOCK];
    return 0;
}

herr_t H5Pget_sizes(hid_t plist, size_t *address_bytes, size_t *length_bytes) {
    (void)plist;
    *address_bytes = *length_bytes = 8;
    return 0;
}

herr_t H5Pclose(hid_t plist) {
    (void)plist;
    return 0;
}

herr_t H5Fclose(hid_t file) {
    (void)file;
    return 0;
}

static void check_index(const ps_hdf5_dataset *dataset) {
    const ps_chunk_index *index = dataset->index;
    if (!index) abort();
    int64_t n = index->grid[0] * index->grid[1] * index->grid[2] * index->grid[3];
    for (int64_t i = 0; index->places && i < n; i++)
        if (index->places[i].address < -1) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    if (size < SETUP_BYTES) return 0;
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, data + SETUP_BYTES, size - SETUP_BYTES) != (ssize_t)(size - SETUP_BYTES)) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    setup = data;
    ps_hdf5_dataset dataset = {.path = path, .rank = data[0] & 1 ? 4 : 3, .file = SOME_ID, .dataset = SOME_ID, .rows = data[3] % 16 + 1};
    dataset.lead[0] = data[1] + 1;
    dataset.lead[1] = dataset.rank == 4 ? data[2] % 8 + 1 : 1;
    dataset.columns = data[4] % 16 + 1;
    for (int axis = 0; axis < 4; axis++) dataset.chunk[axis] = data[5 + axis] % 8 + 1;
    if (dataset.rank == 3) dataset.chunk[1] = 1;
    ps_error error = {0};
    if (ps_chunk_index_build(&dataset, &error) == PS_OK) check_index(&dataset);
    ps_chunk_index_free(dataset.index);
    close(file);
    return 0;
}
