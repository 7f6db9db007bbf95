// SPDX-License-Identifier: Apache-2.0
// Grows EAGLE-2's candidates (candidate_tree.h) with a draft model, and takes the candidates of a
// smaller setting out of recorded ones.
#include "sim/draft/candidate_tree.h"

#include "sim/draft/draft_next.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int dsc_candidate_tree_init(dsc_candidate_tree *t, const dsc_drafter_input *in, int64_t steps,
                            int64_t topk, dsc_error *err)
{
    const size_t candidates = (size_t)dsc_candidate_tree_most(steps, topk), most = (size_t)topk;
    *t = (dsc_candidate_tree){.in = *in, .steps = steps, .topk = topk};
    int rc = dsc_arena_new(in->arena, &t->candidate, candidates, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &t->ranked, candidates, err);
    if (!rc)
        rc = dsc_arena_new(in->arena, &t->open, most, err);
    return rc ? rc : dsc_arena_new(in->arena, &t->top, most, err);
}

// --- order -------------------------------------------------------------------------------------

static int by_score(const void *a, const void *b)
{
    const dsc_ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->candidate < y->candidate ? -1 : 1;
}

int32_t dsc_candidate_tree_rank(dsc_candidate_tree *t, int32_t first)
{
    for (int32_t i = first; i < t->count; i++)
        t->ranked[i - first] = (dsc_ranked){t->candidate[i].score, i};
    qsort(t->ranked, (size_t)(t->count - first), sizeof *t->ranked, by_score);
    return t->count - first;
}

// --- expansion ---------------------------------------------------------------------------------

// Appends the K most probable tokens after `parent` to the candidates.
static int add_children(dsc_candidate_tree *t, int32_t parent, dsc_error *err)
{
    const dsc_candidate *above = parent == DSC_CANDIDATE_ROOT ? NULL : &t->candidate[parent];
    dsc_dist dist;
    int rc = dsc_draft_next_dist(&t->in, above ? above->grown : -1, &dist, err);
    if (!rc && !t->row)
        rc = dsc_arena_new(t->in.arena, &t->row, (size_t)dist.vocab_size, err);
    if (rc)
        return rc;
    const size_t n = dsc_dist_top(&dist, (size_t)t->topk, t->row, t->top);
    for (size_t i = 0; i < n; i++) {
        const double gain = fmin(0, log(dsc_dist_probability(&dist, t->top[i])));
        t->candidate[t->count++] = (dsc_candidate){.score = gain + (above ? above->score : 0),
                                                   .token = t->top[i],
                                                   .parent = parent,
                                                   .level = above ? above->level + 1 : 0,
                                                   .grown = DSC_CANDIDATE_NONE,
                                                   .kept = DSC_CANDIDATE_NONE};
    }
    return DSC_OK;
}

// Opens the K best candidates from `first` on, but those with which the output ends.
static int open_best(dsc_candidate_tree *t, int32_t first, dsc_draft *grown, dsc_error *err)
{
    const int32_t n = dsc_candidate_tree_rank(t, first), most = (int32_t)t->topk;
    int rc = DSC_OK;
    t->opened = 0;
    for (int32_t i = 0; i < n && i < most && !rc; i++) {
        dsc_candidate *c = &t->candidate[t->ranked[i].candidate];
        if (dsc_model_ends(t->in.models->target, c->level, c->token))
            continue;
        const int32_t parent = c->parent == DSC_CANDIDATE_ROOT ? -1 : t->candidate[c->parent].grown;
        c->grown = (int32_t)grown->count;
        t->open[t->opened++] = t->ranked[i].candidate;
        rc = dsc_draft_append_chain(grown, parent, &c->token, 1, err);
    }
    return rc;
}

int dsc_candidate_tree_grow(dsc_candidate_tree *t, int64_t fresh, dsc_draft *grown, dsc_error *err)
{
    int rc = DSC_OK;
    memset(t->scored, 0, sizeof t->scored);
    t->count = 0;
    t->open[0] = DSC_CANDIDATE_ROOT;
    t->opened = 1;
    for (int64_t step = 0; step < t->steps && t->opened && !rc; step++) {
        const int32_t first = t->count;
        t->scored[step] = step ? t->opened : fresh;
        rc = dsc_draft_next_score(&t->in, t->scored[step], grown, err);
        for (int32_t i = 0; i < t->opened && !rc; i++)
            rc = add_children(t, t->open[i], err);
        if (!rc && step + 1 < t->steps)
            rc = open_best(t, first, grown, err);
    }
    return rc;
}

// --- recorded candidates -------------------------------------------------------------------------

// A recorded candidate in the setting that is drafted.
typedef struct node {
    int32_t level, children; // children: recorded ones
    int32_t rank;            // among its siblings
    int32_t kept;            // node of the draft
    bool taken, open;        // a candidate of the setting; one that is expanded
} node;

