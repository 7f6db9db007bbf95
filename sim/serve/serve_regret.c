// SPDX-License-Identifier: Apache-2.0
// References of the regret of policies: runs of the engine with common random numbers.
#include "sim/serve/serve_regret.h"

#include "sim/serve/serve_policy.h"

#include <math.h>

typedef struct workload {
    const dsc_serve_pool *pool;
    const dsc_arrivals *arrivals;
    const dsc_serve_price *price;
    const dsc_serve_options *options;
} workload;

static int mean_latency(const workload *w, const char *text, int32_t k, double *seconds,
                        dsc_error *err)
{
    dsc_serve_policy policy;
    dsc_serve_totals totals;
    int rc = dsc_serve_policy_parse(&policy, text, k, err);
    if (rc)
        return rc;
    rc = dsc_serve_run(&totals, w->pool, w->arrivals, w->price, &policy, w->options, err);
    *seconds = rc ? INFINITY : dsc_latency_mean(&totals.e2e);
    dsc_serve_totals_fini(&totals);
    dsc_serve_policy_fini(&policy);
    return rc;
}

int dsc_serve_reference_run(dsc_serve_reference *out, int32_t k, const dsc_serve_pool *pool,
                            const dsc_arrivals *arrivals, const dsc_serve_price *price,
                            const dsc_serve_options *options, dsc_error *err)
{
    const workload w = {pool, arrivals, price, options};
    *out = (dsc_serve_reference){.fixed_s = INFINITY};
    if (pool->script)
        return dsc_fail(err, DSC_EUSAGE,
                        "recorded steps are served as they are: there is no draft length to "
                        "compare a policy with");
    int rc = mean_latency(&w, "oracle", k, &out->oracle_s, err);
    for (int32_t length = 0; length <= k && !rc; length++) {
        double seconds;
        rc = mean_latency(&w, "fixed", length, &seconds, err);
        if (seconds < out->fixed_s) {
            out->fixed_s = seconds;
            out->best_k = length;
        }
    }
    return rc;
}
