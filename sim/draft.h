// SPDX-License-Identifier: Apache-2.0
// A draft: a tree of proposed tokens after the last committed token. The simplest tree is a chain.
// Nodes are stored parents first.
//
// Functions with a status return DSC_EUSAGE for a NULL draft; of the others, those that return
// nothing ignore it and dsc_draft_length returns 0.
#ifndef DSC_SIM_DRAFT_H
#define DSC_SIM_DRAFT_H

#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// How the children of a node were selected; one kind for all nodes of a draft. The values are bits,
// so that methods and rules can list the kinds they support.
typedef enum dsc_draft_kind {
    // Deterministically: each child's draft distribution is all on its own token. Equal siblings
    // count once.
    DSC_DRAFT_TOPK = 1,
    // In order, as independent samples of the draft model's distribution after the node.
    DSC_DRAFT_SAMPLED = 2,
    // In order, as samples of that distribution without replacement.
    DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT = 4
} dsc_draft_kind;

typedef struct dsc_draft {
    int32_t *token;  // [count]
    int32_t *parent; // [count] index of an earlier node, or -1: follows the last committed token
    size_t count, token_capacity, parent_capacity;
    dsc_draft_kind kind;
    bool from_middle; // samples are of the middle model, not of the draft model (cascade)
    bool started;     // the method started a draft, which may be empty (LLMA's trigger)
    // The first `proposed` nodes can be accepted; the nodes after them are scored only (the window
    // of lookahead decoding).
    size_t proposed;
    // The last `unscored` proposed nodes, which are leaves, are not in the target's forward pass.
    // They can be accepted, but no bonus token follows them (PEARL). 0 or 1.
    size_t unscored;
    // Nothing is proposed or verified and no token is emitted: the target's pass is not used
    // (PEARL's windows that are not verified while they are drafted).
    bool untested;
    int64_t draft_calls;       // forward passes of the draft model for this draft
    int64_t draft_call_tokens; // tokens in them
} dsc_draft;                   // zero-initialize; dsc_draft_fini frees

// Removes the nodes and keeps the memory. The kind becomes TOPK.
DSC_API void dsc_draft_clear(dsc_draft *d);
DSC_API void dsc_draft_fini(dsc_draft *d);
// Appends a chain of n proposed tokens, the first one below node `parent` (-1: below the last
// committed token). Ids are below the vocabulary size. DSC_EUSAGE: there is no such node, or nodes
// that are only scored precede. DSC_ENOMEM.
DSC_API int dsc_draft_append_chain(dsc_draft *d, int32_t parent, const int32_t *token, size_t n,
                                   dsc_error *err);
// Appends a chain of nodes that are scored and never accepted; no proposed node may follow.
DSC_API int dsc_draft_append_scored(dsc_draft *d, int32_t parent, const int32_t *token, size_t n,
                                    dsc_error *err);
// The number of its proposed tokens in sequence: of a tree, the number of levels.
DSC_API int64_t dsc_draft_length(const dsc_draft *d);
// Tokens in the target's forward pass: the last committed one and the nodes.
static inline int64_t dsc_draft_width(const dsc_draft *d)
{
    return 1 + (int64_t)(d->count - d->unscored);
}

#ifdef __cplusplus
}
#endif

#endif
