// SPDX-License-Identifier: Apache-2.0
// What the reduced vocabulary of an EAGLE-3 head allows on the outputs of a run
// (theory/vocabulary.h): an accepted draft token is a token of the output that the head can draft,
// so no rule accepts more than their share, and no lossless rule more than the target's probability
// of these tokens.
#ifndef DSC_LIVE_DRAFT_VOCABULARY_H
#define DSC_LIVE_DRAFT_VOCABULARY_H

#include "live/model/weights.h"
#include "traces/trace/trace.h"

typedef struct live_draft_vocabulary {
    const bool *in;              // [vocab] of the weights; NULL: every token can be drafted
    int64_t vocab, draft_tokens; // of the target, of the head
    bool greedy;                 // each distribution is its argmax token, which is the output's
    int64_t tokens, covered;     // of the outputs; those of them that can be drafted
    int64_t positions;           // with a distribution
    double mass;                 // the target's probability of `in`, summed over these
} live_draft_vocabulary;

// `draft` may be NULL. It outlives *v.
void live_draft_vocabulary_init(live_draft_vocabulary *v, const live_weights *draft, bool greedy);
void live_draft_vocabulary_add(live_draft_vocabulary *v, dsc_token_view output);
// Adds the distribution that a token is sampled from: target[vocab].
void live_draft_vocabulary_add_dist(live_draft_vocabulary *v, const double *target);

// Share of the output tokens that can be drafted; NaN: there is no token.
double live_draft_vocabulary_coverage(const live_draft_vocabulary *v);
// Mean of the target's probability of the tokens that can be drafted: with greedy decoding, the
// coverage; NaN: no distribution was added.
double live_draft_vocabulary_bound(const live_draft_vocabulary *v);

#endif
