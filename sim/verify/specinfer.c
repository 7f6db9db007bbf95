// SPDX-License-Identifier: Apache-2.0
// SpecInfer verification: the candidates are tested in order, each against the residual that the
// earlier ones left of the target. r_1 = target; candidate x_i, sampled from draft_i, is accepted
// with probability min(1, r_i(x_i)/draft_i(x_i)), else r_{i+1} = (r_i - draft_i)+, normalized. When
// all are rejected, the output is sampled from the last residual.
//   with replacement (SpecInfer, Miao et al. 2023, Alg. 2): draft_i is the draft distribution.
//   without replacement (EAGLE-1; recursive rejection, Jeon et al. 2024): draft_i is the draft
//   distribution without the tested tokens, normalized.
//   TOPK candidates (n-gram trees, lookahead's guesses): draft_i is all on x_i, so x_i is accepted
//   with probability r_i(x_i), or removed from r_i.
//
// Without the normalization, the residual after any number of rounds is (target - c draft)+ with
// one number c, except at the tested tokens: at a TOPK token it is 0, at one without replacement it
// stays as it was after its own round. A round adds (sum of the residual) / (untested draft mass)
// to c.
#include "sim/replay_dist.h"
#include "sim/verify/tree_verify.h"
#include "theory/specinfer.h"

#include <math.h>

// The residual of the target.
typedef struct remains {
    double c, sum;
    double untried; // untested draft mass, for candidates without replacement
    const int32_t *token;
    double *own; // [count] residual of the tested tokens
    size_t count;
} remains;

// Below this, a sum that is left of 1 after subtractions is recomputed token by token.
static const double PRECISE = 0x1p-10;

static double residual_of(const remains *r, int32_t token, double draft, double target)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->token[i] == token)
            return r->own[i];
    return fmax(target - r->c * draft, 0);
}

static dsc_residual all_of(const remains *r)
{
    dsc_residual residual;
    dsc_residual_above(&residual, r->c);
    residual.own = r->count;
    residual.token = r->token;
    residual.residual = r->own;
    return residual;
}

static double add_up(const remains *r, dsc_overlap *dists)
{
    const dsc_residual residual = all_of(r);
    return dists->type->residual(dists, &residual, 0, NULL);
}

static double add_up_untried(const remains *r, dsc_overlap *dists)
{
    const dsc_residual untried = {.lines = 1, .take = {-1}, .own = r->count, .token = r->token};
    return dists->type->residual(dists, &untried, 0, NULL);
}

// After the i-th candidate, the first i of which are in r->own, was rejected.
static void take_round(remains *r, dsc_position *at, size_t i)
{
    if (!at->drawn) {
        r->sum -= at->target_of[i];
        r->own[r->count++] = 0;
        if (r->sum < PRECISE)
            r->sum = add_up(r, at->dists);
        return;
    }
    r->c += r->sum / r->untried;
    if (at->in->draft->kind != DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT) {
        r->sum = dsc_overlap_curve(at->dists, r->c);
        return;
    }
    r->own[r->count++] = fmax(at->target_of[i] - r->c * at->draft_of[i], 0);
    if (r->c * PRECISE > 1) // the curve is a difference, of which one side comes times c
        r->sum = add_up(r, at->dists);
    else {
        r->sum = dsc_overlap_curve(at->dists, r->c);
        for (size_t j = 0; j < i; j++)
            r->sum += r->own[j] - fmax(at->target_of[j] - r->c * at->draft_of[j], 0);
        r->sum = fmax(r->sum, 0);
    }
    r->untried -= at->draft_of[i];
    if (r->untried < PRECISE)
        r->untried = add_up_untried(r, at->dists);
}

// The first candidate that is accepted, or -1.
static int accepted(remains *r, dsc_position *at)
{
    for (int i = 0; i < at->count && r->sum > 0 && r->untried > 0; i++) {
        const double dist = at->draft_of[i] / r->untried;
        const double left = residual_of(r, at->token[i], at->draft_of[i], at->target_of[i]);
        if (dsc_position_uniform(at, (uint32_t)i) * dist * r->sum < left)
            return i;
        take_round(r, at, (size_t)i);
    }
    return -1;
}

