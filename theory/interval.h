// SPDX-License-Identifier: Apache-2.0
#ifndef DSC_THEORY_INTERVAL_H
#define DSC_THEORY_INTERVAL_H

// A quantity that is known to lie in [low, high].
typedef struct dsc_interval {
    double low, high;
} dsc_interval;

#endif
