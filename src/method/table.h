/* The one list of methods, in the order in which their groups stand in the output file and their results enter a frame's checksum: a new
 * method is added at the end. */
#ifndef PS_METHOD_TABLE_H
#define PS_METHOD_TABLE_H

#include "method/method.h"

#define PS_METHOD_LIST(X) \
    X(ps_method_phase)    \
    X(ps_method_complex)  \
    X(ps_method_ssb)      \
    X(ps_method_mf)

#define X(method) extern const ps_method method;
PS_METHOD_LIST(X)
#undef X

#endif
