// SPDX-License-Identifier: Apache-2.0
// Histograms of accepted and drafted tokens over recorded steps, and sums for the autocorrelation
// of successive steps.
#include "traces/trace/accept_tally.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

void dsc_accept_tally_begin(dsc_accept_tally *t)
{
    t->previous = -1;
}

// Makes a list of *length counts as long as `need`, with zeros.
static int lengthen(int64_t **list, size_t *length, size_t *capacity, size_t need, dsc_error *err)
{
    int rc = need <= *length ? DSC_OK : dsc_resize(list, capacity, need, err);
    for (; !rc && *length < need; ++*length)
        (*list)[*length] = 0;
    return rc;
}

int dsc_accept_tally_add(dsc_accept_tally *t, int32_t accepted, int32_t drafted, dsc_error *err)
{
    assert(accepted >= 0 && accepted <= 65535 && (drafted < 0 || drafted >= accepted));
    size_t whole = t->depth, depth = (size_t)accepted + 1,
           longest = drafted < 0 ? 0 : (size_t)drafted + 1;
    int rc = lengthen(&t->whole, &whole, &t->whole_capacity, depth, err);
    if (!rc)
        rc = lengthen(&t->histogram, &t->depth, &t->histogram_capacity, depth, err);
    if (!rc)
        rc = lengthen(&t->lengths, &t->longest, &t->lengths_capacity, longest, err);
    if (rc)
        return rc;
    t->histogram[accepted]++;
    t->whole[accepted] += drafted == accepted;
    t->lengths_unknown |= drafted < 0;
    t->drafts += drafted != 0;
    if (drafted >= 0) {
        t->lengths[drafted]++;
        t->drafted += drafted;
    }
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
    free(t->histogram);
    free(t->whole);
    free(t->lengths);
    *t = (dsc_accept_tally){0};
}

static dsc_cell list(const int64_t *counts, size_t length)
{
    return (dsc_cell){.type = DSC_CELL_LIST, .list = counts, .i = (int64_t)length};
}

dsc_metric_counts dsc_accept_tally_counts(const dsc_accept_tally *t)
{
    return (dsc_metric_counts){.output_tokens = (double)(t->accepted + t->steps),
                               .target_calls = (double)t->steps,
                               .num_drafts = (double)t->drafts,
                               .num_draft_tokens =
                                   t->lengths_unknown ? (double)NAN : (double)t->drafted,
                               .num_accepted_tokens = (double)t->accepted,
                               .accepted = list(t->histogram, t->depth),
                               .lengths = list(t->lengths, t->lengths_unknown ? 0 : t->longest),
                               .whole = list(t->whole, t->depth)};
}

double dsc_accept_tally_autocorrelation(const dsc_accept_tally *t)
{
    double n = (double)t->pairs, x = (double)t->x, y = (double)t->y;
    double covariance = n * t->xy - x * y;
    double deviations = (n * t->xx - x * x) * (n * t->yy - y * y);
    return deviations > 0 ? covariance / sqrt(deviations) : NAN;
}
