// SPDX-License-Identifier: Apache-2.0
// Sums of the counts of runs, the counts that the metrics are computed from, and the block
// efficiency that i.i.d. acceptance would give.
#include "sim/counts.h"

#include "theory/block.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

// The expected totals are those from the target calls on, in the same order.
enum { EXPECTED_FROM = offsetof(dsc_counts, target_calls) / sizeof(int64_t) };
_Static_assert((EXPECTED_FROM + DSC_EXPECTED_TOTALS) * sizeof(int64_t) ==
                   offsetof(dsc_counts, output_context),
               "expected totals are not those of dsc_counts");

// Of numbers of 8 bytes; nothing if the list is NULL.
static void clear(void *list, int64_t length)
{
    if (list)
        memset(list, 0, (size_t)length * sizeof(int64_t));
}

// Nothing if either list is NULL.
static void add(int64_t *sum, const int64_t *x, int64_t length)
{
    for (int64_t m = 0; sum && x && m < length; m++)
        sum[m] += x[m];
}

static void add_reals(double *sum, const double *x, int64_t length)
{
    for (int64_t m = 0; sum && x && m < length; m++)
        sum[m] += x[m];
}

int64_t dsc_counts_elements(const dsc_counts_room *room)
{
    // Of this size, the number of elements is an int64_t.
    const int64_t largest = INT32_MAX;
    if (!room || room->most < 0 || room->most > largest || room->limit < 0 || room->width < 0 ||
        room->width > largest || room->parallel < 0 || room->parallel > largest)
        return 0;
    return 2 * (room->most + 1) + dsc_lengths_count(room->limit) + room->width +
           room->parallel * room->parallel;
}

dsc_counts dsc_counts_in(int64_t *storage, const dsc_counts_room *room)
{
    if (!storage || !dsc_counts_elements(room))
        return (dsc_counts){0};
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
    if (!c)
        return;
    dsc_expected *e = c->expected;
    clear(c, DSC_COUNTS_TOTALS);
    clear(c->histogram, c->histogram_length);
    clear(c->lengths, c->lengths_length);
    clear(c->whole, c->histogram_length);
    clear(c->width, c->width_length);
    clear(c->parallel_steps, c->parallel_length * c->parallel_length);
    if (!e)
        return;
    clear(e, DSC_EXPECTED_TOTALS);
    clear(e->histogram, c->histogram_length);
    clear(e->lengths, c->lengths_length);
    clear(e->whole, c->histogram_length);
}

// Returns whether every list of x that `sum` has too is no longer there.
static bool fits(const dsc_counts *sum, const dsc_counts *x)
{
    return (!sum->histogram || x->histogram_length <= sum->histogram_length) &&
           (!sum->lengths || x->lengths_length <= sum->lengths_length) &&
           (!sum->width || x->width_length <= sum->width_length) &&
           (!sum->parallel_steps || !x->parallel_steps ||
            x->parallel_length == sum->parallel_length);
}

void dsc_counts_add(dsc_counts *sum, const dsc_counts *x)
{
    if (!sum || !x || !fits(sum, x))
        return;
    dsc_expected *e = sum->expected;
    const dsc_expected *y = x->expected;
    add((int64_t *)sum, (const int64_t *)x, DSC_COUNTS_TOTALS);
    add(sum->histogram, x->histogram, x->histogram_length);
    add(sum->lengths, x->lengths, x->lengths_length);
    add(sum->whole, x->whole, x->histogram_length);
    add(sum->width, x->width, x->width_length);
    add(sum->parallel_steps, x->parallel_steps, x->parallel_length * x->parallel_length);
    if (!e || !y)
        return;
    add_reals((double *)e, (const double *)y, DSC_EXPECTED_TOTALS);
    add_reals(e->histogram, y->histogram, x->histogram_length);
    add_reals(e->lengths, y->lengths, x->lengths_length);
    add_reals(e->whole, y->whole, x->histogram_length);
}

dsc_expected dsc_counts_real(const dsc_counts *c)
{
    dsc_expected x = {0};
    if (c && c->expected)
        return *c->expected;
    for (size_t i = 0; c && i < DSC_EXPECTED_TOTALS; i++)
        ((double *)&x)[i] = (double)((const int64_t *)c)[EXPECTED_FROM + i];
    return x;
}

// A list of counts or, if there are any, of expectations; empty where it was not counted.
static dsc_cell list(const int64_t *counts, const double *reals, int64_t length)
{
    return (dsc_cell){
        .type = DSC_CELL_LIST, .list = counts, .reals = reals, .i = counts || reals ? length : 0};
}

dsc_metric_counts dsc_counts_metrics(const dsc_counts *c)
{
    if (!c)
        return (dsc_metric_counts){0};
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
    return !c ? (double)NAN
              : dsc_metric_block_efficiency((double)c->output_tokens,
                                            dsc_counts_real(c).target_calls);
}

double dsc_iid_block_efficiency(const dsc_counts *c, int64_t limit)
{
    if (!c || limit < 0)
        return (double)NAN;
    const dsc_expected x = dsc_counts_real(c);
    double full = 0; // calls that accepted all that could be
    if (limit < c->histogram_length)
        full = c->expected ? x.histogram[limit] : (double)c->histogram[limit];
    double rate = x.num_accepted_tokens / (x.num_accepted_tokens + x.target_calls - full);
    if (!(x.target_calls > 0) || limit == 0)
        return x.target_calls > 0 ? 1 : (double)NAN;
    return 1 + dsc_iid_accepted(fmin(rate, 1), limit < INT_MAX ? (int)limit : INT_MAX);
}
