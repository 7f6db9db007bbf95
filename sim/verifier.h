// SPDX-License-Identifier: Apache-2.0
// Verification rules: const, stateless descriptors in an explicit list.
#ifndef DSC_SIM_VERIFIER_H
#define DSC_SIM_VERIFIER_H

#include "sim/model.h"
#include "sim/verdict.h"
#include "theory/curve.h"
#include "theory/otm_sampler.h"

// One thread's room for rules, reused from step to step. Zero-initialise.
typedef struct dsc_verify_room {
    double *draft, *target, *residual; // rows of the vocabulary
    size_t draft_capacity, target_capacity, residual_capacity;
    double *draft_of, *target_of, *residual_of; // masses of the candidates; what is left of them
    size_t draft_of_capacity, target_of_capacity, residual_of_capacity;
    dsc_rows_order order;
    int32_t *live, *candidate, *token; // nodes of the draft; tokens of the candidates
    size_t live_capacity, candidate_capacity, token_capacity;
    int32_t *first, *sibling; // children of node j - 1: first[j], then by sibling; -1: no more
    size_t first_capacity, sibling_capacity;
    dsc_otm_sampler *otm;
} dsc_verify_room;

DSC_API void dsc_verify_room_fini(dsc_verify_room *r);

// A draft to be verified: the target has scored it, and so has the model that it was drawn from
// (dsc_models_drafter) unless the draft's distribution is TOPK.
typedef struct dsc_verify_input {
    const dsc_models *models;
    const dsc_draft *draft;
    uint64_t seed;
    int64_t request;
    dsc_verify_room *room;
} dsc_verify_input;

typedef struct dsc_verifier_type {
    const char *name, *summary;
    const char *synonyms; // "a|b": further names, or NULL
    const char *source;   // where it is from
    bool lossless;        // the output's distribution is the target's
    bool greedy;    // of a target that always says its most probable token: needs no distributions
    bool tree;      // a node may have several children
    unsigned kinds; // dsc_draft_kind that it takes, the preferred one is the highest bit
    int (*verify)(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err);
} dsc_verifier_type;

DSC_API extern const dsc_verifier_type dsc_verifier_greedy, dsc_verifier_rejection,
    dsc_verifier_kseq, dsc_verifier_otm, dsc_verifier_specinfer, dsc_verifier_specinfer_wor,
    dsc_verifier_block, dsc_verifier_typical;

DSC_API const dsc_verifier_type *const *dsc_verifiers(void); // NULL-terminated
DSC_API const dsc_verifier_type *dsc_verifier_find(const char *name,
                                                   dsc_error *err); // NULL: *err says the nearest

#endif
