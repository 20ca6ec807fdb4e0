#include "method/table.h"

const ps_method *const ps_method_table[] = {
#define X(method) &method,
    PS_METHOD_LIST(X)
#undef X
};
enum { N_METHODS = sizeof ps_method_table / sizeof *ps_method_table };
const int ps_n_methods = N_METHODS;
_Static_assert((int)N_METHODS <= (int)PS_MOST_METHODS, "a set holds every method");
