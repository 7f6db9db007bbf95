// SPDX-License-Identifier: Apache-2.0
// The order of real numbers, for qsort.
#ifndef DSC_BASE_ORDER_H
#define DSC_BASE_ORDER_H

// Ascending, by the double that each element is or begins with.
static inline int dsc_by_real(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
