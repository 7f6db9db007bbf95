// SPDX-License-Identifier: Apache-2.0
// Weights as numbers in host memory: F32, F16 (IEEE 754 binary16) and BF16 (its upper half).
#ifndef DSC_LIVE_NUMBERS_H
#define DSC_LIVE_NUMBERS_H

#include "traces/files/safetensors.h"

#include <stdbool.h>

// Whether none of data[0, count) is NaN or infinite; *bad: the first that is.
bool live_all_finite(const void *data, dsc_dtype t, size_t count, size_t *bad);
bool live_is_nan(const void *data, dsc_dtype t, size_t i); // of one that is not finite

void live_to_float(float *out, const void *in, dsc_dtype t, size_t count);

// out[cols][rows] = in[rows][cols] of 2- or 4-byte numbers.
void live_transpose(void *out, const void *in, size_t rows, size_t cols, size_t bytes);

#endif
