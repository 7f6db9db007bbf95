// SPDX-License-Identifier: Apache-2.0
// One engine that serves requests with continuous batching, step by step, as vLLM V1 schedules it
// (vllm/v1/core/sched/scheduler.py at 00024d3, and scheduler_reserve_full_isl of later versions):
// running requests first, in the order of their admission, each with the tokens that its KV cache
// lacks and its draft; then waiting requests' prefill in chunks, up to the token budget, the number
// of sequences and the room in the KV cache. When a running request finds no room, the newest one
// is preempted: it loses its KV cache, returns to the head of the queue and is computed again; such
// a step admits no request. What differs from vLLM is listed in docs/serving.md.
//
// A run measures a steady state: after a ramp, as many requests as are asked for, while others keep
// arriving until the last of these is complete. Times are those of the measured requests; rates,
// means and counts are of the window from the arrival of the first of them to that of the first
// request after them. With `drain` no request follows and the window is the whole run.
//
// Drafts are accepted as recorded. So a policy may choose the number of draft tokens freely at
// every step, and what a request emits does not depend on when it is served.
#ifndef DSC_SIM_SERVE_H
#define DSC_SIM_SERVE_H

#include "sim/serve/arrivals.h"
#include "sim/serve/latency.h"
#include "sim/serve/serve_draft.h"
#include "sim/serve/serve_price.h"

#include <stdbool.h>

typedef struct dsc_serve_item {
    int32_t prompt, output;       // tokens, >= 1
    const dsc_serve_draft *draft; // [output]; NULL: drawn from the pool's `survival`
    // What an engine expects of a draft, NULL: not known. Policies alone read it.
    const float *confidence; // [output] that the draft token there is accepted, in [0, 1], given
                             // that the draft's tokens before it are
    const double *survival;  // [levels] of the request's own rates, as the pool's
} dsc_serve_item;

// The requests that a server gets: items in turn, or drawn with replacement.
typedef struct dsc_serve_pool {
    const dsc_serve_item *item; // [count]
    size_t count;               // >= 1
    bool shuffled;
    // For items without recorded drafts: survival[i] is the probability that the first i + 1 draft
    // tokens are accepted, never increasing, in [0, 1]. Each position of a request has one uniform
    // number, so the accepted tokens do not depend on the draft's length.
    const double *survival;
    int32_t levels; // at least the draft length that a policy asks for, where it is used
    uint64_t seed;
    // Drafts that are no chains. The policy chooses the levels of a tree; an engine that lacks room
    // for it takes fewer of them. The steps of a script are served whole, and no policy is asked.
    const dsc_serve_level *tree;         // [levels + 1] of every draft; NULL: chains
    const dsc_serve_pass *const *script; // [count] of each item; NULL: drafts by position
    int32_t widest; // tree, script: the most tokens that a pass verifies for a request
} dsc_serve_pool;

// A request in the engine. Policies read it and set `k`.
typedef struct dsc_serve_sequence {
    int64_t number; // of the request in the run, from 0
    const dsc_serve_item *item;
    union {
        const dsc_serve_draft *draft; // of the item
        const dsc_serve_pass *pass;   // with dsc_serve_pool.script: its next step
    };
    double arrival_s, first_s, last_s; // arrival, first token, last token so far
    int32_t prompt, output;            // tokens of the request
    int32_t emitted;                   // output tokens so far
    int32_t computed;                  // tokens in the KV cache
    int32_t scheduled;                 // tokens in the current pass, drafts included
    int32_t k;                         // draft tokens in sequence to verify in its next pass
    int32_t tokens;                    // draft tokens in that pass: k, or more in a tree
    int32_t most;                      // the most that k may be: what is offered and left to write
    int32_t run;    // how many of these would be accepted; only an oracle reads it
    int32_t blocks; // of the KV cache
    int32_t preemptions;
    int32_t chunks; // passes that emitted tokens
    float average;  // of a policy
} dsc_serve_sequence;

typedef struct dsc_serve_engine dsc_serve_engine;
typedef struct dsc_serve_policy dsc_serve_policy; // sim/serve/serve_policy.h

