// SPDX-License-Identifier: Apache-2.0
// How long the runs of draftscope serve are: all of one load have the same requests, as many as the
// longest plan among them (sim/serve/serve_steady.h).
#include "cli/serve/serve.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int64_t cli_serve_limit(const cli_call *call, const cli_serve_load *load,
                        const cli_serve_methods *m)
{
    const dsc_option_value *v = call->value;
    const int64_t times = load->recorded ? (int64_t)m->times : load->times;
    int64_t limit = v[SERVE_REQUESTS].given ? v[SERVE_REQUESTS].integer : INT32_MAX;
    if (v[SERVE_DURATION].given)
        limit =
            (int64_t)fmin(INT32_MAX, fmax(1, ceil(v[SERVE_DURATION].real * load->arrivals.rate)));
    return v[SERVE_DRAIN].given && times && times < limit ? times : limit;
}

dsc_arrivals cli_serve_arrivals(const cli_serve_load *load, const cli_serve_methods *m)
{
    dsc_arrivals arrivals = load->arrivals;
    if (arrivals.kind == DSC_ARRIVALS_LISTED) {
        arrivals.time = load->recorded ? m->time : load->time;
        arrivals.times = load->recorded ? (int64_t)m->times : load->times;
    }
    return arrivals;
}

int cli_serve_check_load(const cli_call *call, const cli_serve_load *load,
                         const cli_serve_methods *m, dsc_error *err)
{
    const dsc_option_value *v = call->value;
    const dsc_arrivals arrivals = cli_serve_arrivals(load, m);
    const int64_t times = load->recorded ? (int64_t)m->times : load->times;
    if (v[SERVE_DURATION].given && (!(load->arrivals.rate > 0) || load->automatic))
        return dsc_fail(err, DSC_EUSAGE, "--duration needs a rate of arrivals, not %.60s",
                        load->text);
    if (v[SERVE_DRAIN].given && cli_serve_limit(call, load, m) == INT32_MAX)
        return dsc_fail(err, DSC_EUSAGE,
                        "--drain serves a given number of requests: --requests N is missing");
    if (v[SERVE_DRAIN].given && v[SERVE_HALF_WIDTH].given)
        return dsc_fail(err, DSC_EUSAGE,
                        "--drain and --half-width cannot be combined: --requests is the number");
    if (v[SERVE_HALF_WIDTH].given && times)
        return dsc_fail(err, DSC_EUSAGE,
                        "%.200s: a list of times is served as a whole, whatever --half-width",
                        load->text);
    if (!v[SERVE_DRAIN].given && times && isinf(dsc_arrivals_rate(&arrivals)))
        return dsc_fail(err, DSC_EUSAGE,
                        "%.200s: all requests arrive at one time, which is no rate; with --drain "
                        "they are served as they are",
                        load->text);
    if (load->recorded && v[SERVE_ORDER].integer == 1)
        return dsc_fail(err, DSC_EUSAGE,
                        "--order shuffle: recorded arrivals belong to their requests");
    return DSC_OK;
}

int64_t cli_serve_requests(const cli_call *call, const cli_serve_loads *loads)
{
    enum { FROM_MODEL = 1000, FROM_RATES = 1024 };
    static const cli_serve_methods none;
    const char *target = call->value[SERVE_TARGET].text;
    const int64_t most = target && !dsc_acceptance_is(target) ? FROM_MODEL : FROM_RATES;
    int64_t requests = 1;
    for (size_t l = 0; l < loads->count; l++) {
        const int64_t limit = cli_serve_limit(call, &loads->load[l], &none);
        const bool all = call->value[SERVE_DRAIN].given && limit < INT32_MAX;
        const int64_t n = all || limit < most ? limit : most;
        requests = n > requests ? n : requests;
    }
    return requests;
}

