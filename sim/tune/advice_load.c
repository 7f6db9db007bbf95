// SPDX-License-Identifier: Apache-2.0
// The verdict at one load: the utility of every row against that of no speculation, by paired sums.
#include "sim/tune/advice_load.h"

#include "base/rng.h"
#include "base/statistics.h"

#include <math.h>
#include <stdlib.h>

static const double late_worth = 0.1;              // of a request that misses the SLO
static const double rounding = 1e-12;              // of sums of shares
static const double normal_95 = 1.959963984540054; // 0.975 quantile

// --- utility -------------------------------------------------------------------------------------

double dsc_load_worth(double within)
{
    return late_worth + (1 - late_worth) * within;
}

static double utility(const dsc_load_row *x, bool closed)
{
    return x->saturated
               ? x->tokens_per_s
               : dsc_load_worth(x->within) * (closed ? x->tokens_per_s : 1 / x->e2e_mean_s);
}

// --- the interval --------------------------------------------------------------------------------

// Sums over groups with their totals.
typedef struct sums {
    const dsc_load_sums *of;
    double requests, good, latency_s, engine_s;
    double elasticity; // by which groups move each other; 0: they do not
} sums;

static double total(const double *sum, size_t n)
{
    double all = 0;
    for (size_t i = 0; i < n; i++)
        all += sum[i];
    return all;
}

static sums sums_of(const dsc_load_sums *x, double elasticity)
{
    return (sums){x,
                  total(x->requests, x->count),
                  total(x->good, x->count),
                  total(x->latency_s, x->count),
                  total(x->engine_s, x->count),
                  elasticity};
}

// By how much the logarithm of a row's utility changes with the weight of group i.
static double influence(const sums *x, size_t i, bool queues)
{
    const double requests = x->of->requests[i], good = x->of->good[i],
                 engine = x->of->engine_s[i] / x->engine_s;
    const double worth = requests * dsc_load_worth(good / requests),
                 all_worth = x->requests * dsc_load_worth(x->good / x->requests);
    return queues ? -engine
                  : worth / all_worth - x->of->latency_s[i] / x->latency_s +
                        x->elasticity * (engine - requests / x->requests);
}

static size_t count(const dsc_load_sums *x)
{
    size_t n = 0;
    for (size_t i = 0; i < x->count; i++)
        n += x->requests[i] > 0;
    return n;
}

static bool has_interval(const dsc_load_row *none)
{
    return count(&none->blocks) > 1 && count(&none->batches) > 1;
}

// Writes by how much each group that has requests moves log(utility of x / utility of none), and
// returns their number.
static size_t differences(const sums *x, const sums *none, bool queues, double *moved)
{
    size_t n = 0;
    for (size_t i = 0; i < none->of->count; i++)
        if (none->of->requests[i] > 0)
            moved[n++] = influence(x, i, queues) - influence(none, i, queues);
    return n;
}

// Of the sum of these, which may depend on each other up to a distance of `lags` (Newey and West
// 1987, with Bartlett's weights).
static double standard_error(const double *moved, size_t n, size_t lags)
{
    double square = 0;
    for (size_t i = 0; i < n; i++) {
        square += moved[i] * moved[i];
        for (size_t lag = 1; lag <= lags && lag <= i; lag++)
            square += 2 * (1 - (double)lag / (double)(lags + 1)) * moved[i] * moved[i - lag];
    }
    return sqrt(fmax(square, 0) * (double)n / (double)(n - 1));
}

// --- limits that hold together -------------------------------------------------------------------

// A row's differences over blocks, and its standard error of log(gain).
typedef struct comparison {
    double *moved; // [n]
    size_t n;      // 0: there is no interval
    double error;
} comparison;

