// SPDX-License-Identifier: Apache-2.0
// The time of a run by a cost model, alone or in a batch of equal runs.
//
// In a batch all sequences take a step together: one pass of the target over all their tokens,
// after which each sequence continues with its accepted tokens. A sequence that ends is replaced by
// the next (continuous batching). The steps of the sequences are independent samples of the run's
// steps. So the tokens of a pass are a sum of independent widths, and a batch of B emits B x block
// efficiency tokens in the mean time of a pass. The approximations and their direction:
//   - A pass is priced at the mean context. Times that are convex in it are priced too low.
//   - Calls of the draft model are priced at their mean width, and a step of a batch has their mean
//     number. A real batch waits for the sequence with the longest draft: methods with drafts of
//     varying length are priced too fast, methods with a fixed length exactly.
//   - A method that drafts while the target verifies has its sequences in states of their own: a
//     step covers the tokens of all and takes the longer of that pass and of the longest draft.
//     What is drafted for a sequence that is rolled back is lost for that sequence alone.
//     Communication between the two models is not priced, so such steps are priced too fast.
//   - Expectations (dsc_counts.expected) contain only the mean width, which is exact for one draft
//     of a fixed length.
#ifndef DSC_SIM_PRICE_H
#define DSC_SIM_PRICE_H

#include "sim/cost/cost.h"
#include "sim/counts.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DSC_MAX_BATCH = 65536 };

typedef struct dsc_price {
    double time_s;       // of `batch` runs together
    double plain_s;      // of the same output at one token per call, in the same batch
    double speedup;      // plain_s / time_s
    double tokens_per_s; // of all sequences
    double draft_s;      // of the run, in passes of the draft model
    double verify_s;     // in passes of the target; both add up to time_s unless they overlap
} dsc_price; // NaN when there was no call; plain_s and speedup also with dsc_cost.no_plain

// A cost that is not linear needs dsc_counts.width (dsc_run_options.widths) to be exact. 1 <= batch
// <= DSC_MAX_BATCH. DSC_EUSAGE: the batch is outside this range, an argument is NULL or the cost is
// not initialized. DSC_EINPUT, DSC_EUSAGE: the cost model has no time for such a pass.
DSC_API int dsc_price_run(dsc_price *out, const dsc_cost *cost, const dsc_counts *counts,
                          int64_t batch, dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif
