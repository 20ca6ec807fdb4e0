/* The element types of detector counts, and small helpers every part shares. */
#ifndef PS_CORE_TYPES_H
#define PS_CORE_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* enumerator, C type, name as users write it */
#define PS_DTYPES(X)              \
    X(PS_U8, uint8_t, "uint8")    \
    X(PS_U16, uint16_t, "uint16") \
    X(PS_U32, uint32_t, "uint32") \
    X(PS_I8, int8_t, "int8")      \
    X(PS_I16, int16_t, "int16")   \
    X(PS_I32, int32_t, "int32")   \
    X(PS_F32, float, "float32")   \
    X(PS_F64, double, "float64")

typedef enum {
#define X(dtype, type, name) dtype,
    PS_DTYPES(X)
#undef X
        PS_N_DTYPES
} ps_dtype;

size_t ps_dtype_bytes(ps_dtype dtype);
const char *ps_dtype_name(ps_dtype dtype);
/* The all-ones invalid-count value of an unsigned type (255, 65535, 4294967295), with which detectors mark pixels that hold no count;
 * 0 for signed and floating types, which have none. */
uint32_t ps_dtype_invalid_value(ps_dtype dtype);

/* 64-bit integers are delivered as float64; what they were decides which values are no counts. */
typedef enum { PS_AS_DELIVERED, PS_FROM_I64, PS_FROM_U64 } ps_stored;

#ifdef __cplusplus
}
#endif
#endif
