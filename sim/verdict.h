// SPDX-License-Identifier: Apache-2.0
// The result of verifying a draft: the tokens that a step commits. Functions with a status return
// DSC_EUSAGE for a NULL verdict; the others ignore it.
#ifndef DSC_SIM_VERDICT_H
#define DSC_SIM_VERDICT_H

#include "base/memory.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// token[0, accepted) are draft tokens along one path; node[i] is the node of the draft that carries
// token[i]. When count is accepted + 1, token[accepted] is the target's own: the bonus, the
// correction after a rejection, or the token that ends the output. When count is accepted (after an
// unscored node) there is none.
typedef struct dsc_verdict {
    int32_t *token; // [count]
    int32_t *node;  // [accepted]
    size_t accepted, count;
    size_t token_capacity, node_capacity;
} dsc_verdict; // zero-initialize; dsc_verdict_fini frees

// Removes the tokens and keeps the memory.
DSC_API void dsc_verdict_clear(dsc_verdict *v);
DSC_API void dsc_verdict_fini(dsc_verdict *v);
// Appends an accepted token, which is that of `node`. DSC_ENOMEM.
DSC_API int dsc_verdict_accept(dsc_verdict *v, int32_t token, int32_t node, dsc_error *err);
// Appends the target's own token, which is the last one. DSC_ENOMEM.
DSC_API int dsc_verdict_close(dsc_verdict *v, int32_t token, dsc_error *err);

#ifdef __cplusplus
}
#endif

#endif
