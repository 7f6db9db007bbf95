// SPDX-License-Identifier: Apache-2.0
// LLMA replay as one would write it down first, one configuration at a time: the yardstick of
// tests/bench/bench_replay and an independent witness in tests/cross/test_replay. Shares nothing
// with sim/ but the request.
#ifndef DSC_TESTS_BENCH_LLMA_BASELINE_H
#define DSC_TESTS_BENCH_LLMA_BASELINE_H

#include "traces/trace/trace.h"

typedef struct baseline_counts {
    int64_t calls, drafts, draft_tokens, accepted;
} baseline_counts;

// As the authors' program: dictionaries of l-grams, l = n..max(5, n), first occurrence each; then
// a walk that asks them from the longest to the shortest. `copied` tokens are copied at most.
void baseline_dictionary(const dsc_request *q, int n, int64_t copied, baseline_counts *counts);

// As the n-gram drafters of serving engines: at every step a scan of all references for the longest
// agreement with the last tokens.
void baseline_scan(const dsc_request *q, int n, int64_t copied, baseline_counts *counts);

#endif
