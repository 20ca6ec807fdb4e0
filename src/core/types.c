#include "core/types.h"

size_t ps_dtype_bytes(ps_dtype dtype) {
    switch (dtype) {
#define X(d, type, name) \
    case d: return sizeof(type);
        PS_DTYPES(X)
#undef X
    default: return 0;
    }
}

const char *ps_dtype_name(ps_dtype dtype) {
    switch (dtype) {
#define X(d, type, name) \
    case d: return name;
        PS_DTYPES(X)
#undef X
    default: return "unknown";
    }
}

uint32_t ps_dtype_invalid_value(ps_dtype dtype) {
    switch (dtype) {
    case PS_U8: return UINT8_MAX;
    case PS_U16: return UINT16_MAX;
    case PS_U32: return UINT32_MAX;
    default: return 0;
    }
}
