// SPDX-License-Identifier: Apache-2.0
// The verdict at one load: choose on the even blocks, judge on the odd ones, by paired sums.
#include "sim/tune/advice_load.h"

#include "base/statistics.h"

#include <math.h>

// A goodput that is lower by less than this share counts as not lower.
static const double margin = 0.01;

// Where every row keeps fewer requests than this share within the SLO, the load is beyond it, and
// ratios of the few that are left mean nothing.
static const double least_kept = 0.1;

static const char too_short_for_it[] = "the runs are too short for a steady state (--requests)";

// A criterion of one row: a product of sums over groups, each to the power of 1 or -1.
typedef struct product {
    const double *part[2]; // [n] or NULL
    int power[2];
    const double *latency_s; // [n] 0: the group has no request and does not count
    size_t n;
} product;

static product product_of(const dsc_load_sums *x, dsc_load_criterion by, bool closed)
{
    const product goodput = {.part = {x->good, closed ? x->latency_s : NULL}, .power = {1, -1}},
                  engine = {.part = {x->engine_s}, .power = {-1}},
                  time = {.part = {x->latency_s}, .power = {-1}};
    product p = by == DSC_LOAD_OVERLOAD ? engine : by == DSC_LOAD_GOODPUT ? goodput : time;
    p.latency_s = x->latency_s;
    p.n = x->count;
    return p;
}

// Groups of `n` that take part: first, first + step, ...
typedef struct part {
    size_t first, step;
} part;
static const part to_choose = {0, 2}, to_judge = {1, 2}, all_batches = {0, 1};

static double total(const double *sum, size_t n, part of)
{
    double all = 0;
    for (size_t b = of.first; b < n; b += of.step)
        all += sum[b];
    return all;
}

static size_t count(const product *p, part of)
{
    size_t n = 0;
    for (size_t b = of.first; b < p->n; b += of.step)
        n += p->latency_s[b] > 0;
    return n;
}

// The logarithm of the ratio of two rows' criteria.
static double log_gain(const product *x, const product *none, part of)
{
    double gain = 0;
    for (int i = 0; i < 2 && x->part[i]; i++)
        gain += x->power[i] * log(total(x->part[i], x->n, of) / total(none->part[i], none->n, of));
    return gain;
}

// By how much group b moves log_gain: the difference of its shares of the sums.
static double moved(const product *x, const product *none, part of, size_t b)
{
    double moves = 0;
    for (int i = 0; i < 2 && x->part[i]; i++)
        moves += x->power[i] * (x->part[i][b] / total(x->part[i], x->n, of) -
                                none->part[i][b] / total(none->part[i], none->n, of));
    return moves;
}

// Half of the 95 % interval of log_gain. Groups that are next to each other may depend on each
// other up to a distance of `lags` (Newey and West 1987, with Bartlett's weights).
static double half_interval(const product *x, const product *none, part of, size_t lags)
{
    const double n = (double)count(x, of);
    double square = 0;
    for (size_t b = of.first; b < x->n; b += of.step) {
        const double own = moved(x, none, of, b);
        square += own * own;
        for (size_t lag = 1; lag <= lags && b + lag * of.step < x->n; lag++)
            square += 2 * (1 - (double)lag / (double)(lags + 1)) * own *
                      moved(x, none, of, b + lag * of.step);
    }
    return dsc_error_limit(1.959963984540054, (size_t)n, 1) * sqrt(square * n / (n - 1));
}

// Over the choice of requests and that of arrivals.
static double half_of_both(const dsc_load_row *x, const dsc_load_row *none, dsc_load_criterion by,
                           bool closed)
{
    const product block = product_of(&x->blocks, by, closed),
                  block_none = product_of(&none->blocks, by, closed),
                  batch = product_of(&x->batches, by, closed),
                  batch_none = product_of(&none->batches, by, closed);
    const double requests = half_interval(&block, &block_none, to_judge, 0),
                 arrivals = half_interval(&batch, &batch_none, all_batches, 3);
    return x->requests > x->distinct ? hypot(requests, arrivals) : fmax(requests, arrivals);
}

// Sets the gain with its interval on the blocks to judge on.
static void measure(const dsc_load_row *x, const dsc_load_row *none, bool closed,
                    dsc_load_advice *out)
{
    const dsc_load_sums *mine = &x->blocks, *without = &none->blocks;
    if (out->criterion == DSC_LOAD_GOODPUT) { // sums that may be 0
        const double good = total(mine->good, mine->count, to_judge),
                     before = total(without->good, without->count, to_judge);
        if (!(good > 0) || !(before > 0)) {
            out->gain = out->low = out->high = good > 0 ? INFINITY : before > 0 ? 0 : 1;
            return;
        }
    }
    const product p = product_of(mine, out->criterion, closed),
                  p_none = product_of(without, out->criterion, closed);
    const double gain = log_gain(&p, &p_none, to_judge),
                 half = half_of_both(x, none, out->criterion, closed);
    out->gain = exp(gain);
    out->low = exp(gain - half);
    out->high = exp(gain + half);
}

// --- choosing ------------------------------------------------------------------------------------

static const dsc_load_row *find_none(const dsc_load_row *row, size_t rows)
{
    for (size_t i = 0; i < rows; i++)
        if (row[i].none)
            return &row[i];
    return NULL;
}

// Whether the row is of the requests that `none` was served with.
static bool is_paired(const dsc_load_row *x, const dsc_load_row *none)
{
    return x->blocks.count == none->blocks.count && x->batches.count == none->batches.count &&
           x->requests == none->requests && x->tokens == none->tokens;
}

