// SPDX-License-Identifier: Apache-2.0
// Speculation that is switched off under load: no drafts while more than QPS requests per second
// have arrived within the last WINDOW seconds. The window moves in tenths of its length. Before a
// whole window has passed since the first arrival, the arrivals are divided by its whole length all
// the same, so that the first requests of a run do not count as a burst.
#include "sim/serve/serve_policy.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>

enum { PARTS = 10 };

typedef struct window {
    double limit, length_s; // requests per second; seconds
    // Of a run:
    int64_t arrivals[PARTS]; // by part of the window
    int64_t part, seen;      // the latest part, from the start on; arrivals that are counted
    double begin_s;
} window;

static int open_rate(dsc_serve_policy *policy, const char *text, dsc_error *err)
{
    window *w;
    char *end;
    const int rc = dsc_new(&w, 1, err);
    if (rc)
        return rc;
    policy->state = w;
    w->length_s = 10;
    w->limit = dsc_strtod(text, &end);
    if (end != text && *end == ',') {
        const char *second = end + 1;
        w->length_s = dsc_strtod(second, &end);
        text = second;
    }
    if (end != text && !*end && w->limit >= 0 && isfinite(w->limit) && w->length_s >= 1e-3 &&
        isfinite(w->length_s))
        return DSC_OK;
    return dsc_fail(err, DSC_EUSAGE,
                    "--speculation: '%.60s' is not off-above:QPS[,WINDOW], with a rate of at least "
                    "0 requests per second and a window of at least 0.001 seconds",
                    text);
}

static int begin_rate(dsc_serve_policy *policy, const dsc_serve_engine *e, dsc_error *err)
{
    window *w = policy->state;
    (void)err;
    *w = (window){.limit = w->limit, .length_s = w->length_s, .begin_s = e->now_s};
    return DSC_OK;
}

static double measured_rate(window *w, const dsc_serve_engine *e)
{
    const int64_t part = (int64_t)((e->now_s - w->begin_s) / w->length_s * PARTS);
    int64_t sum = 0;
    const int64_t passed = part - w->part < PARTS ? part - w->part : PARTS;
    for (int64_t i = 1; i <= passed; i++)
        w->arrivals[(w->part + i) % PARTS] = 0;
    w->part = part;
    w->arrivals[part % PARTS] += e->arrived - w->seen;
    w->seen = e->arrived;
    for (int i = 0; i < PARTS; i++)
        sum += w->arrivals[i];
    return (double)sum / w->length_s;
}

static int choose_below(dsc_serve_policy *policy, const dsc_serve_engine *e,
                        dsc_serve_sequence *const *slot, int64_t count, dsc_error *err)
{
    window *w = policy->state;
    (void)err;
    if (measured_rate(w, e) <= w->limit)
        return DSC_OK;
    for (int64_t i = 0; i < count; i++)
        slot[i]->k = 0;
    return DSC_OK;
}

const dsc_serve_policy_type dsc_serve_policy_off_above = {
    .name = "off-above",
    .summary = "no drafts while the arrival rate, over 10 s or WINDOW seconds, is above QPS",
    .usage = "QPS[,WINDOW]",
    .open = open_rate,
    .begin = begin_rate,
    .choose = choose_below,
    .close = free};
