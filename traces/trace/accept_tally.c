// SPDX-License-Identifier: Apache-2.0
// Counts accepted tokens per step and computes block efficiency, conditional acceptance rates (the
// Kaplan-Meier estimate) and the lag-1 autocorrelation.
#include "traces/trace/accept_tally.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

void dsc_accept_tally_begin(dsc_accept_tally *t)
{
    t->previous = -1;
}

static int deepen(dsc_accept_tally *t, size_t depth, dsc_error *err)
{
    int rc = dsc_resize(&t->stopped, &t->stopped_capacity, depth, err);
    if (!rc)
        rc = dsc_resize(&t->whole, &t->whole_capacity, depth, err);
    for (; !rc && t->depth < depth; t->depth++)
        t->stopped[t->depth] = t->whole[t->depth] = 0;
    return rc;
}

int dsc_accept_tally_add(dsc_accept_tally *t, int32_t accepted, int32_t drafted, dsc_error *err)
{
    assert(accepted >= 0 && accepted <= 65535 && (drafted < 0 || drafted >= accepted));
    int rc = (size_t)accepted < t->depth ? DSC_OK : deepen(t, (size_t)accepted + 1, err);
    if (rc)
        return rc;
    (drafted == accepted ? t->whole : t->stopped)[accepted]++;
    t->lengths_unknown |= drafted < 0;
    if (t->steps > 0 && t->previous >= 0) {
        double x = t->previous, y = accepted;
        t->pairs++;
        t->x += t->previous;
        t->y += accepted;
        t->xx += x * x;
        t->yy += y * y;
        t->xy += x * y;
    }
    t->steps++;
    t->accepted += accepted;
    t->previous = accepted;
    return DSC_OK;
}

void dsc_accept_tally_fini(dsc_accept_tally *t)
{
    free(t->stopped);
    free(t->whole);
    *t = (dsc_accept_tally){0};
}

double dsc_accept_tally_block_efficiency(const dsc_accept_tally *t)
{
    return t->steps ? (double)(t->accepted + t->steps) / (double)t->steps : NAN;
}

double dsc_accept_tally_conditional_rate(const dsc_accept_tally *t, int32_t i, int64_t *reached)
{
    int64_t deeper = 0;
    *reached = 0;
    if (i < 1 || i > dsc_accept_tally_depth(t))
        return NAN;
    for (size_t a = (size_t)i; a < t->depth; a++)
        deeper += t->stopped[a] + t->whole[a];
    *reached = deeper + t->stopped[i - 1];
    return (double)deeper / (double)*reached;
}

int32_t dsc_accept_tally_depth(const dsc_accept_tally *t)
{
    if (t->depth == 0)
        return 0;
    // A rejection after the largest count means that one more token was drafted, unless draft
    // lengths are unknown.
    bool rejected = t->stopped[t->depth - 1] > 0 && !t->lengths_unknown;
    return (int32_t)t->depth - 1 + rejected;
}

double dsc_accept_tally_autocorrelation(const dsc_accept_tally *t)
{
    double n = (double)t->pairs, x = (double)t->x, y = (double)t->y;
    double covariance = n * t->xy - x * y;
    double deviations = (n * t->xx - x * x) * (n * t->yy - y * y);
    return deviations > 0 ? covariance / sqrt(deviations) : NAN;
}