static bool competes(const dsc_load_row *x, const dsc_load_row *none)
{
    return !x->none && x->may_run && !x->too_short && is_paired(x, none);
}

static double chosen_goodput(const dsc_load_row *x, bool closed)
{
    const dsc_load_sums *s = &x->blocks;
    const double good = total(s->good, s->count, to_choose);
    return closed ? good / total(s->latency_s, s->count, to_choose) : good;
}

// The best of those that compete, saturated or not, on the blocks to choose on: of those with
// nearly the highest goodput, the best by the other criterion.
static const dsc_load_row *choose(const dsc_load_row *row, size_t rows, const dsc_load_row *none,
                                  bool saturated, bool closed, bool slo)
{
    const dsc_load_criterion by = saturated ? DSC_LOAD_OVERLOAD : DSC_LOAD_LATENCY;
    const product without = product_of(&none->blocks, by, closed);
    const dsc_load_row *best = NULL;
    double highest = 0, best_gain = NAN;
    for (size_t i = 0; i < rows; i++)
        if (competes(&row[i], none) && row[i].saturated == saturated && slo && !saturated)
            highest = fmax(highest, chosen_goodput(&row[i], closed));
    for (size_t i = 0; i < rows; i++) {
        const dsc_load_row *x = &row[i];
        if (!competes(x, none) || x->saturated != saturated ||
            (highest > 0 && chosen_goodput(x, closed) < (1 - margin) * highest))
            continue;
        const product mine = product_of(&x->blocks, by, closed);
        const double gain = log_gain(&mine, &without, to_choose);
        if (best && !(gain > best_gain))
            continue;
        best = x;
        best_gain = gain;
    }
    return best;
}

// Whether some row that may run keeps the SLO at this load.
static bool is_kept(const dsc_load_row *row, size_t rows, const dsc_load_row *none)
{
    for (size_t i = 0; i < rows; i++) {
        const dsc_load_row *x = &row[i];
        const part all = {0, 1};
        if ((x->none || competes(x, none)) &&
            total(x->blocks.good, x->blocks.count, all) >= least_kept * x->requests)
            return true;
    }
    return false;
}

// --- judging -------------------------------------------------------------------------------------

static bool judge_by(const dsc_load_row *x, const dsc_load_row *none, dsc_load_criterion by,
                     bool closed, dsc_load_advice *out)
{
    out->criterion = by;
    measure(x, none, closed, out);
    out->kind = out->low > 1 ? DSC_ADVICE_ON : DSC_ADVICE_OFF;
    out->why = out->kind == DSC_ADVICE_ON
                   ? "the 95 % interval of the gain on held-out requests lies above 1"
                   : "the 95 % interval of the gain on held-out requests does not lie above 1";
    return out->kind == DSC_ADVICE_ON;
}

static void judge(const dsc_load_row *x, const dsc_load_row *none, bool closed, bool slo,
                  dsc_load_advice *out)
{
    const dsc_load_criterion without_slo = closed ? DSC_LOAD_THROUGHPUT : DSC_LOAD_LATENCY;
    if (none->saturated) // without, no row that is saturated is judged
        judge_by(x, none, DSC_LOAD_OVERLOAD, closed, out);
    else if (!slo || (!judge_by(x, none, DSC_LOAD_GOODPUT, closed, out) && out->low >= 1 - margin))
        judge_by(x, none, without_slo, closed, out);
}

// Whether there are blocks to choose on, and at least two to judge on.
static bool has_enough(const dsc_load_row *none, bool closed)
{
    const product blocks = product_of(&none->blocks, DSC_LOAD_LATENCY, closed),
                  batches = product_of(&none->batches, DSC_LOAD_LATENCY, closed);
    return count(&blocks, to_choose) && count(&blocks, to_judge) > 1 &&
           count(&batches, all_batches) > 1;
}

void dsc_advise_load(const dsc_load_row *row, size_t rows, bool closed, bool slo,
                     dsc_load_advice *out)
{
    const dsc_load_row *none = find_none(row, rows);
    size_t able = 0, too_short = 0; // too_short: of those that draft
    *out = (dsc_load_advice){
        .row = SIZE_MAX, .gain = NAN, .low = NAN, .high = NAN, .all_saturated = true};
    for (size_t i = 0; none && i < rows; i++) {
        able += competes(&row[i], none);
        too_short += row[i].too_short && !row[i].none && row[i].may_run;
        out->all_saturated &= row[i].saturated;
    }
    if (!none)
        out->why = "there is no row of method none";
    else if (!able && too_short)
        out->why = too_short_for_it;
    else if (!able)
        out->why = "no configuration that drafts may be run";
    else if (!has_enough(none, closed))
        out->why = "there are fewer than 2 blocks of requests to judge on, so there is no interval";
    if (out->why)
        return;
    out->none_saturated = none->saturated;
    slo = slo && is_kept(row, rows, none);
    const dsc_load_row *best = choose(row, rows, none, false, closed, slo);
    if (best ? none->too_short : too_short > 0) {
        out->why = too_short_for_it;
        return;
    }
    if (!best && !none->saturated) {
        out->kind = DSC_ADVICE_OFF;
        out->why = "with every configuration that drafts the queue grows, and without it does not";
        return;
    }
    best = best ? best : choose(row, rows, none, true, closed, slo);
    out->row = (size_t)(best - row);
    judge(best, none, closed, slo, out);
}
