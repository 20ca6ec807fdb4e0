#include "hdf5/write.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "core/regular.h"
#include "hdf5/lock.h"

void ps_h5_quiet(void) {
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* What people do about an errno; "" when there is nothing to add. */
static const char *cure_of(int errnum) {
    switch (errnum) {
    case ENOSPC: return "; the file system is full: free space there, or put the output elsewhere";
    case EDQUOT: return "; the quota is used up: free space or ask for more, or put the output elsewhere";
    case EROFS: return "; put the output on a file system that can be written from this node";
    case EACCES:
    case EPERM: return "; check owner and mode of the directory and the file";
    case EFBIG: return "; the file would be larger than allowed: see 'ulimit -f' and the file system's limit";
    case ENOENT: return "; create the directory first, or correct the path";
    case ESTALE: return "; the network file system lost the file: run again with --resume";
    case ENOLCK:
    case ENOSYS:
    case EOPNOTSUPP:
    case EAGAIN: return "; when this file system does not do locks, set HDF5_USE_FILE_LOCKING=FALSE";
    case EIO: return "; the storage reported an error: see its log; OMPI_MCA_io=romio321 takes another way; then run again with --resume";
    default: return "";
    }
}

typedef struct {
    char reason[512];
    int errnum;
} stack_summary;

static herr_t visit_error(unsigned n, const H5E_error2_t *entry, void *context) {
    stack_summary *summary = context;
    const char *text = entry->desc ? entry->desc : "";
    if (n == 0 || (summary->errnum == 0 && strstr(text, "errno = "))) snprintf(summary->reason, sizeof summary->reason, "%s", text);
    const char *number = strstr(text, "errno = ");
    if (number && summary->errnum == 0) summary->errnum = atoi(number + strlen("errno = "));
    return 0;
}

ps_code ps_h5_fail(ps_error *error, const char *format, ...) {
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    stack_summary summary = {.reason = "no reason given"};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, visit_error, &summary);
    H5Eclear2(H5E_DEFAULT);
    if (summary.errnum) return PS_FAIL(error, PS_E_IO, "%s: %s%s", what, strerror(summary.errnum), cure_of(summary.errnum));
    bool from_mpi = strstr(summary.reason, "MPI") || strstr(summary.reason, "mpi");
    return PS_FAIL(error, PS_E_HDF5, "%s: HDF5 says: %s%s", what, summary.reason,
                   from_mpi ? "; OMPI_MCA_io=romio321 takes another way through MPI-IO" : "");
}

ps_code ps_io_fail(ps_error *error, int errnum, const char *format, ...) {
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return PS_FAIL(error, PS_E_IO, "%s: %s%s", what, strerror(errnum), cure_of(errnum));
}

void ps_h5_close(hid_t *id) {
    if (*id > 0) H5Idec_ref(*id);
    *id = H5I_INVALID_HID;
}

ps_code ps_h5_close_written(hid_t *file, const char *path, ps_error *error) {
    hid_t open = *file;
    *file = H5I_INVALID_HID;
    if (open < 0 || H5Fclose(open) >= 0) return PS_OK;
    ps_hdf5_mark_broken();
    return ps_h5_fail(error, "%s: cannot write it to the end", path);
}

ps_code ps_h5_open_read(const char *path, hid_t *file, ps_error *error) {
    ps_code code = PS_OK;
    *file = H5I_INVALID_HID;
    PS_TRY(ps_regular_check(path, error));
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access < 0 || H5Pset_file_locking(access, false, true) < 0) {
        code = ps_h5_fail(error, "%s: cannot prepare for reading", path);
        goto done;
    }
    *file = H5Fopen(path, H5F_ACC_RDONLY, access);
    if (*file < 0) code = ps_h5_fail(error, "%s: cannot open", path);
done:
    ps_h5_close(&access);
    return code;
}

ps_code ps_h5_group(hid_t parent, const char *name, const char *nx_class, hid_t *group, ps_error *error) {
    hid_t created = H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ps_code code = created < 0 ? ps_h5_fail(error, "cannot create the group %s", name) : PS_OK;
    if (code == PS_OK) code = ps_h5_attribute_text(created, "NX_class", nx_class, error);
    if (code == PS_OK && group)
        *group = created;
    else
        ps_h5_close(&created);
    return code;
}

static ps_code write_attribute(hid_t object, const char *name, hid_t space, const char *const *texts, ps_error *error) {
    ps_code code = PS_OK;
    hid_t attribute = H5I_INVALID_HID, type = H5Tcopy(H5T_C_S1);
    if (type < 0 || H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0 ||
        (attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT)) < 0 || H5Awrite(attribute, type, texts) < 0)
        code = ps_h5_fail(error, "cannot write the attribute %s", name);
    ps_h5_close(&attribute);
    ps_h5_close(&type);
    return code;
}

