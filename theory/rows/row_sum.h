// SPDX-License-Identifier: Apache-2.0
// Internal: sums over a row of weights >= 0, in an order that does not depend on the width of
// vectors; and where a running sum passes a value.
#ifndef DSC_THEORY_ROW_SUM_H
#define DSC_THEORY_ROW_SUM_H

#include "base/status.h"

#include <stddef.h>

enum { DSC_ROW_LANES = 16 };

// Nothing in any lane. An initializer of so many may be an instruction that is slow to start.
static inline void dsc_clear_lanes(double *lane)
{
#pragma omp simd
    for (size_t j = 0; j < DSC_ROW_LANES; j++)
        lane[j] = 0;
}

// The sum of the lanes, as dsc_row_sum adds them up; each loop is a vector.
static inline double dsc_add_lanes(const double *lane)
{
    double a[8], b[4];
    for (size_t j = 0; j < 8; j++)
        a[j] = lane[j] + lane[j + 8];
    for (size_t j = 0; j < 4; j++)
        b[j] = a[j] + a[j + 4];
    return (b[0] + b[2]) + (b[1] + b[3]);
}

DSC_API double dsc_row_sum(const double *row, size_t n);
// The first i with row[0] + .. + row[i] > at; where rounding leaves `at` above all of them, the
// last one that is not 0 (0 when all are). Of rows [0, n), n >= 1.
DSC_API size_t dsc_row_find(const double *row, size_t n, double at);

#endif
