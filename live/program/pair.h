// SPDX-License-Identifier: Apache-2.0
// What every live command shares: the models that it runs, made from its options, and a text that
// all of them begin.
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

// Which models a command works with, beside the target.
typedef struct live_want {
    bool draft, middle; // they must be given
    bool copy;          // instead of a draft model, the target's weights in a second session
    bool apart;         // draft model and target work at the same time
} live_want;

// What a method asks for.
live_want live_want_of(const dsc_drafter_type *method);
// Whether the options name a draft model.
bool live_pair_has_draft(const dsc_option_value *value);

typedef struct live_pair {
    live_config config[LIVE_SIDES];    // vocab 0: no such model
    live_backend *backend[LIVE_SIDES]; // sides may share one; NULL: no such model
    live_weights *weights[LIVE_SIDES]; // likewise (live_want.copy)
    live_session *session[LIVE_SIDES]; // live_pair_sessions
    int threads[LIVE_SIDES];           // of a CPU, when all of them are at work
    int all_threads;                   // when one is
    dsc_tokenizer *tokenizer;          // the target's, or NULL: token ids only
    live_sampling sampling;
    int64_t context;     // --context, 0: as needed; then that of the sessions
    int64_t least_nodes; // room for drafts of so many nodes, whatever the method; set it first
    char *note;          // tensors that were left out, for a person; or NULL
    dsc_models models;   // of the text that was begun
} live_pair;             // zero-initialise

// The tree of a method that has one, when none was given and the draft model is Medusa heads: that
// of Medusa, as its heads are fewer than EAGLE's tree is deep. Says so on stderr.
void live_pair_default_tree(const dsc_option_value *value, const dsc_drafter_type *method,
                            dsc_option_value *parameter);
// Reads what is said of the models, p->config, and the target's tokenizer, and compares
// vocabularies: of models that differ in rows that no token has, these rows are left out. That
// takes no time, so that prompts can be read and lengths checked before weights are loaded.
// DSC_EUSAGE, DSC_EINPUT. live_pair_close in any case.
int live_pair_read(live_pair *p, const dsc_option_value *value, const live_want *want,
                   dsc_error *err);
// Then opens devices, and loads or makes weights. DSC_EUSAGE, DSC_EABSENT, DSC_EINPUT, DSC_ENOMEM.
int live_pair_open(live_pair *p, const dsc_option_value *value, const live_want *want,
                   dsc_error *err);
// The status of a failure before the first request. Memory that a GPU lacks is a device that is not
// here (DSC_EABSENT), as in the middle of a run; memory that this machine lacks stays DSC_ENOMEM.
int live_pair_failed(const live_pair *p, int rc, dsc_error *err);
// A Medusa head knows one place behind the text. DSC_EUSAGE: longer drafts than there are heads.
int live_pair_check_heads(const live_pair *p, const dsc_config *config, dsc_error *err);
// The longest text that fits, of prompt and output, when the method is `config`'s: --context, or
// what the models were made for.
int64_t live_pair_room(const live_pair *p, const dsc_config *config);
// Makes the sessions, for texts of `longest` tokens (or --context) and the passes of a method.
// DSC_EUSAGE: longer than live_pair_room.
int live_pair_sessions(live_pair *p, const dsc_config *config, int64_t longest, dsc_error *err);
// Begins a text in all sessions: p->models. Outputs have up to `limit` tokens.
int live_pair_begin(live_pair *p, dsc_token_view prompt, int64_t limit, dsc_error *err);
// The same of the target alone, with all threads: plain decoding.
int live_pair_begin_plain(live_pair *p, dsc_token_view prompt, int64_t limit, dsc_error *err);
void live_pair_close(live_pair *p);

// Comment lines of a table: the options that name the models and how they were run, the device, the
// dtype.
int live_pair_comments(dsc_table *t, const live_pair *p, const dsc_option_value *value,
                       dsc_error *err);

#endif
