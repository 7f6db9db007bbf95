// SPDX-License-Identifier: Apache-2.0
// Internal: where top-k and top-p cut a row of logits (s->least and s->last, theory/softmax.h).
#ifndef DSC_THEORY_SOFTMAX_FILTER_H
#define DSC_THEORY_SOFTMAX_FILTER_H

#include "theory/first_tokens.h"
#include "theory/softmax.h"

enum {
    DSC_SOFTMAX_FEW = 256,   // tokens that are looked at one by one
    DSC_SOFTMAX_BINS = 1024, // of depths below the likeliest token
    DSC_SOFTMAX_DEEP = 16,   // bins for what is deeper, taken in turn: an addition to the sum that
                             // the one before it went to would wait for it
};

// The weight of the tokens by their depth: token x is in bin (most - logit[x]) scale.
typedef struct dsc_softmax_bins {
    float scale;
    double weight[DSC_SOFTMAX_BINS + DSC_SOFTMAX_DEEP];
} dsc_softmax_bins;

// The `count` likeliest, 1 <= count < vocab, with all that are as likely as the last of them.
// Returns how many these are when they could be listed in few[DSC_SOFTMAX_FEW], with their
// exponentials and in no order, else 0. block[dsc_softmax_blocks], room[vocab]: scratch.
size_t dsc_softmax_keep_count(dsc_softmax *s, size_t count, double *block, double *room,
                              dsc_logit *few);
// Of a list of all tokens that are kept the first until they have `enough` weight; returns how many
// these are, and moves them to the front.
size_t dsc_softmax_keep_listed(dsc_softmax *s, dsc_logit *few, size_t n, double enough);

// No weights yet; `least` is the least logit, of a law of which top-p will keep top_p.
void dsc_softmax_begin_bins(dsc_softmax_bins *b, const dsc_softmax *s, float least, double top_p);
// Adds those of tokens [first, first + n), n <= DSC_SOFTMAX_BLOCK: weight[n].
void dsc_softmax_fill_bins(dsc_softmax_bins *b, const dsc_softmax *s, size_t first, size_t n,
                           const double *weight);
// Of what is kept, s->sum in all, the first tokens until they have `enough` of it: the likeliest
// first, of equals the lower id. weight[vocab]: the exponentials of what is kept, else 0; bins: of
// all of these.
void dsc_softmax_keep_weight(dsc_softmax *s, const double *weight, const dsc_softmax_bins *bins,
                             double enough);

// Whether one of row[0, n) is at least so large.
bool dsc_any_from(const float *row, size_t n, float least);

#endif
