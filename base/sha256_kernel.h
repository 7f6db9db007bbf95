// SPDX-License-Identifier: Apache-2.0
// Internal: the compression function of SHA-256, for one message and for eight at once. The
// portable C version is the specification; the others use instruction sets of x86-64.
#ifndef DSC_BASE_SHA256_KERNEL_H
#define DSC_BASE_SHA256_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dsc_sha256_kernel {
    const char *name;
    bool (*supported)(void); // by this processor
    // FIPS 180-4, section 6.2.2, for bytes[64 blocks].
    void (*compress)(uint32_t state[8], const uint8_t *bytes, size_t blocks);
} dsc_sha256_kernel;

enum { DSC_SHA256_LANES = 8 };

typedef struct dsc_sha256_lanes {
    const char *name;
    bool (*supported)(void);
    // The compression function for eight messages; each has its own bytes[blocks][64].
    void (*compress)(uint32_t state[DSC_SHA256_LANES][8],
                     const uint8_t *const bytes[DSC_SHA256_LANES], size_t blocks);
} dsc_sha256_lanes;

extern const uint32_t dsc_sha256_constants[64];
extern const dsc_sha256_kernel dsc_sha256_kernel_c;
#if defined(__x86_64__) && defined(__GNUC__)
#define DSC_SHA256_X86 1
extern const dsc_sha256_kernel dsc_sha256_kernel_sha;
extern const dsc_sha256_lanes dsc_sha256_lanes_avx2, dsc_sha256_lanes_avx512;
#endif

// Both lists are ordered fastest first and end with NULL.
extern const dsc_sha256_kernel *const dsc_sha256_kernels[];
extern const dsc_sha256_lanes *const dsc_sha256_lane_kernels[];

#endif
