// SPDX-License-Identifier: Apache-2.0
// Records a run along each output through the interface of methods (sim/model.h): the next output
// tokens are scored as a chain and then committed. A head of the target reads features that its own
// pass computes along a chain, so its positions are scored one at a time, each with the target's
// features; and at each position the output's tokens are drafted, one level per pass, for its
// deeper predictions.
#include "live/program/recorder.h"
#include "live/device/clock.h"

#include "sim/reduce/reduce_columns.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHARD_TOKENS = 1 << 14, CHUNK = 32 }; // tokens of a shard; positions of a pass

// Distributions of one model along the request.
typedef struct kept_rows {
    int64_t *offset; // [n + 1]
    int32_t *token;  // [n][top]
    float *logp;     // [n][top or vocab]
    float *tail;     // [n]
} kept_rows;

// Steps of the request in the order of the loop.
typedef struct kept_steps {
    uint16_t *accepted, *drafted;
    float *draft_s, *verify_s;
    size_t accepted_capacity, drafted_capacity, draft_capacity, verify_capacity;
    int64_t count;
} kept_steps;

struct live_recorder {
    live_record o;
    dsc_models models; // used along the output
    dsc_trace_writer *writer;
    bool has[DSC_SIDES];
    bool head;        // the draft is a head of the target
    int32_t deepest;  // ranks of the head to record
    int64_t chunk;    // positions of a pass
    int32_t vocab;    // of both
    int64_t requests; // written
    int64_t excluded;
    double cut_s; // when a shard was last closed for its age
    kept_steps steps;
    double draft_s, target_s; // pass times at the end of the last step
    dsc_draft draft;
    dsc_arena arena;   // of the request
    dsc_arena buffers; // the arrays below
    dsc_reduced columns;
    kept_rows rows[DSC_SIDES];
    int32_t *rollout[DSC_SIDES]; // [n][G], [n][G + 1]
    dsc_sufficient_work *work;
    double *dist, *scratch; // [vocab]
    float *logp[DSC_SIDES]; // [vocab] at the position
    int32_t *top;           // [top]
};

// --- steps ---------------------------------------------------------------------------------------

static double passes_s(const live_session *s)
{
    return s ? live_session_times(s)->score_s : 0;
}

// Returns the time in passes that score drafts since the last call.
static void take_times(live_recorder *r, double *draft_s, double *target_s)
{
    const double draft = passes_s(r->o.draft) + passes_s(r->o.middle);
    const double target = passes_s(r->o.target);
    *draft_s = draft - r->draft_s;
    *target_s = target - r->target_s;
    r->draft_s = draft;
    r->target_s = target;
}

void live_recorder_begin(live_recorder *r)
{
    double draft_s, target_s;
    r->steps.count = 0;
    take_times(r, &draft_s, &target_s);
}

static int grow_steps(kept_steps *s, dsc_error *err)
{
    const size_t need = (size_t)s->count + 1;
    int rc = dsc_resize(&s->accepted, &s->accepted_capacity, need, err);
    if (!rc)
        rc = dsc_resize(&s->drafted, &s->drafted_capacity, need, err);
    if (!rc)
        rc = dsc_resize(&s->draft_s, &s->draft_capacity, need, err);
    return rc ? rc : dsc_resize(&s->verify_s, &s->verify_capacity, need, err);
}

int live_recorder_step(void *recorder, const dsc_step_record *step, dsc_error *err)
{
    live_recorder *r = recorder;
    kept_steps *s = &r->steps;
    double draft_s, target_s;
    int rc = grow_steps(s, err);
    if (!rc && step->draft_tokens > UINT16_MAX)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "a draft of %" PRId64 " tokens exceeds the trace's limit of %d",
                      step->draft_tokens, UINT16_MAX);
    if (rc)
        return rc;
    take_times(r, &draft_s, &target_s);
    s->accepted[s->count] = (uint16_t)step->accepted_tokens;
    s->drafted[s->count] = (uint16_t)step->draft_tokens;
    s->draft_s[s->count] = (float)draft_s;
    s->verify_s[s->count] = (float)target_s;
    s->count++;
    return DSC_OK;
}

// --- a position ----------------------------------------------------------------------------------

static dsc_model *model_of(const live_recorder *r, int side)
{
    return side == DSC_SIDE_TARGET ? r->models.target : r->models.draft;
}