static int choose(dsc_position *at, int *chosen, int32_t *token, dsc_error *err)
{
    dsc_verify_room *room = at->in->room;
    int rc = dsc_arena_resize(room->arena, &room->residual_of, &room->residual_of_capacity,
                              (size_t)at->count, err);
    if (rc)
        return rc;
    const remains whole = {.sum = 1, .untried = 1, .token = at->token, .own = room->residual_of};
    remains r = whole;
    if (at->drawn)
        at->dists->type->prepare(at->dists, at->count);
    if (at->drawn && at->dists->type->look_up) {
        accepted(&r, at);
        at->dists->type->look_up(at->dists);
        r = whole;
    }
    *chosen = accepted(&r, at);
    if (*chosen >= 0)
        return DSC_OK;
    const dsc_residual residual = all_of(&r);
    *token = dsc_position_draw(at, &residual, dsc_position_uniform(at, (uint32_t)at->count));
    return DSC_OK;
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    return dsc_tree_verify_run(in, choose, out, err);
}

// --- replay of a recorded output -----------------------------------------------------------------

// The curve is recorded as c, and W(c_i) = c_{i+1} - c_i. What the last round leaves does not
// affect the rounds before it.
static void from_statistics(const dsc_sufficient *s, int64_t position, int most,
                            const double y[DSC_SIDES], int drafts, double *dist)
{
    const float *known = s->specinfer + position * (most + 1);
    double c[DSC_POSITION_DRAFTS + 1], w[DSC_POSITION_DRAFTS + 1];
    for (int i = 0; i <= drafts; i++)
        c[i] = (double)known[i];
    for (int i = 0; i < drafts; i++)
        w[i] = c[i + 1] - c[i];
    w[drafts] = 0;
    for (int k = 1; k <= drafts; k++) {
        const dsc_specinfer rounds = {.k = k, .accept = 1 - w[k], .c = c, .w = w};
        dsc_specinfer_survivors(&rounds, y[DSC_SIDE_DRAFT], y[DSC_SIDE_TARGET],
                                dist + dsc_position_dist_at(k));
    }
}

// Fewer rounds are the first ones of more.
static int from_rows(dsc_position_room *room, size_t vocab, const double y[DSC_SIDES], int drafts,
                     double *dist, dsc_error *err)
{
    dsc_curve curve = {0};
    dsc_specinfer rounds = {0};
    int rc =
        dsc_curve_init(&curve, room->row[DSC_SIDE_DRAFT], room->row[DSC_SIDE_TARGET], vocab, err);
    if (!rc)
        rc = dsc_specinfer_init(&rounds, &curve, drafts, err);
    for (int k = 1; k <= drafts && !rc; k++) {
        rounds.k = k;
        dsc_specinfer_survivors(&rounds, y[DSC_SIDE_DRAFT], y[DSC_SIDE_TARGET],
                                dist + dsc_position_dist_at(k));
    }
    dsc_specinfer_fini(&rounds);
    dsc_curve_fini(&curve);
    return rc;
}

static const dsc_replay_dist replay = {"specinfer", offsetof(dsc_trace_info, has_specinfer),
                                       from_statistics, from_rows};

const dsc_verifier_type dsc_verifier_specinfer = {
    .name = "specinfer",
    .summary =
        "rejection sampling of candidates in turn, each against the residual of the earlier ones",
    .synonyms = "multiround",
    .source = "Miao et al. 2023, SpecInfer, Algorithm 2, arXiv 2305.09781",
    .engines = "SGLang, trees of a target that samples",
    .lossless = true,
    .tree = true,
    .kinds = DSC_DRAFT_TOPK | DSC_DRAFT_SAMPLED,
    .replay = DSC_RULE_REPLAY_TOKEN,
    .replay_dist = &replay,
    .verify = verify,
};

const dsc_verifier_type dsc_verifier_specinfer_wor = {
    .name = "specinfer-wor",
    .summary = "specinfer for candidates that are sampled without replacement",
    .source = "Li et al. 2024, EAGLE, arXiv 2401.15077; Jeon et al. 2024, arXiv 2402.14160",
    .engines = "none: EAGLE's own program",
    .lossless = true,
    .tree = true,
    .kinds = DSC_DRAFT_SAMPLED_WITHOUT_REPLACEMENT,
    .verify = verify,
};