typedef struct replay {
    dsc_recorded_candidates from;
    int32_t count; // recorded candidates
    bool whole;    // all candidates of the recorded setting were recorded
    node *node;    // [count]
    int32_t roots; // candidates of the first level
} replay;

static int read_recorded(dsc_candidate_tree *t, replay *r, dsc_error *err)
{
    dsc_model *m = t->in.models->draft;
    int rc = m->type->candidates(m, &r->from, err);
    if (!rc)
        rc = dsc_arena_new(t->in.arena, &r->node, (size_t)r->from.nodes, err);
    for (; !rc && r->count < r->from.nodes; r->count++) {
        const int32_t parent = r->from.parent[r->count];
        if (parent == DSC_PARENT_NONE)
            break;
        node *above = parent ? &r->node[parent - 1] : NULL;
        r->node[r->count] = (node){.level = above ? above->level + 1 : 0,
                                   .rank = above ? above->children++ : r->roots++};
    }
    r->whole = r->count < r->from.nodes ||
               r->from.nodes >= dsc_candidate_tree_most(r->from.steps, r->from.topk);
    return rc;
}

// With as many children as were recorded, the same candidates are expanded at each level.
static void take_levels(dsc_candidate_tree *t, replay *r, int64_t fresh)
{
    for (int32_t i = 0; i < r->count; i++)
        r->node[i].taken = r->node[i].level < t->steps;
    for (int64_t step = 0; step < t->steps; step++)
        t->scored[step] = step ? r->from.scored[step] : fresh;
}

static int lacks(const dsc_candidate_tree *t, const replay *r, dsc_error *err)
{
    return dsc_fail(err, DSC_EUSAGE,
                    "output position %" PRId64 ": the recorded candidates (--num-steps %" PRId32
                    " --eagle-topk %" PRId32 ", the best %" PRId32
                    ") lack some of --num-steps %" PRId64 " --eagle-topk %" PRId64
                    " (draftscope live record --candidates %" PRId64 ":%" PRId64 ")",
                    t->in.models->draft->length, r->from.steps, r->from.topk, r->from.nodes,
                    t->steps, t->topk, t->steps, t->topk);
}

// Whether the K children of a candidate that is expanded are recorded.
static bool has_children(const dsc_candidate_tree *t, const replay *r, int32_t children)
{
    return children >= t->topk || (children > 0 && r->whole); // the vocabulary is small
}

// Opens the K best candidates of a level; fails if one was not expanded in the recorded setting.
static int open_level(dsc_candidate_tree *t, replay *r, int64_t level, dsc_error *err)
{
    int64_t best = 0;
    for (int32_t i = 0; i < r->count && best < t->topk; i++) {
        node *n = &r->node[i];
        if (!n->taken || n->level != level)
            continue;
        best++;
        if (dsc_model_ends(t->in.models->target, level, r->from.token[i]))
            continue;
        if (!has_children(t, r, n->children))
            return lacks(t, r, err);
        n->open = true;
        t->scored[level + 1]++;
    }
    return DSC_OK;
}

// With fewer children than recorded: expands level by level, as a draft model would.
static int take_fewer(dsc_candidate_tree *t, replay *r, int64_t fresh, dsc_error *err)
{
    int rc = has_children(t, r, r->roots) ? DSC_OK : lacks(t, r, err);
    t->scored[0] = fresh;
    for (int64_t level = 0; level < t->steps && !rc; level++) {
        for (int32_t i = 0; i < r->count; i++) {
            const int32_t parent = r->from.parent[i];
            if (r->node[i].level == level)
                r->node[i].taken =
                    r->node[i].rank < t->topk && (!parent || r->node[parent - 1].open);
        }
        if (level + 1 < t->steps)
            rc = open_level(t, r, level, err);
    }
    return rc;
}

int dsc_candidate_tree_replay(dsc_candidate_tree *t, int64_t most, int64_t fresh, dsc_draft *draft,
                              dsc_error *err)
{
    replay r = {.count = 0};
    int64_t taken = 0;
    int rc = read_recorded(t, &r, err);
    memset(t->scored, 0, sizeof t->scored);
    if (!rc && t->topk == r.from.topk)
        take_levels(t, &r, fresh);
    else if (!rc)
        rc = take_fewer(t, &r, fresh, err);
    for (int32_t i = 0; i < r.count && taken < most && !rc; i++) {
        node *n = &r.node[i];
        const int32_t parent = r.from.parent[i];
        if (!n->taken)
            continue;
        n->kept = (int32_t)draft->count;
        taken++;
        rc = dsc_draft_append_chain(draft, parent ? r.node[parent - 1].kept : -1, &r.from.token[i],
                                    1, err);
    }
    if (!rc && taken < most && !r.whole && t->topk == r.from.topk)
        rc = lacks(t, &r, err);
    for (int64_t step = 0; step < t->steps && t->scored[step]; step++) {
        draft->draft_calls++;
        draft->draft_call_tokens += t->scored[step];
    }
    return rc;
}
