// SPDX-License-Identifier: Apache-2.0
// Wall time for measurements.
#ifndef DSC_LIVE_CLOCK_H
#define DSC_LIVE_CLOCK_H

#include <time.h>

// Seconds since a fixed moment.
static inline double live_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
