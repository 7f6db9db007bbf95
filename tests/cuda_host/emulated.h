// SPDX-License-Identifier: Apache-2.0
// Settings and counters of the emulated device (emulated.cc), in C.
#ifndef DSC_TESTS_EMULATED_H
#define DSC_TESTS_EMULATED_H

#include "live/device/backend.h"

extern size_t emulated_memory;      // bytes; allocations up to here succeed
extern size_t emulated_used;        // bytes
extern long emulated_allocations;   // allocations that still succeed; negative: any number
extern int emulated_devices;        // visible devices
extern int emulated_driver;         // the driver's CUDA, 12040 for 12.4; 0: there is no driver
extern int emulated_capability;     // compute capability, 90 for 9.0
extern bool emulated_no_kernels;    // the program has none for the device
extern bool emulated_busy;          // another process has the device for itself
extern bool emulated_no_blas;       // cuBLAS is not installed
extern int emulated_capture_errors; // failing captures from now on
extern long emulated_launches; // kernels until one uses an illegal address; negative: none does
extern int emulated_handles;   // cuBLAS handles created so far
extern int emulated_replays;   // graphs launched so far
extern int emulated_carved;    // kernels whose carveout was set
extern int emulated_overlaps;  // kernels launched before the one before them had ended

// Requests scratch memory as an operation does; `use` is a cuda_scratch_use.
int emulated_scratch(live_backend *b, int use, size_t bytes, dsc_error *err);
// out[block][i] = count - 1 - i, by way of count numbers of dynamic shared memory.
int emulated_reverse(live_backend *b, float *out, int count, int64_t blocks, dsc_error *err);
// One warp multiplies a 16 x 16 by a 16 x 8 matrix of dtype F16 or BF16 on the tensor cores. On the
// device, each of the 32 lanes has ten registers: a0 to a3, b0, b1 and c0 to c3, which are floats
// and receive the sums.
int emulated_multiply(live_backend *b, uint32_t (*registers)[10], dsc_dtype dtype, dsc_error *err);

#endif
