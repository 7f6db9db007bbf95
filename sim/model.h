// SPDX-License-Identifier: Apache-2.0
// The models of a run. Recorded traces, synthetic language models and live engines implement this
// one interface, so that a drafting method or a verification rule is written once.
#ifndef DSC_SIM_MODEL_H
#define DSC_SIM_MODEL_H

#include "sim/dist.h"
#include "sim/draft.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dsc_model dsc_model;
// The overlap of a draft and a target distribution (theory/rows/overlap.h).
typedef struct dsc_overlap dsc_overlap;

// The greedy continuation after a node.
typedef struct dsc_next {
    int32_t token;
    bool ends; // generation stops with this token: nothing is drafted after it
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

// The candidates of a dynamic draft tree after the committed output, as a trace contains them
// (dsc_tree_candidates): the best `nodes` of a setting of `steps` levels and `topk` children.
typedef struct dsc_recorded_candidates {
    const int32_t *token;   // [nodes]
    const uint16_t *parent; // [nodes] 0, the number of an earlier one from 1, or DSC_PARENT_NONE
    const uint16_t *scored; // [steps] tokens in each pass of the draft model
    int32_t nodes, steps, topk;
} dsc_recorded_candidates;

// Descriptors are const; instances embed dsc_model as their first member. Node -1 is the last
// committed token.
typedef struct dsc_model_type {
    const char *name;
    bool on_path_only; // contains only what was recorded: off-path queries are refused

    // One forward pass over the committed tokens and all nodes of the draft. The draft may grow
    // afterwards; new nodes need another call. It must live until the next commit.
    int (*score)(dsc_model *m, const dsc_draft *d, dsc_error *err);
    // Begins such a pass in the background, over the current nodes; `score` then waits for it. No
    // other function is called until then. NULL: passes take no time.
    int (*start)(dsc_model *m, const dsc_draft *d, dsc_error *err);
    // After score: the greedy token after `node`. DSC_EABSENT when that is off the recorded path;
    // the query is counted in m->refused and never answered by a guess.
    int (*next)(dsc_model *m, int32_t node, dsc_next *out, dsc_error *err);
    // After score: the exact distribution of the token after `node`. The view is valid until the
    // next call for this model. DSC_EABSENT as for next. NULL: this model has no distributions.
    int (*dist)(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err);
    // A hint that samples at u[i] in [0, 1) after node[i], i < n, follow: data of distributions
    // that lie elsewhere is fetched together. NULL: the hint has no use.
    int (*prefetch)(dsc_model *m, const int32_t *node, const double *u, size_t n, dsc_error *err);
    // The distribution before the temperature, which orders a model's candidates and gives their
    // confidence, at temperature 0 too. NULL: the same as `dist`.
    int (*base_dist)(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err);
    // The k most probable tokens of that distribution into token[k], in descending order, ties by
    // ascending id; *count is their number. NULL: the caller uses `base_dist`.
    int (*top)(dsc_model *m, int32_t node, size_t k, int32_t *token, size_t *count, dsc_error *err);
    // Of a parallel drafter, whose distribution after a node depends on the node's depth only,
    // after score: the distribution `offset` >= 0 tokens after the next one, given the committed
    // output and none of the tokens between. `base`: the one before the temperature. The view is
    // valid until the next call for this model. DSC_EUSAGE: the model predicts no token at this
    // offset. NULL: the model is no parallel drafter.
    int (*marginal)(dsc_model *m, int64_t offset, bool base, dsc_dist *out, dsc_error *err);
    // Of a recorded parallel drafter, in place of `marginal`: the recorded candidates at `offset`,
    // in descending order of probability, at most k into token[k] and probability[k]; *count is
    // their number, and *all is whether there are no others. DSC_EUSAGE as for `marginal`.
    int (*marginal_top)(dsc_model *m, int64_t offset, size_t k, int32_t *token, double *probability,
                        size_t *count, bool *all, dsc_error *err);
    // Of a recorded draft model: the candidates of its dynamic trees, which replace its
    // distributions. NULL: it has distributions.
    int (*candidates)(dsc_model *m, dsc_recorded_candidates *out, dsc_error *err);
    // Optional, after score: computes the draft/target overlap in place (for example on the GPU)
    // instead of copying both distributions to the host. One call may compute all nodes of the
    // draft. Errors may be deferred to the next call that returns a status, at the latest to
    // commit.
    int (*overlap)(dsc_model *m, dsc_overlap_query *q, dsc_error *err);
    // Appends the tokens of one step to the committed output.
    int (*commit)(dsc_model *m, const int32_t *token, size_t n, dsc_error *err);
} dsc_model_type;

struct dsc_model {
    const dsc_model_type *type;
    const int32_t *output; // [length] committed output tokens
    int64_t length;
    int64_t limit;            // maximum length of the output, in tokens
    int32_t end_token;        // the EOS token, or -1: none
    const int32_t *more_ends; // [more] further EOS tokens; the memory is the instance's
    int more;
    bool ended;
    int64_t refused; // off-path queries so far
};

// The models of a run. `draft` and `middle` (of a cascade) are NULL where there is none. The loop
// commits the same tokens to all of them.
typedef struct dsc_models {
    dsc_model *target, *draft, *middle;
} dsc_models;

// The model whose distributions a draft was sampled from.
static inline dsc_model *dsc_models_drafter(const dsc_models *m, const dsc_draft *d)
{
    return d->from_middle ? m->middle : m->draft;
}

// The distribution after `node`; DSC_EABSENT when the model has none.
static inline int dsc_model_dist(dsc_model *m, int32_t node, dsc_dist *out, dsc_error *err)
{
    return m->type->dist
               ? m->type->dist(m, node, out, err)
               : dsc_fail(err, DSC_EABSENT, "model %s has no distributions", m->type->name);
}

// Returns whether `token` is an EOS token of the model.
static inline bool dsc_model_is_end(const dsc_model *m, int32_t token)
{
    bool end = token == m->end_token && token >= 0;
    for (int i = 0; i < m->more; i++)
        end |= token == m->more_ends[i];
    return end;
}

// Returns whether generation stops with `token` when it follows `depth` draft tokens after the
// committed output: it is an EOS token, or the output reaches its limit.
static inline bool dsc_model_ends(const dsc_model *m, int64_t depth, int32_t token)
{
    return dsc_model_is_end(m, token) || m->length + depth + 1 >= m->limit;
}

#ifdef __cplusplus
}
#endif

#endif
