// SPDX-License-Identifier: Apache-2.0
// Weights as numbers in host memory: F32, F16 (IEEE 754 binary16) and BF16 (the upper half of F32).
#ifndef DSC_LIVE_NUMBERS_H
#define DSC_LIVE_NUMBERS_H

#include "traces/files/safetensors.h"

#include <stdbool.h>

// Whether all of data[0, count) are finite; otherwise *bad is the index of the first NaN or
// infinity.
bool live_all_finite(const void *data, dsc_dtype t, size_t count, size_t *bad);
bool live_is_nan(const void *data, dsc_dtype t, size_t i); // for a number that is not finite

// out[count] = x[count] in a dtype (F32, F16 or BF16), to nearest, ties to even; overflow gives
// infinity.
void live_narrow(void *out, const float *x, dsc_dtype t, size_t count);
float live_round(float x, dsc_dtype t); // x as such a number

// out[cols][rows] = transpose of in[rows][cols], of 2- or 4-byte numbers.
void live_transpose(void *out, const void *in, size_t rows, size_t cols, size_t bytes);

#endif
