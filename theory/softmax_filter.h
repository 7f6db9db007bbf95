// SPDX-License-Identifier: Apache-2.0
// Internal: where top-k and top-p cut a row of logits (s->least and s->last, theory/softmax.h).
#ifndef DSC_THEORY_SOFTMAX_FILTER_H
#define DSC_THEORY_SOFTMAX_FILTER_H

#include "theory/softmax.h"

// The `count` likeliest, 1 <= count < vocab, with all that are as likely as the last of them.
void dsc_softmax_keep_count(dsc_softmax *s, size_t count);
// Of what is kept, s->sum in all, the first tokens until they have `enough` of it: the likeliest
// first, of equals the lower id. weight[vocab]: the exponentials of what is kept, else 0.
void dsc_softmax_keep_weight(dsc_softmax *s, const double *weight, double enough);

// Whether one of row[0, n) is at least so large.
bool dsc_any_from(const float *row, size_t n, float least);

#endif