int cli_serve_expand_auto(cli_serve_loads *loads, const dsc_serve_capacity *capacity, size_t count,
                          uint64_t seed, dsc_error *err)
{
    double low = INFINITY, high = 0;
    bool any = false, bounded = false;
    for (size_t l = 0; l < loads->count; l++)
        any |= loads->load[l].automatic;
    for (size_t i = 0; i < count; i++)
        if (capacity[i].qps > 0) {
            bounded |= capacity[i].bounded;
            low = fmin(low, capacity[i].qps / 2);
            high = fmax(high, capacity[i].qps);
        }
    if (any && !(high > 0))
        return dsc_fail(err, DSC_EINPUT,
                        "--arrivals auto: the rate that can be served was not found; "
                        "poisson:QPS,QPS,... names the loads");
    if (any && bounded)
        return dsc_fail(err, DSC_EUSAGE,
                        "--arrivals auto: the cost model has no times for as many requests as may "
                        "run; --kv-memory BYTES, --kv-blocks N or --max-num-seqs N limits them, or "
                        "poisson:QPS,QPS,... names the loads");
    return any ? cli_serve_loads_expand(loads, low, high, seed, err) : DSC_OK;
}

// --- plans ---------------------------------------------------------------------------------------

// The most requests for a purpose, unless the call says how many or how precise.
static int64_t most_for(const cli_call *call, int64_t most)
{
    const dsc_option_value *v = call->value;
    return v[SERVE_HALF_WIDTH].given || v[SERVE_REQUESTS].given || v[SERVE_DURATION].given
               ? INT32_MAX
               : most;
}

static dsc_serve_plan plan_of(const cli_serve_run *run, const cli_serve_methods *m,
                              const cli_call *call)
{
    enum { MOST_PRECISE = 3000 };
    const dsc_arrivals arrivals = cli_serve_arrivals(run->load, m);
    const dsc_serve_pool pool = cli_serve_pool(run->method, run->load, call);
    return dsc_serve_plan_make(run->capacity, &arrivals, &pool, call->value[SERVE_HALF_WIDTH].real,
                               most_for(call, MOST_PRECISE));
}

// The runs of a load are run[0], run[loads], ...
static void plan_load(cli_serve_run *run, size_t runs, size_t loads, const cli_serve_methods *m,
                      const cli_call *call)
{
    enum { MOST_STEADY = 20000 };
    const bool drain = call->value[SERVE_DRAIN].given;
    const int64_t limit = cli_serve_limit(call, run->load, m);
    const dsc_serve_pool pool = cli_serve_pool(run->method, run->load, call);
    const dsc_arrivals arrivals = cli_serve_arrivals(run->load, m);
    dsc_serve_plan plan = {0};
    for (size_t i = 0; i < runs; i += loads) {
        const dsc_serve_plan own = plan_of(&run[i], m, call);
        run[i].needed = own.steady;
        dsc_serve_plan_join(&plan, &own, most_for(call, MOST_STEADY));
    }
    for (size_t i = 0; i < runs; i += loads) {
        run[i].ramp = drain ? 0 : plan.ramp;
        run[i].requests = drain ? limit : dsc_serve_plan_requests(&plan, &pool, limit);
        run[i].saturated = dsc_serve_is_saturated(run[i].capacity, &arrivals);
        run[i].steady = drain || run[i].requests >= run[i].needed;
    }
}

void cli_serve_plan(cli_serve_run *run, size_t runs, const cli_serve_loads *loads,
                    const cli_serve_methods *m, const cli_call *call)
{
    for (size_t l = 0; l < loads->count; l++)
        plan_load(run + l, runs - l, loads->count, m, call);
}

void cli_serve_note_short(const cli_serve_run *run, size_t runs)
{
    const cli_serve_run *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < runs; i++) {
        const bool is_short = !run[i].steady && !run[i].saturated;
        count += is_short;
        first = first || !is_short ? first : &run[i];
    }
    if (!count)
        return;
    fprintf(
        stderr,
        "draftscope: note: %zu of %zu rows are too short for a steady state and get no verdict: "
        "%s at %s has %" PRId64 " requests and takes ",
        count, runs, first->method->config.drafter->name, first->load->text, first->requests);
    if (first->needed < INT32_MAX)
        fprintf(stderr, "%" PRId64 "\n", first->needed);
    else
        fputs("any number, so close to its largest stable rate\n", stderr);
}
