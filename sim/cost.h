// SPDX-License-Identifier: Apache-2.0
// What a step costs. Prices counts in seconds (or in target calls, for `unit`).
#ifndef DSC_SIM_COST_H
#define DSC_SIM_COST_H

#include "sim/counts.h"

typedef struct dsc_cost {
    double fixed_s;     // per target call
    double per_token_s; // per token in the forward pass: the last committed token and the draft
} dsc_cost;

// "unit": a target call costs 1 whatever its width, so that speed-up = block efficiency.
// "linear:FIXED_S,PER_TOKEN_S": seconds, both >= 0, not both 0. DSC_EUSAGE otherwise.
DSC_API int dsc_cost_parse(dsc_cost *out, const char *text, dsc_error *err);

// Time of all target calls counted.
DSC_API double dsc_cost_time(const dsc_cost *cost, const dsc_counts *c);

// Time without speculation (one token per call) over the time with it; NaN when there was no call.
DSC_API double dsc_cost_speedup(const dsc_cost *cost, const dsc_counts *c);

#endif
