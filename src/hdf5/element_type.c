#include "hdf5/element_type.h"

#include <stdio.h>

static bool integer_dtype(size_t bytes, bool is_signed, ps_dtype *dtype, bool *converted) {
    *converted = bytes == 8;
    switch (bytes) {
    case 1: *dtype = is_signed ? PS_I8 : PS_U8; return true;
    case 2: *dtype = is_signed ? PS_I16 : PS_U16; return true;
    case 4: *dtype = is_signed ? PS_I32 : PS_U32; return true;
    case 8: *dtype = PS_F64; return true;
    default: return false;
    }
}

void ps_hdf5_type_name(hid_t type, char *text, size_t bytes) {
    int bits = (int)(8 * H5Tget_size(type));
    switch (H5Tget_class(type)) {
    case H5T_INTEGER: snprintf(text, bytes, "%d-bit integers", bits); break;
    case H5T_FLOAT: snprintf(text, bytes, "%d-bit floating-point numbers", bits); break;
    case H5T_ENUM: snprintf(text, bytes, "bool or enumerated values of %d bits", bits); break;
    case H5T_COMPOUND: snprintf(text, bytes, "complex or compound values of %d bits", bits); break;
    case H5T_STRING: snprintf(text, bytes, "text"); break;
    case H5T_BITFIELD: snprintf(text, bytes, "bit fields of %d bits", bits); break;
    case H5T_ARRAY: snprintf(text, bytes, "arrays in each element"); break;
    default: snprintf(text, bytes, "elements that are no numbers"); break;
    }
}

/* Fewer bits than the bytes have: a 12-bit number somewhere in 16 bits. */
static bool is_padded(hid_t type) {
    return H5Tget_precision(type) != 8 * H5Tget_size(type);
}

bool ps_hdf5_dtype(hid_t type, ps_dtype *dtype, bool *big_endian, bool *converted) {
    size_t bytes = H5Tget_size(type);
    H5T_class_t class = H5Tget_class(type);
    *converted = false;
    *big_endian = H5Tget_order(type) == H5T_ORDER_BE && bytes > 1;
    if (class == H5T_INTEGER) {
        bool known = integer_dtype(bytes, H5Tget_sign(type) == H5T_SGN_2, dtype, converted);
        *converted |= is_padded(type);
        return known;
    }
    if (class != H5T_FLOAT || (bytes != 2 && bytes != 4 && bytes != 8)) return false;
    *converted = bytes == 2;
    *dtype = bytes == 8 ? PS_F64 : PS_F32;
    return true;
}

hid_t ps_hdf5_native(ps_dtype dtype) {
    switch (dtype) {
    case PS_U8: return H5T_NATIVE_UINT8;
    case PS_U16: return H5T_NATIVE_UINT16;
    case PS_U32: return H5T_NATIVE_UINT32;
    case PS_I8: return H5T_NATIVE_INT8;
    case PS_I16: return H5T_NATIVE_INT16;
    case PS_I32: return H5T_NATIVE_INT32;
    case PS_F32: return H5T_NATIVE_FLOAT;
    default: return H5T_NATIVE_DOUBLE;
    }
}
