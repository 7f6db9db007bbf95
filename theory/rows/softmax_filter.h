// SPDX-License-Identifier: Apache-2.0
// Internal: the cuts of top-k and top-p in a row of logits (s->least and s->last,
// theory/rows/softmax.h).
#ifndef DSC_THEORY_SOFTMAX_FILTER_H
#define DSC_THEORY_SOFTMAX_FILTER_H

#include "theory/rows/softmax.h"
#include "theory/rows/softmax_list.h"
#include "theory/rows/softmax_sample.h"

// Keeps the `count` most probable tokens, 1 <= count < vocab, and all that tie with the last of
// them. Returns whether they are in the list, with their exponentials. room[vocab]: scratch.
bool dsc_softmax_keep_count(dsc_softmax *s, size_t count, double *room, dsc_softmax_list *list);
// Given a list of all tokens in a range of logits that begins at `low`, keeps the first of them
// until they have weight `enough`.
void dsc_softmax_keep_listed(dsc_softmax *s, const dsc_softmax_list *list, double enough,
                             float low);
// Adds the kept tokens of a list to the sums of blocks.
void dsc_softmax_add_listed(const dsc_softmax *s, const dsc_softmax_list *list, double *block);

// Keeps the first of the tokens kept so far, whose sum is s->sum, until they have weight `enough`:
// the most probable first, the lower id first among equals. s->sum and block[] then refer to these.
// weight[vocab] holds the exponentials of the tokens kept so far, else 0; `sample` is a sample of
// them, NULL for a short row.
void dsc_softmax_keep_weight(dsc_softmax *s, const double *weight, dsc_softmax_sample *sample,
                             double enough, double *block);

// Returns whether an element of row[0, n) is >= least.
bool dsc_any_from(const float *row, size_t n, float least);

#endif
