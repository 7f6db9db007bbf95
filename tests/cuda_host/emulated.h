// SPDX-License-Identifier: Apache-2.0
// What tests ask of the emulated device (emulated.cc), in C.
#ifndef DSC_TESTS_EMULATED_H
#define DSC_TESTS_EMULATED_H

#include "live/device/backend.h"

#include "tests/cuda_host/settings.h"

// Requests scratch memory as an operation does; `use` is a cuda_scratch_use.
int emulated_scratch(live_backend *b, int use, size_t bytes, dsc_error *err);
// out[block][i] = count - 1 - i, by way of count numbers of dynamic shared memory.
int emulated_reverse(live_backend *b, float *out, int count, int64_t blocks, dsc_error *err);
// One warp multiplies a 16 x 16 by a 16 x 8 matrix of dtype F16 or BF16 on the tensor cores. On the
// device, each of the 32 lanes has ten registers: a0 to a3, b0, b1 and c0 to c3, which are floats
// and receive the sums.
int emulated_multiply(live_backend *b, uint32_t (*registers)[10], dsc_dtype dtype, dsc_error *err);

#endif
