#include "core/stage.h"

const char *ps_stage_name(ps_stage stage) {
    static const char *const names[] = {
#define X(id, name) name,
        PS_STAGES(X)
#undef X
    };
    return stage >= 0 && stage < PS_N_STAGES ? names[stage] : "unknown";
}
