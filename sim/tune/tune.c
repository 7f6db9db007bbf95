// SPDX-License-Identifier: Apache-2.0
// Tuning: the split of requests, trials with their sums per request, the search over a space, and
// the ranking with bootstrap intervals.
#include "sim/tune/tune.h"

#include "base/order.h"
#include "base/rng.h"
#include "sim/tune/bootstrap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 3 };
static const int quartile_of[SIDES] = {0, 1, -1};

// --- which requests ----------------------------------------------------------------------------

static double hash_of(const dsc_tune *t, size_t request)
{
    return dsc_rng_uniform(t->options.seed, request, 0, DSC_RNG_CHOOSE);
}

// The hash from which on requests are in the test set. 0: all of them are.
static int find_bound(const dsc_tune *t, size_t n, double *bound, dsc_error *err)
{
    double *hash;
    *bound = 0;
    if (!(t->options.split > 0))
        return DSC_OK;
    int rc = dsc_new(&hash, n, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        hash[i] = hash_of(t, i);
    qsort(hash, n, sizeof *hash, dsc_by_real);
    const double share = round(t->options.split * (double)n);
    *bound = hash[share < 1 ? 1 : share > (double)n - 1 ? n - 1 : (size_t)share];
    free(hash);
    return DSC_OK;
}

// The selection set consists of the requests with the smallest hashes of (seed, request).
static int split_requests(dsc_tune *t, dsc_error *err)
{
    const size_t n = (size_t)t->options.requests;
    double bound;
    int rc = find_bound(t, n, &bound, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++)
        if (hash_of(t, i) < bound)
            t->request[t->selection++] = (int64_t)i;
    t->test_request = t->request + t->selection;
    for (size_t i = 0; i < n; i++)
        if (!(hash_of(t, i) < bound))
            t->request[t->selection + t->test++] = (int64_t)i;
    t->selection = t->selection ? t->selection : n;
    return DSC_OK;
}

int dsc_tune_init(dsc_tune *t, const dsc_tune_options *options, dsc_error *err)
{
    *t = (dsc_tune){.options = *options, .sides = 1};
    for (size_t p = 0; p < options->prices; p++)
        if (options->price[p].cost && options->price[p].cost->spread)
            t->sides = SIDES;
    if (options->split > 0 && options->requests < 2)
        return dsc_fail(err, DSC_EUSAGE,
                        "a split takes at least 2 requests: select and report on all of them "
                        "(--split 0)");
    for (size_t p = 0; p < options->prices && options->objective == DSC_OBJECTIVE_SPEEDUP; p++) {
        const dsc_cost *cost = options->price[p].cost;
        if (cost && cost->no_plain)
            return dsc_fail(err, DSC_EINPUT, "--cost %s: no speedup: %s", cost->type->name,
                            cost->no_plain);
    }
    int rc = dsc_new(&t->request, (size_t)options->requests, err);
    rc = rc ?: split_requests(t, err);
    if (rc)
        dsc_tune_fini(t);
    return rc;
}

void dsc_tune_fini(dsc_tune *t)
{
    for (size_t i = 0; i < t->trials; i++)
        free(t->trial[i].top);
    free(t->trial);
    dsc_arena_fini(&t->lists);
    free(t->report);
    free(t->request);
    *t = (dsc_tune){0};
}

// --- trials ------------------------------------------------------------------------------------

static int check_memory(const dsc_tune *t, size_t trials, dsc_error *err)
{
    size_t each = 2 * sizeof(double) * t->options.prices * t->sides, limit = DSC_TUNE_MOST_BYTES,
           all;
    if (__builtin_mul_overflow(each, (size_t)t->options.requests, &all) ||
        __builtin_mul_overflow(all, trials, &all) || all > limit)
        return dsc_fail(err, DSC_EUSAGE,
                        "%zu configurations x %zu requests x %zu batch sizes take more than the "
                        "%zu MiB there are for them: try fewer values or a coordinate search, or "
                        "cut the trace (draftscope trace cut --sample)",
                        trials, (size_t)t->options.requests, t->options.prices, limit >> 20);
    return DSC_OK;
}

int dsc_tune_add(dsc_tune *t, const dsc_space *space, size_t point, dsc_trial **out, dsc_error *err)
{
    double *sums;
    size_t n = t->sides * t->options.prices * (size_t)t->options.requests;
    int rc = check_memory(t, t->trials + 1, err);
    rc = rc ?: dsc_resize(&t->trial, &t->trial_capacity, t->trials + 1, err);
    rc = rc ?: dsc_new(&sums, 2 * n, err);
    if (rc)
        return rc;
    *out = &t->trial[t->trials++];
    **out = (dsc_trial){.space = space, .point = point, .top = sums, .bottom = sums + n};
    return DSC_OK;
}

double dsc_trial_drafted(const dsc_trial *x)
{
    const dsc_trial_totals *t = &x->totals;
    return t->output_tokens ? t->num_draft_tokens / (double)t->output_tokens : 0;
}

// Prices one request at a quartile of the cost. The batch consists of requests like this one.
static int objective_cell(dsc_objective objective, const dsc_tune_price *price, int quartile,
                          const dsc_counts *c, double *top, double *bottom, dsc_error *err)
{
    if (objective == DSC_OBJECTIVE_BLOCK_EFFICIENCY) {
        *top = (double)c->output_tokens;
        *bottom = dsc_counts_real(c).target_calls;
        return DSC_OK;
    }
    if (!c->output_tokens) { // an empty output takes no time
        *top = *bottom = 0;
        return DSC_OK;
    }
    dsc_price p;
    dsc_cost cost = *price->cost;
    cost.quartile = quartile;
    int rc = dsc_price_run(&p, &cost, c, price->batch, err);
    *top =
        objective == DSC_OBJECTIVE_SPEEDUP ? p.plain_s : (double)(price->batch * c->output_tokens);
    *bottom = p.time_s;
    return rc;
}

static double objective(const dsc_tune *t, const dsc_trial *x, size_t price, const int64_t *request,
                        size_t requests)
{
    size_t at = price * (size_t)t->options.requests;
    return dsc_ratio_value(&(dsc_ratio){x->top + at, x->bottom + at}, request, requests, NULL);
}

// --- running them ------------------------------------------------------------------------------

// Configurations of a block run together. An interruption loses those of one block.
enum { NOT_YET = 0, REFUSED = -1, BLOCK = 16 };

// The search of one space.
typedef struct search {
    dsc_tune *t;
    const dsc_trace *trace;
    const dsc_space *space;
    const dsc_run_options *run;
    size_t price;
    int32_t *trial; // [space->total] 1 + the trial of a point, NOT_YET or REFUSED
    size_t first;   // trial of the configurations being run
    size_t count;
    size_t tried, refused;
} search;

static int on_request(void *user, const dsc_request *q, const dsc_counts *counts, dsc_error *err)
{
    const search *s = user;
    const dsc_tune_options *o = &s->t->options;
    int rc = DSC_OK;
    for (size_t c = 0; c < s->count && !rc; c++) {
        dsc_trial *x = &s->t->trial[s->first + c];
        for (size_t i = 0; i < s->t->sides * o->prices && !rc; i++) {
            const size_t at = i * (size_t)o->requests + (size_t)q->index;
            rc = objective_cell(o->objective, &o->price[i % o->prices], quartile_of[i / o->prices],
                                &counts[c], &x->top[at], &x->bottom[at], err);
        }
    }
    return rc;
}

static int on_progress(void *user, int64_t done, int64_t total)
{
    const search *s = user;
    int64_t before = (int64_t)s->tried, n = (int64_t)s->count;
    int64_t all = s->t->options.search == DSC_SEARCH_GRID ? (int64_t)(s->space->total - s->refused)
                                                          : before + n;
    return s->run->progress ? s->run->progress(s->run->user, before * total + n * done, all * total)
                            : 0;
}

static int take_totals(dsc_trial_totals *to, const dsc_counts *c, dsc_arena *arena, dsc_error *err)
{
    const dsc_metric_counts counts = dsc_counts_metrics(c);
    const dsc_expected real = dsc_counts_real(c);
    to->output_tokens = c->output_tokens;
    to->num_draft_tokens = real.num_draft_tokens;
    to->draft_calls = real.draft_calls;
    return dsc_metrics_init(&to->metrics, &counts, arena, err);
}

// Takes the counts of a trial [1 + groups].
static int take_counts(search *s, dsc_trial *x, const dsc_counts *c, dsc_error *err)
{
    const size_t groups = (size_t)s->run->groups;
    int rc = take_totals(&x->totals, c, &s->t->lists, err);
    if (!rc && groups)
        rc = dsc_arena_new(&s->t->lists, &x->groups, groups, err);
    for (size_t g = 0; g < groups && !rc; g++)
        rc = take_totals(&x->groups[g], &c[1 + g], &s->t->lists, err);
    return rc;
}

// Removes the trials from `first` on, which did not run to their end.
static void drop_trials(dsc_tune *t, size_t first)
{
    while (t->trials > first)
        free(t->trial[--t->trials].top);
}

// Runs prepared configurations, whose trials are the last ones.
static int run_configs(search *s, const dsc_config *config, size_t count, dsc_error *err)
{
    dsc_run_options run = *s->run;
    dsc_results results;
    run.request = on_request;
    run.progress = on_progress;
    run.user = s;
    s->count = count;
    s->first = s->t->trials - count;
    int rc = dsc_run(s->trace, config, count, &run, &results, err);
    if (rc) {
        drop_trials(s->t, s->first);
        return rc;
    }
    const size_t each = 1 + (size_t)run.groups;
    for (size_t c = 0; c < count && !rc; c++)
        rc = take_counts(s, &s->t->trial[s->first + c], &results.counts[c * each], err);
    dsc_results_fini(&results);
    s->tried += count;
    return rc;
}

// Prepares the configuration of a point and adds a trial. A configuration that its method refuses
// (such as a shortest match above the longest) has no value.
static int try_point(search *s, size_t point, dsc_config *config, size_t *n, dsc_error *err)
{
    dsc_trial *x;
    dsc_error why = {0};
    dsc_tune *t = s->t;
    config[*n] = dsc_space_at(s->space, point);
    int rc = dsc_config_prepare(&config[*n], &why);
    if (rc == DSC_EUSAGE) {
        dsc_config_fini(&config[*n]);
        if (!t->refused++)
            snprintf(t->why_refused, sizeof t->why_refused, "%.255s", why.message);
        s->refused++;
        s->trial[point] = REFUSED;
        return DSC_OK;
    }
    (*n)++;
    if (rc)
        return dsc_fail(err, rc, "%s", why.message);
    rc = dsc_tune_add(t, s->space, point, &x, err);
    if (rc)
        return rc;
    x->rule = s->run->rule ? s->run->rule : &dsc_verifier_greedy;
    s->trial[point] = (int32_t)t->trials;
    return DSC_OK;
}

// Runs the points that have not been tried yet.
static int try_points(search *s, const size_t *point, size_t n, dsc_error *err)
{
    dsc_config *config;
    int rc = dsc_new(&config, n < BLOCK ? n : BLOCK, err);
    for (size_t i = 0; i < n && !rc;) {
        size_t count = 0;
        for (; i < n && count < BLOCK && !rc; i++)
            if (s->trial[point[i]] == NOT_YET)
                rc = try_point(s, point[i], config, &count, err);
        if (!rc && count)
            rc = run_configs(s, config, count, err);
        for (size_t c = 0; c < count; c++)
            dsc_config_fini(&config[c]);
    }
    free(config);
    return rc;
}

static int evaluate(void *user, const size_t *point, size_t n, double *value, dsc_error *err)
{
    search *s = user;
    const dsc_tune *t = s->t;
    int rc = try_points(s, point, n, err);
    for (size_t i = 0; i < n && !rc; i++) {
        int32_t trial = s->trial[point[i]];
        value[i] = trial == REFUSED
                       ? (double)NAN
                       : objective(t, &t->trial[trial - 1], s->price, t->request, t->selection);
    }
    return rc;
}

static int add_report(search *s, const dsc_search_result *result, dsc_error *err)
{
    dsc_tune *t = s->t;
    int rc = dsc_resize(&t->report, &t->report_capacity, t->reports + 1, err);
    if (!rc)
        t->report[t->reports++] =
            (dsc_tune_report){s->space, s->price, *result, s->tried, s->refused};
    return rc;
}

static bool ascends(const dsc_space *s, size_t o)
{
    dsc_option_kind kind = s->drafter->option[o].kind;
    bool up = kind == DSC_OPTION_INT || kind == DSC_OPTION_REAL;
    for (size_t i = 1; i < s->count[o] && up; i++)
        up = kind == DSC_OPTION_INT ? s->value[o][i] > s->value[o][i - 1]
                                    : s->real[o][i] > s->real[o][i - 1];
    return up;
}

int dsc_tune_check(dsc_search_kind kind, const dsc_space *space, dsc_error *err)
{
    if (kind != DSC_SEARCH_GOLDEN || !space->axes)
        return DSC_OK;
    if (space->axes > 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "a golden section takes one parameter with several values, but %zu of "
                        "%s have several: try a coordinate search",
                        space->axes, space->drafter->name);
    if (!ascends(space, space->axis[0]))
        return dsc_fail(
            err, DSC_EUSAGE,
            "a golden section takes numbers in ascending order, unlike the values of %s "
            "of %s",
            space->drafter->option[space->axis[0]].name, space->drafter->name);
    return DSC_OK;
}

int dsc_tune_run(dsc_tune *t, const dsc_trace *trace, const dsc_space *space,
                 const dsc_run_options *run, dsc_error *err)
{
    search s = {.t = t, .trace = trace, .space = space, .run = run};
    const dsc_search how = {.kind = t->options.search,
                            .axes = space->axes,
                            .count = space->axis_count,
                            .start = space->axis_start,
                            .evaluate = evaluate,
                            .user = &s};
    int rc = dsc_tune_check(how.kind, space, err);
    if (!rc && how.kind == DSC_SEARCH_GRID)
        rc = check_memory(t, t->trials + space->total, err);
    rc = rc ?: dsc_new(&s.trial, space->total, err);
    if (rc)
        return rc;
    for (s.price = 0; s.price < t->options.prices && !rc; s.price++) {
        dsc_search_result result;
        rc = dsc_search_run(&how, &result, err);
        rc = rc ?: add_report(&s, &result, err);
    }
    free(s.trial);
    return rc;
}

// --- groups of requests --------------------------------------------------------------------------

int dsc_tune_group(const dsc_tune *t, const int32_t *of, int32_t group, dsc_tune *out,
                   dsc_error *err)
{
    const bool split = t->options.split > 0;
    *out = *t;
    out->trial = NULL;
    out->selection = out->test = 0;
    int rc = dsc_new(&out->request, (size_t)t->options.requests, err);
    rc = rc ?: dsc_new(&out->trial, t->trials, err);
    for (size_t i = 0; i < t->trials && !rc; i++) {
        out->trial[i] = t->trial[i];
        out->trial[i].totals = t->trial[i].groups[group];
    }
    for (size_t i = 0; i < t->selection && !rc; i++)
        if (of[t->request[i]] == group)
            out->request[out->selection++] = t->request[i];
    out->test_request = split ? out->request + out->selection : out->request;
    for (size_t i = 0; split && i < t->test && !rc; i++)
        if (of[t->test_request[i]] == group)
            out->request[out->selection + out->test++] = t->test_request[i];
    out->test = split ? out->test : out->selection;
    return rc;
}

void dsc_tune_group_fini(dsc_tune *out)
{
    free(out->trial);
    free(out->request);
    *out = (dsc_tune){0};
}

void dsc_tune_hurry(dsc_tune *t)
{
    enum { DRAWS = 4000000, LEAST = 100 }; // weights of requests, of about 100 ns each
    const size_t each = 3 * t->options.prices * (t->test ? t->test : 1); // to rank, and to judge
    const int most = (int)((size_t)DRAWS / each) & ~3;
    if (most < t->options.resamples)
        t->options.resamples = most > LEAST ? most : LEAST;
}

// --- ranking -----------------------------------------------------------------------------------

bool dsc_trial_is_bound(const dsc_trial *x)
{
    const dsc_drafter_type *d = x->space->drafter;
    const dsc_config config = dsc_space_at(x->space, x->point);
    return d->is_bound && d->is_bound(&config);
}

typedef struct order {
    double selection, drafted;
    bool bound;
    size_t trial;
} order;

static int by_dev(const void *a, const void *b)
{
    const order *x = a, *y = b;
    bool lost = isnan(x->selection), other = isnan(y->selection);
    if (x->bound != y->bound)
        return x->bound ? 1 : -1;
    if (lost != other)
        return lost ? 1 : -1;
    if (!lost && x->selection != y->selection)
        return x->selection > y->selection ? -1 : 1;
    if (x->drafted != y->drafted)
        return x->drafted < y->drafted ? -1 : 1;
    return (x->trial > y->trial) - (x->trial < y->trial);
}

static void stand(const dsc_tune *t, size_t price, const order *by, const dsc_ratio_interval *ci,
                  dsc_standing *out)
{
    // Sums in different orders differ in the last digits, which is no difference.
    const double same = 1e-9;
    for (size_t i = 0; i < t->trials; i++) {
        double test = objective(t, &t->trial[by[i].trial], price, t->test_request, t->test);
        out[i] = (dsc_standing){.trial = by[i].trial,
                                .selection = by[i].selection,
                                .test = test,
                                .low = ci[i].low,
                                .high = ci[i].high,
                                .ratio = i ? test / out[0].test : 1,
                                .ratio_low = ci[i].relative_low,
                                .ratio_high = ci[i].relative_high};
        out[i].significant = out[i].ratio_high < 1 - same || out[i].ratio_low > 1 + same;
    }
}

int dsc_tune_rank(const dsc_tune *t, size_t price, int threads, dsc_standing **out, dsc_error *err)
{
    order *o;
    dsc_ratio *sums = NULL;
    dsc_ratio_interval *ci = NULL;
    *out = NULL;
    int rc = dsc_new(&o, t->trials, err);
    rc = rc ?: dsc_new(&sums, t->trials, err);
    rc = rc ?: dsc_new(&ci, t->trials, err);
    rc = rc ?: dsc_new(out, t->trials, err);
    for (size_t i = 0; i < t->trials && !rc; i++)
        o[i] = (order){objective(t, &t->trial[i], price, t->request, t->selection),
                       dsc_trial_drafted(&t->trial[i]), dsc_trial_is_bound(&t->trial[i]), i};
    if (!rc && t->trials)
        qsort(o, t->trials, sizeof *o, by_dev);
    for (size_t i = 0; i < t->trials && !rc; i++) {
        const dsc_trial *x = &t->trial[o[i].trial];
        size_t at = price * (size_t)t->options.requests;
        sums[i] = (dsc_ratio){x->top + at, x->bottom + at};
    }
    const dsc_resampling how = {t->test_request, t->test, t->options.resamples, t->options.seed,
                                threads};
    if (!rc && t->trials)
        rc = dsc_bootstrap_ratios(&how, sums, t->trials, &sums[0], ci, err);
    if (!rc)
        stand(t, price, o, ci, *out);
    free(o);
    free(sums);
    free(ci);
    if (rc) {
        free(*out);
        *out = NULL;
    }
    return rc;
}
