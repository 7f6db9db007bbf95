// SPDX-License-Identifier: Apache-2.0
// Implements the model interface (sim/model.h) for recorded targets and draft models. It answers
// queries along the recorded output, and drafts by recorded ranks, argmax tokens and rollouts.
#include "sim/model/model_trace.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

// Marks the nodes on the recorded path: the parent is on it, and the token is the recorded one.
static int score(dsc_model *base, const dsc_draft *d, dsc_error *err)
{
    dsc_model_trace *m = (dsc_model_trace *)base;
    int rc = dsc_resize(&m->depth, &m->capacity, d->count, err);
    for (size_t j = 0; j < d->count && !rc; j++) {
        int32_t above = d->parent[j] < 0 ? 0 : m->depth[d->parent[j]];
        int64_t at = base->length + above;
        bool on_path = above >= 0 && at < m->recorded.count && m->recorded.id[at] == d->token[j];
        m->depth[j] = on_path ? above + 1 : -1;
    }
    return rc;
}

// The output position that follows a node on the recorded path.
static int position_after(dsc_model_trace *m, int32_t node, int64_t *at, dsc_error *err)
{
    *at = m->base.length + (node < 0 ? 0 : m->depth[node]);
    if ((node < 0 || m->depth[node] >= 0) && *at < m->recorded.count)
        return DSC_OK;
    m->base.refused++;
    return dsc_fail(err, DSC_EABSENT,
                    "the recorded output does not contain the token after this draft token");
}

static int next(dsc_model *base, int32_t node, dsc_next *out, dsc_error *err)
{
    dsc_model_trace *m = (dsc_model_trace *)base;
    int64_t at;
    int rc = position_after(m, node, &at, err);
    if (!rc)
        *out = (dsc_next){m->recorded.id[at], at + 1 == m->recorded.count};
    return rc;
}

// Checks token by token that the output is the recorded one; else the method is not lossless.
static int commit(dsc_model *base, const int32_t *token, size_t n, dsc_error *err)
{
    dsc_model_trace *m = (dsc_model_trace *)base;
    for (size_t j = 0; j < n; j++) {
        int64_t at = base->length + (int64_t)j;
        if (at >= m->recorded.count || token[j] != m->recorded.id[at])
            return dsc_fail(err, DSC_ECHECK,
                            "emitted token %d at output position %" PRId64
                            " is not the recorded one",
                            token[j], at);
    }
    base->length += (int64_t)n;
    base->ended = base->length == m->recorded.count;
    return DSC_OK;
}

static const dsc_model_type type = {
    .name = "trace",
    .on_path_only = true,
    .score = score,
    .next = next,
    .commit = commit,
};

void dsc_model_trace_begin(dsc_model_trace *m, dsc_token_view recorded)
{
    m->base = (dsc_model){.type = &type,
                          .output = recorded.id,
                          .limit = recorded.count,
                          .end_token = -1,
                          .ended = recorded.count == 0};
    m->recorded = recorded;
}

// --- the draft ---------------------------------------------------------------------------------

// A token of a rollout, or OTHER outside of rollouts.
static int32_t rollout_token(const dsc_model_trace *m, dsc_rollout_place place)
{
    const int64_t at = m->base.length + place.from;
    const bool there = place.from >= 0 && place.wrote < m->rollout_length && at < m->recorded.count;
    return there ? m->request.rollouts.draft[at * m->rollout_length + place.wrote]
                 : DSC_TOKEN_OTHER;
}

static dsc_rollout_place place_of(const dsc_model_trace *m, int32_t node)
{
    static const dsc_rollout_place root = {0, 0};
    return node < 0 ? root : m->place[node];
}

