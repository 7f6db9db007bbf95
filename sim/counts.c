// SPDX-License-Identifier: Apache-2.0
// Sums of counts, and the metrics that are ratios of them.
#include "sim/counts.h"

#include "theory/block.h"

#include <limits.h>
#include <math.h>

dsc_counts dsc_counts_zero(int64_t *histogram, int64_t most)
{
    for (int64_t m = 0; m <= most; m++)
        histogram[m] = 0;
    return (dsc_counts){.histogram = histogram, .histogram_length = most + 1};
}

void dsc_counts_clear(dsc_counts *c)
{
    dsc_counts old = *c;
    *c = dsc_counts_zero(c->histogram, c->histogram_length - 1);
    c->width = old.width;
    c->width_length = old.width_length;
    for (int64_t m = 0; m < c->width_length; m++)
        c->width[m] = 0;
    c->parallel_steps = old.parallel_steps;
    c->parallel_length = old.parallel_length;
    for (int64_t i = 0; i < c->parallel_length * c->parallel_length; i++)
        c->parallel_steps[i] = 0;
    c->expected = old.expected;
    for (int64_t m = 0; c->expected && m < c->histogram_length; m++)
        c->expected->histogram[m] = 0;
    if (c->expected)
        *c->expected = (dsc_expected){.histogram = c->expected->histogram};
}

static void add_expected(dsc_expected *sum, const dsc_expected *x, int64_t length)
{
    sum->target_calls += x->target_calls;
    sum->num_drafts += x->num_drafts;
    sum->num_draft_tokens += x->num_draft_tokens;
    sum->num_accepted_tokens += x->num_accepted_tokens;
    sum->draft_calls += x->draft_calls;
    sum->draft_call_tokens += x->draft_call_tokens;
    sum->target_call_tokens += x->target_call_tokens;
    sum->target_call_context += x->target_call_context;
    for (int64_t m = 0; m < length; m++)
        sum->histogram[m] += x->histogram[m];
}

void dsc_counts_add(dsc_counts *sum, const dsc_counts *x)
{
    if (sum->expected && x->expected)
        add_expected(sum->expected, x->expected, x->histogram_length);
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
    sum->target_call_context += x->target_call_context;
    sum->output_context += x->output_context;
    for (int64_t i = 0; i < x->parallel_length * x->parallel_length; i++)
        sum->parallel_steps[i] += x->parallel_steps[i];
}

dsc_expected dsc_counts_real(const dsc_counts *c)
{
    if (c->expected)
        return *c->expected;
    return (dsc_expected){.target_calls = (double)c->target_calls,
                          .num_drafts = (double)c->num_drafts,
                          .num_draft_tokens = (double)c->num_draft_tokens,
                          .num_accepted_tokens = (double)c->num_accepted_tokens,
                          .draft_calls = (double)c->draft_calls,
                          .draft_call_tokens = (double)c->draft_call_tokens,
                          .target_call_tokens = (double)c->target_call_tokens,
                          .target_call_context = (double)c->target_call_context};
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

double dsc_acceptance_rate(const dsc_counts *c)
{
    const dsc_expected x = dsc_counts_real(c);
    return ratio(x.num_accepted_tokens, x.num_draft_tokens);
}

double dsc_block_efficiency(const dsc_counts *c)
{
    return ratio((double)c->output_tokens, dsc_counts_real(c).target_calls);
}

double dsc_iid_block_efficiency(const dsc_counts *c, int64_t limit)
{
    const dsc_expected x = dsc_counts_real(c);
    double full = 0; // calls that accepted all that could be
    if (limit < c->histogram_length)
        full = c->expected ? x.histogram[limit] : (double)c->histogram[limit];
    double rate = x.num_accepted_tokens / (x.num_accepted_tokens + x.target_calls - full);
    if (!(x.target_calls > 0) || limit == 0)
        return x.target_calls > 0 ? 1 : (double)NAN;
    return 1 + dsc_iid_accepted(fmin(rate, 1), limit < INT_MAX ? (int)limit : INT_MAX);
}
