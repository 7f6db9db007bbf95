// SPDX-License-Identifier: Apache-2.0
// The arithmetic of controllers of the draft length.
//  - ema: SGLang's adaptive speculation (--speculative-adaptive): class AdaptiveStepSlot of
//    sgl-project/sglang, python/sglang/srt/speculative/adaptive_spec_params.py, commit 015c8726,
//    with its names. Each batch that verified drafts moves an average by ema_alpha towards
//    its mean of accepted tokens. After warmup_batches, every update_interval batches the length
//    falls while the average is at most the candidate below - 0.5 + down_hysteresis; if it did not
//    fall, it rises while the average is above the candidate - 0.5 + up_hysteresis. A length 0
//    drafts nothing; the next update tries the candidate above it. ceiling_coeff > 0 caps lengths
//    that do not rise at that multiple of the average.
//  - ucb: UCBSpec, Algorithm 4 of BanditSpec (Hou et al. 2025, arXiv 2505.15141), a bandit whose
//    arms are the candidates. CODE is ucb_length_spec_generate in generate_utils.py of
//    sail-sg/BanditSpec, commit a30f56d4, and UCB1 is Auer et al. 2002.
#include "sim/controller.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

// --- candidates ----------------------------------------------------------------------------------

int32_t dsc_candidates_add(dsc_candidates *c, int32_t k)
{
    int32_t i = 0;
    while (i < c->count && c->k[i] < k)
        i++;
    if (i < c->count && c->k[i] == k)
        return i;
    if (c->count == DSC_MOST_CANDIDATES)
        return -1;
    memmove(c->k + i + 1, c->k + i, (size_t)(c->count++ - i) * sizeof *c->k);
    c->k[i] = k;
    return i;
}

bool dsc_candidates_read(dsc_candidates *c, int32_t least, int32_t most, const char **text)
{
    c->count = 0;
    do {
        char *end;
        const double k = dsc_strtod(*text, &end);
        if (end == *text || !(k >= least && k <= most) || k != floor(k) ||
            dsc_candidates_add(c, (int32_t)k) < 0)
            return false;
        *text = end;
    } while (**text == '/' && (*text)++);
    return true;
}

// --- moving average ------------------------------------------------------------------------------

void dsc_ema_begin(dsc_ema *x, const dsc_candidates *c, int32_t initial)
{
    x->current = initial;
    x->average = c->k[initial] - 1;
    x->batches = 0;
}

// From a length of 0 the average says nothing about the next one.
static void leave_zero(dsc_ema *x, const dsc_candidates *c)
{
    x->current += x->current < c->count - 1;
    if (x->average < 0 && c->k[x->current])
        x->average = c->k[x->current] - 1;
}

static double fall_below(const dsc_ema *x, int32_t k)
{
    return (k ? k - 0.5 : 0.5) + x->down_hysteresis;
}

static void move(dsc_ema *x, const dsc_candidates *c)
{
    const int32_t before = x->current;
    while (x->current > 0 && x->average <= fall_below(x, c->k[x->current - 1]))
        x->current--;
    const bool fell = x->current < before;
    while (!fell && x->current < c->count - 1 &&
           x->average > c->k[x->current] - 0.5 + x->up_hysteresis)
        x->current++;
    const double ceiling = fmax(1, ceil(x->average * x->ceiling_coeff));
    while (x->ceiling_coeff > 0 && x->current <= before && x->current > 0 &&
           c->k[x->current] > ceiling)
        x->current--;
}

void dsc_ema_update(dsc_ema *x, const dsc_candidates *c, double accepted)
{
    if (c->k[x->current])
        x->average = (1 - x->ema_alpha) * x->average + x->ema_alpha * accepted;
    x->batches++;
    const double since = (double)x->batches - x->warmup_batches;
    if (since <= 0 || fmod(since, x->update_interval) != 0)
        return;
    if (c->k[x->current])
        move(x, c);
    else
        leave_zero(x, c);
}

// --- upper confidence bounds ---------------------------------------------------------------------

void dsc_ucb_begin(dsc_ucb *x)
{
    memset(x->sum, 0, sizeof x->sum);
    memset(x->steps, 0, sizeof x->steps);
    x->all = 0;
}

// The confidence radius of a candidate that n steps drafted. PAPER is Equation 6, where a reward is
// the number of emitted tokens, in [1, L + 1]; a reward by cost is not larger. CODE divides by the
// steps of all candidates, so that its radius orders nothing: after its first steps it is greedy.
static double radius_of(const dsc_ucb *x, const dsc_candidates *c, double n)
{
    const double t = (double)x->all, most = c->k[c->count - 1];
    if (x->radius == DSC_UCB_CODE)
        return sqrt(x->exploration_weight * log(t + 1) / t);
    if (x->radius == DSC_UCB_UCB1)
        return sqrt(x->exploration_weight * log(t) / n);
    const double unlikely = c->count * t * t * sqrt(1 + n) / x->delta;
    return most / 2 * sqrt((1 + n) / (n * n) * (1 + 2 * log(unlikely)));
}

int32_t dsc_ucb_choose(const dsc_ucb *x, const dsc_candidates *c)
{
    // Every candidate once; in the program, 2 K - 1 steps in turn.
    const int64_t in_turn = x->radius == DSC_UCB_CODE ? 2 * c->count - 1 : c->count;
    int32_t best = 0;
    double highest = -INFINITY;
    if (x->all < in_turn)
        return (int32_t)(x->all % c->count);
    for (int32_t i = 0; i < c->count; i++) {
        const double n = (double)x->steps[i], bound = x->sum[i] / n + radius_of(x, c, n);
        if (bound > highest) {
            highest = bound;
            best = i;
        }
    }
    return best;
}

void dsc_ucb_update(dsc_ucb *x, int32_t chosen, double reward)
{
    x->sum[chosen] += reward;
    x->steps[chosen]++;
    x->all++;
}
