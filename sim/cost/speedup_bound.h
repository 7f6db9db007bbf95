// SPDX-License-Identifier: Apache-2.0
// The largest speedup that any lossless drafter can reach on the outputs of a trace under a cost
// model, one sequence at a time.
//
// A step that emits n tokens verifies n - 1 accepted draft tokens and the last committed one: its
// pass has at least n tokens, and n - 1 tokens were drafted. So a run takes at least the minimum
// over all ways to divide each output into steps of
//
//   sum over steps of [target(n tokens, context of the step) + (n - 1) draft],
//
// which dynamic programming finds from the end of the output to its beginning. It is reached by
// drafts that are always right and that end where the minimum says. The bound holds for costs that
// do not fall with the tokens of a pass and for methods that draft and verify in turn; methods that
// overlap the two (PEARL) hide drafting, which is a draft cost of 0.
#ifndef DSC_SIM_SPEEDUP_BOUND_H
#define DSC_SIM_SPEEDUP_BOUND_H

#include "sim/cost/cost.h"
#include "traces/trace/trace.h"

typedef struct dsc_speedup_bound {
    double plain_s; // of the outputs at one token per call
    double least_s; // of the outputs at best
    double speedup; // plain_s / least_s; NaN with dsc_cost.no_plain
    int64_t tokens; // of the outputs
    int64_t calls;  // of the target at best
    double context; // mean context of the output tokens
} dsc_speedup_bound;

// `longest`: most draft tokens of a step, >= 0. `draft_s`: seconds to draft one token, >= 0.
// DSC_EUSAGE: a number is outside its range, or the trace has no output. DSC_EINPUT: the cost has
// no time for such a pass.
int dsc_speedup_bound_of(dsc_speedup_bound *out, const dsc_trace *trace, const dsc_cost *cost,
                         int64_t longest, double draft_s, dsc_error *err);

#endif
