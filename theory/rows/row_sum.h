// SPDX-License-Identifier: Apache-2.0
// Internal: sums over a row of weights >= 0 in an order that does not depend on the vector width,
// and the place where a running sum exceeds a value.
#ifndef DSC_THEORY_ROW_SUM_H
#define DSC_THEORY_ROW_SUM_H

#include "base/status.h"

#include <stddef.h>

enum { DSC_ROW_LANES = 16 };

// Sets all lanes to 0. An initializer for this many may compile to an instruction that is slow to
// start.
static inline void dsc_clear_lanes(double *lane)
{
#pragma omp simd
    for (size_t j = 0; j < DSC_ROW_LANES; j++)
        lane[j] = 0;
}

// The sum of the lanes in the order of dsc_row_sum; each loop is one vector operation.
static inline double dsc_add_lanes(const double *lane)
{
    double a[8], b[4];
    for (size_t j = 0; j < 8; j++)
        a[j] = lane[j] + lane[j + 8];
    for (size_t j = 0; j < 4; j++)
        b[j] = a[j] + a[j + 4];
    return (b[0] + b[2]) + (b[1] + b[3]);
}

double dsc_row_sum(const double *row, size_t n);
// The first i with row[0] + .. + row[i] > at. If rounding leaves `at` at or above the total, the
// last i with row[i] > 0 (0 if there is none). n >= 1.
size_t dsc_row_find(const double *row, size_t n, double at);

#endif
