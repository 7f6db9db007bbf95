// SPDX-License-Identifier: Apache-2.0
// OpenBLAS multiplies many rows on a CPU. It is loaded when it is first needed.
#ifndef DSC_LIVE_OPENBLAS_H
#define DSC_LIVE_OPENBLAS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct live_openblas {
    void (*sgemm)(void); // cblas_sgemm; NULL until it is loaded
} live_openblas;

// Loads OpenBLAS, unless a static library was linked in, and makes it multiply in the calling
// thread. DSC_EABSENT: it is not installed.
int live_openblas_open(live_openblas *out, dsc_error *err);

// out[rows][n] = in[rows][k] times w[n][k] transposed, + out when `add`. A row of in begins
// in_stride numbers after the one before it, a row of w w_stride; those of out lie side by side.
void live_openblas_multiply(const live_openblas *b, float *out, const float *in, int64_t in_stride,
                            const float *w, int64_t w_stride, int64_t rows, int64_t n, int64_t k,
                            bool add);

// The soname that is loaded, or "linked in".
const char *live_openblas_name(void);

#endif