static bool own_dists(const live_recorder *r)
{
    return r->o.sampling.temperature == 0;
}

// Reads the distribution after a node of the scored draft in the form that is recorded.
static int read_dist(const live_recorder *r, int side, int32_t node, bool own, dsc_dist *out,
                     dsc_error *err)
{
    dsc_model *m = model_of(r, side);
    return (own ? m->type->base_dist : m->type->dist)(m, node, out, err);
}

// Records an emitted token that the distribution excludes with its probability before truncation.
static int admit(live_recorder *r, int32_t node, int32_t y, dsc_error *err)
{
    dsc_dist own;
    int rc = read_dist(r, DSC_SIDE_TARGET, node, true, &own, err);
    if (rc)
        return rc;
    const double p = fmax(dsc_dist_probability(&own, y), DBL_MIN);
    for (int32_t x = 0; x < r->vocab; x++)
        r->dist[x] /= 1 + p;
    r->dist[y] = p / (1 + p);
    r->excluded++;
    return DSC_OK;
}

// Reads the distribution of position j into the buffers of its side.
static int read_row(live_recorder *r, int side, int32_t node, int32_t y, dsc_error *err)
{
    dsc_dist d;
    int rc = read_dist(r, side, node, own_dists(r), &d, err);
    if (rc)
        return rc;
    dsc_dist_fill(&d, r->dist);
    if (side == DSC_SIDE_TARGET && r->o.drafted && !own_dists(r))
        live_draft_vocabulary_add_dist(r->o.drafted, r->dist);
    if (side == DSC_SIDE_TARGET && !(r->dist[y] > 0))
        rc = admit(r, node, y, err);
    for (int32_t x = 0; x < r->vocab; x++)
        r->logp[side][x] = (float)fmin(log(r->dist[x]), 0);
    return rc;
}

static void keep_top(const live_recorder *r, const kept_rows *k, int64_t j)
{
    const dsc_dist d = {.vocab_size = r->vocab, .dense = r->dist};
    const size_t n = dsc_dist_top(&d, (size_t)r->o.top, r->scratch, r->top);
    const int64_t at = k->offset[j];
    double tail = 0;
    for (size_t i = 0; i < n; i++) {
        k->token[at + (int64_t)i] = r->top[i];
        k->logp[at + (int64_t)i] = (float)fmin(log(r->dist[r->top[i]]), 0);
        r->dist[r->top[i]] = 0;
    }
    for (int32_t x = 0; x < r->vocab; x++)
        tail += r->dist[x];
    k->tail[j] = (float)fmin(log(tail), 0);
    k->offset[j + 1] = at + (int64_t)n;
}

// Stores the requested part of the distribution in r->dist and r->logp.
static void keep_row(const live_recorder *r, int side, int64_t j)
{
    const kept_rows *k = &r->rows[side];
    if (r->o.rows == DSC_ROWS_DENSE)
        memcpy(k->logp + j * r->vocab, r->logp[side], (size_t)r->vocab * sizeof *k->logp);
    else if (r->o.rows == DSC_ROWS_LISTED)
        keep_top(r, k, j);
}

// Stores all columns of position j, whose token is y.
static int keep_position(live_recorder *r, int64_t j, int32_t node, int32_t y, dsc_error *err)
{
    dsc_log_row log[DSC_SIDES];
    dsc_row_source source[DSC_SIDES];
    double at_y[DSC_SIDES] = {0};
    int rc = DSC_OK;
    for (int side = 0; side < DSC_SIDES && !rc; side++) {
        const dsc_row row = {.logp = r->logp[side], .count = r->vocab, .tail = -INFINITY};
        if (!r->has[side])
            continue;
        rc = read_row(r, side, node, y, err);
        if (!rc)
            keep_row(r, side, j);
        dsc_row_dense(&row, y, &log[side]);
        source[side] = (dsc_row_source){.log = &log[side]};
        at_y[side] = exp((double)r->logp[side][y]);
    }
    if (rc)
        return rc;
    if (r->has[DSC_SIDE_DRAFT])
        rc = dsc_reduced_dists(&r->columns, j, &source[DSC_SIDE_DRAFT], &source[DSC_SIDE_TARGET],
                               (size_t)r->vocab, at_y[DSC_SIDE_DRAFT], at_y[DSC_SIDE_TARGET],
                               r->work, err);
    else
        dsc_log_row_read(&log[DSC_SIDE_TARGET]);
    for (int side = 0; side < DSC_SIDES && !rc; side++) {
        dsc_row_facts facts;
        if (!r->has[side])
            continue;
        dsc_row_dense_facts(&log[side], &facts);
        dsc_reduced_keep(&r->columns, side, j, facts.logp_y, &facts);
    }
    return rc;
}

