// SPDX-License-Identifier: Apache-2.0
// Multi-round rejection: the candidates are tried in order, each against what the ones before left
// of the target. r_1 = target; candidate x_i, drawn from draft_i, is accepted with probability
// min(1, r_i(x_i)/draft_i(x_i)), else r_{i+1} = (r_i - draft_i)+ normalised; when all are rejected
// the output is drawn from what is left.
//   with replacement (SpecInfer, Miao et al. 2023, Alg. 2): draft_i is the draft model's law;
//   without (EAGLE-1; recursive rejection, Jeon et al. 2024): the tokens tried are taken out of it
//   and the rest is normalised;
//   chosen candidates (n-gram trees, lookahead's guesses): draft_i is of the token x_i alone, so
//   that x is accepted with probability r_i(x), or struck off r_i.
#include "sim/verify/walk.h"

#include "theory/fast_exp.h"
#include "theory/row_sum.h"

#include <string.h>

// What is left of a law: unnormalised, with its sum. The row is the law itself until something is
// taken from it, then room[vocab].
typedef struct rest {
    const double *row;
    double *room, sum;
} rest;

enum { LANES = DSC_ROW_LANES }; // sums side by side, as in theory/row_sum.h

// (row - draft)+, both times a factor, into `out`, which may be `row`; returns the sum.
DSC_FOR_EVERY_PROCESSOR
static double subtract_row(const double *row, double by, const double *draft, double draft_by,
                           size_t n, double *out)
{
    double lane[LANES] = {0};
    size_t x = 0;
    for (; x + LANES <= n; x += LANES)
#pragma omp simd
        for (size_t j = 0; j < LANES; j++) {
            const double left = row[x + j] * by - draft[x + j] * draft_by;
            const double more = left * (left > 0 ? 1. : 0.);
            out[x + j] = more;
            lane[j] += more;
        }
    for (; x < n; x++) {
        const double left = row[x] * by - draft[x] * draft_by;
        out[x] = left * (left > 0 ? 1. : 0.);
        lane[x % LANES] += out[x];
    }
    return dsc_add_lanes(lane);
}

// (r - draft_i)+, both as laws.
static void subtract(rest *r, const double *draft, double draft_sum, size_t vocab)
{
    r->sum = subtract_row(r->row, 1 / r->sum, draft, 1 / draft_sum, vocab, r->room);
    r->row = r->room;
}

static void strike_off(double *row, double *sum, size_t vocab, int32_t token)
{
    row[token] = 0;
    *sum = dsc_row_sum(row, vocab); // anew: what is left may be small
}

static int choose(const dsc_position *at, int *chosen, int32_t *token, dsc_error *err)
{
    dsc_verify_room *room = at->in->room;
    bool distinct = at->in->draft->law == DSC_DRAFT_DISTINCT;
    double draft_sum = 1;
    void *p = room->residual;
    int rc = dsc_grow(&p, &room->residual_capacity, at->vocab, sizeof *room->residual, err);
    room->residual = p;
    rest r = {at->target, room->residual, 1};
    double *draft = room->draft; // at->draft, which may be changed: the row is read anew each time
    *chosen = -1;
    if (!rc && !at->draft) {
        memcpy(r.room, r.row, at->vocab * sizeof *r.room);
        r.row = r.room;
    }
    for (int i = 0; i < at->count && !rc && r.sum > 0; i++) {
        int32_t x = at->token[i];
        double law = at->draft ? draft[x] / draft_sum : 1;
        if (dsc_position_uniform(at, (uint32_t)i) * law * r.sum < r.row[x]) {
            *chosen = i;
            return DSC_OK;
        }
        if (at->draft)
            subtract(&r, draft, draft_sum, at->vocab);
        else
            strike_off(r.room, &r.sum, at->vocab, x);
        if (distinct)
            strike_off(draft, &draft_sum, at->vocab, x);
        if (distinct && !(draft_sum > 0))
            break; // that was all the draft model knows
    }
    if (rc)
        return rc;
    const double u = dsc_position_uniform(at, (uint32_t)at->count);
    *token = r.sum > 0 ? (int32_t)dsc_row_find(r.row, at->vocab, u * r.sum)
                       : dsc_draw(at->target, at->vocab, u);
    return DSC_OK;
}

static int verify(const dsc_verify_input *in, dsc_verdict *out, dsc_error *err)
{
    return dsc_walk_verify(in, choose, out, err);
}

const dsc_verifier_type dsc_verifier_multiround = {
    .name = "multiround",
    .summary = "candidates in order, each against what the ones before left of the target",
    .source = "SpecInfer Algorithm 2",
    .lossless = true,
    .tree = true,
    .laws = DSC_DRAFT_CHOSEN | DSC_DRAFT_IID,
    .verify = verify,
};

const dsc_verifier_type dsc_verifier_multiround_wor = {
    .name = "multiround-wor",
    .summary = "the same for candidates drawn without replacement",
    .source = "EAGLE-1; Jeon et al. 2024, recursive rejection sampling",
    .lossless = true,
    .tree = true,
    .laws = DSC_DRAFT_DISTINCT,
    .verify = verify,
};
