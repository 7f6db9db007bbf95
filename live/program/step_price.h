// SPDX-License-Identifier: Apache-2.0
// The price of a method's steps by a cost model (live run --cost), before a run and after it.
#ifndef DSC_LIVE_STEP_PRICE_H
#define DSC_LIVE_STEP_PRICE_H

#include "live/program/run.h"
#include "sim/cost/price.h"

// Opens table:FILE or linear:...; DSC_EUSAGE, DSC_EINPUT. Freed by dsc_cost_fini.
int live_cost_open(dsc_cost *out, const char *text, dsc_error *err);

// A full step: the target's pass has as many tokens as the method may put into it
// (dsc_config_width), and the draft model drafts as long as all of its tokens are accepted.
typedef struct live_step_price {
    double cost;        // of the step, in passes of plain decoding: tokens per step at break-even
    double least;       // of a step of a method without a draft model that found no draft
    double draft_calls; // passes of the draft model in the step, a mean
    int64_t width;      // tokens in the target's pass
    int64_t most;       // tokens that the step can emit, at most
    double rate;        // i.i.d. acceptance rate at break-even, of methods that draft a fixed
                        // number of tokens in a row; INFINITY: none; NaN: other methods
} live_step_price;

// Prices a full step of run->config for prompts of `prompt` tokens and outputs of run->max_tokens.
// The passes of the draft model are counted by the loop, on a synthetic pair whose drafts are all
// accepted. DSC_EUSAGE: a cascade, whose middle model has no cost. DSC_EINPUT: the cost model has
// no time for such passes.
int live_step_price_of(live_step_price *out, const dsc_cost *cost, const live_run *run,
                       int64_t prompt, dsc_error *err);

// "a full step of ... costs 6.30 plain tokens on ...: it pays only above ..."; `cost` is the value
// of
// --cost.
void live_step_price_text(const live_step_price *p, const dsc_config *config, const char *cost,
                          char *out, size_t size);

#endif