// --- what the models would write -----------------------------------------------------------------

// The draft model continues from the first j tokens of the output; its tokens are the draft.
static int write_on(live_recorder *r, int64_t j, dsc_error *err)
{
    dsc_model *m = model_of(r, DSC_SIDE_DRAFT);
    int rc = DSC_OK;
    for (int32_t i = 0; i < r->o.rollout && !rc; i++) {
        dsc_next n;
        rc = m->type->score(m, &r->draft, err);
        if (!rc)
            rc = m->type->next(m, i - 1, &n, err);
        if (!rc)
            rc = dsc_draft_append_chain(&r->draft, i - 1, &n.token, 1, err);
        if (!rc)
            r->rollout[DSC_SIDE_DRAFT][j * r->o.rollout + i] = n.token;
    }
    return rc;
}

// The target's tokens along this draft.
static int follow(live_recorder *r, int64_t j, dsc_error *err)
{
    dsc_model *m = model_of(r, DSC_SIDE_TARGET);
    int rc = DSC_OK;
    for (int32_t i = 0; i <= r->o.rollout && !rc; i++) {
        dsc_next n;
        rc = m->type->next(m, i - 1, &n, err);
        if (!rc)
            r->rollout[DSC_SIDE_TARGET][j * (r->o.rollout + 1) + i] = n.token;
    }
    return rc;
}

static int rank_of(const live_recorder *r, int32_t node, int32_t y, uint16_t *out, dsc_error *err)
{
    dsc_dist d;
    int rc = read_dist(r, DSC_SIDE_DRAFT, node, own_dists(r), &d, err);
    if (rc)
        return rc;
    dsc_dist_fill(&d, r->dist);
    int64_t rank = 0;
    for (int32_t x = 0; x < r->vocab; x++)
        rank += r->dist[x] > r->dist[y] || (r->dist[x] == r->dist[y] && x < y);
    *out = dsc_reduced_rank(rank);
    return DSC_OK;
}

// Ranks of a head along the output's own tokens, drafted from position j.
static int rank_deeper(live_recorder *r, int64_t j, dsc_token_view output, dsc_error *err)
{
    dsc_model *m = model_of(r, DSC_SIDE_DRAFT);
    uint16_t *rank = r->columns.ranks + j * r->o.rank_depth;
    int32_t parent = -1;
    int rc = DSC_OK;
    rank[0] = r->columns.rank[j];
    for (int32_t d = 1; d < r->o.rank_depth && !rc; d++) {
        rank[d] = DSC_RANK_NONE;
        if (d >= r->deepest || j + d >= output.count)
            continue;
        rc = dsc_draft_append_chain(&r->draft, parent, &output.id[j + d - 1], 1, err);
        parent = (int32_t)r->draft.count - 1;
        if (!rc)
            rc = m->type->score(m, &r->draft, err);
        if (!rc)
            rc = rank_of(r, parent, output.id[j + d], &rank[d], err);
    }
    return rc;
}

// --- a request -----------------------------------------------------------------------------------

// Scores, records and commits positions [j, j + count).
static int walk_chunk(live_recorder *r, dsc_token_view output, int64_t j, int64_t count,
                      dsc_error *err)
{
    const int32_t *token = output.id + j;
    int rc = DSC_OK;
    dsc_draft_clear(&r->draft);
    if (r->o.rollout)
        rc = write_on(r, j, err);
    else
        rc = dsc_draft_append_chain(&r->draft, -1, token, (size_t)count - 1, err);
    for (int side = 0; side < DSC_SIDES && !rc; side++) {
        dsc_model *m = model_of(r, side);
        if (r->has[side] && (side == DSC_SIDE_TARGET || !r->o.rollout))
            rc = m->type->score(m, &r->draft, err);
    }
    for (int64_t i = 0; i < count && !rc; i++)
        rc = keep_position(r, j + i, (int32_t)i - 1, token[i], err);
    if (!rc && r->o.rollout)
        rc = follow(r, j, err);
    if (!rc && r->head)
        rc = rank_deeper(r, j, output, err);
    if (!rc && r->o.trees.steps)
        rc = live_record_trees_grow(&r->o.trees, j, &r->draft, err);
    if (!rc && r->o.trees.offsets)
        rc = live_record_trees_marginals(&r->o.trees, j, output, own_dists(r), r->scratch, err);
    for (int side = 0; side < DSC_SIDES && !rc; side++)
        if (r->has[side])
            rc = model_of(r, side)->type->commit(model_of(r, side), token, (size_t)count, err);
    return rc;
}