// Over the choice of requests and that of arrivals; `moved` has room for blocks or batches.
static comparison compare_groups(const dsc_load_row *x, const dsc_load_row *none, bool closed,
                                 double *moved)
{
    const bool queues = x->saturated;
    const sums blocks = sums_of(&x->blocks, closed ? 0 : x->elasticity),
               blocks_none = sums_of(&none->blocks, closed ? 0 : none->elasticity),
               batches = sums_of(&x->batches, 0), batches_none = sums_of(&none->batches, 0);
    size_t n = differences(&batches, &batches_none, queues, moved);
    const double arrivals = standard_error(moved, n, 3);
    const double more = dsc_error_limit(normal_95, n, 1);
    n = differences(&blocks, &blocks_none, queues, moved);
    const double requests = standard_error(moved, n, 0);
    // Both in units of the blocks' limit, which has other degrees of freedom.
    const double same = arrivals * more / dsc_error_limit(normal_95, n, 1);
    return (comparison){moved, n,
                        x->requests > x->distinct ? hypot(requests, same) : fmax(requests, same)};
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The sum of a row's differences with random signs, in standard errors.
static double deviation(const comparison *x, const uint32_t bits[4])
{
    double sum = 0, square = 0;
    for (size_t i = 0; i < x->n; i++) {
        sum += bits[i / 32 % 4] >> i % 32 & 1 ? x->moved[i] : -x->moved[i];
        square += x->moved[i] * x->moved[i];
    }
    return square > rounding * rounding ? fabs(sum) / sqrt(square) : 0;
}

// How many standard errors no row exceeds by chance in 95 % of cases: 1.96, that of one row, times
// by how much the largest deviation of all rows exceeds that of one in the 95 % quantile, when the
// signs of blocks are drawn, the same for all rows (wild bootstrap; Romano and Wolf 2005, "Exact
// and approximate stepdown methods for multiple hypothesis testing"). So rows that differ little
// count as hardly more than one.
static double joint_limit(const comparison *x, size_t rows)
{
    enum { DRAWS = 2000, AT = DRAWS * 95 / 100 };
    double one[DRAWS], largest[DRAWS];
    for (uint32_t d = 0; d < DRAWS; d++) {
        uint32_t bits[4];
        dsc_rng_words(0, d, 0, DSC_RNG_BOOTSTRAP, bits);
        one[d] = largest[d] = 0;
        for (size_t r = 0; r < rows; r++) {
            const double own = deviation(&x[r], bits);
            one[d] = one[d] > 0 ? one[d] : own;
            largest[d] = fmax(largest[d], own);
        }
    }
    qsort(one, DRAWS, sizeof *one, ascending);
    qsort(largest, DRAWS, sizeof *largest, ascending);
    return one[AT] > 0 ? normal_95 * largest[AT] / one[AT] : normal_95;
}

// --- the gain ------------------------------------------------------------------------------------

// Whether the row is of the requests that `none` was served with.
static bool is_paired(const dsc_load_row *x, const dsc_load_row *none)
{
    return x->blocks.count == none->blocks.count && x->batches.count == none->batches.count &&
           x->requests == none->requests && x->tokens == none->tokens;
}

static dsc_load_gain compare(const dsc_load_row *x, const dsc_load_row *none, bool closed)
{
    dsc_load_gain g = {NAN, NAN, NAN, x->saturated || none->saturated};
    if (!x->too_short && !none->too_short && is_paired(x, none))
        g.gain = g.of_queues ? x->tokens_per_s / none->tokens_per_s
                             : utility(x, closed) / utility(none, closed);
    return g;
}

static const dsc_load_row *find_none(const dsc_load_row *row, size_t rows)
{
    for (size_t i = 0; i < rows; i++)
        if (row[i].none)
            return &row[i];
    return NULL;
}

// The intervals of all rows but `none`, whose gain is 1 in any case.
static int find_intervals(dsc_load_row *row, size_t rows, const dsc_load_row *none, bool closed,
                          dsc_error *err)
{
    const size_t groups =
        none->blocks.count > none->batches.count ? none->blocks.count : none->batches.count;
    comparison *x = NULL;
    double *moved = NULL;
    int rc = dsc_new(&x, rows, err);
    rc = rc ? rc : dsc_new(&moved, rows * groups, err);
    for (size_t i = 0; i < rows && !rc; i++)
        if (!isnan(row[i].than_none.gain) && row[i].saturated == none->saturated)
            x[i] = compare_groups(&row[i], none, closed, moved + i * groups);
    const double limit = rc ? NAN : joint_limit(x, rows);
    for (size_t i = 0; i < rows && !rc; i++) {
        dsc_load_gain *g = &row[i].than_none;
        const double half = dsc_error_limit(limit, x[i].n, 1) * x[i].error;
        g->low = x[i].n ? g->gain * exp(-half) : NAN;
        g->high = x[i].n ? g->gain * exp(half) : NAN;
    }
    free(moved);
    free(x);
    return rc;
}

int dsc_compare_load(dsc_load_row *row, size_t rows, bool closed, dsc_error *err)
{
    const dsc_load_row *none = find_none(row, rows);
    for (size_t i = 0; i < rows; i++)
        row[i].than_none = none ? compare(&row[i], none, closed)
                                : (dsc_load_gain){NAN, NAN, NAN, row[i].saturated};
    return none && has_interval(none) ? find_intervals(row, rows, none, closed, err) : DSC_OK;
}

// --- the verdict ---------------------------------------------------------------------------------

static bool competes(const dsc_load_row *x, const dsc_load_row *none)
{
    return !x->none && x->may_run && !x->too_short && is_paired(x, none);
}

// The best of those that compete, saturated or not.
static const dsc_load_row *choose(const dsc_load_row *row, size_t rows, const dsc_load_row *none,
                                  bool saturated, bool closed)
{
    const dsc_load_row *best = NULL;
    for (size_t i = 0; i < rows; i++)
        if (competes(&row[i], none) && row[i].saturated == saturated &&
            (!best || utility(&row[i], closed) > utility(best, closed)))
            best = &row[i];
    return best;
}

void dsc_advise_load(const dsc_load_row *row, size_t rows, bool closed, dsc_load_advice *out)
{
    static const char too_short_for_it[] = "the runs are too short for a steady state (--requests)";
    const dsc_load_row *none = find_none(row, rows);
    size_t able = 0, too_short = 0; // too_short: of those that draft
    *out = (dsc_load_advice){.row = SIZE_MAX, .all_saturated = true};
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
    else if (!has_interval(none))
        out->why = "there are fewer than 2 blocks of requests, so there is no interval";
    if (out->why)
        return;
    const dsc_load_row *best = choose(row, rows, none, false, closed);
    if (best ? none->too_short : too_short > 0) {
        out->why = too_short_for_it;
        return;
    }
    if (!best && !none->saturated) {
        out->kind = DSC_ADVICE_OFF;
        out->why = "with every configuration that drafts the queue grows, and without it does not";
        return;
    }
    best = best ? best : choose(row, rows, none, true, closed);
    out->row = (size_t)(best - row);
    const bool alone = none->saturated && !best->saturated;
    out->kind = alone || best->than_none.low > 1 ? DSC_ADVICE_ON : DSC_ADVICE_OFF;
}
