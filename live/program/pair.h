// SPDX-License-Identifier: Apache-2.0
// The models that a live command runs, opened from its options, and the text that all of them
// begin.
#ifndef DSC_LIVE_PAIR_H
#define DSC_LIVE_PAIR_H

#include "base/option.h"
#include "base/table.h"
#include "live/session/session.h"
#include "sim/drafter.h"
#include "traces/tokenizer/tokenizer.h"

typedef enum live_side { LIVE_TARGET, LIVE_DRAFT, LIVE_MIDDLE, LIVE_SIDES } live_side;

enum {
    LIVE_PAIR_TARGET,
    LIVE_PAIR_DRAFT,
    LIVE_PAIR_DRAFT_LAYERS,
    LIVE_PAIR_MIDDLE,
    LIVE_PAIR_SHAPE,
    LIVE_PAIR_DRAFT_SHAPE,
    LIVE_PAIR_RANDOM_WEIGHTS,
    LIVE_PAIR_DTYPE,
    LIVE_PAIR_DEVICE,
    LIVE_PAIR_DRAFT_DEVICE,
    LIVE_PAIR_THREADS,
    LIVE_PAIR_BATCH_INVARIANT,
    LIVE_PAIR_TEMPERATURE,
    LIVE_PAIR_TOP_K,
    LIVE_PAIR_TOP_P,
    LIVE_PAIR_CONTEXT,
    LIVE_PAIR_OPTIONS
};
extern const dsc_option live_pair_options[LIVE_PAIR_OPTIONS];

// The models that a command needs in addition to the target.
typedef struct live_want {
    bool draft, middle; // required
    bool copy;          // the target's weights in a second session serve as the draft model
    bool apart;         // draft model and target run at the same time
} live_want;

// The models that a method needs.
live_want live_want_of(const dsc_drafter_type *method);
// Whether the options name a draft model.
bool live_pair_has_draft(const dsc_option_value *value);

// A model as the options name it: one of them, or none.
typedef struct live_named {
    const char *folder, *shape;
    const char *layers; // of the target: live/model/kept_layers.h
} live_named;

typedef struct live_pair {
    const dsc_option_value *option; // live_pair_options; the caller keeps them
    live_want want;
    live_named name[LIVE_SIDES];       // of the models that are needed
    live_config config[LIVE_SIDES];    // vocab 0: no such model
    live_backend *backend[LIVE_SIDES]; // entries may share one; NULL: no such model
    live_weights
        *weights[LIVE_SIDES]; // entries may share one (live_want.copy); NULL: no such model
    int64_t *kept;            // [kept_count] --draft-layers, ascending; NULL: not given
    size_t kept_count;
    live_session *session[LIVE_SIDES]; // live_pair_sessions
    int threads[LIVE_SIDES];           // CPU threads of each while all of them run
    int all_threads;                   // CPU threads while one of them runs
    dsc_tokenizer *tokenizer;          // the target's, or NULL: token ids only
    live_sampling sampling;
    int64_t context;     // --context (0: as needed), then that of the sessions
    int64_t least_nodes; // minimum room for draft nodes; all of it for recorded ones; set it first
    dsc_models models;   // of the text that was begun
} live_pair;             // zero-initialize

// Chooses Medusa's tree for a method with a tree, if none was given and the draft model is Medusa
// heads, which are fewer than the levels of EAGLE's tree. Prints a note on stderr.
void live_pair_default_tree(const dsc_option_value *value, const dsc_drafter_type *method,
                            dsc_option_value *parameter);
// Reads the configurations into p->config and the target's tokenizer, and compares vocabularies;
// embedding rows without a token are dropped where the models differ in padding. This is fast, so
// that prompts can be read and lengths checked before weights are loaded. DSC_EUSAGE, DSC_EINPUT.
// Call live_pair_close in any case.
int live_pair_read(live_pair *p, const dsc_option_value *value, const live_want *want,
                   dsc_error *err);
// Opens devices, and loads or generates weights. Prints a note on stderr if tensors of a folder or
// options are not used. DSC_EUSAGE, DSC_EABSENT, DSC_EINPUT, DSC_ENOMEM.
int live_pair_open(live_pair *p, dsc_error *err);
// Converts the status of a failure before the first request. Insufficient GPU memory counts as a
// missing device (DSC_EABSENT), as it does during a run; insufficient host memory stays DSC_ENOMEM.
int live_pair_failed(const live_pair *p, int rc, dsc_error *err);
// A Medusa head predicts one position. DSC_EUSAGE: drafts are longer than the number of heads, or
// the method needs a parallel drafter and the draft model is none.
int live_pair_check_heads(const live_pair *p, const dsc_config *config, dsc_error *err);
// The longest text, prompt and output, that fits with the method of `config`: --context, or the
// models' maximum.
int64_t live_pair_room(const live_pair *p, const dsc_config *config);
// Creates the sessions, for texts of `longest` tokens (or --context) and the passes of a method.
// DSC_EUSAGE: longer than live_pair_room.
int live_pair_sessions(live_pair *p, const dsc_config *config, int64_t longest, dsc_error *err);
// Begins a text in all sessions and sets p->models. Outputs have up to `limit` tokens. `plain`: for
// plain decoding, in the target alone and with all threads.
int live_pair_begin(live_pair *p, dsc_token_view prompt, int64_t limit, bool plain, dsc_error *err);
void live_pair_close(live_pair *p);

// Adds comment lines to a table: the options that name the models, how they were run, device,
// dtype.
int live_pair_comments(dsc_table *t, const live_pair *p, dsc_error *err);

#endif
