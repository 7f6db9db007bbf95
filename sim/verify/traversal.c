// SPDX-License-Identifier: Apache-2.0
// Traversal verification (Weng et al. 2025, "Traversal Verification for Speculative Tree Decoding",
// arXiv 2505.12398): paths of a tree are tested from their leaves up, in the order of the draft. On
// a chain it is block verification.
//
// A node has a budget p, the probability that the text down to it is accepted, and a residual r of
// the target's distribution after it; 1 and the target's own at the root. A child x that was
// sampled from the distribution `draft` gets the budget min(p r(x)/draft(x), 1). When nothing at or
// below the child was accepted, what is left for the node is
//
//   left = sum of (p r - draft)+,   r <- (p r - draft)+ / left,   p <- left / (left + 1 - p),
//
// and the next child is tried. Without children that are left, the node is accepted with
// probability p, and the next token is a sample of r. A subtree thus accepts something with its
// node's budget, which proves the rule by induction from the leaves, as in theory/block_verify.c.
//
// `draft` is the draft model's distribution; for samples without replacement, without the tokens of
// the earlier children, and normalized; for TOPK nodes, all on x.
#include "sim/verify/tree_verify.h"

#include <math.h>

// One node, -1 for the last committed token, whose earlier children were all rejected. The residual
// of a token is (keep target - take draft)+, and that of an earlier child has a number of its own,
// unless children are sampled with replacement.
struct dsc_traversal_node {
    double p, keep, take;
    double untried; // draft mass that is not that of earlier children
    double own;     // the residual of this node's token at its parent, once it was rejected
    int32_t child;  // the next one to try, or -1
};
typedef dsc_traversal_node node_state;

typedef struct walk {
    const dsc_verify_input *in;
    node_state *state; // [nodes + 1], that of a node at node + 1
    int32_t node;
    uint32_t depth;
} walk;

static void enter(walk *w, int32_t node, double p)
{
    w->node = node;
    w->state[node + 1] =
        (node_state){.p = p, .keep = 1, .untried = 1, .child = w->in->room->first[node + 1]};
}

// The distributions after the current node and the children up to and with `last`; all if -1.
static int look(walk *w, int32_t last, dsc_position *at, dsc_error *err)
{
    dsc_verify_room *r = w->in->room;
    const dsc_draft *d = w->in->draft;
    *at = (dsc_position){
        .in = w->in, .depth = w->depth, .token = r->token, .drawn = d->kind != DSC_DRAFT_TOPK};
    for (int32_t j = r->first[w->node + 1]; j >= 0; j = r->sibling[j]) {
        r->candidate[at->count] = j;
        r->token[at->count++] = d->token[j];
        if (j == last)
            break;
    }
    return dsc_position_overlap(at, w->node, err);
}

// The residual of the current node, of whose listed children the first `rejected` were rejected,
// times `scale`. The room's residual_of holds the children's own.
static dsc_residual residual_of(const walk *w, const dsc_position *at, int rejected)
{
    const node_state *s = &w->state[w->node + 1];
    dsc_verify_room *r = w->in->room;
    dsc_residual residual = {.lines = 1, .keep = {s->keep}};
    if (s->take > 0)
        residual = (dsc_residual){
            .lines = 2, .from = {0, s->take / s->keep}, .keep = {0, s->keep}, .take = {0, s->take}};
    if (w->in->draft->kind == DSC_DRAFT_SAMPLED)
        return residual;
    for (int i = 0; i < rejected; i++)
        r->residual_of[i] = w->state[r->candidate[i] + 1].own;
    residual.own = (size_t)rejected;
    residual.token = at->token;
    residual.residual = r->residual_of;
    return residual;
}

// The residual probability of child i after the current node.
static double residual_at(const walk *w, const dsc_position *at, int i)
{
    const node_state *s = &w->state[w->node + 1];
    if (w->in->draft->kind != DSC_DRAFT_SAMPLED)
        for (int j = 0; j < i; j++)
            if (at->token[j] == at->token[i])
                return w->state[w->in->room->candidate[j] + 1].own;
    return fmax(s->keep * at->target_of[i] - s->take * at->draft_of[i], 0);
}

// The probability with which child i was sampled.
static double drawn_with(const walk *w, const dsc_position *at, int i)
{
    return at->drawn ? at->draft_of[i] / w->state[w->node + 1].untried : 1;
}

// Goes down to the next child.
static int go_down(walk *w, dsc_error *err)
{
    const int32_t child = w->state[w->node + 1].child;
    dsc_position at;
    int rc = look(w, child, &at, err);
    if (rc)
        return rc;
    const double left = w->state[w->node + 1].p * residual_at(w, &at, at.count - 1),
                 draft = drawn_with(w, &at, at.count - 1);
    w->depth++;
    enter(w, child, left < draft ? left / draft : left > 0);
    return DSC_OK;
}

