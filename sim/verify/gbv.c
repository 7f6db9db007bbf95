// SPDX-License-Identifier: Apache-2.0
// Greedy multi-path block verification (Thomas and Pal 2026; theory/gbv.h): the best of several
// independent sequences is verified as a block (sim/verify/block.c), with the distribution that the
// choice gives it in place of the draft model's.
#include "sim/verify/tree_verify.h"

#include "theory/block_verify.h"
#include "theory/gbv.h"
#include "theory/rows/row_sum.h"

#include <math.h>

// The walk down the best path.
typedef struct walk {
    const dsc_verify_input *in;
    dsc_tree_verify tree;
    int paths;
    size_t vocab;
    dsc_gbv_prefix prefix;
} walk;

// Sets the rows of both models after the live nodes, and the distribution of the best path's next
// token in room->residual.
static int read_rows(walk *w, int32_t node, dsc_error *err)
{
    const dsc_verify_input *in = w->in;
    dsc_verify_room *r = in->room;
    int rc = dsc_tree_verify_dist(in, in->models->target, node, &r->target, &r->target_capacity,
                                  &w->vocab, err);
    if (!rc)
        rc = dsc_tree_verify_dist(in, dsc_models_drafter(in->models, in->draft), node, &r->draft,
                                  &r->draft_capacity, &w->vocab, err);
    if (!rc)
        rc = dsc_arena_resize(r->arena, &r->residual, &r->residual_capacity, w->vocab, err);
    return rc ? rc
              : dsc_gbv_dist(&r->gbv, w->prefix, r->draft, r->target, w->vocab, w->paths,
                             r->residual, err);
}

// The greatest candidate: the next token of the best path.
static int32_t best_of(const walk *w)
{
    const dsc_verify_room *r = w->in->room;
    int32_t best = r->token[0];
    for (size_t i = 1; i < w->tree.candidates; i++)
        if (dsc_gbv_is_before(r->draft, r->target, best, r->token[i]))
            best = r->token[i];
    return best;
}

// Goes to the next token of the best path.
static void descend(walk *w, int32_t token)
{
    const dsc_verify_room *r = w->in->room;
    const double lower = dsc_gbv_lower(r->draft, r->target, w->vocab, token);
    w->prefix = dsc_gbv_next(w->prefix, fmin(lower, 1), r->draft[token]);
    dsc_tree_verify_step(&w->tree, token);
}

// room->residual becomes (p target - it)+; returns the sum.
static double leave(const walk *w, double p)
{
    dsc_verify_room *r = w->in->room;
    for (size_t x = 0; x < w->vocab; x++)
        r->residual[x] = fmax(p * r->target[x] - r->residual[x], 0);
    return dsc_row_sum(r->residual, w->vocab);
}

// A prefix of the best path that may be accepted.
typedef struct prefix {
    uint32_t tokens;
    int32_t node;
    double p; // p_i of theory/block_verify.h
    dsc_gbv_prefix place;
} prefix;

// Samples the token after the accepted prefix, below which the best path goes on.
static int draw_residual(walk *w, const prefix *at, int32_t *token, dsc_error *err)
{
    const double u = dsc_verify_uniform(w->in, at->tokens, 1);
    w->prefix = at->place;
    int rc = read_rows(w, at->node, err);
    if (rc)
        return rc;
    const double *from = leave(w, at->p) > 0 ? w->in->room->residual : w->in->room->target;
    *token = dsc_draw(from, w->vocab, u);
    return DSC_OK;
}

// Walks down the best path and notes its tokens in the verdict, all as accepted. *at becomes the
// longest prefix that is accepted.
static int follow(walk *w, prefix *at, uint32_t *length, dsc_verdict *out, dsc_error *err)
{
    double p = 1;
    int rc = DSC_OK;
    *at = (prefix){.node = -1, .p = 1, .place = dsc_gbv_root()};
    for (uint32_t i = 0;; i++) { // p is p_i, after the first i tokens
        const int32_t node = dsc_tree_verify_node(&w->tree);
        double coin = p;
        int32_t token = 0;
        *length = i;
        if (w->tree.candidates) {
            rc = read_rows(w, node, err);
            if (rc)
                return rc;
            token = best_of(w);
        }
        const dsc_verify_room *r = w->in->room;
        const double next = w->tree.candidates ? r->residual[token] : 0,
                     target = w->tree.candidates ? r->target[token] : 0;
        if (w->tree.candidates)
            coin = dsc_block_coin(p, leave(w, p));
        if (i > 0 && dsc_verify_uniform(w->in, i, 0) < coin)
            *at = (prefix){i, node, p, w->prefix};
        if (!w->tree.candidates)
            return DSC_OK;
        p = target > 0 && p > 0 ? dsc_block_ratio(p, next, target) : 0;
        descend(w, token);
        rc = dsc_verdict_accept(out, token, dsc_tree_verify_node(&w->tree), err);
        if (rc)
            return rc;
    }
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    walk w = {.in = in, .prefix = dsc_gbv_root()};
    prefix at;
    uint32_t length = 0;
    int32_t token = 0;
    dsc_verdict_clear(out);
    int rc = dsc_tree_verify_begin(&w.tree, in, err);
    w.paths = (int)w.tree.candidates;
    if (!rc && w.tree.candidates > DSC_GBV_PATHS)
        rc = dsc_fail(err, DSC_EUSAGE, "rule gbv chooses among at most %d drafts, not %zu",
                      DSC_GBV_PATHS, w.tree.candidates);
    if (!rc)
        rc = follow(&w, &at, &length, out, err);
    if (rc)
        return rc;
    out->accepted = out->count = at.tokens;
    for (uint32_t i = 0; i < at.tokens; i++)
        if (dsc_model_ends(in->models->target, i, out->token[i])) {
            out->accepted = out->count = i;
            return dsc_verdict_close(out, out->token[i], err);
        }
    if (at.tokens == length && in->draft->unscored)
        return DSC_OK; // the target has not scored the last node
    rc = at.tokens == length
             ? dsc_verify_draw(in, at.node, dsc_verify_uniform(in, at.tokens, 1), &token, err)
             : draw_residual(&w, &at, &token, err);
    return rc ? rc : dsc_verdict_close(out, token, err);
}

const dsc_verifier_type dsc_verifier_gbv = {
    .name = "gbv",
    .summary = "greedy multi-path block verification: the best of several sequences as a block",
    .source = "Thomas and Pal 2026, Greedy Multi-Path Block Verification, arXiv 2602.16961",
    .engines = "none",
    .lossless = true,
    .tree = true,
    .sequences = true,
    .kinds = DSC_DRAFT_SAMPLED,
    .replay = DSC_RULE_REPLAY_PATHS,
    .verify = verify,
};