// The limit of the run, not of this output: it decides which candidates end the text.
static int walk(live_recorder *r, dsc_token_view prompt, dsc_token_view output, dsc_error *err)
{
    const int64_t limit = r->o.limit ? r->o.limit : output.count;
    int rc = live_session_begin(r->o.target, prompt, limit, &r->o.sampling, err);
    if (!rc && r->has[DSC_SIDE_DRAFT]) // after the target, whose features a head reads
        rc = live_session_begin(r->o.draft, prompt, limit, &r->o.sampling, err);
    for (int64_t j = 0; j < output.count && !rc; j += r->chunk) {
        const int64_t left = output.count - j;
        rc = walk_chunk(r, output, j, left < r->chunk ? left : r->chunk, err);
        if (!rc && r->o.stop && r->o.stop(r->o.user))
            rc = dsc_fail(err, DSC_EINTERRUPT, "stopped");
    }
    if (!rc && !r->head)
        dsc_reduced_spread_ranks(&r->columns, output.count);
    return rc;
}

static int allot(live_recorder *r, size_t n, dsc_error *err)
{
    const bool dense = r->o.rows == DSC_ROWS_DENSE, listed = r->o.rows == DSC_ROWS_LISTED;
    const size_t top = listed ? (size_t)r->o.top : 0, G = (size_t)r->o.rollout;
    dsc_arena_reset(&r->arena);
    int rc = dsc_reduced_init(&r->columns, r->has[DSC_SIDE_DRAFT] ? r->o.K : 0, r->o.rank_depth, n,
                              &r->arena, err);
    const dsc_drafter_input in = {.arena = &r->arena, .models = &r->models, .kind = DSC_DRAFT_TOPK};
    if (!rc)
        rc = live_record_trees_begin(&r->o.trees, &in, n, err);
    for (int side = 0; side < DSC_SIDES && !rc; side++) {
        kept_rows *k = &r->rows[side];
        struct {
            void *array;
            size_t count, size;
        } part[] = {{&k->offset, listed ? n + 1 : 0, sizeof *k->offset},
                    {&k->token, n * top, sizeof *k->token},
                    {&k->logp, n * (dense ? (size_t)r->vocab : top), sizeof *k->logp},
                    {&k->tail, listed ? n : 0, sizeof *k->tail},
                    {&r->rollout[side], n * (G + 1), sizeof **r->rollout}};
        for (size_t i = 0; i < sizeof part / sizeof *part && !rc && r->has[side]; i++)
            rc = dsc_arena_alloc(&r->arena, part[i].array, part[i].count, part[i].size, err);
        if (!rc && r->has[side] && listed)
            k->offset[0] = 0;
    }
    return rc;
}

static void put_columns(const live_recorder *r, dsc_request_input *q)
{
    const dsc_reduced *c = &r->columns;
    const kept_steps *s = &r->steps;
    q->steps = (dsc_steps){s->count, s->accepted, s->drafted, s->draft_s, s->verify_s};
    q->target_logp = c->logp[DSC_SIDE_TARGET];
    for (int side = 0; side < DSC_SIDES; side++) {
        const kept_rows *k = &r->rows[side];
        if (!r->has[side])
            continue;
        q->replayed.argmax[side] = c->argmax[side];
        q->replayed.entropy[side] = c->entropy[side];
        if (r->o.rows)
            q->rows[side] =
                (dsc_rows){r->o.rows, k->offset, k->token, k->logp, k->tail, NULL, r->vocab};
    }
    if (!r->has[DSC_SIDE_DRAFT])
        return;
    live_record_trees_put(&r->o.trees, q);
    q->draft_logp = c->logp[DSC_SIDE_DRAFT];
    q->replayed.draft_rank = c->ranks;
    q->sufficient = (dsc_sufficient){c->kseq, c->specinfer, c->otm};
    if (r->o.rollout)
        q->rollouts = (dsc_rollouts){r->rollout[DSC_SIDE_DRAFT], r->rollout[DSC_SIDE_TARGET]};
}

