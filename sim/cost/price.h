// SPDX-License-Identifier: Apache-2.0
// What a run takes by a cost model, alone or as many times side by side in one batch.
//
// In a batch all sequences take a step together, one pass of the target over all their tokens, and
// each goes on by what it had accepted; a sequence that ends is replaced by the next (continuous
// batching). Their steps are independent draws from those of the run, so that the tokens of a pass
// are a sum of independent widths, and a batch of B emits B x block efficiency tokens in the mean
// time of a pass. What is approximate, and which way:
//   - A pass is priced at the mean context. Times that bend upwards with it are priced too low.
//   - Calls of the draft model are priced at their mean width, and a step of a batch has the mean
//     number of them. A real batch waits for the sequence that drafts longest: methods that draft
//     more or less from step to step are priced too fast, those of a fixed length exactly.
//   - A method that drafts while the target verifies is priced as if all sequences were in the
//     same state; that is too slow, as long as times do not bend downwards.
//   - Expectations (dsc_counts.expected) know the mean width only; of one draft of a fixed length
//     it is the width.
#ifndef DSC_SIM_PRICE_H
#define DSC_SIM_PRICE_H

#include "sim/cost/cost.h"
#include "sim/counts.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DSC_MAX_BATCH = 65536 };

typedef struct dsc_price {
    double time_s;       // of the run, `batch` times side by side
    double plain_s;      // of the same output at one token per call, in the same batch
    double speedup;      // plain_s / time_s
    double tokens_per_s; // of all sequences
    double draft_s;      // of the run, in passes of the draft model
    double verify_s;     // in passes of the target; both add up to time_s unless they overlap
} dsc_price;             // NaN when there was no call

// A cost that is not linear needs dsc_counts.width (dsc_run_options.widths) to be exact. batch
// >= 1. DSC_EINPUT, DSC_EUSAGE: the cost model does not know such a pass.
DSC_API int dsc_price_run(dsc_price *out, const dsc_cost *cost, const dsc_counts *counts,
                          int64_t batch, dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif
