// SPDX-License-Identifier: Apache-2.0
// Settings and counters of the emulated device (settings.cc).
#ifndef DSC_TESTS_SETTINGS_H
#define DSC_TESTS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

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
extern long emulated_launches;     // kernels until one uses an illegal address; negative: none does
extern int emulated_handles;       // cuBLAS handles created so far
extern int emulated_replays;       // graphs launched so far
extern int emulated_carved;        // kernels whose carveout was set
extern int emulated_overlaps;      // kernels launched before the one before them had ended
extern bool emulated_whole_blocks; // which races ThreadSanitizer detects (order.h)
extern unsigned emulated_every;    // of how many launches of a kernel it checks one

#endif
