// SPDX-License-Identifier: Apache-2.0
// Drafting methods and their configurations. A method is a const descriptor. Those of the library
// are in an explicit list (sim/drafter.c); a program can also pass a descriptor of its own to
// dsc_config_init and dsc_run (examples/my_drafter.c).
//
//     dsc_config c;
//     dsc_config_init(&c, dsc_drafter_find("draft-model", &err));
//     if (!dsc_config_set(&c, "num-speculative-tokens", "5", &err) &&
//         !dsc_config_prepare(&c, &err))
//         dsc_run(trace, &c, 1, &options, &results, &err);
//     dsc_config_fini(&c);
#ifndef DSC_SIM_DRAFTER_H
#define DSC_SIM_DRAFTER_H

#include "base/option.h"
#include "sim/counts.h"
#include "sim/model.h"
#include "sim/verdict.h"
#include "traces/trace/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    DSC_MAX_PARAMETERS = 16, // options of a method
    DSC_MAX_LEVELS = 64      // of a draft tree, the root's level 0 excluded
};

typedef struct dsc_drafter_type dsc_drafter_type;

// A method with the values of its options, option by option in the order of its table. Use
// dsc_config_init and dsc_config_set; methods read the arrays.
typedef struct dsc_config {
    const dsc_drafter_type *drafter;
    int64_t parameter[DSC_MAX_PARAMETERS]; // INT values and CHOICE indices
    double real[DSC_MAX_PARAMETERS];       // REAL values
    const char *text[DSC_MAX_PARAMETERS];  // TEXT values, or NULL; the memory is the caller's
    void *prepared;                        // owned; made by dsc_config_prepare
} dsc_config;

// State that the requests of a run leave to later ones (dsc_drafter_type.uses_history).
// Zero-initialize.
typedef struct dsc_history {
    dsc_arena arena; // of the run
    void *state;     // the method's, in the arena; NULL: no request has begun yet
} dsc_history;

// A counter that only one method has.
typedef struct dsc_extra {
    const char *name, *help; // of its result column
} dsc_extra;

// The input of a method when a request begins. All of it outlives the request.
typedef struct dsc_drafter_input {
    const dsc_request *request; // its output is empty unless the method `sees_output`
    const dsc_config *config;
    const int64_t *parameter; // config->parameter
    uint64_t seed;
    dsc_arena *arena;         // of this request
    const dsc_models *models; // of this request; NULL in `match_lengths`
    int32_t end_token;        // in `match_lengths`: the trace's EOS token, or -1: unknown
    dsc_draft_kind kind;      // how to select the children of a node: one of the type's `kinds`
    dsc_history *history;     // of the run, or NULL: the request stands alone
    int64_t *extra;           // [extra_count] counters to add to
} dsc_drafter_input;

enum { DSC_PASS_PER_TOKEN = -1 };

// The drafts at every output position, without a limit on their length; see `match_lengths`.
typedef struct dsc_match_lengths {
    int32_t *available; // [output.count] tokens that a draft from here offers; -1: no draft starts
    int32_t *run;       // [output.count] how many of them, from the first on, equal the output
    int64_t passes; // forward passes of the draft model for a draft, on one token each, initially
                    // 0; DSC_PASS_PER_TOKEN: one for each draft token
} dsc_match_lengths;

// Number of tokens that a method drafts in a row, by the name that the engines give it.
#define DSC_OPTION_DRAFT_LENGTH                                                                    \
    .name = "num-speculative-tokens", .letter = 'k', .synonyms = "length|gamma|k",                 \
    .kind = DSC_OPTION_INT, .metavar = "N"

// The way to compute a method's expectation from recorded probabilities, without the loop
// (sim/expect/expect_rule.h).
typedef enum dsc_draft_replay {
    DSC_DRAFT_REPLAY_NONE,      // it does not: the method needs the loop or `match_lengths`
    DSC_DRAFT_REPLAY_CHAIN,     // one draft of `limit` tokens from the draft model
    DSC_DRAFT_REPLAY_OFFSETS,   // the same from a parallel drafter, whose tokens are independent
    DSC_DRAFT_REPLAY_SEQUENCES, // `drafts` independent samples of `limit` tokens
    DSC_DRAFT_REPLAY_TREE       // independent samples at each node of a tree of `levels`
} dsc_draft_replay;

