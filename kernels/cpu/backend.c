#include <cblas.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "core/assert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/memory.h"

int ps_cpu_max_threads(void) {
    return omp_get_max_threads();
}

ps_code ps_cpu_backend_open(const ps_backend_options *options, ps_backend **backend, ps_error *error) {
    ps_cpu_backend *cpu = ps_cpu_allocate_zero(1, sizeof *cpu);
    if (!cpu) return PS_FAIL(error, PS_E_MEMORY, "cannot allocate memory for a CPU backend");
    int most = ps_cpu_max_threads();
    cpu->n_threads = options->n_threads > 0 && options->n_threads < most ? options->n_threads : most;
    cpu->budget_bytes = options->memory_budget_bytes;
    openblas_set_num_threads(1); /* threads go over frequencies and pixels, never inside one small matrix */
    *backend = &cpu->base;
    return PS_OK;
}

void ps_cpu_backend_close(ps_backend *backend) {
    ps_cpu_free(backend);
}

bool ps_cpu_backend_owns(const ps_backend *backend, const void *pointer) {
    (void)backend;
    return ps_cpu_memory_owns(pointer, 1);
}

static void cpu_name(char *name, size_t bytes) {
    snprintf(name, bytes, "CPU");
#if defined(__x86_64__)
    unsigned int words[12] = {0};
    if (__get_cpuid_max(0x80000000, NULL) < 0x80000004) return;
    for (unsigned int i = 0; i < 3; i++)
        __get_cpuid(0x80000002 + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
    char text[sizeof words + 1] = {0};
    memcpy(text, words, sizeof words);
    snprintf(name, bytes, "%s", text + strspn(text, " "));
#endif
}

void ps_cpu_device_info(const ps_backend *backend, const char *precision, const char *instruction_set, ps_device_info *info) {
    memset(info, 0, sizeof *info);
    cpu_name(info->name, sizeof info->name);
    snprintf(info->precision, sizeof info->precision, "%s", precision);
    snprintf(info->versions, sizeof info->versions, "instructions %s; %s", instruction_set, openblas_get_config());
    info->memory_bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    info->n_threads = ((const ps_cpu_backend *)backend)->n_threads;
}

ps_code ps_cpu_batch_require(const ps_memory_plan *plan, int64_t n_frames, ps_error *error) {
    PS_ASSERT(n_frames > 0);
    if (plan->frames_per_batch >= n_frames) return PS_OK;
    return PS_FAIL(error, PS_E_MEMORY, "a batch of %lld frames does not fit the memory budget, %lld do", (long long)n_frames,
                   (long long)plan->frames_per_batch);
}