// Adds the output to the tally of its vocabulary, or removes what a failed request has added.
static void tally(live_recorder *r, const live_draft_vocabulary *before, dsc_token_view output,
                  bool written)
{
    if (r->o.drafted && !written)
        *r->o.drafted = *before;
    else if (r->o.drafted)
        live_draft_vocabulary_add(r->o.drafted, output);
}

int live_recorder_add(live_recorder *r, dsc_request_input *q, dsc_error *err)
{
    const live_draft_vocabulary before =
        r->o.drafted ? *r->o.drafted : (live_draft_vocabulary){.in = NULL};
    int rc = allot(r, (size_t)q->output.count, err);
    if (!rc)
        rc = walk(r, q->prompt, q->output, err);
    if (!rc) {
        put_columns(r, q);
        rc = dsc_trace_writer_add(r->writer, q, err);
        r->requests += !rc;
    }
    tally(r, &before, q->output, !rc);
    const double now = live_now_s();
    if (rc || now - r->cut_s < r->o.shard_s)
        return rc;
    r->cut_s = now;
    return dsc_trace_writer_cut(r->writer, err);
}

int64_t live_recorder_excluded(const live_recorder *r)
{
    return r->excluded;
}

int64_t live_recorder_requests(const live_recorder *r)
{
    return r->requests;
}

// --- life ----------------------------------------------------------------------------------------

static int open_writer(live_recorder *r, dsc_error *err)
{
    const live_record *o = &r->o;
    const live_config *c = o->target_config;
    const dsc_tokenizer *t = o->tokenizer;
    const bool draft = r->has[DSC_SIDE_DRAFT];
    dsc_trace_info info = {
        .tokenizer_name = (char *)(uintptr_t)(t ? dsc_tokenizer_name(t) : "none"),
        .vocab_size = r->vocab,
        .eos_token = o->ends   ? o->ends->eos
                     : c->ends ? c->end[0]
                               : -1,
        .has_text = t != NULL,
        .has_target_logp = true,
        .has_draft_logp = draft,
        .has_argmax = {[DSC_SIDE_DRAFT] = draft, [DSC_SIDE_TARGET] = true},
        .has_entropy = {[DSC_SIDE_DRAFT] = draft, [DSC_SIDE_TARGET] = true},
        .has_draft_rank = draft,
        .rank_depth = draft ? o->rank_depth : 0,
        .has_kseq = draft,
        .has_specinfer = draft,
        .has_otm = draft,
        .statistics_k = draft ? o->K : 0,
        .has_rollout = {o->rollout > 0, o->rollout > 0},
        .rollout_length = o->rollout,
        .rows = {[DSC_SIDE_DRAFT] = draft ? o->rows : DSC_ROWS_NONE, [DSC_SIDE_TARGET] = o->rows},
        .steps = o->parallel ? DSC_STEPS_LOGGED : DSC_STEPS_ALIGNED,
        .has_step_drafted = true,
        .has_step_draft_s = true,
        .has_step_verify_s = true,
        .format = (char *)(uintptr_t) "live",
        .provenance = (char *)(uintptr_t)o->provenance,
    };
    live_record_trees_describe(&o->trees, &info);
    if (t)
        memcpy(info.tokenizer_sha256, dsc_tokenizer_sha256(t), sizeof info.tokenizer_sha256);
    return dsc_trace_writer_open(&r->writer, o->path, &info, o->force, SHARD_TOKENS, err);
}

static int allocate(live_recorder *r, dsc_error *err)
{
    const size_t vocab = (size_t)r->vocab;
    int rc = dsc_arena_new(&r->buffers, &r->dist, vocab, err);
    if (!rc)
        rc = dsc_arena_new(&r->buffers, &r->scratch, vocab, err);
    if (!rc)
        rc = dsc_arena_new(&r->buffers, &r->top, (size_t)(r->o.top > 0 ? r->o.top : 0), err);
    for (int side = 0; side < DSC_SIDES && !rc; side++)
        rc = dsc_arena_new(&r->buffers, &r->logp[side], vocab, err);
    return rc ? rc : dsc_sufficient_work_new(&r->work, err);
}