struct dsc_drafter_type {
    const char *name, *summary;
    const char *source;         // paper: authors, year, arXiv number; or "no paper"
    const char *engines;        // the names that engines give it; "none", "all"
    const char *recording;      // what a trace must contain to replay it; "none": no trace does
    const char *synonyms;       // "a|b": further names, or NULL
    const char *const *presets; // further names that also set the first option to that name,
                                // NULL-terminated; NULL: none
    bool sees_output;       // reads the recorded output, or queries a copy of the target (oracle)
    bool needs_draft;       // queries a draft model
    bool needs_middle;      // queries a third model, between draft and target
    bool needs_draft_dists; // reads the draft model's probabilities, whatever the rule
    bool needs_marginals;   // queries the marginals of a parallel drafter (dsc_model_type.marginal)
    bool needs_off_path;    // queries the target off the output, which a trace does not contain
    bool matches_steps;     // `match_lengths` fills only the positions where a step begins
    bool branches;          // a node may have several children
    bool copies;            // some drafts are copied text, of kind TOPK whatever the kind of others
    bool parallel;  // drafts while the target verifies: a step takes the longer of both, and
                    // makes fewer draft calls than `width` tokens
    unsigned kinds; // supported kinds, bits of dsc_draft_kind; 0: TOPK only
    dsc_draft_replay replay;
    size_t state_size;        // bytes per request; the caller owns the state, so that copying it
                              // clones it
    const dsc_option *option; // parameters, in the order of the result columns
    size_t option_count;      // <= DSC_MAX_PARAMETERS

    const dsc_extra *extra; // counters of its own, in columns after those of every method
    size_t extra_count;     // <= DSC_MAX_EXTRA

    // Returns whether requests depend on earlier ones through in->history: a run then takes them in
    // order. NULL: never.
    bool (*uses_history)(const dsc_config *config);
    // Checks what one option's range cannot express and reads what TEXT options name, into
    // *prepared (dsc_config.prepared), which `release` frees. NULL: there is nothing to do.
    int (*prepare)(const dsc_config *config, void **prepared, dsc_error *err);
    void (*release)(void *prepared);
    // The most draft tokens that a step can accept. NULL: the value of the option
    // num-speculative-tokens.
    int64_t (*limit)(const dsc_config *config);
    // The most tokens in a forward pass of the target. NULL: 1 + limit.
    int64_t (*width)(const dsc_config *config);
    // The most tokens in the forward passes that the draft model and the middle model make for one
    // draft. NULL: the target's width.
    int64_t (*draft_width)(const dsc_config *config);
    // The number of levels of the draft tree, in [0, DSC_MAX_LEVELS], and the number of nodes of
    // each in nodes[0 .. levels], nodes[0] = 1. NULL: the draft is not such a tree.
    int (*levels)(const dsc_config *config, int32_t nodes[DSC_MAX_LEVELS + 1]);
    // The request that is replayed in place of *q, whose new memory is of `arena`; its accept
    // lengths then mean what the method makes of them. q NULL: checks only whether the trace has
    // what the configuration needs (DSC_EUSAGE). Such a method replays a trace and cannot run on
    // models. NULL: the request itself.
    int (*view)(const dsc_config *config, const dsc_trace_info *trace, dsc_request *q,
                dsc_arena *arena, dsc_error *err);
    // Of methods that read more of a recorded draft model than its ranks: checks whether the trace
    // has the columns and the settings for the configuration. DSC_EUSAGE: what is missing. NULL:
    // the method reads ranks, or needs distributions.
    int (*recorded)(const dsc_config *config, const dsc_trace_info *trace, dsc_error *err);
    // Returns whether the configuration is an upper bound and no method that could be run. NULL:
    // never.
    bool (*is_bound)(const dsc_config *config);
    // Starts a request. NULL: the state is a copy of *in.
    int (*begin)(void *state, const dsc_drafter_input *in, dsc_error *err);
    // Appends to *draft, which is empty, the tokens that may follow output[0, length); declines by
    // appending none. Random draws are keyed by (seed, request, length) through dsc_draft_uniform,
    // so that no two steps share one.
    int (*propose)(void *state, const int32_t *output, int64_t length, dsc_draft *draft,
                   dsc_error *err);
    // Called after a draft was verified and before its verdict is committed, while the target can
    // still be queried after the draft's nodes. NULL: not called.
    int (*observe)(void *state, const dsc_draft *draft, const dsc_verdict *verdict, dsc_error *err);