ps_code ps_h5_attribute_text(hid_t object, const char *name, const char *text, ps_error *error) {
    hid_t space = H5Screate(H5S_SCALAR);
    ps_code code = write_attribute(object, name, space, &text, error);
    ps_h5_close(&space);
    return code;
}

ps_code ps_h5_attribute_texts(hid_t object, const char *name, const char *const *texts, int64_t n, ps_error *error) {
    hid_t space = H5Screate_simple(1, &(hsize_t){(hsize_t)n}, NULL);
    ps_code code = write_attribute(object, name, space, texts, error);
    ps_h5_close(&space);
    return code;
}

ps_code ps_h5_describe(hid_t parent, const char *child, const char *attribute, const char *text, ps_error *error) {
    hid_t object = H5Oopen(parent, child, H5P_DEFAULT);
    if (object < 0) return ps_h5_fail(error, "cannot open %s", child);
    ps_code code = ps_h5_attribute_text(object, attribute, text, error);
    ps_h5_close(&object);
    return code;
}

ps_code ps_h5_dataset(hid_t parent, const char *name, hid_t file_type, hid_t memory_type, int rank, const hsize_t *dims, const void *values,
                      ps_error *error) {
    PS_ASSERT(rank >= 0 && (dims || rank == 0));
    ps_code code = PS_OK;
    hid_t dataset = H5I_INVALID_HID, creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, dims, NULL);
    if (creation < 0 || space < 0 || H5Pset_layout(creation, H5D_CONTIGUOUS) < 0 || H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY) < 0 ||
        H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER) < 0 || H5Pset_obj_track_times(creation, false) < 0 ||
        (dataset = H5Dcreate2(parent, name, file_type, space, H5P_DEFAULT, creation, H5P_DEFAULT)) < 0) {
        code = ps_h5_fail(error, "cannot create the dataset %s", name);
        goto done;
    }
    if (values && H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        code = ps_h5_fail(error, "cannot write the dataset %s", name);
done:
    ps_h5_close(&dataset);
    ps_h5_close(&space);
    ps_h5_close(&creation);
    return code;
}

hid_t ps_h5_text_type(size_t capacity) {
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0 || H5Tset_size(type, capacity > 0 ? capacity : 1) < 0 || H5Tset_strpad(type, H5T_STR_NULLPAD) < 0 ||
        H5Tset_cset(type, H5T_CSET_UTF8) < 0)
        ps_h5_close(&type);
    return type;
}

void ps_h5_pad_text(char *room, size_t capacity, const char *text) {
    PS_ASSERT(capacity > 0);
    size_t length = text ? strlen(text) : 0;
    if (length > capacity) {
        length = capacity;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
    }
    if (length > 0) memcpy(room, text, length);
    memset(room + length, 0, capacity - length);
}

static ps_code create_texts(hid_t parent, const char *name, size_t capacity, int rank, int64_t n, const char *const *texts,
                            ps_error *error) {
    ps_code code = PS_OK;
    char *padded = NULL;
    if (capacity == 0) capacity = 1;
    hid_t type = ps_h5_text_type(capacity);
    if (texts) {
        padded = malloc((size_t)n * capacity);
        PS_GO_ALLOC(error, padded);
        for (int64_t i = 0; i < n; i++) ps_h5_pad_text(padded + (size_t)i * capacity, capacity, texts[i]);
    }
    PS_GO(ps_h5_dataset(parent, name, type, type, rank, &(hsize_t){(hsize_t)n}, padded, error));
done:
    free(padded);
    ps_h5_close(&type);
    return code;
}

ps_code ps_h5_text(hid_t parent, const char *name, size_t capacity, const char *text, ps_error *error) {
    return create_texts(parent, name, capacity, 0, 1, &text, error);
}

ps_code ps_h5_texts(hid_t parent, const char *name, size_t capacity, int64_t n, const char *const *texts, ps_error *error) {
    return create_texts(parent, name, capacity, 1, n, texts, error);
}

ps_code ps_h5_integer(hid_t parent, const char *name, int64_t value, ps_error *error) {
    return ps_h5_dataset(parent, name, H5T_STD_I64LE, H5T_NATIVE_INT64, 0, NULL, &value, error);
}

ps_code ps_h5_number(hid_t parent, const char *name, double value, const char *units, ps_error *error) {
    PS_TRY(ps_h5_dataset(parent, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 0, NULL, &value, error));
    return *units ? ps_h5_describe(parent, name, "units", units, error) : PS_OK;
}
