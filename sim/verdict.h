// SPDX-License-Identifier: Apache-2.0
// What a verification rule makes of a draft.
#ifndef DSC_SIM_VERDICT_H
#define DSC_SIM_VERDICT_H

#include "base/memory.h"

#include <stdint.h>

// What a step commits: token[0, accepted) are draft tokens along one path, and token[accepted],
// where count is accepted + 1, is the target's own: the bonus, or the correction after a rejection,
// or the token that ends the output. Without it (after an unscored node) count is accepted.
// node[i] is a node of the draft that carries token[i], i < accepted.
typedef struct dsc_verdict {
    int32_t *token; // [count]
    int32_t *node;  // [accepted]
    size_t accepted, count;
    size_t token_capacity, node_capacity;
} dsc_verdict; // zero-initialise, dsc_verdict_fini frees

DSC_API void dsc_verdict_clear(dsc_verdict *v);
DSC_API void dsc_verdict_fini(dsc_verdict *v);
// Appends an accepted token, or the last one, the target's own.
DSC_API int dsc_verdict_accept(dsc_verdict *v, int32_t token, int32_t node, dsc_error *err);
DSC_API int dsc_verdict_close(dsc_verdict *v, int32_t token, dsc_error *err);

#endif
