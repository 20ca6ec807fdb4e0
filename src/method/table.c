#include "method/table.h"

#include <stdlib.h>

const ps_method *const ps_method_table[] = {
#define X(method) &method,
    PS_METHOD_LIST(X)
#undef X
};
enum { N_METHODS = sizeof ps_method_table / sizeof *ps_method_table };
const int ps_n_methods = N_METHODS;
_Static_assert((int)N_METHODS <= (int)PS_MOST_METHODS, "a set holds every method");

char *ps_method_table_schema(void) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    fprintf(out, "{\"type\":\"object\",\"additionalProperties\":false,\"minProperties\":1,\"properties\":{");
    for (int i = 0; i < N_METHODS; i++) fprintf(out, "%s\"%s\":%s", i ? "," : "", ps_method_table[i]->name, ps_method_table[i]->schema);
    fprintf(out, "}}");
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}
