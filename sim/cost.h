// SPDX-License-Identifier: Apache-2.0
// What a step costs. Prices counts in seconds (or in target calls, for `unit`).
#ifndef DSC_SIM_COST_H
#define DSC_SIM_COST_H

#include "sim/counts.h"

typedef struct dsc_cost {
    double fixed_s;     // per target call
    double per_token_s; // per token in the forward pass: the last committed token and the draft
    double draft_s;     // per call of the draft model
} dsc_cost;

// "unit": a target call costs 1 whatever its width, so that speed-up = block efficiency.
// "linear:FIXED_S,PER_TOKEN_S[,DRAFT_S]": seconds >= 0, the first two not both 0; drafting is free
// when the third is not given. DSC_EUSAGE otherwise.
DSC_API int dsc_cost_parse(dsc_cost *out, const char *text, dsc_error *err);

// Time of one call on so many tokens: of the target, of the draft model.
DSC_API double dsc_cost_target_call(const dsc_cost *cost, int64_t tokens);
DSC_API double dsc_cost_draft_call(const dsc_cost *cost, int64_t tokens);

// Time of all steps counted. Draft model and target take turns, or, where the counts say that they
// work at the same time (dsc_counts.overlap), a step takes as long as the longer of the two.
DSC_API double dsc_cost_time(const dsc_cost *cost, const dsc_counts *c);

// Time without speculation (one token per call) over the time with it; NaN when there was no call.
DSC_API double dsc_cost_speedup(const dsc_cost *cost, const dsc_counts *c);

#endif
