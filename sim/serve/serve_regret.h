// SPDX-License-Identifier: Apache-2.0
// What a policy loses against the best fixed draft length and against the oracle, on the same
// requests, arrivals and acceptances.
#ifndef DSC_SIM_SERVE_REGRET_H
#define DSC_SIM_SERVE_REGRET_H

#include "sim/serve/serve.h"

// The mean end-to-end latency is what is compared: an open loop of arrivals has the same throughput
// with every policy, and in a closed loop the throughput is the number of clients over the latency.
typedef struct dsc_serve_regret {
    double e2e_s;                   // mean latency of the policy
    double fixed_s, oracle_s;       // with the best fixed draft length, and with `oracle`
    int32_t best_k;                 // that length, in [0, k]
    double over_fixed, over_oracle; // share by which e2e_s exceeds them; negative: it is shorter
} dsc_serve_regret;

// out[i] for policy[i], texts of dsc_serve_policy_parse. Every fixed length from 0 to k and the
// oracle run once, each policy once. options->step and `complete` are called in all runs.
// DSC_EUSAGE, DSC_EINPUT: as dsc_serve_policy_parse and dsc_serve_run.
int dsc_serve_regrets(dsc_serve_regret *out, const char *const *policy, size_t policies, int32_t k,
                      const dsc_serve_pool *pool, const dsc_arrivals *arrivals,
                      const dsc_serve_price *price, const dsc_serve_options *options,
                      dsc_error *err);

#endif
