#include "kernels/cpu/fast/isa/variant.h"

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)

static bool is_supported(void) {
#if defined(__AVX512F__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("fma");
#elif defined(__AVX2__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return true;
#endif
}

extern const ps_fast_isa PS_FAST_NAME(ps_fast_isa);
const ps_fast_isa PS_FAST_NAME(ps_fast_isa) = {
    .name = TEXT(PS_FAST_ISA),
    .is_supported = is_supported,
    .transfer = PS_FAST_NAME(ps_fast_transfer),
    .products = PS_FAST_NAME(ps_fast_products),
    .explain = PS_FAST_NAME(ps_fast_explain),
    .place = PS_FAST_NAME(ps_fast_place),
    .normalise = PS_FAST_NAME(ps_fast_normalise),
    .tridiagonalise = PS_FAST_NAME(ps_fast_tridiagonalise),
    .to_basis = PS_FAST_NAME(ps_fast_to_basis),
    .from_basis = PS_FAST_NAME(ps_fast_from_basis),
    .solve_shifted = PS_FAST_NAME(ps_fast_solve_shifted),
    .multiply = PS_FAST_NAME(ps_fast_multiply),
    .add_phases = PS_FAST_NAME(ps_fast_add_phases),
};
