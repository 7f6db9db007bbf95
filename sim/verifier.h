// SPDX-License-Identifier: Apache-2.0
// Verification rules: const, stateless descriptors in an explicit list (sim/verifier.c).
#ifndef DSC_SIM_VERIFIER_H
#define DSC_SIM_VERIFIER_H

#include "sim/drafter.h"

#ifdef __cplusplus
extern "C" {
#endif

// One thread's scratch memory for rules (sim/verify_room.h).
typedef struct dsc_verify_room dsc_verify_room;
typedef struct dsc_verifier_type dsc_verifier_type;
// The replay of several drafts under a rule from recorded statistics (sim/replay_dist.h).
typedef struct dsc_replay_dist dsc_replay_dist;

// A draft to verify. The target has scored it, and so has the model that it was sampled from
// (dsc_models_drafter) unless the draft is TOPK.
typedef struct dsc_verify_input {
    const dsc_models *models;
    const dsc_draft *draft;
    uint64_t seed;
    int64_t request;
    dsc_verify_room *room;
    const dsc_verifier_type *rule; // that verifies it; for its parameters
} dsc_verify_input;

// The way to compute the acceptance of one draft under a sampling rule from the recorded
// probabilities of the output's tokens (sim/expect/expect_rule.h).
typedef enum dsc_rule_replay {
    DSC_RULE_REPLAY_NONE,  // it does not: the rule needs the loop
    DSC_RULE_REPLAY_TOKEN, // token by token, with probability min(1, draft/target)
    DSC_RULE_REPLAY_BLOCK, // as a whole, with the running minimum of the product of draft/target
    DSC_RULE_REPLAY_PATHS  // the best of several sequences as a block, from rows (theory/gbv.h); of
                           // one sequence BLOCK
} dsc_rule_replay;

enum { DSC_RULE_PARAMETERS = 2 }; // at most

struct dsc_verifier_type {
    const char *name, *summary;
    const char *synonyms; // "a|b": further names, or NULL
    const char *source;   // paper and algorithm: authors, year, arXiv number; or "no paper"
    const char *engines;  // the names that engines give it; "none", "all"
    bool lossless;        // the output has the target distribution
    bool greedy;          // compares with the target's argmax: needs no distributions
    bool argmax;          // its own tokens are the target's argmax, so drafts are argmax tokens too
    bool tree;            // a node may have several children
    bool sequences;       // several drafts must be independent sequences, not a tree
    bool off_path;        // of several drafts: reads distributions after tokens that it rejects
    unsigned kinds;       // supported kinds of drafts, bits of dsc_draft_kind
    dsc_rule_replay replay;
    const dsc_replay_dist *replay_dist; // of several drafts; NULL: they are not replayed
    // The numbers of a rule's text NAME:VALUE,VALUE. A rule of dsc_verifiers has the defaults.
    const dsc_option *option; // [options], INT or REAL
    size_t options;           // <= DSC_RULE_PARAMETERS
    double parameter[DSC_RULE_PARAMETERS];
    // Verifies in->draft into *out. Uniform numbers are keyed by (seed, request, output length).
    int (*verify)(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err);
};

DSC_API extern const dsc_verifier_type dsc_verifier_greedy, dsc_verifier_rejection,
    dsc_verifier_kseq, dsc_verifier_otm, dsc_verifier_specinfer, dsc_verifier_specinfer_wor,
    dsc_verifier_block, dsc_verifier_gbv, dsc_verifier_traversal, dsc_verifier_ensemble,
    dsc_verifier_relaxed, dsc_verifier_typical;

// The rules of the library, NULL-terminated.
DSC_API const dsc_verifier_type *const *dsc_verifiers(void);
// The rule called `name`, or NULL; *err then contains the nearest name. Where a rule has
// parameters, "NAME:VALUE,VALUE" sets them all, as in "relaxed:10,0.6"; such a rule lives as long
// as the program, and the same text always returns the same pointer.
DSC_API const dsc_verifier_type *dsc_verifier_find(const char *name, dsc_error *err);
// The rule used with a method when none is named. `greedy`: the target emits its argmax, or the
// recorded output stands for it; the method then does not matter. NULL: there is no method.
DSC_API const dsc_verifier_type *dsc_pair_rule(const dsc_drafter_type *drafter, bool greedy);

#ifdef __cplusplus
}
#endif

#endif
