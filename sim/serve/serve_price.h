// SPDX-License-Identifier: Apache-2.0
// The time of one engine step: a pass of the target over drafts and prefill chunks, the passes of
// the draft model for the next step, and the host's overhead.
#ifndef DSC_SIM_SERVE_PRICE_H
#define DSC_SIM_SERVE_PRICE_H

#include "sim/cost/cost.h"

#include <stdint.h>

typedef enum dsc_serve_drafting {
    DSC_SERVE_DRAFT_FREE, // no model drafts
    DSC_SERVE_DRAFT_ONCE, // one pass of the draft model, whatever the length
    DSC_SERVE_DRAFT_EACH, // one pass for each draft token
} dsc_serve_drafting;

typedef struct dsc_serve_price {
    const dsc_cost *cost;
    dsc_serve_drafting drafting;
    bool overlap;      // drafts are computed while the target verifies: the longer of both counts
    double overhead_s; // of the host, for each step, >= 0
    // Seconds for each prefill token in addition to the pass over the other tokens (a pass of
    // prefill only: to a pass of one token). NaN: as dsc_mixed_target prices them.
    double prefill_s;
} dsc_serve_price;

enum { DSC_SERVE_LONGEST = 1024 }; // draft tokens

// A step of the engine.
typedef struct dsc_serve_step {
    int64_t decoding;       // sequences that verify a draft or decode one token
    int64_t decode_tokens;  // their tokens, drafts included
    int64_t decode_context; // their tokens in the KV cache before the pass
    int64_t prefilling;     // sequences that compute a part of their prompt
    int64_t prefill_tokens, prefill_context;
    int64_t draft_context;                 // tokens of the sequences that draft for the next step
    int64_t draft_tokens;                  // in the draft model's passes; 0: one of each sequence
    int32_t longest;                       // of these drafts
    int64_t drafts[DSC_SERVE_LONGEST + 1]; // [1..longest] drafts of at least that many tokens
    double target_s, draft_s, overhead_s, seconds; // results: parts and the whole
} dsc_serve_step;

// The target's pass, before its tokens are known; and the rest, after the next drafts are.
int dsc_serve_target_time(const dsc_serve_price *price, const dsc_serve_step *step, double *seconds,
                          dsc_error *err);
int dsc_serve_draft_time(const dsc_serve_price *price, const dsc_serve_step *step, double *seconds,
                         dsc_error *err);
// seconds[i]: the target's pass with i more decode tokens than the step has, [count], count >= 1:
// the numbers of dsc_serve_target_time, faster where the cost model has times of many passes.
int dsc_serve_target_times(const dsc_serve_price *price, const dsc_serve_step *step, size_t count,
                           double *seconds, dsc_error *err);
// The whole step, from these two.
static inline double dsc_serve_step_time(const dsc_serve_price *price, double target_s,
                                         double draft_s)
{
    const double longer = target_s > draft_s ? target_s : draft_s;
    return price->overhead_s + (price->overlap ? longer : target_s + draft_s);
}

// Bytes that a token takes in the KV cache of the target and of a draft model, by the shapes of a
// roofline; 0: the cost model has none.
double dsc_serve_token_bytes(const dsc_cost *cost);

#endif
