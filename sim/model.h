// SPDX-License-Identifier: Apache-2.0
// What a method may ask of a model. Recorded traces, synthetic pairs and live engines stand behind
// the same questions, so that a method is written once.
#ifndef DSC_SIM_MODEL_H
#define DSC_SIM_MODEL_H

#include "sim/dist.h"
#include "sim/draft.h"
#include "theory/rows/overlap.h"

typedef struct dsc_model dsc_model;

// The target's greedy continuation after a node.
typedef struct dsc_next {
    int32_t token;
    bool ends; // generation stops with this token (end of output): nothing is drafted past it
} dsc_next;

// A query for the overlap of a target's and a draft model's distribution after a node.
typedef struct dsc_overlap_query {
    dsc_model *draft_model; // NULL: nothing was sampled from its distribution
    const dsc_draft *draft;
    int32_t node;
    const int32_t *token; // [count] candidates
    size_t count;
    double *draft_of, *target_of; // [count] results: probabilities of the candidates
    dsc_overlap *overlap;         // result, valid until the next call; NULL: use `dist`
} dsc_overlap_query;

// Descriptors are const; instances embed dsc_model as their first member.
typedef struct dsc_model_type {
    const char *name;
    bool on_path_only; // knows only what was recorded: asks off the recorded path are refused

    // One forward pass over the committed tokens and all nodes of the draft.
    // The draft may grow afterwards: questions about nodes that were not there when it was scored
    // need another score. It must live until the next commit.
    int (*score)(dsc_model *m, const dsc_draft *d, dsc_error *err);
    // Begins such a pass in the background, over the nodes that are there now; `score` then waits
    // for it. Until then the model is asked nothing. NULL: passes take no time here.
    int (*start)(dsc_model *m, const dsc_draft *d, dsc_error *err);
    // After score: the greedy token after node `node` (-1: after the last committed token).
    // DSC_EABSENT when that is off the recorded path (counted in m->refused, never invented).
    int (*next)(dsc_model *m, int32_t node, dsc_next *out, dsc_error *err);
    // After score: the exact distribution of the token after `node`, for rules that draw. The view
    // lives until the next call for this model. DSC_EABSENT as for next. NULL: this model has no
    // distributions.
    int (*dist)(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err);
    // Draws from such distributions are to come, at u[i] in [0, 1) after node[i], i < n: what they
    // read of distributions that lie elsewhere is brought together. A hint. NULL: it would be of no
    // use.
    int (*prefetch)(dsc_model *m, const int32_t *node, const double *u, size_t n, dsc_error *err);
    // The distribution before the temperature: how a model that is not drawn from orders its
    // candidates and how sure of them it is, at temperature 0 too. NULL: as distribution.
    int (*base_dist)(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err);
    // The k most probable tokens of that distribution into token[k], the most probable first, of
    // equals the lowest; *count: how many there are. NULL: as `base_dist` has them.
    int (*top)(dsc_model *m, int32_t node, size_t k, int32_t *token, size_t *count, dsc_error *err);
    // Optional, after score: computes the draft/target overlap in place (for example on the GPU)
    // instead of copying both distributions to the host. One call may compute all nodes of the
    // draft. Errors may be deferred to the next call, at the latest to commit.
    int (*overlap)(dsc_model *m, dsc_overlap_query *q, dsc_error *err);
    // Appends the tokens of one step to the committed output.
    int (*commit)(dsc_model *m, const int32_t *token, size_t n, dsc_error *err);
} dsc_model_type;

struct dsc_model {
    const dsc_model_type *type;
    const int32_t *output; // [length] committed output tokens
    int64_t length;
    int64_t limit;            // tokens that the output can have
    int32_t end_token;        // the token that ends an output, or -1: none does
    const int32_t *more_ends; // [more] other tokens that do; the instance's
    int more;
    bool ended;
    int64_t refused; // off-path questions so far
};

// The models of a run. draft and middle (of a cascade) are NULL where there is none; what the loop
// commits, it commits to all of them.
typedef struct dsc_models {
    dsc_model *target, *draft, *middle;
} dsc_models;

// The model that a draft's distribution is of.
static inline dsc_model *dsc_models_drafter(const dsc_models *m, const dsc_draft *d)
{
    return d->from_middle ? m->middle : m->draft;
}

// Whether an output ends with this token, wherever it comes.
static inline bool dsc_model_is_end(const dsc_model *m, int32_t token)
{
    bool end = token == m->end_token && token >= 0;
    for (int i = 0; i < m->more; i++)
        end |= token == m->more_ends[i];
    return end;
}

// Whether generation stops with `token` after `depth` draft tokens behind the committed output.
static inline bool dsc_model_ends(const dsc_model *m, int64_t depth, int32_t token)
{
    return dsc_model_is_end(m, token) || m->length + depth + 1 >= m->limit;
}

#endif
