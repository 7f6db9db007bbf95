// SPDX-License-Identifier: Apache-2.0
// A straightforward LLMA replay, one configuration at a time. tests/bench/bench_replay compares its
// time, and tests/cross/test_replay its counts. It shares only the request with sim/.
#ifndef DSC_TESTS_BENCH_LLMA_BASELINE_H
#define DSC_TESTS_BENCH_LLMA_BASELINE_H

#include "traces/trace/trace.h"

typedef struct baseline_counts {
    int64_t calls, drafts, draft_tokens, accepted;
} baseline_counts;

// Replays as the authors' program does. Dictionaries of l-grams, l = n..max(5, n), contain the
// first occurrence of each and are searched from the longest to the shortest. At most `copied`
// tokens are copied.
void baseline_dictionary(const dsc_request *q, int n, int64_t copied, baseline_counts *counts);

// Replays as the n-gram drafters of serving engines do: at every step, all references are scanned
// for the longest match with the last tokens.
void baseline_scan(const dsc_request *q, int n, int64_t copied, baseline_counts *counts);

#endif
