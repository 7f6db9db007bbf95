// SPDX-License-Identifier: Apache-2.0
// Verification rules: const, stateless descriptors in an explicit list.
#ifndef DSC_SIM_VERIFIER_H
#define DSC_SIM_VERIFIER_H

#include "sim/model.h"

// What a step commits: token[0, accepted) are draft tokens along one path, token[accepted] is the
// target's own (the bonus, or the correction after a rejection). accepted excludes it.
typedef struct dsc_verdict {
    int32_t *token; // [accepted + 1]
    size_t accepted, capacity;
} dsc_verdict; // zero-initialise, dsc_verdict_fini frees

typedef struct dsc_verifier_type {
    const char *name, *summary;
    bool lossless; // the output's law is the target's
    bool tree;     // accepts trees, not only chains
    // After target->score(draft). DSC_E* of the target are passed on.
    int (*verify)(dsc_model *target, const dsc_draft *draft, dsc_verdict *out, dsc_error *err);
} dsc_verifier_type;

DSC_API void dsc_verdict_fini(dsc_verdict *v);

DSC_API extern const dsc_verifier_type dsc_verifier_greedy;

DSC_API const dsc_verifier_type *const *dsc_verifiers(void);          // NULL-terminated
DSC_API const dsc_verifier_type *dsc_verifier_find(const char *name); // or NULL

#endif