// For a separate draft model the start of a draft does not matter: its rollout from a position
// continues any draft that agrees with the output up to there.
static int draft_score(dsc_model *base, const dsc_draft *d, dsc_error *err)
{
    static const dsc_rollout_place nowhere = {-1, 0};
    dsc_model_trace *m = (dsc_model_trace *)base;
    int rc = score(base, d, err);
    if (!rc)
        rc = dsc_resize(&m->place, &m->place_capacity, d->count, err);
    for (size_t j = 0; j < d->count && !rc; j++) {
        const dsc_rollout_place above = place_of(m, d->parent[j]);
        if (m->depth[j] >= 0 && m->head == 0)
            m->place[j] = (dsc_rollout_place){m->depth[j], 0};
        else if (d->token[j] >= 0 && rollout_token(m, above) == d->token[j])
            m->place[j] = (dsc_rollout_place){above.from, above.wrote + 1};
        else
            m->place[j] = nowhere;
    }
    return rc;
}

// The recorded facts about the draft model's candidates after a node.
typedef struct candidates {
    int64_t rank;        // of the output's token
    int32_t token, best; // that token; the argmax token if it is another one, or OTHER
} candidates;

// `ranked`: the rank itself is needed, not only whether it is 0.
static int look(const dsc_model_trace *m, int32_t node, bool ranked, candidates *out,
                dsc_error *err)
{
    const int64_t depth = node < 0 ? 0 : m->depth[node], start = m->base.length;
    const int64_t at = start + depth;
    const dsc_replay *f = &m->request.replayed;
    const int32_t *argmax = f->argmax[DSC_SIDE_DRAFT];
    *out = (candidates){INT64_MAX, DSC_TOKEN_OTHER, rollout_token(m, place_of(m, node))};
    if (depth < 0 || at >= m->recorded.count)
        return DSC_OK;
    out->token = m->recorded.id[at];
    const bool same = depth == 0 || m->head == 0; // as if the draft had begun at `at`
    if (same && argmax && out->best < 0)
        out->best = argmax[at];
    if (depth < m->rank_depth)
        out->rank = f->draft_rank[start * m->rank_depth + depth];
    else if (m->rank_depth && same)
        out->rank = f->draft_rank[at * m->rank_depth];
    else if (!ranked && out->best >= 0)
        out->rank = out->best != out->token;
    else if (!ranked && argmax && m->head != 1)
        out->rank = argmax[at] != out->token;
    else
        return dsc_fail(err, DSC_EUSAGE,
                        "output position %" PRId64 ": a draft is %" PRId64
                        " tokens deep, ranks of the draft model are recorded %" PRId32
                        " deep (draftscope live record or trace reduce with --rank-depth)",
                        at, depth + 1, m->rank_depth);
    if (out->best == out->token) // its rank is known
        out->best = DSC_TOKEN_OTHER;
    return DSC_OK;
}

static int draft_next(dsc_model *base, int32_t node, dsc_next *out, dsc_error *err)
{
    candidates c;
    int rc = look((dsc_model_trace *)base, node, false, &c, err);
    *out = (dsc_next){c.rank ? c.best : c.token, false};
    return rc;
}

static int draft_top(dsc_model *base, int32_t node, size_t k, int32_t *token, size_t *count,
                     dsc_error *err)
{
    const dsc_model_trace *m = (const dsc_model_trace *)base;
    candidates c;
    int rc = look(m, node, true, &c, err);
    *count = k < (size_t)m->tokens ? k : (size_t)m->tokens;
    for (size_t i = 0; i < *count && !rc; i++)
        token[i] = (int64_t)i == c.rank ? c.token : i ? DSC_TOKEN_OTHER : c.best;
    return rc;
}

// The distribution in a greedy run, which has one token.
static int draft_dist(dsc_model *base, int32_t node, dsc_dist *out, dsc_error *err)
{
    static const double certain = 1;
    dsc_model_trace *m = (dsc_model_trace *)base;
    dsc_next n;
    int rc = draft_next(base, node, &n, err);
    m->drawn = n.token;
    *out = (dsc_dist){.vocab_size = m->tokens, .levels = 1};
    out->level[0] = (dsc_dist_level){&m->drawn, &certain, NULL, 1, 0};
    return rc;
}

