// SPDX-License-Identifier: Apache-2.0
// Internal: where top-k and top-p cut a row of logits (s->least and s->last, theory/softmax.h).
#ifndef DSC_THEORY_SOFTMAX_FILTER_H
#define DSC_THEORY_SOFTMAX_FILTER_H

#include "theory/first_tokens.h"
#include "theory/softmax.h"
#include "theory/softmax_sample.h"

enum { DSC_SOFTMAX_FEW = 256 }; // tokens that are looked at one by one

// The `count` likeliest, 1 <= count < vocab, with all that are as likely as the last of them.
// Returns how many these are when they could be listed in few[DSC_SOFTMAX_FEW], with their
// exponentials and in no order, else 0. room[vocab]: scratch.
size_t dsc_softmax_keep_count(dsc_softmax *s, size_t count, double *room, dsc_logit *few);
// Of a list of all tokens that are kept the first until they have `enough` weight; returns how many
// these are, and moves them to the front.
size_t dsc_softmax_keep_listed(dsc_softmax *s, dsc_logit *few, size_t n, double enough);

// Of what is kept, s->sum in all, the first tokens until they have top_p of it, if it is soon found
// that they are among few; returns how many and lists them in few[DSC_SOFTMAX_FEW], else 0.
// weight[vocab]: the exponentials of what is kept, else 0.
size_t dsc_softmax_keep_heavy(dsc_softmax *s, const double *weight, double top_p, dsc_logit *few);
// Of what is kept, s->sum in all, the first tokens until they have `enough` of it: the likeliest
// first, of equals the lower id; then s->sum and block[] are of these. weight[vocab]: the
// exponentials of what is kept, else 0; `sample` is of these.
void dsc_softmax_keep_weight(dsc_softmax *s, const double *weight, dsc_softmax_sample *sample,
                             double enough, double *block);

// Whether one of row[0, n) is at least so large.
bool dsc_any_from(const float *row, size_t n, float least);

#endif
