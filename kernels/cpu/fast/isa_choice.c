#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/fast/isa/isa.h"

#define X(isa) extern const ps_fast_isa ps_fast_isa_##isa;
PS_FAST_ISAS(X)
#undef X

const ps_fast_isa *ps_fast_isa_choose(void) {
#define X(isa) &ps_fast_isa_##isa,
    static const ps_fast_isa *const all[] = {PS_FAST_ISAS(X)};
#undef X
    const char *wanted = getenv("PS_CPU_ISA");
    const ps_fast_isa *chosen = NULL;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i]->is_supported() && (!wanted || !*wanted || strcmp(wanted, all[i]->name) == 0)) chosen = all[i];
    return chosen;
}
