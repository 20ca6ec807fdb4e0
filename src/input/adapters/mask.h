/* Masks of detector pixels in files: [rows, columns], non-zero (or NaN) means do not use. */
#ifndef PS_INPUT_ADAPTERS_MASK_H
#define PS_INPUT_ADAPTERS_MASK_H

#include <stdint.h>

#include "core/error.h"

/* source: "file.npy" or "file.h5:/dataset". bad: [rows, columns], 1 or 0. PS_E_INPUT names both shapes when they differ. */
ps_code ps_mask_load(const char *source, int64_t rows, int64_t columns, uint8_t *bad, ps_error *error);
ps_code ps_mask_load_hdf5(const char *path, const char *dataset, int64_t rows, int64_t columns, uint8_t *bad, ps_error *error);

#endif
