// SPDX-License-Identifier: Apache-2.0
// The time of a forward pass from the shape of the model, the machine and the engine.
#ifndef DSC_SIM_ROOFLINE_H
#define DSC_SIM_ROOFLINE_H

#include "sim/cost/cost.h"
#include "sim/cost/experts.h"
#include "sim/cost/hardware.h"
#include "sim/cost/mixed_pass.h"
#include "sim/cost/model_shape.h"

// What an engine makes of a machine.
typedef struct dsc_engine {
    const char *name, *source;
    double bandwidth; // share of the memory's bandwidth that reading reaches, in (0, 1]
    double compute;   // share of the peak that products with weights reach, in (0, 1]
    double overlap;   // share of the shorter of the two that the longer hides, in [0, 1]
    double pass_s;    // fixed time of a pass: scheduling, sampling, launch
    double layer_s;   // fixed time of a layer: launches and small kernels
    double attention; // share of the peak that attention reaches, in (0, 1]
    double tile;      // query rows that attention multiplies together, >= 1: fewer cost as much
    bool packs;       // attention packs the query heads of a KV head into a tile on any machine
} dsc_engine;

const dsc_engine *dsc_engines(size_t *count); // the first is the default

// A published step of an engine, of `batch` requests at the mean context of their decoding.
typedef struct dsc_published_step {
    const char *cost;     // the roofline that describes it
    const char *workload; // where the requests come from
    double draft_tokens;  // drafted per request, in as many passes of a head
    double batch, context;
    double seconds;  // median time between two steps' tokens
    bool calibrates; // the engine's constants are fitted to it; else it checks them
} dsc_published_step;

const dsc_published_step *dsc_published_steps(size_t *count);

// The step's time by the model: the target's pass over draft_tokens + 1 tokens of each request, a
// first pass of the head over as many, and passes over one token.
int dsc_published_step_time(const dsc_published_step *step, double *seconds, dsc_error *err);

typedef struct dsc_roofline {
    dsc_model_shape target, draft;
    bool has_draft;
    dsc_hardware machine;
    double machines; // of the target and its heads
    dsc_engine engine;
    double overhead_s, draft_overhead_s; // of a pass; NaN: from the engine and the layers
    const dsc_number_format *weights;    // NULL: what the shape is published in
    const dsc_number_format *cache;      // of the KV cache
    const dsc_number_format *plain;      // 16 bits
    dsc_experts experts;
    double utilization; // share of the memory for weights and KV cache
    bool given;         // a constant of the engine was replaced
} dsc_roofline;

// Weights in 16 bits unless the shape has its own format, one machine, the default engine. The
// caller sets target, draft and machine. Freed by dsc_experts_fini(&r->experts).
void dsc_roofline_init(dsc_roofline *r);

int dsc_roofline_target(const dsc_roofline *r, dsc_pass pass, double *seconds, dsc_error *err);
// dsc_cost_type.targets. false: the target has experts.
bool dsc_roofline_targets(const dsc_roofline *r, dsc_pass pass, int64_t least, int64_t step,
                          size_t count, double *seconds);
// pass.again: not the first pass of a draft.
int dsc_roofline_draft(const dsc_roofline *r, dsc_pass pass, double *seconds, dsc_error *err);
// dsc_cost_type.mixed and dsc_cost_type.first_draft.
int dsc_roofline_mixed(const dsc_roofline *r, const dsc_mixed_pass *pass, double *seconds,
                       dsc_error *err);
int dsc_roofline_first_draft(const dsc_roofline *r, dsc_pass pass, const dsc_mixed_pass *after,
                             double *seconds, dsc_error *err);

// Weights, and KV cache of `batch` sequences of `tokens` tokens. DSC_EUSAGE: they do not fit.
int dsc_roofline_fits(const dsc_roofline *r, double batch, double tokens, dsc_error *err);

// Whether no pass can be faster: full bandwidth and peak, full overlap, no overhead.
bool dsc_roofline_is_bound(const dsc_roofline *r);

#endif
