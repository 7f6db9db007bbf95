// SPDX-License-Identifier: Apache-2.0
#include "sim/counts.h"

#include <math.h>

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
