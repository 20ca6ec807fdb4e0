/* The few instructions C++ has no name for. */
#ifndef PS_KERNELS_CUDA_INTRINSICS_CUH
#define PS_KERNELS_CUDA_INTRINSICS_CUH

#include <cuda_runtime.h>
#include <stdint.h>

static constexpr unsigned PS_FULL_WARP = 0xffffffffu;

/* 1/x and 1/sqrt(x) for normal positive x (1/x: any sign): the hardware's 20-bit guess and one cubic step, 2^-52. */
__device__ inline double ps_rcp(double x) {
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    double e = fma(-x, y, 1.0);
    return fma(y, fma(e, e, e), y);
}
__device__ inline double ps_rsqrt(double x) {
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    double e = fma(-x * y, y, 1.0);
    return fma(y * e, fma(e, 0.375, 0.5), y);
}
__device__ inline float ps_rcp(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline float ps_rsqrt(float x) {
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* c += A B with A 8 x 4 (lane holds row lane/4, column lane%4) and B 4 x 8 (row lane%4, column lane/4); c: row lane/4, columns
 * 2 (lane%4) and the next. */
__device__ inline void ps_mma_f64(double (&c)[2], double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(c[0]), "+d"(c[1]) : "d"(a), "d"(b));
}

/* c += A B with A 16 x 8 and B 8 x 8 in tf32, sums in float. a: (row lane/4, column lane%4), (row + 8, column), (row, column + 4),
 * (row + 8, column + 4); b: (row lane%4, column lane/4), (row + 4, column); c: rows lane/4 and + 8, columns 2 (lane%4) and the next. */
__device__ inline void ps_mma_tf32(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Copies 16 bytes from global to shared memory beside the arithmetic; the copies of a thread up to a commit form a group. */
__device__ inline void ps_copy_async16(void *shared, const void *global) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(shared)), "l"(global) : "memory");
}
/* The same with 8 bytes, under a policy of the level-2 cache. */
__device__ inline void ps_copy_async8(void *shared, const void *global, uint64_t policy) {
    asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 8, %2;" ::"r"((unsigned)__cvta_generic_to_shared(shared)),
                 "l"(global), "l"(policy)
                 : "memory");
}
/* The same with 4 bytes. */
__device__ inline void ps_copy_async4(void *shared, const void *global) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(shared)), "l"(global) : "memory");
}
/* What is read once should leave the level-2 cache first. */
__device__ inline uint64_t ps_evict_first() {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
__device__ inline void ps_copy_commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}
/* Asks for the line of 128 bytes around an address to be brought to the level-2 cache. */
__device__ inline void ps_prefetch(const void *global) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}
/* Waits for all groups of this thread but the latest `LEFT`. */
template <int LEFT> __device__ inline void ps_copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

#endif