typedef struct dsc_serve_options {
    int64_t requests;     // that are measured, >= 1
    int64_t ramp;         // requests that are served before these, >= 0
    bool drain;           // no request follows them: the engine empties, and all of it counts
    int32_t max_num_seqs; // >= 1
    int32_t max_num_batched_tokens;       // >= max_num_seqs
    int32_t long_prefill_token_threshold; // the most prefill tokens of a request in a pass; 0: any
    int64_t kv_blocks;                    // of the KV cache; 0: without limit
    int32_t block_size;                   // tokens of a block, >= 1
    int32_t lookahead;                    // token slots that a request reserves for its draft model
    double slo_ttft_s, slo_tpot_s;        // of goodput; infinity: none
    // Called in each step before its pass, in which running[].scheduled tokens are computed after
    // running[].computed others. Nonzero ends the run. May be NULL, as those below.
    int (*pass)(void *user, const dsc_serve_engine *engine, dsc_error *err);
    // Called after each step and after each request is complete. Nonzero ends the run.
    int (*step)(void *user, const dsc_serve_engine *engine, dsc_error *err);
    int (*complete)(void *user, const dsc_serve_sequence *sequence, dsc_error *err);
    void *user;
} dsc_serve_options;

typedef struct dsc_serve_totals {
    // Of the window; while the engine runs, from the start on.
    int64_t steps, completed;
    int64_t output_tokens, num_draft_tokens, num_accepted_tokens;
    int64_t num_drafts;        // passes of a request that verified a draft
    int64_t prefill_tokens;    // computed for prompts and again after preemptions
    int64_t recomputed_tokens; // of these, after preemptions
    int64_t preemptions;
    int64_t most_blocks, most_running, most_waiting;
    double begin_s, end_s;                         // of the window
    double draft_s, target_s, overhead_s, idle_s;  // time spent; with overlap more than passed
    double running_area, waiting_area, block_area; // integrals over time
    // Of the measured requests.
    int64_t measured, measured_tokens, good; // `good`: within both limits of the SLO
    dsc_latency ttft, tpot, itl, itl_token, e2e;
} dsc_serve_totals;

// The engine between steps, as observers and policies see it.
struct dsc_serve_engine {
    const dsc_serve_options *options;
    const dsc_serve_pool *pool;
    const dsc_arrivals *arrivals;
    const dsc_serve_price *price;
    dsc_serve_policy *policy;
    dsc_serve_sequence *running; // [running_count] in the order of their admission
    int64_t running_count;
    dsc_serve_sequence *preempted; // [preempted_count] the last one is admitted first
    int64_t preempted_count;
    int64_t arrived, admitted; // requests so far
    double next_arrival_s;     // of request `arrived`; infinity: none is left
    double head_arrival_s;     // of request `admitted`
    double *sent;              // closed loop: ring of the clients' arrivals
    int64_t free_blocks;
    double begin_s, now_s;
    dsc_serve_step step;            // the last step
    dsc_serve_totals *totals;       // from begin_s on
    dsc_serve_totals before, after; // sums up to the begin and the end of the window
    bool opened, closed;            // the window
};

static inline int64_t dsc_serve_waiting(const dsc_serve_engine *e)
{
    return e->arrived - e->admitted + e->preempted_count;
}

static inline bool dsc_serve_is_measured(const dsc_serve_options *o, int64_t number)
{
    return number >= o->ramp && number < o->ramp + o->requests;
}

// Serves the ramp, the measured requests and what arrives meanwhile. *out is owned by the caller
// and freed by dsc_serve_totals_fini whatever was returned. DSC_EUSAGE: an option is outside its
// range. DSC_EINPUT: a request can never fit into the KV cache, or the cost model has no time for a
// pass.
int dsc_serve_run(dsc_serve_totals *out, const dsc_serve_pool *pool, const dsc_arrivals *arrivals,
                  const dsc_serve_price *price, dsc_serve_policy *policy,
                  const dsc_serve_options *options, dsc_error *err);
void dsc_serve_totals_fini(dsc_serve_totals *totals);

#endif
