// SPDX-License-Identifier: Apache-2.0
// The drafts of a served request: by output position, so that a policy may choose their length at
// every step, or, where a draft depends on the steps before it, the steps themselves.
#ifndef DSC_SIM_SERVE_DRAFT_H
#define DSC_SIM_SERVE_DRAFT_H

#include <stdint.h>

// A draft that starts at an output position: the tokens in sequence that the method offers there,
// and how many of them, from the first on, are accepted. A shorter draft accepts the fewer of its
// length and these: a position is decided before those after it.
typedef struct dsc_serve_draft {
    uint16_t available, run; // run <= available
} dsc_serve_draft;

// A draft of `i` levels of a tree, or of i tokens in each of several sequences, is element i of a
// table.
typedef struct dsc_serve_level {
    int32_t tokens;       // that the target verifies, ascending; element 0: 0
    int32_t draft_tokens; // in the passes of the draft model
} dsc_serve_level;

// A step of a request after its prefill, which emits the first token. The steps of a request emit
// its other tokens.
typedef struct dsc_serve_pass {
    int32_t verified;          // tokens in the target's pass in addition to the last emitted one
    int32_t drafted, accepted; // draft tokens
    int32_t emitted;           // 0: the target's pass is not used (PEARL)
    int32_t draft_passes;      // of the draft model, before the target's or at the same time
    int32_t draft_tokens;      // in them
} dsc_serve_pass;

#endif
