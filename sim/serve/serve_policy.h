// SPDX-License-Identifier: Apache-2.0
// Policies of speculation: how many draft tokens each request verifies in its next step.
#ifndef DSC_SIM_SERVE_POLICY_H
#define DSC_SIM_SERVE_POLICY_H

#include "sim/serve/serve.h"

typedef struct dsc_serve_policy_type {
    const char *name, *summary;
    const char *usage; // the syntax after "NAME:", or NULL: there are no parameters
    bool optional;     // NAME alone is enough
    // Reads `text`, the part after the colon, or NULL, into policy->state. DSC_EUSAGE.
    int (*open)(dsc_serve_policy *policy, const char *text, dsc_error *err);
    // Before a run: forgets what earlier ones left. NULL: there is nothing.
    int (*begin)(dsc_serve_policy *policy, const dsc_serve_engine *engine, dsc_error *err);
    // Sets k in [0, most] of slot[0, count), the sequences that emitted in this step and continue;
    // k is `most` before. Called once at the end of each verification, count may be 0. DSC_EINPUT:
    // the cost model has no time for a pass.
    int (*choose)(dsc_serve_policy *policy, const dsc_serve_engine *engine,
                  dsc_serve_sequence *const *slot, int64_t count, dsc_error *err);
    // A sequence verified k >= 1 draft tokens and accepted some. NULL: not called.
    void (*observe)(dsc_serve_policy *policy, dsc_serve_sequence *s, int32_t k, int32_t accepted);
    void (*close)(void *state); // NULL: there is no state
} dsc_serve_policy_type;

struct dsc_serve_policy {
    const dsc_serve_policy_type *type;
    int32_t k;        // the most draft tokens of a step, num_speculative_tokens; 0: never drafts
    int32_t *by_size; // [sizes] `schedule`: draft tokens at 0, 1, ... requests in the step
    int64_t sizes;
    void *state; // of the other types
};

extern const dsc_serve_policy_type dsc_serve_policy_adaptive, dsc_serve_policy_ema,
    dsc_serve_policy_off_above;

// "fixed", "oracle", "schedule:1-4=5,5-16=3,17-=0" or "schedule:[[1,4,5],[5,16,3],[17,17,0]]",
// "adaptive[:position|calibrated|oracle|constant:P]", "ema[:SETTING=VALUE,...]",
// "off-above:QPS[,WINDOW]"; `k` is the method's draft length, in [0, DSC_SERVE_LONGEST], which no
// policy exceeds. The arrival rate of `off-above` is the number of requests that arrived in the
// last WINDOW seconds of simulated time (10; the window moves in tenths of it), divided by WINDOW.
// DSC_EUSAGE. Freed by dsc_serve_policy_fini.
int dsc_serve_policy_parse(dsc_serve_policy *out, const char *text, int32_t k, dsc_error *err);
void dsc_serve_policy_fini(dsc_serve_policy *policy);
// Whether it reads dsc_serve_item.confidence.
bool dsc_serve_policy_calibrates(const dsc_serve_policy *policy);
const dsc_serve_policy_type *const *dsc_serve_policies(void); // NULL-terminated

#endif
