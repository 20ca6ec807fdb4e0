/* One number per detector pixel from a file. */
#ifndef PS_TASKS_HISTOGRAM_PEDESTAL_H
#define PS_TASKS_HISTOGRAM_PEDESTAL_H

#include <stdint.h>

#include "core/error.h"

/* source: "file.npy" or "file.h5:/dataset", [rows, columns] of any number type. values: [rows, columns]. PS_E_INPUT says what is wrong. */
ps_code ps_pedestal_load(const char *source, int64_t rows, int64_t columns, double *values, ps_error *error);

#endif
