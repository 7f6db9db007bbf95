// SPDX-License-Identifier: Apache-2.0
#include "sim/counts.h"

#include <math.h>

void dsc_counts_clear(dsc_counts *c)
{
    dsc_counts old = *c;
    *c = dsc_counts_zero(c->histogram, c->histogram_length - 1);
    c->width = old.width;
    c->width_length = old.width_length;
    for (int64_t m = 0; m < c->width_length; m++)
        c->width[m] = 0;
    c->overlap = old.overlap;
    c->overlap_length = old.overlap_length;
    for (int64_t i = 0; i < c->overlap_length * c->overlap_length; i++)
        c->overlap[i] = 0;
}

void dsc_counts_add(dsc_counts *sum, const dsc_counts *x)
{
    sum->requests += x->requests;
    sum->output_tokens += x->output_tokens;
    sum->target_calls += x->target_calls;
    sum->num_drafts += x->num_drafts;
    sum->num_draft_tokens += x->num_draft_tokens;
    sum->num_accepted_tokens += x->num_accepted_tokens;
    for (int64_t m = 0; m < x->histogram_length; m++)
        sum->histogram[m] += x->histogram[m];
    sum->draft_calls += x->draft_calls;
    sum->draft_call_tokens += x->draft_call_tokens;
    for (int e = 0; e < DSC_MAX_EXTRA; e++)
        sum->extra[e] += x->extra[e];
    for (int64_t m = 0; m < x->width_length && sum->width; m++)
        sum->width[m] += x->width[m];
    sum->target_call_tokens += x->target_call_tokens;
    for (int64_t i = 0; i < x->overlap_length * x->overlap_length; i++)
        sum->overlap[i] += x->overlap[i];
}

static double ratio(int64_t a, int64_t b)
{
    return b ? (double)a / (double)b : (double)NAN;
}

double dsc_acceptance_rate(const dsc_counts *c)
{
    return ratio(c->num_accepted_tokens, c->num_draft_tokens);
}

double dsc_block_efficiency(const dsc_counts *c)
{
    return ratio(c->output_tokens, c->target_calls);
}