    // Optional, for methods whose draft depends on the preceding tokens only and whose length
    // options only cut it: the drafts at every position of the recorded output, for `count`
    // settings in[j].parameter that differ in more than length options. It fills the arrays of
    // out[j]. Entries may be cut at `longest` tokens, and run[i] <= output.count - 1 - i, as the
    // last token is always the target's own. With `matches_steps`, positions that a run accepts,
    // where no step begins, are at -1 and 0.
    int (*match_lengths)(const dsc_drafter_input *in, size_t count, int64_t longest,
                         dsc_match_lengths *out, dsc_error *err);
    // Returns whether the drafts of this configuration are chains, which match_lengths describes.
    // NULL: always.
    bool (*is_chain)(const dsc_config *config);
};

DSC_API extern const dsc_drafter_type dsc_drafter_none, dsc_drafter_oracle, dsc_drafter_llma,
    dsc_drafter_ngram, dsc_drafter_ngram_tree, dsc_drafter_suffix, dsc_drafter_draft_model,
    dsc_drafter_hf_dynamic, dsc_drafter_threshold, dsc_drafter_spectr, dsc_drafter_spectr_tree,
    dsc_drafter_tree, dsc_drafter_dynamic_tree, dsc_drafter_sequoia, dsc_drafter_cascade,
    dsc_drafter_lookahead, dsc_drafter_ouroboros, dsc_drafter_pearl, dsc_drafter_parallel,
    dsc_drafter_ddtree, dsc_drafter_recorded, dsc_drafter_recorded_steps, dsc_drafter_adaptive,
    dsc_drafter_adaptive_ngram, dsc_drafter_adaptive_suffix, dsc_drafter_adaptive_recorded,
    dsc_drafter_sa_draft_model;

// The methods of the library, NULL-terminated.
DSC_API const dsc_drafter_type *const *dsc_drafters(void);
// The method with this name, synonym or preset, or NULL; *err then contains the nearest name.
DSC_API const dsc_drafter_type *dsc_drafter_find(const char *name, dsc_error *err);
// The preset of that name, or NULL.
DSC_API const char *dsc_drafter_preset(const dsc_drafter_type *type, const char *name,
                                       size_t length);

// Uniform number `index` < 2^24 in [0, 1) of the draws of the draft after output[0, length). NaN:
// the index is larger, or there is no request.
DSC_API double dsc_draft_uniform(const dsc_drafter_input *in, int64_t length, uint32_t index);

// --- configurations ------------------------------------------------------------------------------

// Sets every option to its default. `drafter` may be NULL; the functions below then return
// DSC_EUSAGE. They also do so for a NULL configuration, and those that return nothing ignore it.
DSC_API void dsc_config_init(dsc_config *config, const dsc_drafter_type *drafter);
// Sets the option `name`, or a synonym of it, to the value that `text` contains: a decimal number,
// one of the option's choices, or text, which must outlive the configuration. DSC_EUSAGE, with the
// option and its range or the nearest name: *config is unchanged. After success the configuration
// has to be prepared (again).
DSC_API int dsc_config_set(dsc_config *config, const char *name, const char *text, dsc_error *err);
// DSC_EUSAGE: there is no method, or a value is outside the range of its option.
DSC_API int dsc_config_check(const dsc_config *config, dsc_error *err);
// Checks the configuration and runs the method's `prepare`. dsc_run needs it; dsc_config_fini frees
// what it made. A configuration may be copied before it is prepared, not after. DSC_EUSAGE;
// DSC_EINPUT: a file that an option names.
DSC_API int dsc_config_prepare(dsc_config *config, dsc_error *err);
DSC_API void dsc_config_fini(dsc_config *config);

// Limits of a prepared configuration. `limit`: the most draft tokens that a step can accept.
// `width`: the most tokens in a forward pass of the target. `draft_width`: the most tokens in the
// draft model's passes for one draft. `drafts`: the most drafts at one position (in a tree, the
// nodes of its deepest level; else the value of the option num-drafts, or 1). All are 0 where
// dsc_config_check fails or the method needs dsc_config_prepare and it was not called.
DSC_API int64_t dsc_config_limit(const dsc_config *config);
DSC_API int64_t dsc_config_width(const dsc_config *config);
DSC_API int64_t dsc_config_draft_width(const dsc_config *config);
DSC_API int dsc_config_drafts(const dsc_config *config);

#ifdef __cplusplus
}
#endif

#endif
