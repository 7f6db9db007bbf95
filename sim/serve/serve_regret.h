// SPDX-License-Identifier: Apache-2.0
// What a policy loses against the best fixed draft length and against the oracle, on the same
// requests, arrivals and acceptances.
#ifndef DSC_SIM_SERVE_REGRET_H
#define DSC_SIM_SERVE_REGRET_H

#include "sim/serve/serve.h"

// The mean end-to-end latency is what is compared: an open loop of arrivals has the same throughput
// with every policy, and in a closed loop the throughput is the number of clients over the latency.
typedef struct dsc_serve_reference {
    double fixed_s, oracle_s; // mean latency of the best fixed draft length, and of `oracle`
    int32_t best_k;           // that length, the shortest one of several
} dsc_serve_reference;

// Serves with every fixed length from 0 to k and with the oracle, each once, for all policies of a
// load. options->step and `complete` are called in all runs. The length of a tree is its levels.
// DSC_EUSAGE: the pool has a script. DSC_EUSAGE, DSC_EINPUT: as dsc_serve_run.
int dsc_serve_reference_run(dsc_serve_reference *out, int32_t k, const dsc_serve_pool *pool,
                            const dsc_arrivals *arrivals, const dsc_serve_price *price,
                            const dsc_serve_options *options, dsc_error *err);

// The share by which a policy's mean latency exceeds another one; negative: it is shorter.
static inline double dsc_serve_regret(double e2e_s, double other_s)
{
    return e2e_s / other_s - 1;
}

#endif
