// SPDX-License-Identifier: Apache-2.0
// What drafts from a reduced vocabulary can at most accept on a trace. The vocabulary is a list of
// tokens, or the N most frequent ones of the outputs, as the maps of EAGLE-3 heads are made from
// counts on training text. Counts and evaluation are held out: the tokens of requests with an even
// number are counted for those with an odd number, and the reverse.
#ifndef DSC_SIM_VOCABULARY_BOUND_H
#define DSC_SIM_VOCABULARY_BOUND_H

#include "traces/trace/trace.h"

enum { DSC_VOCABULARY_DRAFTS = 16 }; // at most

typedef struct dsc_vocabulary_options {
    const bool *in; // [vocab_size] the tokens of the reduced vocabulary; NULL: the most frequent
    const int64_t *size; // [sizes] of `in` NULL: the numbers of tokens, each in [1, vocab_size]
    size_t sizes;        // 1 with `in`
    const int *drafts;   // [draft_counts] numbers of i.i.d. drafts, each in [1, 64]
    size_t draft_counts; // <= DSC_VOCABULARY_DRAFTS
    int64_t longest;     // draft tokens per step
    int threads;         // >= 1; the result does not depend on it
} dsc_vocabulary_options;

// One reduced vocabulary. NaN: the trace lacks the distributions.
typedef struct dsc_vocabulary_bound {
    int64_t tokens;  // of the vocabulary
    double coverage; // share of the output tokens that are in it
    double limit;    // mean of target(S), the bound of every lossless rule at a position
    double otm[DSC_VOCABULARY_DRAFTS]; // mean optimum of the recorded draft, restricted to S
    int64_t calls; // fewest target calls: each step accepts all that `longest` and S allow
} dsc_vocabulary_bound;

typedef struct dsc_vocabulary_bounds {
    int64_t positions;           // output tokens
    dsc_vocabulary_bound *bound; // [sizes], owned
} dsc_vocabulary_bounds;

// DSC_EUSAGE: an option is outside its range, or a request has no counterpart to count (one
// request). DSC_EINPUT: a row does not list all of its mass. dsc_vocabulary_bounds_fini frees.
int dsc_vocabulary_bounds_of(dsc_vocabulary_bounds *out, const dsc_trace *trace,
                             const dsc_vocabulary_options *options, dsc_error *err);
void dsc_vocabulary_bounds_fini(dsc_vocabulary_bounds *b);

#endif
