// SPDX-License-Identifier: Apache-2.0
// A session from inside. Slots of the cache: the text is in the first ones, token i in slot i -
// lead; the nodes of a draft follow in the order in which they were scored. `lead` is 1 for an
// EAGLE head, which is fed pairs (feature of token i - 1, token i), else 0.
#ifndef DSC_LIVE_SESSION_STATE_H
#define DSC_LIVE_SESSION_STATE_H

#include "live/session/background.h"
#include "live/session/session.h"

enum {
    PREFILL = 256, // tokens in a pass over a prompt
    FORCED = 32,   // over an output
    WORD = 64,
    PLACES = 16 // rows of logits on the host, at most
};

// Of which distribution of a row of logits: the one that tokens are drawn from, or before the
// temperature.
typedef enum live_dist_kind { DIST_NONE, DIST_DRAWN_FROM, DIST_RAW } live_dist_kind;

// What is known of it.
typedef struct live_dist {
    live_dist_kind of;
    live_session *session;
    dsc_softmax softmax;
} live_dist;

typedef struct live_overlaps live_overlaps; // session_overlap.c

struct live_session {
    dsc_model base;
    const live_weights *w;
    live_backend *b;
    live_session *target; // of a head, whose features it reads
    live_cache cache;
    live_room room;
    float *features; // [slots][hidden] last hidden states, where somebody reads them
    int64_t context, nodes, slots, lead;
    live_sampling sampling;
    live_times times;

    int32_t *text; // [prompt + output]
    int64_t prompt;
    int64_t cached; // tokens of the text whose keys and values are there

    // The draft as scored: of node i its slot, its depth (1 below the text), its row of logits.
    // Tokens and parents are copies: a draft may grow while it is scored in the background.
    int64_t taken, scored, used; // nodes; slots
    int32_t *node_token, *parent, *slot, *depth, *row;
    int64_t rows;     // of logits that are kept, the text's own first
    int64_t root_row; // the text's own, or -1: not scored
    float *logits;    // [1 + nodes][vocab] on the device
    int32_t *best;    // [1 + nodes]
    float *margin;    // [1 + nodes]
    float *margins;   // [limit] of the output's tokens
    size_t margins_capacity;

    live_dist *soft; // [rows]
    double *block;   // [rows][dsc_softmax_blocks] theirs
    float *peak;     // [rows][dsc_softmax_blocks] where the device adds them up
    live_dist_kind
        asked; // which distribution the device is to add up; DIST_NONE: nobody has asked for one
    // Rows, or some of their blocks, where the device's memory cannot be read: row r in place
    // r % places.
    int64_t places;
    float *logit;    // [places][vocab]
    int32_t *held;   // [places] which row; -1: none
    uint64_t *there; // [places][blocks / WORD, rounded up] a bit for each block of that row
    int unheard;     // the status of a copy to it that failed, for the next who can be told
    dsc_error unheard_error;
    double *exponential; // [vocab] scratch of distributions that leave out tokens
    int32_t dist_token;  // of the distribution at temperature 0, as it was asked for last

    // Lists of a pass, [most rows].
    int32_t *token, *position, *at, *output, *feature;
    uint64_t *mask;
    int64_t most, words;

    live_overlaps *overlaps; // with another session's distributions; NULL: none yet
    bool compared;           // they are those of the draft and the rows that are there

    live_background *background;
    bool started;
};

// Words of a bit for each block of a row of logits.
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
    return s->w->config.family == LIVE_EAGLE;
}

static inline int64_t text_length(const live_session *s)
{
    return s->prompt + s->base.length;
}

// --- passes (session_score.c) --------------------------------------------------------------------

// An empty batch of the session's lists.
live_batch live_session_batch(const live_session *s);
// The tokens of the text from `cached` on, the first `count` of them, into a batch.
void live_session_list_text(live_session *s, live_batch *batch, int64_t count);
// Runs a batch and waits for it; adds the time to *clock. from_target: an EAGLE head is fed the
// target's features, else its own.
int live_session_run(live_session *s, const live_batch *batch, bool from_target, double *clock,
                     dsc_error *err);
// Keeps the logits of the batch that has just been run, and what was said of them.
int live_session_keep_rows(live_session *s, const live_batch *batch, dsc_error *err);
// The text's tokens up to `end` into the cache, no logits.
int live_session_catch_up(live_session *s, int64_t end, double *clock, dsc_error *err);
// Waits for a pass in the background.
int live_session_settle(live_session *s, dsc_error *err);
int live_session_score(dsc_model *m, const dsc_draft *d, dsc_error *err);
int live_session_start(dsc_model *m, const dsc_draft *d, dsc_error *err);

// --- answers (session_answer.c) ------------------------------------------------------------------

// Where a row of logits is on the host, when it is.
static inline float *live_session_place(const live_session *s, int64_t row)
{
    return s->logit + (size_t)(row % s->places) * (size_t)s->w->config.vocab;
}

// How tokens are drawn from a distribution of a row.
static inline const live_sampling *live_session_sampling(const live_session *s, live_dist_kind kind)
{
    static const live_sampling raw = {1, 0, 1};
    return kind == DIST_RAW ? &raw : &s->sampling;
}

// A row of logits to the host, until another one is fetched or a pass is run.
int live_session_fetch(live_session *s, int32_t row, const float **logits, dsc_error *err);
// The distribution that tokens after a node are drawn from, which holds until another pass is run.
int live_session_softmax(live_session *s, int32_t node, const dsc_softmax **dist,
                         const float **logits, dsc_error *err);
// Forgets the draft.
void live_session_drop(live_session *s);
// Of dsc_model_type, each.
int live_session_next(dsc_model *m, int32_t node, dsc_next *out, dsc_error *err);
int live_session_dist(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err);
int live_session_prefetch(dsc_model *m, const int32_t *node, const double *u, size_t n,
                          dsc_error *err);
int live_session_base_dist(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err);
int live_session_commit(dsc_model *m, const int32_t *token, size_t n, dsc_error *err);

// --- meetings (session_overlap.c)
// -------------------------------------------------------------------

int live_session_overlap(dsc_model *m, dsc_model *draft, const dsc_draft *d, int32_t node,
                         const int32_t *token, size_t count, dsc_overlap **overlap,
                         double *draft_of, double *target_of, dsc_error *err);
void live_overlaps_free(live_overlaps *m, live_backend *b);

#endif
