// SPDX-License-Identifier: Apache-2.0
// The capacity of an engine, and the lengths of runs.
#include "sim/serve/serve_steady.h"

#include "sim/serve/serve_policy.h"

#include <limits.h>
#include <math.h>

// --- capacity ------------------------------------------------------------------------------------

enum { ENOUGH = INT_MAX, MOST_UNUSED = 20000 }; // ENOUGH ends a run; no error

// A run in which requests wait.
typedef struct backlog {
    const dsc_serve_options *options; // the caller's
    double rounds;                    // of the running requests that are complete before it counts
    int64_t least, last;              // completions that count; the last one, 0 before
    double begin_s, area;
    int64_t tokens;
    double tokens_per_s, running; // 0: none waited
} backlog;

static int on_step(void *user, const dsc_serve_engine *e, dsc_error *err)
{
    backlog *b = user;
    const dsc_serve_totals *t = e->totals;
    const int64_t running = e->running_count;
    int rc = b->options->step ? b->options->step(b->options->user, e, err) : DSC_OK;
    if (rc)
        return rc;
    if (!b->last && t->completed > MOST_UNUSED + 64 * (int64_t)e->options->max_num_seqs)
        return ENOUGH; // none waits
    if (!b->last && dsc_serve_waiting(e) && (double)t->completed >= b->rounds * (double)running) {
        b->begin_s = e->now_s;
        b->tokens = t->output_tokens;
        b->area = t->running_area;
        b->last = t->completed + (b->least > 4 * running ? b->least : 4 * running);
    }
    if (!b->last || t->completed < b->last)
        return DSC_OK;
    b->tokens_per_s = (double)(t->output_tokens - b->tokens) / (e->now_s - b->begin_s);
    b->running = (t->running_area - b->area) / (e->now_s - b->begin_s);
    return ENOUGH;
}

static int run(backlog *b, const dsc_serve_pool *pool, const dsc_arrivals *arrivals,
               const dsc_serve_price *price, dsc_serve_policy *policy,
               const dsc_serve_options *options, int32_t sequences, dsc_error *err)
{
    dsc_serve_totals totals;
    dsc_serve_options o = *options;
    o.requests = INT64_MAX / 4;
    o.ramp = 0;
    o.drain = false;
    o.max_num_seqs = sequences;
    o.pass = NULL;
    o.complete = NULL;
    o.step = on_step;
    o.user = b;
    b->options = options;
    const int rc = dsc_serve_run(&totals, pool, arrivals, price, policy, &o, err);
    dsc_serve_totals_fini(&totals);
    return rc == ENOUGH ? DSC_OK : rc;
}

static double mean_output(const dsc_serve_pool *pool)
{
    double sum = 0;
    for (size_t i = 0; i < pool->count; i++)
        sum += pool->item[i].output;
    return sum / (double)pool->count;
}

static int find_alone(double *seconds, const dsc_serve_pool *pool, const dsc_serve_price *price,
                      dsc_serve_policy *policy, const dsc_serve_options *options, dsc_error *err)
{
    enum { SOME = 32 };
    const dsc_arrivals arrivals = {.kind = DSC_ARRIVALS_CLOSED, .clients = 1};
    dsc_serve_totals totals;
    dsc_serve_options o = *options;
    o.requests = pool->count < SOME ? (int64_t)pool->count : SOME;
    o.ramp = 0;
    o.drain = true;
    o.pass = NULL;
    o.complete = NULL;
    const int rc = dsc_serve_run(&totals, pool, &arrivals, price, policy, &o, err);
    *seconds = rc ? (double)NAN : dsc_latency_mean(&totals.e2e);
    dsc_serve_totals_fini(&totals);
    return rc;
}

// With at most this many sequences.
static int find(dsc_serve_capacity *out, const dsc_serve_pool *pool, const dsc_serve_price *price,
                dsc_serve_policy *policy, const dsc_serve_options *options, int32_t sequences,
                dsc_error *err)
{
    const bool reads_rate = policy->type == &dsc_serve_policy_off_above;
    dsc_arrivals arrivals = {.kind = DSC_ARRIVALS_CLOSED, .clients = 2 * (int64_t)sequences};
    backlog b = {.rounds = 1, .least = reads_rate ? 1000 : 0};
    int rc = run(&b, pool, &arrivals, price, policy, options, sequences, err);
    if (!rc && !reads_rate) {
        backlog open = {.rounds = 2, .least = 1000};
        arrivals = (dsc_arrivals){.kind = DSC_ARRIVALS_POISSON,
                                  .rate = 2 * b.tokens_per_s / mean_output(pool),
                                  .seed = pool->seed};
        rc = run(&open, pool, &arrivals, price, policy, options, sequences, err);
        b = open.last ? open : b;
    }
    if (!rc)
        *out = (dsc_serve_capacity){.qps = b.tokens_per_s / mean_output(pool),
                                    .running = b.running,
                                    .alone_s = out->alone_s,
                                    .bounded = sequences < options->max_num_seqs};
    return rc;
}

