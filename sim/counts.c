// SPDX-License-Identifier: Apache-2.0
// Sums of the counts of runs, the counts that the metrics are computed from, and the block
// efficiency that i.i.d. acceptance would give.
#include "sim/counts.h"

#include "theory/block.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>

static void clear(int64_t *list, int64_t length)
{
    for (int64_t m = 0; m < length; m++)
        list[m] = 0;
}

static void add(int64_t *sum, const int64_t *x, int64_t length)
{
    for (int64_t m = 0; m < length; m++)
        sum[m] += x[m];
}

static void add_reals(double *sum, const double *x, int64_t length)
{
    for (int64_t m = 0; m < length; m++)
        sum[m] += x[m];
}

dsc_counts dsc_counts_zero(int64_t *histogram, int64_t most)
{
    clear(histogram, most + 1);
    return (dsc_counts){.histogram = histogram, .histogram_length = most + 1};
}

int64_t dsc_counts_elements(const dsc_counts_room *room)
{
    return 2 * (room->most + 1) + dsc_lengths_count(room->limit) + room->width +
           room->parallel * room->parallel;
}

dsc_counts dsc_counts_in(int64_t *storage, const dsc_counts_room *room)
{
    const int64_t lengths = dsc_lengths_count(room->limit);
    dsc_counts c = {.histogram = storage,
                    .histogram_length = room->most + 1,
                    .lengths_length = lengths,
                    .width_length = room->width,
                    .parallel_length = room->parallel};
    c.whole = c.histogram + c.histogram_length;
    c.lengths = c.whole + c.histogram_length;
    c.width = room->width ? c.lengths + lengths : NULL;
    c.parallel_steps = room->parallel ? c.lengths + lengths + room->width : NULL;
    return c;
}

void dsc_counts_clear(dsc_counts *c)
{
    dsc_counts old = *c;
    *c = dsc_counts_zero(c->histogram, c->histogram_length - 1);
    c->lengths = old.lengths;
    c->lengths_length = old.lengths_length;
    c->whole = old.whole;
    c->width = old.width;
    c->width_length = old.width_length;
    c->parallel_steps = old.parallel_steps;
    c->parallel_length = old.parallel_length;
    c->expected = old.expected;
    clear(c->lengths, c->lengths_length);
    clear(c->whole, c->whole ? c->histogram_length : 0);
    clear(c->width, c->width_length);
    clear(c->parallel_steps, c->parallel_length * c->parallel_length);
    if (c->expected) {
        dsc_expected *e = c->expected;
        *e = (dsc_expected){.histogram = e->histogram, .whole = e->whole, .lengths = e->lengths};
        for (int64_t m = 0; m < c->histogram_length; m++)
            e->histogram[m] = 0;
        for (int64_t m = 0; m < c->histogram_length && e->lengths; m++)
            e->whole[m] = 0;
        for (int64_t m = 0; m < c->lengths_length && e->lengths; m++)
            e->lengths[m] = 0;
    }
}

static void add_expected(dsc_expected *sum, const dsc_counts *counts)
{
    const dsc_expected *x = counts->expected;
    sum->target_calls += x->target_calls;
    sum->num_drafts_started += x->num_drafts_started;
    sum->num_drafts += x->num_drafts;
    sum->num_draft_tokens += x->num_draft_tokens;
    sum->num_accepted_tokens += x->num_accepted_tokens;
    sum->draft_calls += x->draft_calls;
    sum->draft_call_tokens += x->draft_call_tokens;
    sum->target_call_tokens += x->target_call_tokens;
    sum->target_call_context += x->target_call_context;
    add_reals(sum->histogram, x->histogram, counts->histogram_length);
    if (sum->lengths && x->lengths) {
        add_reals(sum->whole, x->whole, counts->histogram_length);
        add_reals(sum->lengths, x->lengths, counts->lengths_length);
    }
}

void dsc_counts_add(dsc_counts *sum, const dsc_counts *x)
{
    if (sum->expected && x->expected)
        add_expected(sum->expected, x);
    sum->requests += x->requests;
    sum->output_tokens += x->output_tokens;
    sum->target_calls += x->target_calls;
    sum->num_drafts_started += x->num_drafts_started;
    sum->num_drafts += x->num_drafts;
    sum->num_draft_tokens += x->num_draft_tokens;
    sum->num_accepted_tokens += x->num_accepted_tokens;
    sum->draft_calls += x->draft_calls;
    sum->draft_call_tokens += x->draft_call_tokens;
    for (int e = 0; e < DSC_MAX_EXTRA; e++)
        sum->extra[e] += x->extra[e];
    sum->target_call_tokens += x->target_call_tokens;
    sum->target_call_context += x->target_call_context;
    sum->output_context += x->output_context;
    add(sum->histogram, x->histogram, x->histogram_length);
    if (sum->lengths) {
        add(sum->lengths, x->lengths, x->lengths_length);
        add(sum->whole, x->whole, x->whole ? x->histogram_length : 0);
    }
    if (sum->width)
        add(sum->width, x->width, x->width_length);
    add(sum->parallel_steps, x->parallel_steps, x->parallel_length * x->parallel_length);
}

dsc_expected dsc_counts_real(const dsc_counts *c)
{
    if (c->expected)
        return *c->expected;
    return (dsc_expected){.target_calls = (double)c->target_calls,
                          .num_drafts_started = (double)c->num_drafts_started,
                          .num_drafts = (double)c->num_drafts,
                          .num_draft_tokens = (double)c->num_draft_tokens,
                          .num_accepted_tokens = (double)c->num_accepted_tokens,
                          .draft_calls = (double)c->draft_calls,
                          .draft_call_tokens = (double)c->draft_call_tokens,
                          .target_call_tokens = (double)c->target_call_tokens,
                          .target_call_context = (double)c->target_call_context};
}

// A list of counts or, if there are any, of expectations; empty where it was not counted.
static dsc_cell list(const int64_t *counts, const double *reals, int64_t length)
{
    return (dsc_cell){
        .type = DSC_CELL_LIST, .list = counts, .reals = reals, .i = counts || reals ? length : 0};
}

dsc_metric_counts dsc_counts_metrics(const dsc_counts *c)
{
    const dsc_expected x = dsc_counts_real(c);
    const bool expected = c->expected != NULL; // then the integers are 0
    return (dsc_metric_counts){
        .output_tokens = (double)c->output_tokens,
        .target_calls = x.target_calls,
        .num_drafts = x.num_drafts,
        .num_draft_tokens = x.num_draft_tokens,
        .num_accepted_tokens = x.num_accepted_tokens,
        .accepted = list(expected ? NULL : c->histogram, x.histogram, c->histogram_length),
        .lengths = list(expected ? NULL : c->lengths, x.lengths, c->lengths_length),
        .whole = list(expected ? NULL : c->whole, x.whole, c->histogram_length)};
}

double dsc_block_efficiency(const dsc_counts *c)
{
    return dsc_metric_block_efficiency((double)c->output_tokens, dsc_counts_real(c).target_calls);
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
