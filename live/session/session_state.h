// SPDX-License-Identifier: Apache-2.0
// State of a session. In the cache, text token i is in slot i - lead, and the nodes of a draft
// follow in the order in which they were scored. `lead` is 1 for an EAGLE head, which reads pairs
// (feature of token i - 1, token i), else 0.
#ifndef DSC_LIVE_SESSION_STATE_H
#define DSC_LIVE_SESSION_STATE_H

#include "base/memory.h"
#include "live/session/background.h"
#include "live/session/session.h"

enum {
    PREFILL = 256, // tokens in a pass over a prompt
    REPLAY = 32,   // tokens in a pass over a recorded output
    WORD = 64,
    HOST_ROWS = 16 // rows of logits on the host, at most
};

// Distributions of a row of logits: the one that tokens are sampled from, or the model's own,
// before temperature, top-k and top-p.
typedef enum live_dist_kind { DIST_NONE, DIST_SAMPLED, DIST_BASE } live_dist_kind;

// The distribution of a row whose sums have been computed.
typedef struct live_dist {
    live_dist_kind kind;
    live_session *session;
    dsc_softmax softmax;
} live_dist;

// The text: prompt and committed output.
typedef struct session_text {
    int32_t *token;         // [context]
    float *margin;          // [context] of the output's tokens: live_session_margins
    int64_t prompt, cached; // tokens of the prompt; tokens in the KV cache
} session_text;

// The draft as scored. Arrays are [1 + nodes]. Tokens and parents are copies, because a draft may
// grow while it is scored in the background.
typedef struct session_tree {
    int64_t count, scored; // nodes that were copied, and those of them that were scored
    int64_t used;          // slots of the cache, text included
    int32_t *token, *parent;
    int32_t *slot, *depth, *row; // depth: 1 after the text; row of logits
} session_tree;

// Rows of logits after the text and after each node; `blocks` is dsc_softmax_blocks.
typedef struct session_rows {
    int64_t count, root;      // rows; the row after the text, or -1: not scored
    float *logits;            // [1 + nodes][vocab] on the device
    int32_t *best;            // [1 + nodes] most probable token
    float *margin;            // [1 + nodes] lead of its logit over the second largest
    live_dist *dist;          // [1 + nodes]
    double *sum;              // [1 + nodes][blocks] of dist
    float *max_logit;         // [1 + nodes][blocks] if the device computes them
    live_dist_kind requested; // the distribution that the device summarizes in a pass
    double *scratch;          // [vocab] for distributions that exclude tokens
    int32_t greedy;           // token of the distribution at temperature 0 that was returned last
} session_rows;

// Rows of logits on the host, or some of their blocks, if the host cannot read the device's memory.
// Row r is in buffer r % capacity.
typedef struct session_host_rows {
    int64_t capacity;
    float *logits;     // [capacity][vocab] pinned
    int32_t *row;      // [capacity] the row in the buffer; -1: none
    uint64_t *present; // [capacity][block_words] a bit for each block of that row
} session_host_rows;

// Lists of a batch (live_batch), [capacity].
typedef struct session_lists {
    int32_t *token, *position, *slot, *output, *feature;
    uint64_t *mask; // [capacity][words]
    uint64_t
        *window_mask; // [capacity][words] of layers with a window, if others have none; else NULL
    int64_t capacity, words;
} session_lists;

typedef struct live_overlaps live_overlaps; // session_overlap.c

struct live_session {
    dsc_model base;
    const live_weights *w;
    live_backend *b;
    live_session *target; // the session whose features a head reads
    live_cache cache;
    live_room room;
    live_features features; // if a head reads them
    int64_t context, nodes, slots, lead;
    live_sampling sampling;
    live_times times;
    dsc_arena arena; // of all lists in host memory
    session_text text;
    session_tree tree;
    session_rows rows;
    session_host_rows host;
    session_lists list;
    dsc_error pending_error; // of a hook that cannot return it; .status DSC_OK: none
    live_overlaps *overlaps; // with another session's distributions; NULL: none yet
    bool compared;           // `overlaps` belong to the current draft and rows
    live_background *background;
    bool started;
};

