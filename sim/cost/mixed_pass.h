// SPDX-License-Identifier: Apache-2.0
// Passes of a server: some sequences decode, others compute a part of their prompt.
#ifndef DSC_SIM_MIXED_PASS_H
#define DSC_SIM_MIXED_PASS_H

#include "sim/cost/cost.h"

struct dsc_mixed_pass {
    double decoding;       // sequences that verify a draft or decode one token
    double decode_tokens;  // their tokens, drafts included
    double decode_context; // their tokens in the KV cache before the pass
    double prefilling;     // sequences that compute a part of their prompt
    double prefill_tokens, prefill_context;
    bool again; // dsc_pass
};

// The target's pass. With measured prefill tokens (dsc_cost.mixed), all parts of prompts count as
// one part after their mean context, and without decoding sequences the first token of each counts
// as a decode token. A cost model without a time for prompts prices a pass of all sequences with
// their mean number of tokens and mean context. Errors are those of dsc_cost_target.
int dsc_mixed_target(const dsc_cost *cost, const dsc_mixed_pass *pass, double *seconds,
                     dsc_error *err);

// The first pass of a draft model, over pass.tokens of each of pass.batch sequences, directly after
// the target's pass `after`. A roofline's draft model also computes the prompts of `after`, and a
// head, which reads the target's states, all of its tokens instead of pass.tokens; other cost
// models price `pass` alone. Errors are those of dsc_cost_draft.
int dsc_mixed_first_draft(const dsc_cost *cost, dsc_pass pass, const dsc_mixed_pass *after,
                          double *seconds, dsc_error *err);

#endif
