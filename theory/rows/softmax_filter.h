// SPDX-License-Identifier: Apache-2.0
// Internal: where top-k and top-p cut a row of logits (s->least and s->last,
// theory/rows/softmax.h).
#ifndef DSC_THEORY_SOFTMAX_FILTER_H
#define DSC_THEORY_SOFTMAX_FILTER_H

#include "theory/rows/softmax.h"
#include "theory/rows/softmax_list.h"
#include "theory/rows/softmax_sample.h"

// The `count` most probable, 1 <= count < vocab, with all that are as likely as the last of them.
// Returns whether they could be listed, with their exponentials. room[vocab]: scratch.
bool dsc_softmax_keep_count(dsc_softmax *s, size_t count, double *room, dsc_softmax_list *list);
// Of a list of all tokens from the logit `low` on, or of all of these that are below another, the
// first until they have `enough` weight.
void dsc_softmax_keep_listed(dsc_softmax *s, const dsc_softmax_list *list, double enough,
                             float low);
// Adds what is kept of a list to the sums of blocks.
void dsc_softmax_add_listed(const dsc_softmax *s, const dsc_softmax_list *list, double *block);

// Of what is kept, s->sum in all, the first tokens until they have `enough` of it: the most
// probable first, of equals the lower id; then s->sum and block[] are of these. weight[vocab]: the
// exponentials of what is kept, else 0; `sample` is of these, NULL for a short row.
void dsc_softmax_keep_weight(dsc_softmax *s, const double *weight, dsc_softmax_sample *sample,
                             double enough, double *block);

// Whether one of row[0, n) is at least so large.
bool dsc_any_from(const float *row, size_t n, float least);

#endif