// Words with a bit for each block of a row of logits.
static inline size_t block_words(size_t vocab)
{
    return (dsc_softmax_blocks(vocab) + WORD - 1) / WORD;
}

static inline bool is_medusa(const live_session *s)
{
    return s->w->config.family == LIVE_MEDUSA;
}

static inline bool is_eagle(const live_session *s)
{
    return live_config_is_eagle(&s->w->config);
}

static inline int64_t text_length(const live_session *s)
{
    return s->text.prompt + s->base.length;
}

// Errors of hooks that cannot return one (a distribution that fetches its logits, an overlap): the
// first is kept, and every later call that returns a status returns it.
static inline void live_session_defer(live_session *s, int rc, const dsc_error *err)
{
    if (rc && !s->pending_error.status)
        s->pending_error = *err;
}

static inline int live_session_pending(const live_session *s, dsc_error *err)
{
    if (s->pending_error.status)
        *err = s->pending_error;
    return s->pending_error.status;
}

// --- passes (session_score.c) --------------------------------------------------------------------

// Returns an empty batch with the session's lists.
live_batch live_session_batch(const live_session *s);
// Puts the first `count` uncached tokens of the text into a batch.
void live_session_list_text(live_session *s, live_batch *batch, int64_t count);
// Runs a batch, waits for it and adds the time to *clock. from_target: an EAGLE head reads the
// target's features, else its own.
int live_session_run(live_session *s, const live_batch *batch, bool from_target, double *clock,
                     dsc_error *err);
// Keeps the logits and the summary of the batch that was run last.
int live_session_keep_rows(live_session *s, const live_batch *batch, dsc_error *err);
// Runs the text's tokens up to `end` into the cache, without logits.
int live_session_catch_up(live_session *s, int64_t end, double *clock, dsc_error *err);
// Waits for a pass in the background.
int live_session_settle(live_session *s, dsc_error *err);
int live_session_score(dsc_model *m, const dsc_draft *d, dsc_error *err);
int live_session_start(dsc_model *m, const dsc_draft *d, dsc_error *err);

// --- answers (session_answer.c) ------------------------------------------------------------------

// The host buffer of a row of logits.
static inline float *live_session_host_row(const live_session *s, int64_t row)
{
    return s->host.logits + (size_t)(row % s->host.capacity) * (size_t)s->w->config.vocab;
}

// The sampling that makes a distribution of a row.
static inline const live_sampling *live_session_sampling(const live_session *s, live_dist_kind kind)
{
    static const live_sampling base = {1, 0, 1};
    return kind == DIST_BASE ? &base : &s->sampling;
}

// Fetches a row of logits to the host; valid until another row is fetched or a pass is run.
int live_session_fetch(live_session *s, int32_t row, const float **logits, dsc_error *err);
// The distribution that tokens after a node are sampled from, valid until another pass is run.
int live_session_softmax(live_session *s, int32_t node, const dsc_softmax **dist,
                         const float **logits, dsc_error *err);
// Drops the draft.
void live_session_drop(live_session *s);
// Functions of dsc_model_type.
int live_session_next(dsc_model *m, int32_t node, dsc_next *out, dsc_error *err);
int live_session_dist(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err);
int live_session_prefetch(dsc_model *m, const int32_t *node, const double *u, size_t n,
                          dsc_error *err);
int live_session_base_dist(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err);
int live_session_marginal(dsc_model *m, int64_t offset, bool base, dsc_dist *out, dsc_error *err);
int live_session_commit(dsc_model *m, const int32_t *token, size_t n, dsc_error *err);

// --- overlap (session_overlap.c) -----------------------------------------------------------------

int live_session_overlap(dsc_model *m, dsc_overlap_query *q, dsc_error *err);
void live_overlaps_free(live_overlaps *m, live_backend *b);

#endif
