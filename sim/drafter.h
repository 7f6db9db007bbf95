// SPDX-License-Identifier: Apache-2.0
// Drafting methods: const descriptors in an explicit list. A new method is one file under
// sim/draft/, one line in sim/drafter.c and one in sim/Makefile.inc.
#ifndef DSC_SIM_DRAFTER_H
#define DSC_SIM_DRAFTER_H

#include "base/option.h"
#include "sim/counts.h"
#include "sim/model.h"
#include "sim/verdict.h"
#include "traces/trace/trace.h"

enum { DSC_MAX_PARAMETERS = 16 };

typedef struct dsc_drafter_type dsc_drafter_type;

// A method with its parameters, by the kind of its options.
typedef struct dsc_config {
    const dsc_drafter_type *drafter;
    int64_t parameter[DSC_MAX_PARAMETERS]; // INT values and CHOICE indices
    double real[DSC_MAX_PARAMETERS];       // REAL values
    const char *text[DSC_MAX_PARAMETERS];  // TEXT values, or NULL; the caller's
    void *prepared;                        // dsc_config_prepare
} dsc_config;

// What the requests of a run leave to later ones (dsc_drafter_type.carries). Zero-initialise.
typedef struct dsc_history {
    dsc_arena arena; // of the run
    void *state;     // the drafter's, in the arena; NULL: no request has begun yet
} dsc_history;

// A counter that only one method has.
typedef struct dsc_extra {
    const char *name, *help; // of its result column
} dsc_extra;

// What a drafter is given when a request begins. Everything outlives the request.
typedef struct dsc_drafter_input {
    const dsc_request *request; // without its output, unless the drafter `sees_output`
    const dsc_config *config;
    const int64_t *parameter; // of it
    uint64_t seed;
    dsc_arena *arena;         // of this request
    const dsc_models *models; // of this request; NULL in a replay without a loop (`match_lengths`)
    int32_t end_token;        // of such a replay: the trace's EOS token, or -1: unknown
    dsc_draft_kind kind;      // how the children of a node are to be made: one that the type knows
    dsc_history *history;     // of the run, or NULL: the request stands alone
    int64_t *extra;           // [extra_count] counters to add to
} dsc_drafter_input;

// Drafts at every output position at once, without limit on their length; see `match_lengths`.
typedef struct dsc_match_lengths {
    int32_t *available; // [output.count] tokens a draft from here has to offer; -1: none starts
    int32_t *run; // [output.count] how many of them, from the first on, are the recorded output
} dsc_match_lengths;

// Number of tokens that a method drafts in a row, by the name that the engines give it.
#define DSC_OPTION_DRAFT_LENGTH                                                                    \
    .name = "num-speculative-tokens", .letter = 'k', .synonyms = "length|gamma|k",                 \
    .kind = DSC_OPTION_INT, .metavar = "N"

struct dsc_drafter_type {
    const char *name, *summary;
    const char *synonyms;       // "a|b": further names, or NULL
    const char *const *presets; // further names that are the value of its first option as well,
                                // NULL-terminated; NULL: none
    bool sees_output;  // is shown the recorded output or, of a model, asks another copy (oracle)
    bool needs_draft;  // asks a draft model
    bool needs_middle; // and a third one, between draft and target
    bool asks_dists;   // asks the draft model how sure it is, whatever the rule
    bool asks_target;  // asks the target off the output: not for recorded traces
    bool branches;     // a node may have several children
    bool parallel;     // drafts while the target verifies: a step takes the longer of both (and
                       // makes fewer draft calls than `width` tokens)
    unsigned kinds;    // dsc_draft_kind that it can draft by; 0: TOPK only
    size_t state_size; // bytes; the caller owns the state, so a copy of it is a clone
    const dsc_option *option; // parameters, in the order of the result columns
    size_t option_count;      // <= DSC_MAX_PARAMETERS

    const dsc_extra *extra; // counters of its own, columns behind those of every method
    size_t extra_count;     // <= DSC_MAX_EXTRA

    // Whether requests depend on those before them, by in->carry: a run then takes them one after
    // the other. NULL: never.
    bool (*uses_history)(const dsc_config *config);
    // Reads what TEXT options name and checks what one option alone cannot say, into *prepared
    // (dsc_config.prepared), which `release` frees. NULL: nothing to do.
    int (*prepare)(const dsc_config *config, void **prepared, dsc_error *err);
    void (*release)(void *prepared);
    // The most draft tokens that a step can accept.
    int64_t (*limit)(const dsc_config *config);
    // The most tokens in a forward pass of the target; NULL: 1 + limit.
    int64_t (*width)(const dsc_config *config);
    // The same of the draft model and the middle one, over all nodes of a draft that they have been
    // given; NULL: as the target.
    int64_t (*draft_width)(const dsc_config *config);
    // Starts a request. NULL when there is nothing to prepare.
    int (*begin)(void *state, const dsc_drafter_input *in, dsc_error *err);
    // Proposes what may follow output[0, length); leaves the draft empty to decline.
    // Draws of the draft model are keyed by (seed, request, length, DSC_RNG_DRAFT), so that no two
    // steps share one (dsc_draft_uniform).
    int (*propose)(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err);
    // After the target scored and verified a draft and before the verdict is committed, when the
    // target can still be asked what follows the draft's nodes. NULL: no matter.
    int (*observe)(void *state, const dsc_draft *draft, const dsc_verdict *verdict, dsc_error *err);

    // For methods whose draft at a position depends on the tokens before it and on nothing else,
    // and whose length options only cut it: what would be drafted at every position of the recorded
    // output, for `count` settings in[j].parameter that differ in more than length options. Arrays
    // are allocated in in[0].arena and may be shared between settings; entries may be cut at
    // `longest` tokens, and run[i] <= output.count - 1 - i (the last token is always the target's
    // own). NULL when the method is not of this kind.
    int (*match_lengths)(const dsc_drafter_input *in, size_t count, int64_t longest,
                         dsc_match_lengths *out, dsc_error *err);
};

DSC_API extern const dsc_drafter_type dsc_drafter_none, dsc_drafter_oracle, dsc_drafter_llma,
    dsc_drafter_ngram, dsc_drafter_suffix, dsc_drafter_draft_model, dsc_drafter_hf_dynamic,
    dsc_drafter_threshold, dsc_drafter_spectr, dsc_drafter_spectr_tree, dsc_drafter_tree,
    dsc_drafter_sequoia, dsc_drafter_cascade, dsc_drafter_lookahead, dsc_drafter_ouroboros,
    dsc_drafter_pearl;

DSC_API const dsc_drafter_type *const *dsc_drafters(void); // NULL-terminated
DSC_API const dsc_drafter_type *dsc_drafter_find(
    const char *name, dsc_error *err); // or synonym, or preset; NULL: *err names the nearest
// The preset of that name, or NULL.
DSC_API const char *dsc_drafter_preset(const dsc_drafter_type *type, const char *name,
                                       size_t length);

// Uniform number `index` < 2^24 of the draws of a draft.
DSC_API double dsc_draft_uniform(const dsc_drafter_input *in, int64_t length, uint32_t index);

// Runs the method's `prepare`; dsc_config_fini frees what it made. DSC_EUSAGE, DSC_EINPUT.
DSC_API int dsc_config_prepare(dsc_config *config, dsc_error *err);
DSC_API void dsc_config_fini(dsc_config *config);
DSC_API int64_t dsc_config_limit(const dsc_config *config);
DSC_API int64_t dsc_config_width(const dsc_config *config);
DSC_API int64_t dsc_config_draft_width(const dsc_config *config);

#endif
