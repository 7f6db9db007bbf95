// SPDX-License-Identifier: Apache-2.0
// Asking the draft model: what methods share that let a model write. Internal to sim/draft/.
#ifndef DSC_SIM_DRAFT_ASK_H
#define DSC_SIM_DRAFT_ASK_H

#include "sim/drafter.h"

// One forward pass over one token: scores the draft, then appends the draft model's token below
// `node` (-1: after the output) as in->law says, CHOSEN (its likeliest) or IID. *ends: the output
// ends there, nothing follows. Counts the call.
int dsc_ask_next(const dsc_drafter_input *in, int64_t length, int32_t node, dsc_draft *draft,
                 bool *ends, dsc_error *err);

// The parts of it, for methods that make passes over several tokens. `count` tokens are in the
// pass.
int dsc_ask_score(const dsc_drafter_input *in, int64_t count, dsc_draft *draft, dsc_error *err);
// The token that the draft model puts below `node` of a scored draft; `index` keys the draw.
int dsc_ask_token(const dsc_drafter_input *in, int64_t length, int32_t node, uint32_t index,
                  int32_t *token, dsc_error *err);
// The draft model's law there: the one that it is drawn from, or, for CHOSEN tokens, the one before
// the temperature.
int dsc_ask_law(const dsc_drafter_input *in, int32_t node, dsc_dist *out, dsc_error *err);
// Draws below nodes of a scored draft that are to come, all together: what they need of laws that
// lie elsewhere comes in one go (dsc_model_type.foresee). Zero-initialise; `end` after the last.
enum { DSC_FORESEEN = 64 };
typedef struct dsc_foresight {
    int32_t node[DSC_FORESEEN];
    double u[DSC_FORESEEN];
    size_t n;
} dsc_foresight;
int dsc_foresee(dsc_foresight *f, const dsc_drafter_input *in, int64_t length, int32_t node,
                uint32_t index, dsc_error *err);
int dsc_foresee_end(dsc_foresight *f, const dsc_drafter_input *in, dsc_error *err);
// A child below `node` of a scored draft; draws are keyed by the child's number in the draft.
int dsc_ask_append(const dsc_drafter_input *in, int64_t length, int32_t node, dsc_draft *draft,
                   bool *ends, dsc_error *err);

#endif