int dsc_serve_capacity_find(dsc_serve_capacity *out, const dsc_serve_pool *pool,
                            const dsc_serve_price *price, dsc_serve_policy *policy,
                            const dsc_serve_options *options, dsc_error *err)
{
    int32_t n = options->max_num_seqs;
    *out = (dsc_serve_capacity){.qps = NAN, .running = NAN};
    int rc = find_alone(&out->alone_s, pool, price, policy, options, err);
    if (rc)
        return rc;
    do // where the cost model has no time for that many, fewer are tried
        rc = find(out, pool, price, policy, options, n, err);
    while ((rc == DSC_EINPUT || rc == DSC_EUSAGE) && (n /= 2));
    return rc;
}

static double share_of(const dsc_serve_capacity *c, const dsc_arrivals *a)
{
    return dsc_arrivals_rate(a) / c->qps;
}

bool dsc_serve_is_saturated(const dsc_serve_capacity *c, const dsc_arrivals *a)
{
    return !c->bounded && share_of(c, a) > 1;
}

// --- lengths -------------------------------------------------------------------------------------

enum { LEAST = 1000, MOST_QUEUE = 20000, MOST_BURSTS = 20000 };

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t whole(double x, int64_t most)
{
    return x < (double)most ? (int64_t)ceil(x) : most;
}

// Items that have the mean output to the half width.
static double items_for(const dsc_serve_pool *pool, double half_width)
{
    const double mean = mean_output(pool), n = (double)pool->count;
    double square = 0;
    for (size_t i = 0; i < pool->count; i++)
        square += (pool->item[i].output / mean - 1) * (pool->item[i].output / mean - 1) / n;
    const double items = 1.96 * 1.96 * square / (half_width * half_width);
    return pool->shuffled ? items : fmin(items, n);
}

dsc_serve_plan dsc_serve_plan_make(const dsc_serve_capacity *c, const dsc_arrivals *a,
                                   const dsc_serve_pool *pool, double half_width, int64_t most)
{
    const bool closed = a->kind == DSC_ARRIVALS_CLOSED;
    const double cv = a->kind == DSC_ARRIVALS_GAMMA ? fmax(a->cv, 1) : 1;
    const double share = closed ? 0 : share_of(c, a), most_share = fmin(share, 1),
                 below = 1 - most_share, alone = fmin(1, c->alone_s * c->qps / c->running),
                 crowd = 1 - most_share * (1 - alone),
                 inside = closed ? (double)a->clients : most_share * c->running * alone / crowd,
                 queue = share < 1 && !closed ? 1 / below : 0,
                 slow = share < 1 && !closed ? fmax(inside / crowd, 2 / (below * below)) : 0,
                 one = 0.465 * cv / (half_width * below), items = items_for(pool, half_width);
    dsc_serve_plan p = {.ramp = whole(4 * inside + fmin(4 * queue, MOST_QUEUE), INT32_MAX),
                        .steady = whole(fmax(4 * inside, slow), INT32_MAX),
                        .precise = whole(fmax(items, share < 1 ? one * one : 0),
                                         whole((double)most * cv * cv, larger(most, MOST_BURSTS)))};
    p.precise = larger(p.precise, LEAST);
    if (a->kind == DSC_ARRIVALS_LISTED)
        p.precise = a->times;
    return p;
}

void dsc_serve_plan_join(dsc_serve_plan *p, const dsc_serve_plan *other, int64_t most)
{
    p->ramp = larger(p->ramp, other->ramp);
    if (other->steady <= most)
        p->steady = larger(p->steady, other->steady);
    p->precise = larger(p->precise, other->precise);
}

int64_t dsc_serve_plan_requests(const dsc_serve_plan *p, const dsc_serve_pool *pool, int64_t most)
{
    const int64_t n = larger(p->precise, p->steady), items = (int64_t)pool->count,
                  nearest = (n + items / 2) / items * items,
                  all = nearest < p->steady ? nearest + items : nearest;
    if (pool->shuffled || n < items || most < items)
        return n < most ? n : most;
    return all <= most ? all : most / items * items;
}
