// SPDX-License-Identifier: Apache-2.0
// A draft: a tree of proposed tokens hanging from the last committed token (a chain in the
// simplest case). Nodes are stored parents first.
#ifndef DSC_SIM_DRAFT_H
#define DSC_SIM_DRAFT_H

#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

// How the children of a node came about; a draft's nodes all in one way. Bits, so that methods and
// rules can say which they know.
typedef enum dsc_draft_kind {
    DSC_DRAFT_TOPK =
        1, // by a rule: the distribution of each child is of one token; alike ones count once
    DSC_DRAFT_SAMPLED =
        2, // in order, independent draws from the draft model's distribution after the node
    DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT = 4, // in order, draws from it without replacement
} dsc_draft_kind;

typedef struct dsc_draft {
    int32_t *token;  // [count]
    int32_t *parent; // [count] index of an earlier node, or -1: follows the last committed token
    size_t count, token_capacity, parent_capacity;
    dsc_draft_kind kind;
    bool from_middle; // the distribution is the middle model's, not the draft model's (cascade)
    bool started;     // the drafter started a draft, even if it came out empty (LLMA's trigger)
    // The first `proposed` nodes may be accepted; those behind them are scored only (the window of
    // lookahead decoding).
    size_t proposed;
    // The last `unscored` proposed nodes, leaves, are not in the target's forward pass: they can be
    // accepted, but what follows them is unknown and no bonus token comes (PEARL). 0 or 1.
    size_t unscored;
    // Nothing is proposed, nothing verified and no token emitted: the target's pass goes unused
    // (PEARL's windows that are not tested while they are drafted).
    bool untested;
    int64_t draft_calls;       // forward passes of the draft model for this draft
    int64_t draft_call_tokens; // tokens in them
} dsc_draft;                   // zero-initialise

// Forgets the nodes, keeps the memory. The distribution becomes TOPK.
DSC_API void dsc_draft_clear(dsc_draft *d);
DSC_API void dsc_draft_fini(dsc_draft *d);
// Appends the chain token[0, n), its first node under `parent`. Ids and count as in the tree.
DSC_API int dsc_draft_append_chain(dsc_draft *d, int32_t parent, const int32_t *token, size_t n,
                                   dsc_error *err);
// The same for nodes that are scored and never accepted; no other kind may follow.
DSC_API int dsc_draft_append_scored(dsc_draft *d, int32_t parent, const int32_t *token, size_t n,
                                    dsc_error *err);
// The number of its proposed tokens in sequence: of a tree, the number of levels.
DSC_API int64_t dsc_draft_length(const dsc_draft *d);
// Tokens in the target's forward pass: the last committed one and the nodes.
static inline int64_t dsc_draft_width(const dsc_draft *d)
{
    return 1 + (int64_t)(d->count - d->unscored);
}

#endif
