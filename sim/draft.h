// SPDX-License-Identifier: Apache-2.0
// A draft: a tree of proposed tokens hanging from the last committed token (a chain in the
// simplest case). Nodes are stored parents first.
#ifndef DSC_SIM_DRAFT_H
#define DSC_SIM_DRAFT_H

#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dsc_draft {
    int32_t *token;  // [count]
    int32_t *parent; // [count] index of an earlier node, or -1: follows the last committed token
    size_t count, token_capacity, parent_capacity;
    bool started; // the drafter started a draft, even if it came out empty (LLMA's trigger)
} dsc_draft;      // zero-initialise

// Forgets the nodes, keeps the memory.
DSC_API void dsc_draft_clear(dsc_draft *d);
DSC_API void dsc_draft_fini(dsc_draft *d);
// Appends the chain token[0, n), its first node under `parent`. Ids and count as in the tree.
DSC_API int dsc_draft_append_chain(dsc_draft *d, int32_t parent, const int32_t *token, size_t n,
                                   dsc_error *err);

#endif
