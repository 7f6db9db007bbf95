// SPDX-License-Identifier: Apache-2.0
// How many requests a steady state takes, and up to which rate of arrivals there is one.
//
// While requests wait, an engine works as fast as it ever does. So the rate at which it completes
// them then is its capacity: at a rate of arrivals above it the queue grows by the difference, at
// one below it there is a steady state (the drift condition; Asmussen 2003, "Applied Probability
// and Queues", chapter X). One run in which requests always wait measures it for all loads.
#ifndef DSC_SIM_SERVE_STEADY_H
#define DSC_SIM_SERVE_STEADY_H

#include "sim/serve/serve.h"

typedef struct dsc_serve_capacity {
    double qps;     // requests per second while others wait; NaN: not known
    double running; // mean number of running requests meanwhile
    double alone_s; // mean time of a request that has the engine to itself
    bool bounded;   // the cost model has no times for as many as may run: the engine may do more
} dsc_serve_capacity;

// Serves the pool's requests, `options` but for their number, until at least 1000 requests are
// complete while others wait: Poisson arrivals at about twice the capacity, so that requests of
// equal lengths do not run in step. The policy `off-above` reads the rate of arrivals: it is
// measured in a closed loop, whose rate is the capacity. options->step may end it. DSC_EUSAGE,
// DSC_EINPUT: as dsc_serve_run, also with a single request at a time.
int dsc_serve_capacity_find(dsc_serve_capacity *out, const dsc_serve_pool *pool,
                            const dsc_serve_price *price, dsc_serve_policy *policy,
                            const dsc_serve_options *options, dsc_error *err);

// Whether a queue grows at these arrivals. False for closed loops, and where the capacity is not
// known or bounded.
bool dsc_serve_is_saturated(const dsc_serve_capacity *capacity, const dsc_arrivals *arrivals);

// Numbers of requests at one load.
typedef struct dsc_serve_plan {
    int64_t ramp;    // before the measured ones: four times as many as are in the system together
    int64_t steady;  // measured ones without which there is no steady state
    int64_t precise; // that keep the half width, from 1000 to `most`
} dsc_serve_plan;

// Between its time alone E0 and that at full load E1 = running / qps, a request takes about
//
//   E0 / c(r), c(r) = 1 - r (1 - E0 / E1)
//
// seconds at a share r of the capacity, exactly so where a step's time is linear in the number of
// requests and none waits: in such an engine L requests are L / c(r) arrivals away from forgetting
// its begin. A queue with one server takes about 2 / (1 - r)^2.
//
// The plan of one configuration. Of a load, all have the largest plan (dsc_serve_plan_join), so
// that they serve the same requests; a steady state that takes more than `most` of them is not
// worth it and left out. An open load
// of share r of the capacity takes (0.465 v / (h (1 - r)))^2 requests for mean times to a relative
// half width h of the 95 % interval, v being the coefficient of variation of gamma gaps, or 1: the
// factor is that of LLMA's and GSM8K's requests, and every row has its own intervals. Lengths that
// vary by c need (1.96 c / h)^2 of the pool's items, or all of them. A list of arrivals is served
// as a whole, and again where a steady state takes more.
dsc_serve_plan dsc_serve_plan_make(const dsc_serve_capacity *capacity, const dsc_arrivals *arrivals,
                                   const dsc_serve_pool *pool, double half_width, int64_t most);
void dsc_serve_plan_join(dsc_serve_plan *plan, const dsc_serve_plan *other, int64_t most);

// The requests to measure, at most `most`: whole rounds of the pool's items, where there is room
// for one, so that each counts equally often.
int64_t dsc_serve_plan_requests(const dsc_serve_plan *plan, const dsc_serve_pool *pool,
                                int64_t most);

#endif
