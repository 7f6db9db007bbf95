// SPDX-License-Identifier: Apache-2.0
// Sums of a row; theory/rows/row_sum.h. There are sixteen sums side by side, because an addition
// waits for the previous one.
#include "theory/rows/row_sum.h"

#include "theory/rows/fast_exp.h"

enum { LANES = DSC_ROW_LANES, BLOCK = 128 };

DSC_FOR_EVERY_PROCESSOR
static double lane_sum(const double *row, size_t n)
{
    double lane[LANES];
    size_t i = 0;
    dsc_clear_lanes(lane);
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            lane[j] += row[i + j];
    for (; i < n; i++)
        lane[i % LANES] += row[i];
    return dsc_add_lanes(lane);
}

double dsc_row_sum(const double *row, size_t n)
{
    return lane_sum(row, n);
}

size_t dsc_row_find(const double *row, size_t n, double at)
{
    double sum = 0;
    size_t i = 0;
    for (; i + BLOCK < n; i += BLOCK) {
        const double more = lane_sum(row + i, BLOCK);
        if (at < sum + more)
            break;
        sum += more;
    }
    for (; i < n; i++) {
        sum += row[i];
        if (at < sum && row[i] > 0)
            return i;
    }
    while (i > 1 && !(row[i - 1] > 0))
        i--;
    return i - 1;
}