// Goes up from a node at and below which nothing was accepted.
static int go_up(walk *w, dsc_error *err)
{
    const dsc_draft *d = w->in->draft;
    const int32_t child = w->node;
    dsc_position at;
    w->node = d->parent[child];
    w->depth--;
    node_state *s = &w->state[w->node + 1];
    int rc = look(w, child, &at, err);
    if (!rc)
        rc = dsc_arena_resize(w->in->room->arena, &w->in->room->residual_of,
                              &w->in->room->residual_of_capacity, (size_t)at.count, err);
    if (rc)
        return rc;
    const int last = at.count - 1;
    const double x = residual_at(w, &at, last), draft = drawn_with(w, &at, last);
    s->child = w->in->room->sibling[child];
    w->state[child + 1].own = fmax(s->p * x - draft, 0);
    s->keep *= s->p;
    s->take *= s->p;
    for (int i = 0; i < last; i++)
        w->state[w->in->room->candidate[i] + 1].own *= s->p;
    if (at.drawn)
        s->take += 1 / s->untried;
    if (d->kind == DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT)
        s->untried = fmax(s->untried - at.draft_of[last], 0);
    const dsc_residual all = residual_of(w, &at, at.count);
    const double left = at.dists->type->residual(at.dists, &all, 0, NULL);
    if (!(left > 0)) {
        s->p = 0;
        return DSC_OK;
    }
    s->keep /= left;
    s->take /= left;
    for (int i = 0; i <= last; i++)
        w->state[w->in->room->candidate[i] + 1].own /= left;
    s->p = left / (left + (1 - s->p));
    return DSC_OK;
}

// Commits the path down to the current node and the token that follows it.
static int close_path(walk *w, dsc_verdict *out, dsc_error *err)
{
    const dsc_verify_input *in = w->in;
    dsc_verify_room *r = in->room;
    const uint32_t length = w->depth;
    int32_t node = w->node, token = 0;
    dsc_position at;
    for (uint32_t i = length; i-- > 0; node = in->draft->parent[node])
        r->live[i] = node;
    for (uint32_t i = 0; i < length; i++) {
        const int32_t x = in->draft->token[r->live[i]];
        int rc = DSC_OK;
        if (dsc_model_ends(in->models->target, i, x))
            return dsc_verdict_close(out, x, err);
        rc = dsc_verdict_accept(out, x, r->live[i], err);
        if (rc)
            return rc;
    }
    const double u = dsc_verify_uniform(in, length, 0);
    int rc = DSC_OK;
    if (w->node >= (int32_t)(in->draft->proposed - in->draft->unscored))
        return DSC_OK; // the target has not scored it
    if (r->first[w->node + 1] < 0) {
        rc = dsc_verify_draw(in, w->node, u, &token, err);
        return rc ? rc : dsc_verdict_close(out, token, err);
    }
    rc = look(w, -1, &at, err);
    if (rc)
        return rc;
    const dsc_residual residual = residual_of(w, &at, at.count);
    return dsc_verdict_close(out, dsc_position_draw(&at, &residual, u), err);
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    dsc_tree_verify tree;
    walk w = {.in = in};
    dsc_verify_room *r = in->room;
    dsc_verdict_clear(out);
    int rc = dsc_tree_verify_begin(&tree, in, err); // the room's lists of children
    if (!rc)
        rc = dsc_arena_resize(r->arena, &r->traversal, &r->traversal_capacity,
                              in->draft->proposed + 1, err);
    if (rc)
        return rc;
    w.state = r->traversal;
    enter(&w, -1, 1);
    while (!rc) {
        const node_state *s = &w.state[w.node + 1];
        if (s->child >= 0)
            rc = go_down(&w, err);
        else if (w.node < 0 || dsc_verify_uniform(in, w.depth, 1 + (uint32_t)w.node % 4095) < s->p)
            break;
        else
            rc = go_up(&w, err);
    }
    return rc ? rc : close_path(&w, out, err);
}

const dsc_verifier_type dsc_verifier_traversal = {
    .name = "traversal",
    .summary = "traversal verification: paths of a tree are tested from their leaves up",
    .source = "Weng et al. 2025, Traversal Verification for Speculative Tree Decoding, arXiv "
              "2505.12398",
    .engines = "none",
    .lossless = true,
    .tree = true,
    .off_path = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED | DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT,
    .replay = DSC_RULE_REPLAY_BLOCK, // of a chain
    .verify = verify,
};
