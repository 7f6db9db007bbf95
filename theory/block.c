// SPDX-License-Identifier: Apache-2.0
// Accepted drafts, speedup and the best draft length of one draft sequence; theory/block.h.
// Leviathan, Kalman and Matias 2023, "Fast inference from transformers via speculative decoding".
// Eq. (1): block efficiency (1 - a^(L+1))/(1 - a) = 1 + accepted. Theorem 3.8: speedup (1 -
// a^(L+1))/((1 - a)(L c + 1)) with c = draft time/target time. With conditional acceptance rates
// h_j, accepted = sum over j of Pr(the first j are accepted) = sum over j of h_1 .. h_j.
#include "theory/block.h"

#include <math.h>
#include <stdbool.h>

double dsc_iid_accepted(double rate, int length)
{
    if (!(rate >= 0 && rate <= 1) || length < 0)
        return (double)NAN;
    if (length == 0 || rate == 0)
        return 0;
    if (rate == 1)
        return length;
    // 1 - a^L without cancellation where a is near 1.
    return rate * -expm1(length * log1p(rate - 1)) / (1 - rate);
}

double dsc_iid_rate(double accepted, int length)
{
    double lo = 0, hi = 1;
    if (!(accepted >= 0 && accepted <= length) || length < 1)
        return (double)NAN;
    if (accepted == 0 || accepted == length)
        return accepted == 0 ? 0 : 1;
    for (double mid = 0.5; lo < mid && mid < hi; mid = lo + (hi - lo) / 2)
        if (dsc_iid_accepted(mid, length) < accepted)
            lo = mid;
        else
            hi = mid;
    return hi;
}

static int check_dist(const dsc_acceptance *dist, int most, dsc_error *err)
{
    if (!dist)
        return dsc_fail(err, DSC_EUSAGE, "dist must not be NULL");
    if (most < 0 || most > DSC_BLOCK_LONGEST)
        return dsc_fail(err, DSC_EUSAGE, "draft length %d is not from 0 to %d", most,
                        DSC_BLOCK_LONGEST);
    if (!dist->conditional_rate) {
        if (!(dist->rate >= 0 && dist->rate <= 1))
            return dsc_fail(err, DSC_EUSAGE, "acceptance rate %g is not in [0, 1]", dist->rate);
        return DSC_OK;
    }
    if (most > dist->conditional_rates)
        return dsc_fail(err, DSC_EUSAGE,
                        "draft length %d exceeds the %d positions that have a conditional "
                        "acceptance rate",
                        most, dist->conditional_rates);
    for (int j = 0; j < most; j++)
        if (!(dist->conditional_rate[j] >= 0 && dist->conditional_rate[j] <= 1))
            return dsc_fail(err, DSC_EUSAGE,
                            "conditional acceptance rate %g of position %d is not in [0, 1]",
                            dist->conditional_rate[j], j + 1);
    return DSC_OK;
}

// Accepted drafts by length, one more per call; *reach is Pr(all so far are accepted).
static double next_accepted(const dsc_acceptance *dist, int length, double before, double *reach)
{
    if (!dist->conditional_rate)
        return dsc_iid_accepted(dist->rate, length);
    *reach *= dist->conditional_rate[length - 1];
    return before + *reach;
}

int dsc_block_accepted(const dsc_acceptance *dist, int most, double *accepted, dsc_error *err)
{
    int rc = check_dist(dist, most, err);
    if (!rc && !accepted)
        rc = dsc_fail(err, DSC_EUSAGE, "dsc_block_accepted: accepted must not be NULL");
    if (rc)
        return rc;
    double reach = 1;
    accepted[0] = 0;
    for (int length = 1; length <= most; length++)
        accepted[length] = next_accepted(dist, length, accepted[length - 1], &reach);
    return DSC_OK;
}

static bool is_cost(dsc_block_cost cost)
{
    return cost.draft >= 0 && cost.slope >= 0 && isfinite(cost.draft + cost.slope);
}

double dsc_block_speedup(double accepted, int length, dsc_block_cost cost)
{
    if (!(accepted >= 0 && isfinite(accepted)) || length < 0 || !is_cost(cost))
        return (double)NAN;
    return (accepted + 1) / (1 + length * (cost.draft + cost.slope));
}

int dsc_block_best_length(const dsc_acceptance *dist, int least, int most, dsc_block_cost cost,
                          dsc_block_best *best, dsc_error *err)
{
    int rc = check_dist(dist, most, err);
    if (!rc && !(least >= 0 && least <= most))
        rc = dsc_fail(err, DSC_EUSAGE, "no draft length from %d to %d", least, most);
    if (!rc && !is_cost(cost))
        rc = dsc_fail(err, DSC_EUSAGE, "costs %g and %g must be finite and not negative",
                      cost.draft, cost.slope);
    if (!rc && !best)
        rc = dsc_fail(err, DSC_EUSAGE, "dsc_block_best_length: best must not be NULL");
    if (rc)
        return rc;
    double accepted = 0, reach = 1;
    *best = (dsc_block_best){.speedup = -INFINITY};
    for (int length = 0; length <= most; length++) {
        if (length)
            accepted = next_accepted(dist, length, accepted, &reach);
        double speedup = dsc_block_speedup(accepted, length, cost);
        if (length >= least && speedup > best->speedup)
            *best = (dsc_block_best){length, accepted, speedup};
    }
    return DSC_OK;
}

int dsc_conditional_add(dsc_conditional_count *count, int most, int accepted, int drafted,
                        int64_t times, dsc_error *err)
{
    if (accepted < 0 || accepted > drafted || drafted > most || times < 0)
        return dsc_fail(err, DSC_EUSAGE,
                        "%d accepted of %d drafted, %lld times: 0 <= accepted <= drafted <= %d and "
                        "a count >= 0 are needed",
                        accepted, drafted, (long long)times, most);
    if (!count)
        return dsc_fail(err, DSC_EUSAGE, "dsc_conditional_add: count must not be NULL");
    if (drafted > 0 && count[0].at_risk > INT64_MAX - times) // no position has more
        return dsc_fail(err, DSC_EUSAGE, "%lld more steps than %lld overflow the counts",
                        (long long)times, (long long)count[0].at_risk);
    for (int j = 0; j < drafted && j <= accepted; j++) {
        count[j].at_risk += times;
        count[j].accepted += j < accepted ? times : 0;
    }
    return DSC_OK;
}

double dsc_conditional_rate(const dsc_conditional_count *count)
{
    if (!count || count->at_risk <= 0 || count->accepted < 0 || count->accepted > count->at_risk)
        return (double)NAN;
    return (double)count->accepted / (double)count->at_risk;
}