// Medusa heads predict all offsets at once; any other draft model grows trees.
static int check_trees(const live_recorder *r, dsc_error *err)
{
    const live_config *c = r->o.draft_config;
    const live_record_trees *t = &r->o.trees;
    const bool medusa = c->family == LIVE_MEDUSA;
    if (t->steps && medusa)
        return dsc_fail(err, DSC_EUSAGE,
                        "--candidates records the dynamic trees of a draft model or an EAGLE head; "
                        "Medusa heads have marginals (--marginals %" PRId64 ":64)",
                        c->medusa_heads);
    if (t->offsets && !medusa)
        return dsc_fail(err, DSC_EUSAGE,
                        "--marginals records the offsets of Medusa heads (--draft DIR); this draft "
                        "model drafts token after token (--candidates, --rank-depth)");
    if (t->offsets && t->offsets > c->medusa_heads)
        return dsc_fail(err, DSC_EUSAGE,
                        "--marginals of %" PRId32 " offsets exceed the %" PRId64 " Medusa heads",
                        t->offsets, c->medusa_heads);
    return DSC_OK;
}

// Checks that the draft model supports the requested columns.
static int check_draft(live_recorder *r, dsc_error *err)
{
    const live_config *c = r->o.draft_config;
    r->has[DSC_SIDE_TARGET] = true;
    r->has[DSC_SIDE_DRAFT] = r->o.draft != NULL;
    r->vocab = (int32_t)r->o.target_config->vocab;
    if (!r->o.draft)
        return r->o.rollout
                   ? dsc_fail(err, DSC_EUSAGE, "rollouts require a draft model: --draft DIR")
                   : DSC_OK;
    if (c->vocab != r->o.target_config->vocab)
        return dsc_fail(err, DSC_EUSAGE,
                        "the vocabularies differ: the target has %" PRId64
                        " tokens, the draft %" PRId64 "",
                        r->o.target_config->vocab, c->vocab);
    r->models = (dsc_models){.draft = live_session_model(r->o.draft)};
    r->head = live_config_is_head(c);
    r->deepest = c->family == LIVE_MEDUSA ? (int32_t)c->medusa_heads : INT32_MAX;
    if (r->o.rollout > r->deepest)
        return dsc_fail(err, DSC_EUSAGE,
                        "rollouts of %" PRId32 " tokens exceed the %" PRId32 " Medusa heads",
                        r->o.rollout, r->deepest);
    return check_trees(r, err);
}

int64_t live_record_nodes(const live_record *o)
{
    const int64_t own = o->rollout + o->rank_depth - 1 // of a head, in one draft
                        + live_record_trees_nodes(&o->trees);
    return own > CHUNK - 1 ? own : CHUNK - 1;
}

int live_recorder_new(live_recorder **out, const live_record *o, dsc_error *err)
{
    live_recorder *r;
    *out = NULL;
    int rc = dsc_new(&r, 1, err);
    if (rc)
        return rc;
    r->o = *o;
    r->cut_s = live_now_s();
    rc = check_draft(r, err);
    r->models.target = live_session_model(o->target);
    if (r->o.rows == DSC_ROWS_LISTED && r->o.top > r->vocab)
        r->o.top = r->vocab;
    const int64_t most = o->nodes + 1 < CHUNK ? o->nodes + 1 : CHUNK;
    r->chunk = r->head || o->rollout || o->trees.steps ? 1 : most;
    if (!rc)
        rc = allocate(r, err);
    if (!rc)
        rc = open_writer(r, err);
    if (rc)
        live_recorder_free(r);
    else
        *out = r;
    return rc;
}

int live_recorder_commit(live_recorder *r, dsc_error *err)
{
    dsc_trace_writer *w = r->writer;
    r->writer = NULL; // freed, also on failure
    return dsc_trace_writer_commit(w, NULL, err);
}

void live_recorder_free(live_recorder *r)
{
    if (!r)
        return;
    dsc_trace_writer_abort(r->writer);
    dsc_draft_fini(&r->draft);
    dsc_arena_fini(&r->arena);
    dsc_sufficient_work_free(r->work);
    free(r->steps.accepted);
    free(r->steps.drafted);
    free(r->steps.draft_s);
    free(r->steps.verify_s);
    dsc_arena_fini(&r->buffers);
    free(r);
}