// Start and size of what a column of `width` numbers for each position has at the committed output.
static int at_position(const dsc_model_trace *m, int32_t width, const char *what, int64_t *at,
                       dsc_error *err)
{
    *at = m->base.length * width;
    if (width && m->base.length < m->recorded.count)
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE, "the trace lacks the %s of the draft model", what);
}

static int draft_candidates(dsc_model *base, dsc_recorded_candidates *out, dsc_error *err)
{
    const dsc_model_trace *m = (const dsc_model_trace *)base;
    const dsc_tree_candidates *c = &m->request.candidates;
    int64_t at;
    int rc = at_position(m, m->candidate_nodes, "candidates", &at, err);
    if (!rc)
        *out = (dsc_recorded_candidates){
            .token = c->token + at,
            .parent = c->parent + at,
            .scored = c->scored + base->length * m->candidate_steps,
            .nodes = m->candidate_nodes,
            .steps = m->candidate_steps,
            .topk = m->candidate_topk,
        };
    return rc;
}

static int draft_marginal_top(dsc_model *base, int64_t offset, size_t k, int32_t *token,
                              double *probability, size_t *count, bool *all, dsc_error *err)
{
    const dsc_model_trace *m = (const dsc_model_trace *)base;
    const int32_t most = m->marginal_top;
    int64_t at;
    int rc = at_position(m, m->marginal_offsets * most, "marginals", &at, err);
    if (!rc && offset >= m->marginal_offsets)
        rc = dsc_fail(err, DSC_EUSAGE,
                      "marginals of the draft model are recorded for %" PRId32
                      " offsets, not %" PRId64 " (draftscope live record --marginals %" PRId64
                      ":%" PRId32 ")",
                      m->marginal_offsets, offset + 1, offset + 1, most);
    if (rc)
        return rc;
    at += offset * most;
    *count = 0;
    while (*count < k && *count < (size_t)most &&
           m->request.marginals.logp[at + (int64_t)*count] > -INFINITY) {
        const int64_t i = at + (int64_t)(*count)++;
        *token++ = m->request.marginals.token[i];
        *probability++ = exp((double)m->request.marginals.logp[i]);
    }
    *all = *count < k && (*count < (size_t)most || most == m->tokens);
    return DSC_OK;
}

static const dsc_model_type draft_type = {
    .name = "recorded draft",
    .on_path_only = true,
    .score = draft_score,
    .next = draft_next,
    .dist = draft_dist,
    .top = draft_top,
    .marginal_top = draft_marginal_top,
    .candidates = draft_candidates,
    .commit = commit,
};

void dsc_model_trace_begin_draft(dsc_model_trace *m, const dsc_request *request,
                                 const dsc_trace_info *info, const dsc_recorded_run *run)
{
    dsc_model_trace_begin(m, request->output);
    m->base.type = &draft_type;
    m->request = *request;
    m->rank_depth = info->has_draft_rank ? info->rank_depth : 0;
    m->rollout_length = info->has_rollout[DSC_SIDE_DRAFT] ? info->rollout_length : 0;
    m->tokens = info->vocab_size;
    m->head = run->head;
    m->candidate_nodes = info->has_candidates ? info->candidate_nodes : 0;
    m->candidate_steps = info->candidate_steps;
    m->candidate_topk = info->candidate_topk;
    m->marginal_offsets = info->has_marginals ? info->marginal_offsets : 0;
    m->marginal_top = info->marginal_top;
}

// The last token of an output that is shorter than its limit ended it, whichever token it is.
void dsc_model_trace_set_ends(dsc_model_trace *m, const dsc_trace_info *info,
                              const dsc_recorded_run *run)
{
    const int64_t n = m->recorded.count;
    m->base.end_token = m->also_ends = info->eos_token;
    m->base.more_ends = &m->also_ends;
    m->base.more = info->eos_token >= 0;
    if (n && run->max_tokens > n) {
        m->base.limit = run->max_tokens;
        m->base.end_token = m->recorded.id[n - 1];
    }
}

void dsc_model_trace_fini(dsc_model_trace *m)
{
    free(m->depth);
    free(m->place);
    *m = (dsc_model_trace){0};
}
