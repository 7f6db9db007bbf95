// SPDX-License-Identifier: Apache-2.0
// The verdict: abstain where the evidence is missing, otherwise compare the winner of the selection
// set with `none` on the test set.
#include "sim/tune/advice.h"

#include "sim/tune/bootstrap.h"

#include <math.h>
#include <string.h>

// Returns why no verdict is possible, or NULL.
static const char *why_abstain(const dsc_tune *t, size_t price)
{
    const dsc_cost *cost = t->options.price[price].cost;
    if (t->options.objective == DSC_OBJECTIVE_BLOCK_EFFICIENCY)
        return "block efficiency does not contain the cost of drafting";
    if (!cost || strcmp(cost->type->name, "unit") == 0)
        return "cost model unit prices draft tokens at nothing";
    if (!(t->options.split > 0))
        return "the result is exploratory, because the configurations were selected and reported "
               "on "
               "the same requests";
    if (t->test < 2)
        return "the test set has fewer than 2 requests, so there is no interval";
    return NULL;
}

// The sums at a side (dsc_tune.sides).
static dsc_ratio sums_of(const dsc_tune *t, const dsc_trial *x, size_t price, size_t side)
{
    const size_t at = (side * t->options.prices + price) * (size_t)t->options.requests;
    return (dsc_ratio){x->top + at, x->bottom + at};
}

static const dsc_trial *find_none(const dsc_tune *t)
{
    for (size_t i = 0; i < t->trials; i++)
        if (t->trial[i].space->drafter == &dsc_drafter_none)
            return &t->trial[i];
    return NULL;
}

// An upper bound is no method, and a speedup alone does not justify a lossy rule.
static bool may_be_run(const dsc_trial *x, dsc_advice_fits *fits, const void *user)
{
    return !dsc_trial_is_bound(x) && x->rule->lossless && (!fits || fits(user, x));
}

// The speedup at a side. The objective speedup compares with no speculation at the other quartile
// by itself; for throughput that is `none` at the other side.
static double speedup_at(const dsc_tune *t, size_t price, const dsc_trial *x, const dsc_trial *none,
                         size_t side)
{
    const dsc_ratio mine = sums_of(t, x, price, side);
    const dsc_ratio without = sums_of(t, none, price, 3 - side);
    const double value = dsc_ratio_value(&mine, t->test_request, t->test, NULL);
    return t->options.objective == DSC_OBJECTIVE_SPEEDUP
               ? value
               : value / dsc_ratio_value(&without, t->test_request, t->test, NULL);
}

static void judge_cost(const dsc_tune *t, size_t price, const dsc_trial *x, const dsc_trial *none,
                       dsc_advice *out)
{
    if (t->sides < 3)
        return;
    out->cost_low = speedup_at(t, price, x, none, 1);
    out->cost_high = speedup_at(t, price, x, none, 2);
    if (out->kind == DSC_ADVICE_ON && !(out->cost_low > 1))
        out->caveat = "within the quartiles of the measured times the speedup falls to 1 or below";
    if (out->kind == DSC_ADVICE_OFF && out->cost_high > 1)
        out->caveat = "within the quartiles of the measured times the speedup rises above 1";
}

static int judge(const dsc_tune *t, size_t price, const dsc_trial *x, const dsc_trial *none,
                 int threads, dsc_advice *out, dsc_error *err)
{
    const dsc_resampling how = {t->test_request, t->test, t->options.resamples, t->options.seed,
                                threads};
    const dsc_ratio mine = sums_of(t, x, price, 0), without = sums_of(t, none, price, 0);
    dsc_ratio_interval ci;
    int rc = dsc_bootstrap_ratios(&how, &mine, 1, &without, &ci, err);
    if (rc)
        return rc;
    out->speedup = dsc_ratio_value(&mine, t->test_request, t->test, NULL) /
                   dsc_ratio_value(&without, t->test_request, t->test, NULL);
    out->low = ci.relative_low;
    out->high = ci.relative_high;
    out->kind = out->low > 1 ? DSC_ADVICE_ON : DSC_ADVICE_OFF;
    out->why = out->kind == DSC_ADVICE_ON
                   ? "the 95 % interval of the speedup on held-out requests lies above 1"
                   : "the 95 % interval of the speedup on held-out requests does not lie above 1";
    judge_cost(t, price, x, none, out);
    return DSC_OK;
}

int dsc_tune_advise(const dsc_tune *t, size_t price, const dsc_standing *standing,
                    dsc_advice_fits *fits, const void *user, int threads, dsc_advice *out,
                    dsc_error *err)
{
    const dsc_trial *none = find_none(t);
    *out = (dsc_advice){.speedup = NAN,
                        .low = NAN,
                        .high = NAN,
                        .cost_low = NAN,
                        .cost_high = NAN,
                        .why = why_abstain(t, price)};
    if (!none)
        return dsc_fail(err, DSC_EUSAGE, "a verdict compares with method none, which was not run");
    const dsc_trial *best = NULL; // of those that may be run
    bool drafts = false;          // one of them drafts
    bool lossy = false;           // some trial's rule is
    for (size_t i = 0; i < t->trials; i++) {
        const dsc_trial *x = &t->trial[standing[i].trial];
        lossy |= !x->rule->lossless;
        if (!may_be_run(x, fits, user))
            continue;
        out->standing = best ? out->standing : i;
        best = best ? best : x;
        drafts |= x->space->drafter != &dsc_drafter_none;
    }
    if (!drafts && !out->why)
        out->why = lossy ? "the rule is LOSSY, it changes the output, and a speedup does not weigh "
                           "that; draftscope theory lossy computes the price"
                   : fits ? "the engine has no setting for any configuration that was tried"
                          : "no method that drafts was tried";
    if (out->why)
        return DSC_OK;
    if (best->space->drafter == &dsc_drafter_none) {
        out->kind = DSC_ADVICE_OFF;
        out->why = "no configuration was faster than method none on the selection set";
        return DSC_OK;
    }
    return judge(t, price, best, none, threads, out, err);
}
