// SPDX-License-Identifier: Apache-2.0
// The largest rate of arrivals that is served without a growing queue, by bisection between the
// rates of a sweep.
#include "base/threads.h"
#include "cli/guard.h"
#include "cli/serve/serve.h"

#include <math.h>

typedef struct search {
    const cli_serve_run *run; // [runs]
    size_t runs;
    cli_serve_try_rate try_rate;
    const void *context;
} search;

// The largest rate of the sweep that is served (0: none) and the smallest above it that is not
// (infinity: none).
static void bracket(const search *s, size_t first, double *low, double *high)
{
    const cli_serve_run *like = &s->run[first];
    *low = 0;
    *high = INFINITY;
    for (size_t i = first; i < s->runs; i++) {
        const cli_serve_run *r = &s->run[i];
        const double rate = r->load->arrivals.rate;
        if (cli_serve_same_but_rate(like, r) && r->done && r->saturated && rate < *high)
            *high = rate;
    }
    for (size_t i = first; i < s->runs; i++) {
        const cli_serve_run *r = &s->run[i];
        const double rate = r->load->arrivals.rate;
        if (cli_serve_same_but_rate(like, r) && r->done && !r->saturated && rate < *high &&
            rate > *low)
            *low = rate;
    }
}

// A sweep in which no rate is served is continued downwards.
static int find(const search *s, size_t first, double *out, dsc_error *err)
{
    enum { HALVINGS = 30 };
    const cli_serve_run *like = &s->run[first];
    double low, high;
    bool saturated = true;
    int rc = DSC_OK;
    *out = NAN;
    bracket(s, first, &low, &high);
    if (isinf(high))
        return DSC_OK;
    for (int i = 0; low == 0 && i < HALVINGS && !rc; i++) {
        rc = s->try_rate(s->context, like, high / 2, &saturated, err);
        *(saturated ? &high : &low) = high / 2;
    }
    while (!rc && low > 0 && high > 1.02 * low) {
        const double middle = sqrt(low * high);
        rc = s->try_rate(s->context, like, middle, &saturated, err);
        *(saturated ? &high : &low) = middle;
    }
    *out = low > 0 ? low : NAN;
    return rc;
}

static bool is_first(const search *s, size_t i)
{
    for (size_t q = 0; q < i; q++)
        if (cli_serve_same_but_rate(&s->run[q], &s->run[i]))
            return false;
    return cli_serve_has_rate(&s->run[i]);
}

void cli_serve_find_stable(const cli_serve_run *run, size_t runs, int threads,
                           cli_serve_try_rate try_rate, cli_serve_found found, void *context)
{
    const search s = {run, runs, try_rate, context};
    (void)threads;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (size_t i = 0; i < runs; i++) {
        double qps;
        dsc_error ignored;
        if (!cli_signal() && !run[i].elsewhere && is_first(&s, i) &&
            isnan(cli_serve_largest_stable(&run[i])) && !find(&s, i, &qps, &ignored))
            found(context, i, qps);
    }
}
