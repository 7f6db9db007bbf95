// SPDX-License-Identifier: Apache-2.0
// Asking the draft model: what methods share that let a model write. Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_DRAFT_NEXT_H
#define DSC_SIM_DRAFT_DRAFT_NEXT_H

#include "sim/drafter.h"

// One forward pass over one token: scores the draft, then appends the draft model's token below
// `node` (-1: after the output) as in->distribution says, TOPK (its most probable) or SAMPLED.
// *ends: the output ends there, nothing follows. Counts the call.
int dsc_draft_next(const dsc_drafter_input *in, int64_t length, int32_t node, dsc_draft *draft,
                   bool *ends, dsc_error *err);

// The parts of it, for methods that make passes over several tokens. `count` tokens are in the
// pass.
int dsc_draft_next_score(const dsc_drafter_input *in, int64_t count, dsc_draft *draft,
                         dsc_error *err);
// The token that the draft model puts below `node` of a scored draft; `index` keys the draw.
int dsc_draft_next_token(const dsc_drafter_input *in, int64_t length, int32_t node, uint32_t index,
                         int32_t *token, dsc_error *err);
// The draft model's distribution there: the one that it is drawn from, or, for TOPK tokens, the one
// before the temperature.
int dsc_draft_next_dist(const dsc_drafter_input *in, int32_t node, dsc_dist *out, dsc_error *err);
// Draws below nodes of a scored draft that are to come, all together: what they need of
// distributions that lie elsewhere comes in one go (dsc_model_type.prefetch). Zero-initialise;
// `end` after the last.
enum { DSC_PREFETCHED = 64 };
typedef struct dsc_prefetch_list {
    int32_t node[DSC_PREFETCHED];
    double u[DSC_PREFETCHED];
    size_t n;
} dsc_prefetch_list;
int dsc_prefetch(dsc_prefetch_list *f, const dsc_drafter_input *in, int64_t length, int32_t node,
                 uint32_t index, dsc_error *err);
int dsc_prefetch_end(dsc_prefetch_list *f, const dsc_drafter_input *in, dsc_error *err);
// A child below `node` of a scored draft; draws are keyed by the child's number in the draft.
int dsc_draft_next_append(const dsc_drafter_input *in, int64_t length, int32_t node,
                          dsc_draft *draft, bool *ends, dsc_error *err);

#endif
