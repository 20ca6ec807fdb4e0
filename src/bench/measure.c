#include "bench/measure.h"

#include <stdio.h>

#include "core/log.h"

ps_code ps_bench_repeat(int n, ps_code (*run)(void *context, ps_error *error), void *context, ps_bench_times *times, ps_error *error) {
    times->n = n < 1 ? 1 : n < PS_BENCH_MOST_REPEATS ? n : PS_BENCH_MOST_REPEATS;
    for (int i = -1; i < times->n; i++) {
        double begin = ps_seconds();
        PS_TRY(run(context, error));
        if (i >= 0) times->seconds[i] = ps_seconds() - begin;
    }
    return PS_OK;
}

void ps_bench_describe(ps_backend *backend, ps_bench_report *report) {
    ps_device_info info;
    ps_backend_info(backend, &info);
    snprintf(report->backend, sizeof report->backend, "%s", backend->ops->name);
    snprintf(report->device, sizeof report->device, "%s", info.name);
    snprintf(report->precision, sizeof report->precision, "%s", info.precision);
    snprintf(report->versions, sizeof report->versions, "%s", info.versions);
}
