// SPDX-License-Identifier: Apache-2.0
// The runs of a shard of draftscope serve. Runs that differ in nothing but the rate of arrivals
// stay together, because the largest stable rate is found between the rates of the sweep. Such
// groups, the largest first, go to the shard that has the least to do, so shards differ by at most
// one group.
#include "cli/serve/serve.h"

#include <stdlib.h>

bool cli_serve_has_rate(const cli_serve_run *r)
{
    const dsc_arrival_kind kind = r->load->arrivals.kind;
    return kind == DSC_ARRIVALS_CONSTANT || kind == DSC_ARRIVALS_POISSON ||
           kind == DSC_ARRIVALS_GAMMA;
}

bool cli_serve_same_but_rate(const cli_serve_run *a, const cli_serve_run *b)
{
    return a->method == b->method && a->policy == b->policy && cli_serve_has_rate(a) &&
           cli_serve_has_rate(b) && a->load->arrivals.kind == b->load->arrivals.kind &&
           a->load->arrivals.cv == b->load->arrivals.cv;
}

// Runs that stay together.
typedef struct group {
    size_t first;   // run
    double work;    // requests to serve
    int64_t number; // in the order of the table
} group;

static int by_work(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->work != y->work)
        return x->work > y->work ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

// The groups, and for each run its group's number.
static size_t make_groups(const cli_serve_run *run, size_t runs, group *g, int64_t *of)
{
    enum { BISECTION = 8 }; // runs between two rates of a sweep, or about
    size_t groups = 0;
    for (size_t i = 0; i < runs; i++) {
        size_t k = 0;
        while (k < groups && !cli_serve_same_but_rate(&run[g[k].first], &run[i]))
            k++;
        if (k == groups)
            g[groups++] = (group){
                .first = i,
                .number = (int64_t)k,
                .work = cli_serve_has_rate(&run[i]) ? BISECTION * (double)run[i].requests : 0};
        g[k].work += (double)run[i].requests;
        of[i] = (int64_t)k;
    }
    return groups;
}

// owner[group number], from 1.
static void deal_groups(group *g, size_t groups, double *load, int64_t shards, int64_t *owner)
{
    qsort(g, groups, sizeof *g, by_work);
    for (size_t k = 0; k < groups; k++) {
        int64_t least = 0;
        for (int64_t s = 1; s < shards && load[least] > 0; s++)
            if (load[s] < load[least])
                least = s;
        load[least] += g[k].work;
        owner[g[k].number] = least + 1;
    }
}

int cli_serve_deal(cli_serve_run *run, size_t runs, const dsc_split *split, dsc_error *err)
{
    // More shards than groups leave some without any.
    const int64_t shards = split->shards < (int64_t)runs ? split->shards : (int64_t)runs;
    group *g = NULL;
    int64_t *of = NULL, *owner = NULL;
    double *load = NULL;
    int rc = dsc_new(&g, runs, err);
    if (!rc)
        rc = dsc_new(&of, runs, err);
    if (!rc)
        rc = dsc_new(&owner, runs, err);
    if (!rc)
        rc = dsc_new(&load, (size_t)shards, err);
    if (!rc) {
        const size_t groups = make_groups(run, runs, g, of);
        deal_groups(g, groups, load, shards, owner);
        for (size_t i = 0; i < runs; i++)
            run[i].elsewhere = owner[of[i]] != split->shard;
    }
    free(g);
    free(of);
    free(owner);
    free(load);
    return rc;
}
