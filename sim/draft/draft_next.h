// SPDX-License-Identifier: Apache-2.0
// Drafting with the draft model, token by token: the functions that methods with a draft model
// share. Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_DRAFT_NEXT_H
#define DSC_SIM_DRAFT_DRAFT_NEXT_H

#include "sim/drafter.h"

// One forward pass over one token: scores the draft, then appends the draft model's token below
// `node` (-1: after the output), selected as in->kind requires: the argmax for TOPK, a sample for
// SAMPLED. *ends: the output ends with it. Counts the call.
int dsc_draft_next(const dsc_drafter_input *in, int64_t length, int32_t node, dsc_draft *draft,
                   bool *ends, dsc_error *err);

// Appends up to `most` such tokens to a chain, until the output ends or after a token whose draft
// probability is below `least` (0: never). Sets the draft's kind and whether it was started.
int dsc_draft_next_chain(const dsc_drafter_input *in, int64_t length, int64_t most, double least,
                         dsc_draft *draft, dsc_error *err);

// The parts of dsc_draft_next, for methods whose passes have several tokens.
// One forward pass over `count` tokens.
int dsc_draft_next_score(const dsc_drafter_input *in, int64_t count, dsc_draft *draft,
                         dsc_error *err);
// The token that the draft model selects below `node` of a scored draft; `index` keys the sample.
int dsc_draft_next_token(const dsc_drafter_input *in, int64_t length, int32_t node, uint32_t index,
                         int32_t *token, dsc_error *err);
// The draft model's distribution below `node`: the one that is sampled, or, for TOPK tokens, the
// one before the temperature.
int dsc_draft_next_dist(const dsc_drafter_input *in, int32_t node, dsc_dist *out, dsc_error *err);
// Appends a child below `node` of a scored draft; its sample is keyed by its number in the draft.
int dsc_draft_next_append(const dsc_drafter_input *in, int64_t length, int32_t node,
                          dsc_draft *draft, bool *ends, dsc_error *err);

// Samples that follow below nodes of a scored draft, announced together so that a device fetches
// their data at once (dsc_model_type.prefetch). Zero-initialize; call `end` after the last one.
enum { DSC_PREFETCHED = 64 };
typedef struct dsc_prefetch_list {
    int32_t node[DSC_PREFETCHED];
    double u[DSC_PREFETCHED];
    size_t n;
} dsc_prefetch_list;
int dsc_prefetch(dsc_prefetch_list *f, const dsc_drafter_input *in, int64_t length, int32_t node,
                 uint32_t index, dsc_error *err);
int dsc_prefetch_end(dsc_prefetch_list *f, const dsc_drafter_input *in, dsc_error *err);

#endif
