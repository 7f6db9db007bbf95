// SPDX-License-Identifier: Apache-2.0
// The acceptance metrics that metrics.h defines, computed from counts. Survivor counts S(i) are
// suffix sums of the histogram of accepted lengths. alpha_iid is the root of a polynomial with
// coefficients >= 0, which Newton's iteration from a = 1 approaches from above without
// overshooting.
#include "base/metrics.h"

#include <math.h>
#include <stdbool.h>

static double ratio(double a, double b)
{
    return b > 0 ? a / b : (double)NAN;
}

double dsc_metric_block_efficiency(double output_tokens, double target_calls)
{
    return ratio(output_tokens, target_calls);
}

static double element(const dsc_cell *list, int64_t i)
{
    return i < list->i ? dsc_cell_element(list, i) : 0;
}

// f(a) - accepted and its slope, where f(a) = sum over j of D(j) a^j and D(j) are the drafts of
// length j or more. The a^j are summed from the longest, as Horner's rule has it; D(j) on the way.
static double excess(const dsc_cell *lengths, double accepted, double a, double *slope)
{
    double at_least = 0, value = 0, derivative = 0;
    for (int64_t j = lengths->i - 1; j >= 1; j--) {
        at_least += dsc_cell_element(lengths, j);
        derivative = derivative * a + value;
        value = value * a + at_least;
    }
    *slope = derivative * a + value;
    return value * a - accepted;
}

static double alpha_iid(const dsc_metric_counts *c)
{
    enum { STEPS = 200 }; // quadratic convergence: about ten are taken
    double a = 1, slope;
    if (!(c->num_drafts > 0) || !c->lengths.i || isnan(c->num_accepted_tokens))
        return (double)NAN;
    if (!(c->num_accepted_tokens > 0))
        return 0;
    for (int i = 0; i < STEPS; i++) {
        const double f = excess(&c->lengths, c->num_accepted_tokens, a, &slope);
        if (!(f > 0)) // at a = 1: all was accepted
            break;
        const double next = a - f / slope;
        if (!(next < a))
            break;
        a = next;
    }
    return a;
}

// S(i) into m->acceptance_rate_pos[i - 1] and the drafts that reached position i and have it into
// m->reached[i - 1], for i up to `most`; the positions are those that were reached.
static void count_positions(dsc_metrics *m, const dsc_metric_counts *c, int64_t most)
{
    double survivors = 0;
    for (int64_t i = most; i >= 1; i--)
        m->acceptance_rate_pos[i - 1] = survivors += element(&c->accepted, i);
    for (int64_t i = 1; i <= most; i++) {
        m->reached[i - 1] =
            i == 1 ? c->num_drafts : m->acceptance_rate_pos[i - 2] - element(&c->whole, i - 1);
        if (m->reached[i - 1] > 0)
            m->positions = i;
    }
}

static bool is_list(const dsc_cell *x)
{
    return x->i == 0 || (x->i > 0 && (x->list || x->reals));
}

int dsc_metrics_init(dsc_metrics *m, const dsc_metric_counts *c, dsc_arena *arena, dsc_error *err)
{
    if (!m || !c || !arena)
        return dsc_fail(err, DSC_EUSAGE, "dsc_metrics_init: m, c and arena must not be NULL");
    if (!is_list(&c->accepted) || !is_list(&c->lengths) || !is_list(&c->whole))
        return dsc_fail(err, DSC_EUSAGE,
                        "dsc_metrics_init: c has a list of negative length or "
                        "without elements");
    // Where the lengths are known, a position after the last accepted one may have been rejected.
    const int64_t most = c->accepted.i ? c->accepted.i - 1 + (c->lengths.i > c->accepted.i) : 0;
    void *mem;
    *m = (dsc_metrics){.block_efficiency =
                           dsc_metric_block_efficiency(c->output_tokens, c->target_calls),
                       .mean_acceptance_length = 1 + ratio(c->num_accepted_tokens, c->num_drafts),
                       .draft_acceptance_rate = ratio(c->num_accepted_tokens, c->num_draft_tokens),
                       .alpha_iid = alpha_iid(c)};
    int rc = dsc_arena_alloc(arena, &mem, (size_t)most, 3 * sizeof(double), err);
    if (rc)
        return rc;
    m->acceptance_rate_pos = mem;
    m->conditional_acceptance_rate = m->acceptance_rate_pos + most;
    m->reached = m->conditional_acceptance_rate + most;
    count_positions(m, c, most);
    for (int64_t i = 0; i < m->positions; i++) {
        m->conditional_acceptance_rate[i] = ratio(m->acceptance_rate_pos[i], m->reached[i]);
        m->acceptance_rate_pos[i] /= c->num_drafts;
    }
    return DSC_OK;
}

void dsc_metrics_cells(const dsc_metrics *m, dsc_cell cell[DSC_METRICS])
{
    if (!m || !cell)
        return;
    const double *const list[] = {m->acceptance_rate_pos, m->conditional_acceptance_rate};
    const double number[] = {m->block_efficiency, m->mean_acceptance_length,
                             m->draft_acceptance_rate};
    for (int i = 0; i < 3; i++)
        cell[i] = (dsc_cell){.type = DSC_CELL_REAL, .r = number[i]};
    for (int i = 0; i < 2; i++)
        cell[3 + i] = (dsc_cell){.type = DSC_CELL_LIST, .reals = list[i], .i = m->positions};
    cell[5] = (dsc_cell){.type = DSC_CELL_REAL, .r = m->alpha_iid};
}
